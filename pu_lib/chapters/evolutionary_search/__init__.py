"""Quantities of the evolutionary search for late falls of values under cross-entropy."""
