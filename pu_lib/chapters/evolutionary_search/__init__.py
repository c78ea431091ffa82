"""Claims, quantities, checks and figures of the evolutionary search for late falls of cross-entropy."""
