"""The subcommands of ``python -m pu_lib``, one module each."""
