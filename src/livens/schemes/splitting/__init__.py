"""Splitting schemes: semi-explicit, IMEX, Nambu and Wisdom-Holman splittings, and compositions."""
