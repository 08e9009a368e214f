"""Steppers and their code generation: from the equations of one step to native code and a loop over time.

- `compiled_step`, `stepper`, `stepper_registry`: compiled equations of a step, and the base class of steppers.
- `variable_steps`: steps whose sizes are chosen one at a time, by a controller or by a step density.

Mechanics enters only in the steppers of special systems in `livens.engine.steppers`.
"""
