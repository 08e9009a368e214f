"""Consistent initial values: projection onto constraints, multipliers and massless coordinates."""
