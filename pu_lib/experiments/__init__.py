"""The paper's experiments: the compiled Jekyll & Hyde loop, sweeps, and timing statistics."""
