"""Consistent initial values: projection onto constraints, multipliers and massless coordinates.

- `dense`: consistent positions (`project_position`), velocities (`project_velocity`) and multipliers of systems.
- `sparse`, `sparse_linalg`: the same for large systems.
- `velocity_projection`: consistent velocity nearest in the mass metric, after impulses.
- `massless`: equilibrium of coordinates without mass.
- `redundancy`: redundant constraints.
- `derivative_array`: first-order systems of any index.
- `gauss_newton`: the iteration, and the error that proposes consistent values.

Velocities of mechanisms follow from joint rates in `livens.multibody.assembly`, those of port-Hamiltonian systems in
`livens.models.port_hamiltonian.initialization`.
"""
