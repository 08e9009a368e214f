"""Whether the tests notice that the source is wrong: `make mutants`.

``python -m mutants`` (with this folder's parent on the path) changes one place of the source after the other, each in a
copy of the project, and runs the tests that claim to prove that place. A change that no test notices has survived;
`survivors.toml` says why those that are known do, and everything else that survives is a fault.
"""
