"""The style of all figures, and the figures and widgets that do not belong to one chapter."""
