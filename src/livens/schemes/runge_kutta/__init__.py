"""Runge-Kutta schemes and partitioned Runge-Kutta pairs."""
