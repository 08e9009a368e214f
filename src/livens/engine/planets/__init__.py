"""Planets side by side in the lanes of vectors, on Kepler's ellipses and with kicks."""
