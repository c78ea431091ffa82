"""Policy updates beyond the policy gradient theorem.

The library behind the executable companion to Laroche and Tachet des Combes, *Beyond the
Policy Gradient Theorem for Efficient Policy Updates in Actor-Critic Algorithms* (AISTATS 2022).

The modules follow the paper: `updates` holds the five policy updates, `mdp` and `domains` the
finite Markov decision processes, `trajectories` the exact process, `theory` the quantities and
checks of each theorem, `empirical` the experiments, `claims` the ledger of all claims.
"""

__version__ = "0.1.0"
