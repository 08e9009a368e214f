"""Mutation test of the source: `make mutants`.

``python -m mutants`` (with the parent of this folder on the path) creates mutants, each in a copy of the project, and
runs the tests that verify the changed place. A mutant that no test detects survives. `survivors.toml` contains the
reasons of known survivors; every other survivor is a fault.
"""
