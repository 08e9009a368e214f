"""Wisdom-Holman kick and drift maps of planets in SIMD lanes."""
