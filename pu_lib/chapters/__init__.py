"""One folder a chapter of the book: its claims, quantities, checks and figures."""
