"""Taylor-series integrator: isomorphic operations share SIMD lanes."""
