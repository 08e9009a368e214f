"""Roller bearing: slices of rollers, model and initial state."""
