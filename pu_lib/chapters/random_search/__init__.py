"""Quantities of the random search for oscillating cross-entropy runs."""
