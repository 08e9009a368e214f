"""Models: systems of elements, Hamiltonian, Nambu, first-order and port-Hamiltonian systems, and their equations.

- `base`: base class of all models; `system`, `element`: systems as sums of elements.
- `equations_of_motion`: mass matrix, constraint Jacobian, forces and Lagrange multipliers as expressions.
- `numeric_assembly`, `element_sums`: terms and observables of large systems, element type by element type.
- `energy_round_off`: round-off of energies by stiff forces, and of mechanisms at rest.
- `initialization`: consistent positions, velocities and multipliers.
- `mass`, `mass_signs`, `system_properties`, `symmetry_check`: structural properties that schemes require.
- `descriptor`, `dae_index`, `differentiation_index`: descriptor form, matrix pencil and index.
- `multibody_equations`, `multibody_dae`: equations with quasi-velocities, and their DAE formulations.
- `linalg`, `lapack`, `disjoint_sets`: rank decisions, LAPACK routines, and connected components.
- `discrete_lagrangian`: discrete Lagrangians, the action of one step.
- `poisson`: Poisson systems, spins and isospectral flows.
- `velocity_constraints`, `angle_branches`: nonholonomic constraints, and angles beyond a turn.
- `external_force`, `contact_detection`, `guarded_event`: forces from outside, detected contacts, and model events.
"""
