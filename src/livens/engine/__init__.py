"""Steppers and their code generation: from the equations of one step to native code and a loop over time.

Mechanics enters only in the steppers of special systems in `livens.engine.steppers`.
"""
