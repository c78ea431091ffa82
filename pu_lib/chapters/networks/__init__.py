"""Networks that learn from samples: tasks that change, the protocol and its runs."""
