"""Newton iteration, compiled time loops, step-size control and static pivot order.

- `convergence`: what ends a Newton iteration; `newton_decision` is the only place that decides.
- `iteration`: residual test at round-off, Newton iteration of one step, struct of the kernels and arrays of a chunk.
- `predictors`: extrapolation of the unknowns from previous steps.
- `time_loop`: loops over fixed and adaptive steps, with fallbacks of failed steps.
- `step_size_control`: error estimates, acceptance and rejection of adaptive steps, controllers.
- `single_call`: a whole run of fixed steps in one native call.
- `markowitz`: static pivot order of the unrolled LU factorization.
- `workspace_layout`: offsets in the workspace that kernels and loops share.
"""
