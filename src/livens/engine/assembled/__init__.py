"""The assembled tier: one kernel per type of element and per class of fronts, run over index maps in vector lanes."""
