"""Ensemble integration in SIMD lanes."""
