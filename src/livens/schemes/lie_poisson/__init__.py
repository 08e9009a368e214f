"""Lie-Poisson schemes: spins on spheres, collective methods on so(3)*, and isospectral flows.

- `spherical_midpoint`: midpoint rule on products of spheres.
- `collective`: Gauss methods lifted to unit quaternions.
- `isospectral`: midpoint rule for matrices with constant eigenvalues.
"""
