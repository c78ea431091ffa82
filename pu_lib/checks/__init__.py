"""One module a chapter: the checks that the ledger runs."""
