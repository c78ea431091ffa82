"""Quantities and figures of the guide to choosing an update."""
