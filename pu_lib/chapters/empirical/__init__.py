"""Claims, quantities, checks and figures of the experiments of section 4."""
