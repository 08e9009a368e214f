"""Newton iteration, compiled time loops, step-size control and static pivot order.

- `convergence`: what ends a Newton iteration; `newton_decision` is the only place that decides.
- `iteration`: residual test at round-off, Newton iteration of one step, struct of the kernels and arrays of a chunk.
- `predictors`: extrapolation of the unknowns from previous steps.
- `time_loop`: loops over fixed and adaptive steps, with fallbacks of failed steps.
- `adaptive_step`: adaptive steps, attempts with decreasing sizes.
- `error_estimate`: embedded error estimates, and estimates by a double step.
- `step_size_control`: step-size controllers, size of the next attempt, acceptance and rejection of steps.
- `single_call`: a whole run of fixed steps in one native call.
- `markowitz`: static pivot order of the unrolled LU factorization.
- `workspace_layout`: offsets in the workspace that kernels and loops share.
"""
