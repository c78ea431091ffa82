"""Quantities of the evolutionary search for late falls of cross-entropy."""
