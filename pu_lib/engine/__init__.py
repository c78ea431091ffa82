"""Compiled code of the experiments and of the search for cycles.

Importing this package imports numba.

- `arithmetic`: random numbers and elementary functions with the same bits on x86-64 and ARM;
- `rows`: policies of one state, and its updates by the kernels of `pu_lib.kernels`;
- `values`: exact values and performance;
- `loop`: the loop of Jekyll & Hyde;
- `exact`: updates with exact values on deterministic MDPs.
"""
