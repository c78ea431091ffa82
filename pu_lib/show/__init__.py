"""Figures and explorers of the book; the only part of the library that draws."""
