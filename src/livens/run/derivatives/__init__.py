"""Derivatives of runs: gradients, Jacobian-vector products, Hessians."""
