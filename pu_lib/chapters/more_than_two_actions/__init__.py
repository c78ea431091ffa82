"""Claims, quantities, checks and figures of the chapter `book/more-than-two-actions.ipynb`."""
