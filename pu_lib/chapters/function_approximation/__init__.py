"""Claims, quantities, checks and figures of the chapter `book/function-approximation.ipynb`."""
