"""Expression graphs, walked with an algebra of one's own.

A CasADi function is a list of scalar instructions. Three things are done with such a list, each with its own
algebra on the same walk: native code (`livens.engine.emit`), exact increments (`livens.graph.increments`) and
round-off bounds (`livens.graph.roundoff`).
"""
