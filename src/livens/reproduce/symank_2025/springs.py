"""Figures 4 to 7 of Symank 2025: energy and power balance of two masses on springs."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from livens import tableaus
from livens.plot.curves import curve, time_axis
from livens.plot.style import GREY, PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce import panels
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import ROUNDOFF_FACTOR, claim_above, claim_below, claim_between, roundoff_limit, run
from livens.reproduce.symank_2025.runs import METHODS, controlled
from livens.results.result import Result
from livens.run.step_control import StepControl
from livens.schemes.tableaus import Tableau

_GAUSS, _LOBATTO = METHODS
_EPS = float(np.finfo(float).eps)
_OMEGA = np.sqrt(3.0)  # frequency of the initial mode
_T_END = 2000.0


def _masses(scheme: str, largest: float) -> Result:
    """Return a run with slowly growing steps from 1e-3 s, so that effects can be attributed to a step size."""
    return controlled("mass-spring-damper", scheme, 1e-3, _T_END, StepControl(largest=largest, increase=1.25))


def amplification(tableau: Tableau, z: complex) -> float:
    """Return ``|R(z)|^2`` with ``R(z) = 1 + z b^T (I - z A)^-1 1``, the energy amplification of a mode per step.

    >>> from livens import tableaus
    >>> round(amplification(tableaus.gauss(3), 2j), 14), round(amplification(tableaus.lobatto_iiic(3), 2j), 3)
    (1.0, 0.918)
    """
    ones = np.ones(tableau.s)
    return float(abs(1 + z * tableau.b @ np.linalg.solve(np.eye(tableau.s) - z * tableau.A, ones)) ** 2)


def _energies(results: dict[str, Result]) -> dict[str, np.ndarray]:
    return {scheme: result.observe("total_energy") for scheme, result in results.items()}


def _claim_gauss_conserves(result: Result, H: np.ndarray) -> Claim:
    text = "Gauss conserves the energy to round-off (largest deviation)."
    return claim_below(text, float(np.abs(H - H[0]).max()), roundoff_limit(result, "total_energy"), "J")


def _claim_predicted_loss(result: Result, H: np.ndarray, until: int) -> Claim:
    """Return the claim that the energy of the single initial mode is multiplied by |R|^2 in each step."""
    T = tableaus.lobatto_iiic(3)
    sizes = result.step_size[1 : until + 1]
    factors = {h: amplification(T, 1j * _OMEGA * h) for h in np.unique(sizes)}
    expected = np.cumprod([factors[h] for h in sizes])
    text = "The energy of Lobatto IIIC follows the stability function: |R(i omega h)|^2 per step (relative error)."
    return claim_below(text, float(np.abs(H[1 : until + 1] / H[0] / expected - 1).max()), 1e-9)


@figure(
    "symank-2025",
    4,
    "Energy conservation",
    note="With 2 k2 in (7.3) and (7.4), as printed, the exact motion does not conserve the printed H; with k2, its "
    "derivative, it does. The tolerance of 1e-5 of the document is that of the Newton iteration; here the equations "
    "are solved to round-off.",
)
@house_style()
def energy() -> tuple[Figure, list[Claim]]:
    results = {scheme: _masses(scheme, 0.1) for scheme in METHODS}
    H = _energies(results)
    picture, left, right = panels.two_panels()
    for i, (scheme, result) in enumerate(results.items()):
        curve(left, result.t, H[scheme], color=PALETTE[i], label=METHODS[scheme])
    curve(right, results[_GAUSS].t, H[_GAUSS] / H[_GAUSS][0] - 1, color=PALETTE[0], label=METHODS[_GAUSS])
    right.set_ylabel("$H/H_0 - 1$ (Gauss)")
    left.set_ylabel("$H$ (J)")
    for axes in (left, right):
        time_axis(axes, results[_GAUSS])
    legend(left)
    lost = H[_LOBATTO]
    claims = [
        _claim_gauss_conserves(results[_GAUSS], H[_GAUSS]),
        claim_below(
            "Lobatto IIIC loses energy in each step of 0.1 s (largest change per step).",
            float(np.diff(lost)[results[_LOBATTO].step_size[1:] > 0.09].max()),
            -1e-6,
            "J",
        ),
        claim_between(
            "The loss of Lobatto IIIC over the run is small (relative).", float(1 - lost[-1] / lost[0]), 1e-4, 0.1
        ),
        _claim_predicted_loss(results[_LOBATTO], lost, len(lost) - 1),
    ]
    return panels.with_caption(picture, results[_GAUSS], "steps up to 0.1 s"), claims


@figure(
    "symank-2025",
    5,
    "Energy conservation with large steps",
    note="Steps grow by a quarter after every third one, up to 5 s. The document does not specify the growth. Its "
    "drop at 1.25 s agrees with k2: with 2 k2 in the forces, it would begin earlier.",
)
@house_style()
def large_steps() -> tuple[Figure, list[Claim]]:
    results = {scheme: _masses(scheme, 5.0) for scheme in METHODS}
    H = _energies(results)
    picture, left, right = panels.two_panels()
    for i, (scheme, result) in enumerate(results.items()):
        curve(left, result.t, H[scheme], color=PALETTE[i], label=METHODS[scheme])
    left.set_ylabel("$H$ (J)")
    time_axis(left, results[_GAUSS])
    lobatto, lost = results[_LOBATTO], H[_LOBATTO]
    zoom = lobatto.t < 60
    right.plot(lobatto.t[zoom], lost[zoom], color=PALETTE[1], marker=".", markersize=2, label="$H$ (J)")
    right.plot(lobatto.t[zoom], 10 * lobatto.step_size[zoom], color=PALETTE[7], linestyle="--", label="$10 h$ (s)")
    right.set_xlabel("$t$ (s)")
    for axes in (left, right):
        legend(axes)
    drop_index = 1 + int(np.argmax(lost[1:] < 0.9 * lost[:-1]))
    claims = [
        _claim_gauss_conserves(results[_GAUSS], H[_GAUSS]),
        claim_below("The energy of Lobatto IIIC decays to zero (relative).", float(lost[-1] / lost[0]), 1e-12),
        claim_between(
            "The drop begins at h = 1.25 s (first step that loses a tenth of the energy, within one step growth).",
            float(lobatto.step_size[drop_index]),
            1.0,
            1.5625,
            "s",
        ),
        claim_between(
            "A step that loses a tenth of the energy of the second mode: with k2 in the forces,",
            _tenth_lost(math.sqrt(3)),
            1.2,
            1.3,
            "s",
        ),
        claim_between("with 2 k2.", _tenth_lost(math.sqrt(5)), 0.9, 1.0, "s"),
        _claim_predicted_loss(lobatto, lost, int(np.argmax(lost < 1e-6 * lost[0]))),
    ]
    return panels.with_caption(picture, lobatto, "steps up to 5 s, and gauss-3"), claims


def _tenth_lost(omega: float) -> float:
    """Return the step at which Lobatto IIIC with three stages loses a tenth of the energy of an oscillation."""
    from scipy.optimize import brentq

    tableau = tableaus.lobatto_iiic(3)
    return float(brentq(lambda h: amplification(tableau, 1j * omega * h) - 0.9, 0.1, 3.0))


# -- power balance ----------------------------------------------------------------------------------------------------
def _chain(scheme: str) -> Result:
    return run("spring-chain", scheme, 0.1, 60.0)


def _balance_terms(result: Result) -> tuple[np.ndarray, np.ndarray]:
    """Return both sides of (7.5) in each step: stored energy, and supplied minus dissipated energy."""
    balance = np.diff(result.supplied_energy) - np.diff(result.dissipated_energy)
    return np.diff(result.observe("hamiltonian")), balance


_BALANCE = (
    "The balance is dH = -h sum b_j (d1 V1j^2 + d2 V2j^2) + h sum b_j alpha V1j. The document adds the dissipation and "
    "squares the velocity in the power of the force. The step size is not given; here it is 0.1 s."
)


@figure("symank-2025", 6, "Power balance of Gauss' method", note=_BALANCE, quick=True)
@house_style()
def power_balance() -> tuple[Figure, list[Claim]]:
    result = _chain(_GAUSS)
    stored, balance = _balance_terms(result)
    picture, axes = panels.single_panel()
    curve(axes, result.t[1:], stored, color=PALETTE[0], linewidth=2.5, label="$H_{n+1} - H_n$")
    curve(axes, result.t[1:], balance, color=PALETTE[4], linestyle="--", label="supplied - dissipated")
    axes.set_ylabel("energy per step (J)")
    time_axis(axes, result)
    legend(axes)
    difference = float(np.abs(stored - balance).max() / np.abs(stored).max())
    claims = [
        claim_below(
            "Both sides agree (largest difference, relative to the largest change).", difference, ROUNDOFF_FACTOR * _EPS
        ),
        claim_above("Energy is dissipated.", float(result.dissipated_energy[-1]), 1.0, "J"),
        claim_above("Energy is supplied.", float(np.abs(result.supplied_energy).max()), 1.0, "J"),
    ]
    return panels.with_caption(picture, result), claims


@figure("symank-2025", 7, "Difference in the power balance", note=_BALANCE, quick=True)
@house_style()
def power_difference() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 2.6)
    axes = picture.add_subplot()
    differences: dict[str, np.ndarray] = {}
    for scheme, label in METHODS.items():
        stored, balance = _balance_terms(_chain(scheme))
        differences[label] = np.abs(stored - balance)
    result = _chain(_GAUSS)
    size = float(result.observe("hamiltonian")[0])
    panels.logarithmic(axes, result, differences, _EPS * size, r"$|\Delta H - \Delta$balance$|$ (J)", t=result.t[1:])
    gauss, lobatto = differences.values()
    claims = [
        claim_below(
            "Gauss: the balance holds to round-off in each step.",
            float(gauss.max()),
            ROUNDOFF_FACTOR * _EPS * size,
            "J",
        ),
        claim_above(
            "Lobatto IIIC: it does not, because its quadrature degree is lower.", float(lobatto.max()), 1e-7, "J"
        ),
    ]
    return _with_title(picture, "spring-chain, h = 0.1 s"), claims


def _with_title(picture: Figure, label: str) -> Figure:
    style: dict[str, object] = dict(x=0.01, ha="left", color=GREY)
    picture.suptitle(label, **style)
    return picture
