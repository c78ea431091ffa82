"""Claims, quantities, checks and figures of the chapter `book/remedies.ipynb`."""
