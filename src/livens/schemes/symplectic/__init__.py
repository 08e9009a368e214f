"""Symplectic and variational schemes."""
