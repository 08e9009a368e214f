"""Events: definition, detection and actions.

- `event`: event functions with direction, action and termination.
- `detection`: sign changes, near tangencies, and event times within a step (Brent's method on the dense output).
- `actions`: changes of state and parameters by an event.
"""
