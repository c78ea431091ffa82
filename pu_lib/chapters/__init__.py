"""One folder for each chapter of the book: its claims, quantities, checks and figures."""
