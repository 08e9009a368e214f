"""Rigid contact in a run: impacts and contact modes."""
