"""Claims, quantities, checks and figures of the chapter `book/what-came-after.ipynb`."""
