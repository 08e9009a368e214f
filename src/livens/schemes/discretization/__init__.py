"""Discretizations: step equations of models, shared by the schemes.

Systems of elements:

- `element_scheme`, `element_step`: interface of element-wise schemes, and their equations as one graph.
- `element_batches`, `assembly_plan`: the same equations as batches of equal elements, for the assembled tier.
- `rigid_body_step`, `rigid_body_equations`, `rigid_body_kernels`: rigid bodies with directors, six unknowns each.
- `rigid_body_batches`, `rigid_body_ggl_batches`: their batches.
- `quasi_velocities`, `so3`, `unit_quaternion`, `free_rotation`: twists and rotations on symbols.
- `velocity_constraints`: nonholonomic constraints in a step.
- `midpoint_external_force`: compiled forces in implicit steps.

Runge-Kutta methods:

- `collocation`: dense output, extrapolation and embedded quadrature of stages.
- `dae_runge_kutta`: methods on descriptor models, and `murua_dae` with projected stages.
- `partitioned_rk`: pairs of methods on first-order systems and Hamiltonians, with and without constraints.
- `livens_runge_kutta`, `stage_elimination`: methods on systems of elements, in Livens form.
- `fixed_point_stages`: stages solved by fixed-point iteration.
- `radau_error_estimate`: filtered error estimate.

Phase space and splitting:

- `phase_space_map`: maps of coordinates and momenta, for separable and general Hamiltonians.
- `semi_explicit_step`, `semi_explicit_scaling`, `force_history`: split into expensive and cheap forces.
- `independent_bodies`: bodies that only contacts couple.
- `stability_limit`, `time_transformation`: largest stable step, and steps in fictive time.
"""
