"""Schemes with time transformation: Sundman, step density and adaptive variational integrators."""
