"""The paper's experiments: the compiled Jekyll & Hyde loop, sweeps, statistics of times."""
