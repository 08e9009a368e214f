"""Observables evaluated over the rows of a run, and the drift monitor."""
