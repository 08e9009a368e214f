"""Expression graphs, walked with an algebra of one's own.

A CasADi function is a list of scalar instructions. Four things are done with such a list, each with its own algebra
on the same walk: native code (`livens.engine.emit`), and in this folder exact increments, round-off bounds and fewer
divisions.
"""
