"""The assembled tier: one kernel per type of element and per class of fronts, run over index maps in vector lanes."""

from livens.engine.assembled import code as code  # so that its functions are known before one of them is called
