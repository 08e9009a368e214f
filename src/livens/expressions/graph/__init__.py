"""Interpretation and transformation of CasADi expression graphs.

A CasADi function is a list of scalar instructions. `interpreter.interpret` evaluates the list in any algebra: native
code (`livens.engine`), exact increments, round-off bounds and algebraic simplification.
"""
