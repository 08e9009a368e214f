"""Assembled tier: one kernel per element type and per front class, evaluated over index maps in SIMD lanes."""

from livens.engine.assembled import compile_unit as compile_unit  # registers the compile unit before the first call
