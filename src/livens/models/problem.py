"""Built-in problems: a model with initial values and default settings of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.errors import abbreviate, explain_call_errors
from livens.scene import html
from livens.scene.scene import Scene
from livens.scene.sketch import svg


@explain_call_errors
@dataclass(frozen=True, eq=False)
class Problem:
    """Model with initial values and default settings of a run.

    Parameters
    ----------
    name : str
        Name of the problem.
    model : Model
        Model to simulate.
    q0, v0 : ndarray of shape (n,) or None
        Initial coordinates and velocities of a mechanical system; None for other models.
    scheme : str
        Default scheme.
    h : float
        Default step size, in seconds.
    t_end : float
        Default end time, in seconds.
    t0 : float, default 0.0
        Initial time, in seconds.
    reference : callable, optional
        Exact solution ``reference(t)``, where known: a dict with some of ``q``, ``v`` (``x``, ``p``).
    scaling : optional
        Time transformation for schemes that adapt their steps, see `livens.scaling`.
    initial_values : mapping, optional
        Initial values of models other than mechanical systems, such as ``{"x0": [1.0, 0.0]}``.
    factory_options : dict, optional
        Arguments of `load` that the problem was built with.
    parameters : mapping, optional
        Parameter values that differ from those of the model.
    control : mapping, optional
        Optimal control problem on the model: default arguments of `livens.optimal_control`.
    """

    name: str
    model: Any  # a Model
    q0: np.ndarray | None
    v0: np.ndarray | None
    scheme: str
    h: float
    t_end: float
    t0: float = 0.0
    reference: Callable[[float], dict[str, np.ndarray]] | None = None
    scaling: Any = None
    initial_values: Mapping[str, Any] = field(default_factory=dict)
    factory_options: dict[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    control: Mapping[str, Any] = field(default_factory=dict)

    @property
    def start_values(self) -> dict[str, Any]:
        """Initial values by the names of the arguments of `livens.simulate`."""
        return dict(self.initial_values) if self.initial_values else {"q0": self.q0, "v0": self.v0}

    @property
    def initial_scene(self) -> tuple[Scene, np.ndarray, float]:
        """Scene at the initial time, with the initial coordinates or states and the time."""
        model = self.model
        state = self.start_values.get("q0", self.start_values.get("x0"))
        if state is None:
            return Scene(), np.zeros(0), self.t0
        return model.scene_for(model.parameter_vector(self.parameters)), np.asarray(state, dtype=float), self.t0

    def _repr_html_(self) -> str:
        """Return the summary and the picture of the initial configuration for notebooks."""
        model = self.model
        initial_values = {name: value for name, value in self.start_values.items() if value is not None}
        coordinates = f"{len(model.coordinates)} coordinates: {abbreviate(model.coordinates, 8)}"
        table = html.definition_table(
            {
                "problem": self.name,
                "model": f"{model.type_label}, {coordinates}",
                "default run": f"{self.scheme}, h = {self.h:g}, t = {self.t0:g} to {self.t_end:g}",
                "options": ", ".join(f"{name}={html.escape(value)}" for name, value in self.factory_options.items()),
                "initial values": "; ".join(
                    f"{name} = {abbreviate([f'{x:.4g}' for x in np.ravel(value)], 8)}"
                    for name, value in initial_values.items()
                ),
            }
        )
        picture = svg(*self.initial_scene)
        return f'<div style="display:flex;gap:1em;align-items:center">{picture}{table}</div>'

    def with_parameters(self, parameters: Mapping[str, float]) -> Problem:
        """Return the problem with other parameter values and without the exact solution, which no longer applies.

        Parameters
        ----------
        parameters : mapping
            Parameter values by name.

        Returns
        -------
        Problem
            The problem with the new values.
        """
        if not parameters:
            return self
        return dataclasses.replace(self, parameters={**self.parameters, **parameters}, reference=None)
