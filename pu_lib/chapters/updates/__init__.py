"""Claims, quantities, checks and figures of the chapter `book/updates.ipynb`."""
