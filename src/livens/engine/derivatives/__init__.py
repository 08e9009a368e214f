"""Tangent, adjoint and second-order adjoint kernels and sweeps."""
