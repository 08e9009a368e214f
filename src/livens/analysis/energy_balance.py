"""Energy balance of a run: monitored energy, supplied and dissipated energy, and reference scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from livens.results.result import Result

_EXCHANGE = ("supplied_energy", "dissipated_energy")
#: Ratio of initial energy to typical energy below which the initial energy is not used as a reference scale.
_NEARLY_ZERO = 1e-3


def has_energy_record(result: Result) -> bool:
    """Return True if supplied and dissipated energy are stored, or if the model exchanges no energy."""
    model = result.system
    return set(_EXCHANGE) <= set(result.stored) or model.conservative or _EXCHANGE[0] not in model.layout


def net_supplied_energy(result: Result) -> np.ndarray:
    """Return supplied minus dissipated energy at every stored time, in joules."""
    if result.system.conservative or _EXCHANGE[0] not in result.system.layout:
        return np.zeros(len(result.t))
    return np.asarray(result.supplied_energy - result.dissipated_energy)


def balance(result: Result) -> np.ndarray:
    """Return the monitored energy minus the net supplied energy, which is constant along the exact motion.

    >>> import livens as lv
    >>> damped = lv.PortHamiltonian(
    ...     "q p", H=lambda x: x @ x / 2, J=[[0, 1], [-1, 0]], R=[[0, 0], [0, 0.1]]
    ... )
    >>> run = lv.simulate(damped, x0=[1.0, 0.0], scheme="gauss-2", h=0.1, t_end=10.0)
    >>> bool(np.ptp(run.observe("hamiltonian")) > 0.2), bool(np.ptp(balance(run)) < 1e-14)
    (True, True)
    """
    return np.asarray(result.observe(result.summary.energy) - net_supplied_energy(result))


def reference_scale(result: Result) -> tuple[float, str]:
    """Return the reference scale of energy deviations and its symbol.

    The scale is ``|E_0|``. If ``|E_0|`` is nearly zero, it is the largest kinetic energy, or the largest energy of
    models without kinetic energy.
    """
    energy = np.abs(result.observe(result.summary.energy))
    kinetic = "kinetic_energy" in result.system.view.observable_names
    size = float(np.abs(result.observe("kinetic_energy")).max()) if kinetic else float(energy.max())
    if energy[0] > _NEARLY_ZERO * size:
        return float(energy[0]), "|E_0|"
    return size or 1.0, r"\max T" if kinetic else r"\max |E|"
