"""Splitting schemes: semi-explicit, IMEX, Nambu, Wisdom-Holman, J-R and user-defined splittings, compositions."""
