"""Claims, quantities, checks and figures of the chapter `book/gravity-well.ipynb`."""
