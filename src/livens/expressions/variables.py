"""Schema of the result variables of a run, in memory and in files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """Result variable. Its first dimension is time; `dim` is the second dimension, if any."""

    words: str
    axis: str = ""
    unit: str = ""


VARIABLES = {
    "t": Variable("time", unit="s"),
    "q": Variable("coordinates", "coordinate"),
    "v": Variable("velocities", "coordinate"),
    "p": Variable("momenta dL/dv", "coordinate"),
    "x": Variable("states", "coordinate"),
    "y": Variable("algebraic variables", "algebraic"),
    "multipliers": Variable("Lagrange multipliers of the step that ends at t", "constraint"),
    "step_size": Variable("size of the step that ends at t", unit="s"),
    "newton_iterations": Variable("Newton corrections of the step that ends at t", unit="1"),
    "supplied_energy": Variable("work of forces and moving constraints since the start", unit="J"),
    "dissipated_energy": Variable("energy dissipated since the start", unit="J"),
    "fictive_time": Variable("the time that the steps divide equally"),
    "stages": Variable("stages of the step that ends at t", unit="1"),
    "step_density": Variable("steps per unit time, relative to equal steps"),
}
#: Variables of every run, independent of the model.
ALWAYS = ("t", "step_size", "newton_iterations")


def dimensions() -> dict[str, tuple[str, ...]]:
    """Return the dimensions of every result variable."""
    return {name: ("t", variable.axis) if variable.axis else ("t",) for name, variable in VARIABLES.items()}
