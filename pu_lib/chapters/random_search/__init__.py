"""Claims, quantities, checks and figures of the random search for oscillating cross-entropy runs."""
