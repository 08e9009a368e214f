"""Runs: from the arguments of a simulation to a result.

- `simulate`, `prepare`: public entry points; `mechanism`: the same for multibody models.
- `plan`: checked arguments; `startup`: compiled step and first state; `driver`: loop over chunks of steps.
- `stepping`, `step_control`: fixed, fictive-time and adaptive steps; `initial_step_size`.
- `fast_path`: repeated short runs in one native call; `single_steps`, `drive`: steps one by one.
- `events`: detection, localisation and actions; `contact`: impacts and contact modes of rigid contact.
- `drift_monitor`: largest deviations of conserved quantities over all steps.
- `tunnelling`: pairs in contact that pass through each other within a step.
- `ensemble`, `derivatives`: many runs, and derivatives of runs.
- `schedule`, `held_parameters`, `sampled_control`: inputs, and controllers that are called between steps.
- `bridges`: JAX, PyTorch, Gymnasium, FMI, CasADi, and initial value problems in the form of SciPy.
"""
