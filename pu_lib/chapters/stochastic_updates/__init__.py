"""Claims, quantities, checks and figures of the chapter `book/stochastic-updates.ipynb`."""
