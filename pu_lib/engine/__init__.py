"""Compiled code: the loop of the experiments and the exact process of the search for cycles.

- `compiling`: how functions are compiled, and how their code on disk is kept up to date;
- `arithmetic`: random numbers and elementary functions with the same bits on x86-64 and ARM;
- `rows`: policies and updates of one state; the updates are the kernels of `pu_lib.kernels`;
- `values`: exact values and performance;
- `loop`: Jekyll & Hyde;
- `exact`: the process with exact values on deterministic MDPs.

Importing any of them imports numba.
"""
