"""Schema of the result variables of a run, in memory and in files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResultVariable:
    """Result variable. Its first dimension is time; `dim` is the second dimension, if any."""

    description: str
    dim: str = ""
    unit: str = ""


RESULT_VARIABLES = {
    "t": ResultVariable("time", unit="s"),
    "q": ResultVariable("coordinates", "coordinate"),
    "v": ResultVariable("velocities", "coordinate"),
    "p": ResultVariable("momenta dL/dv", "coordinate"),
    "x": ResultVariable("states", "coordinate"),
    "y": ResultVariable("algebraic variables", "algebraic"),
    "multipliers": ResultVariable("Lagrange multipliers of the step that ends at t", "constraint"),
    "step_size": ResultVariable("size of the step that ends at t", unit="s"),
    "newton_iterations": ResultVariable("Newton corrections of the step that ends at t", unit="1"),
    "supplied_energy": ResultVariable("work of forces and moving constraints since the start", unit="J"),
    "dissipated_energy": ResultVariable("energy dissipated since the start", unit="J"),
    "discrete_energy": ResultVariable("discrete energy of the step that ends at t", unit="J"),
    "fictive_time": ResultVariable("the time that the steps divide equally"),
    "stages": ResultVariable("stages of the step that ends at t", unit="1"),
    "step_density": ResultVariable("steps per unit time, relative to equal steps"),
    "q_0": ResultVariable("coordinates of the first copy of a doubled phase space", "coordinate"),
    "p_0": ResultVariable("momenta of the first copy of a doubled phase space", "coordinate"),
    "q_1": ResultVariable("coordinates of the second copy of a doubled phase space", "coordinate"),
    "p_1": ResultVariable("momenta of the second copy of a doubled phase space", "coordinate"),
}
#: Variables of every run, independent of the model.
MANDATORY = ("t", "step_size", "newton_iterations")


def variable_dims() -> dict[str, tuple[str, ...]]:
    """Return the dimensions of every result variable."""
    return {name: ("t", variable.dim) if variable.dim else ("t",) for name, variable in RESULT_VARIABLES.items()}
