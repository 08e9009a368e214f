"""What the rows of a run can hold, in memory and in a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """A variable of a run. Its first axis is time; `axis` is its second, if it has one."""

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
#: Those that every run has, whatever its model.
ALWAYS = ("t", "step_size", "newton_iterations")


def dimensions() -> dict[str, tuple[str, ...]]:
    """The axes of every variable."""
    return {name: ("t", variable.axis) if variable.axis else ("t",) for name, variable in VARIABLES.items()}
