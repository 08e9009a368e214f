"""Expression graphs, walked with an algebra of one's own.

A CasADi function is a list of scalar instructions. Four things are done with such a list, each with its own algebra
on the same walk: native code (`livens.engine.emit`), exact increments (`livens.graph.increments`), round-off bounds
(`livens.graph.roundoff`) and fewer divisions (`livens.graph.divisions`).
"""
