"""Assembled tier: one kernel per element type and per front class, evaluated over index maps in SIMD lanes."""

from livens.engine.assembled import code as code  # registers the compile unit before the first call
