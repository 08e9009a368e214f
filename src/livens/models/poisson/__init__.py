"""Poisson systems ``x' = J(x) grad H(x)``: general ones, spins on spheres, and isospectral flows of matrices.

- `model`: `Poisson`, with a structure matrix J(x) and Casimirs.
- `spins`: `Spins`, products of spheres with energies of single spins and of pairs.
- `isospectral`: `IsospectralFlow`, matrices with constant eigenvalues.
"""
