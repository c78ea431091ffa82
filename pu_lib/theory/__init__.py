"""One module a chapter: the quantities, the bounds and the checks of the paper's theory."""
