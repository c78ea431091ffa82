"""Claims, quantities, checks and figures of the chapter `book/cross-entropy.ipynb`."""
