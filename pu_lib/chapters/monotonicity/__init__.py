"""Claims, quantities, checks and figures of the chapter `book/monotonicity.ipynb`."""
