"""Unlearning a reward hack: groups of samples with verified rewards that change once."""
