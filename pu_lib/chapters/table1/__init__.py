"""Claims, quantities, checks and figures of Table 1."""
