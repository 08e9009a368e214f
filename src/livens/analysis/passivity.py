"""Passivity of port-Hamiltonian runs: ``W = [[R, P], [P^T, S]] >= 0`` at the states of the run.

W >= 0 and the energy balance give the dissipation inequality: the stored energy grows at most by the supplied energy.
The check at construction covers random states only; a dissipation matrix can be indefinite elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.errors import InputError
from livens.models.poisson.model import Poisson
from livens.results.result import Result

#: Largest number of states of a run at which a state-dependent W is checked.
_MAX_STATES = 1000


@dataclass(frozen=True)
class Passivity:
    """Passivity verdict of a run.

    Parameters
    ----------
    n_states : int
        Number of states of the run at which W was checked.
    violation : str
        Message of the first violation; empty if W is positive semidefinite at all of them.
    """

    n_states: int
    violation: str = ""

    @property
    def passive(self) -> bool:
        """True if W is positive semidefinite at all checked states."""
        return not self.violation

    def __str__(self) -> str:
        if self.passive:
            return f"passive: W = [[R, P], [P^T, S]] is positive semidefinite at {self.n_states} states of the run"
        return f"NOT PASSIVE: {self.violation}"


def passivity(result: Result) -> Passivity | None:
    """Return the passivity verdict of a run of a port-Hamiltonian model; None for other models.

    Parameters
    ----------
    result : Result
        Run whose stored states are checked: all of them, or 1000 at equal distances.

    Returns
    -------
    Passivity or None
        Number of checked states and the first violation.
    """
    if "x" not in result.stored or isinstance(result.system, Poisson):  # without dissipation, and possibly large
        return None
    from livens.models.port_hamiltonian.model import PortHamiltonian  # slow import, not needed for other models
    from livens.models.port_hamiltonian.structure import passivity_violation

    try:
        model = result.system
    except InputError:  # file of a user-defined system
        return None
    if not isinstance(model, PortHamiltonian):
        return None
    t, k = np.asarray(result.t), result.parameter_vector
    rows = np.unique(np.linspace(0, len(t) - 1, min(len(t), _MAX_STATES)).astype(int))
    x = np.asarray(result.x)
    for row in rows:
        violation = passivity_violation(model.structure, model.states, model.ports, x[row], float(t[row]), k)
        if violation is not None:
            return Passivity(len(rows), violation)
    return Passivity(len(rows))
