"""Optimal control by direct transcription: the step equations of a scheme as constraints of a nonlinear program."""
