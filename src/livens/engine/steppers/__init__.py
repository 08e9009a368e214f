"""Steppers: all implementations of `livens.engine.stepper.Stepper`, and the neighbour list of detected contacts."""
