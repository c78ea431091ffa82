"""Quantities of the random search for oscillating runs of cross-entropy."""
