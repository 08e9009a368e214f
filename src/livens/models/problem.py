"""A ready problem: a system with initial values and sensible defaults for a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.models import html
from livens.models.scene import Scene
from livens.models.sketch import svg


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, where it starts, and how it is usually run.

    A mechanical system starts from q0 and v0; for other kinds of models, `start` has what they start from, such as
    ``{"x0": [1.0, 0.0]}``. `reference(t)`, where known, gives the exact solution as a dict with some of ``q``, ``v``
    (``x``, ``p``).
    """

    name: str
    system: Any  # a Model
    q0: np.ndarray | None
    v0: np.ndarray | None
    scheme: str
    h: float
    t_end: float
    t0: float = 0.0
    reference: Callable[[float], dict[str, np.ndarray]] | None = None
    scaling: Any = None  # for schemes that adapt their steps, see `livens.scaling`
    start: Mapping[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # what `load` was called with
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the model, where they differ from its own

    @property
    def start_values(self) -> dict[str, Any]:
        """Where it starts, by the names of the arguments of `livens.simulate`."""
        return dict(self.start) if self.start else {"q0": self.q0, "v0": self.v0}

    @property
    def pose(self) -> tuple[Scene, np.ndarray, float]:
        """How it looks at the start: its scene, coordinates or states there, and the time."""
        model = self.system
        state = self.start_values.get("q0", self.start_values.get("x0"))
        if state is None:
            return Scene(), np.zeros(0), self.t0
        return model.scene_with(model.parameter_vector(self.parameters)), np.asarray(state, dtype=float), self.t0

    def _repr_html_(self) -> str:
        """For a notebook: what it is, and how it looks at the start."""
        model = self.system
        start = {name: value for name, value in self.start_values.items() if value is not None}
        table = html.listing(
            {
                "problem": self.name,
                "model": f"{model.kind}, {len(model.coordinates)} coordinates: {html.some(model.coordinates, 8)}",
                "usual run": f"{self.scheme}, h = {self.h:g}, t = {self.t0:g} to {self.t_end:g}",
                "options": ", ".join(f"{name}={html.cell(value)}" for name, value in self.options.items()),
                "start": "; ".join(
                    f"{name} = {html.some([f'{x:.4g}' for x in np.ravel(value)], 8)}" for name, value in start.items()
                ),
            }
        )
        picture = svg(*self.pose)
        return f'<div style="display:flex;gap:1em;align-items:center">{picture}{table}</div>'

    def with_parameters(self, parameters: Mapping[str, Any]) -> Problem:
        """The same with other parameters of the model; its exact solution, which knows nothing of them, is dropped."""
        if not parameters:
            return self
        return dataclasses.replace(self, parameters={**self.parameters, **parameters}, reference=None)
