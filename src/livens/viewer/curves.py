"""What is plotted below a film: energies, momenta, constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import LivensError
from livens.viewer.frames import text

if TYPE_CHECKING:
    from livens.results.result import Result

#: More curves than this cannot be told apart.
_MOST = 6


def curves_of(few: Result) -> list[dict[str, Any]]:
    """Curves over the frames of a run, by panel; none of a run whose model is not known or that stored too little."""
    found: list[dict[str, Any]] = []
    if few._system is None and few.facts.problem is None:
        return found
    view = few.system.view
    if not set(view.symbols) <= set(few.stored):
        return found

    def add(panel: str, name: str, values: np.ndarray, log: bool = False) -> None:
        if sum(curve["panel"] == panel for curve in found) < _MOST:
            entry = dict(panel=panel, name=name, values=text(np.asarray(values, dtype="<f4")), log=log)
            found.append(entry)

    watched = few.summary.energy
    for name in dict.fromkeys(["kinetic_energy", "potential_energy", watched]):
        values = _observed(few, name)
        if values is not None and values.ndim == 1:
            add("energy", name.replace("_energy", "").replace("_", " "), values)
    for name in few.summary.momentum_drift:
        values = _observed(few, name)
        if values is not None:
            columns = values.reshape(len(values), -1).T
            for i, column in enumerate(columns):
                short = name.removesuffix("_momentum").replace("_", " ")
                add("momenta", f"{short} {'xyz'[i]}" if 1 < len(columns) <= 3 else short, column)
    for name, words in (("constraint", "g(q)"), ("velocity_constraint", "G(q) v")):
        values = _observed(few, name) if few.facts.constraint_names else None
        if values is not None and values.size:
            add("constraints", words, np.abs(values.reshape(len(values), -1)).max(axis=1), log=True)
    return found


def _observed(few: Result, name: str) -> np.ndarray | None:
    try:
        return np.asarray(few.observe(name)) if name else None
    except LivensError:  # not every model has everything
        return None
