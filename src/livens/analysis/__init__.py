"""Analysis of results: conservation, energy balance, accuracy, linearisation and studies.

- `conservation`, `energy_balance`, `energy_by_element`, `passivity`: conserved quantities and energy.
- `signals`, `observables`: quantities of a run by name.
- `reaction_forces`, `contact_forces`: forces with their points of application.
- `accuracy`, `round_off`, `trend`: error estimates, round-off bounds, and trends of long series.
- `linearise`, `state_space`: eigenvalues, modes, inputs and outputs.
- `singular_configurations`: rank drops of the constraint Jacobian.
- `study`: convergence, work precision, parameter fits, Monte Carlo and stability.
- `report`: the report of a run.
"""
