"""The paper's experiments: the compiled Jekyll and Hyde loop, sweeps, statistics, statements."""
