"""Figures 13 and 14 of Symank 2025: double pendulum with a vanishing mass."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from livens.errors import InputError, IntegrationError
from livens.plot.style import GREY, PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import ROUNDOFF_FACTOR, claim_below, claim_between, run
from livens.reproduce.symank_2025.runs import PAIRS, convergence_power, relative_distances
from livens.results.result import Result

_J, _M, _GGL = PAIRS
_MASSES = tuple(10.0**-k for k in range(0, 41, 2))
_KAPPA = 0.01
_T_END = 10.0
#: Step sizes in s; J-PRK is not suitable for stiff systems and needs smaller steps, see the note.
_STEPS = {_J: 5e-4, _M: 0.01, _GGL: 0.01}
_EPS = float(np.finfo(float).eps)


def _pendulum(scheme: str, light: str, mass: float) -> Result:
    options = {"m1": 1.0, "m2": 1.0, "kappa": _KAPPA, light: mass}
    return run("double-pendulum", scheme, _STEPS[scheme], _T_END, tuple(options.items()))


@functools.lru_cache(maxsize=256)
def _state(scheme: str, light: str, mass: float) -> np.ndarray | None:
    """Return positions, velocities and multipliers at all times, or None if the run fails."""
    try:
        result = _pendulum(scheme, light, mass)
    except (IntegrationError, InputError):
        return None
    every = round(0.01 / _STEPS[scheme])
    return np.hstack([result.q, result.v, result.multipliers])[::every]


def _distances(scheme: str, light: str) -> np.ndarray:
    """Return the mean relative distance of all ten variables to the massless run, without the initial state."""
    zero = _state(scheme, light, 0.0)
    distances = []
    for mass in _MASSES:
        state = _state(scheme, light, mass)
        both_available = zero is not None and state is not None
        distances.append(relative_distances(state[1:], zero[1:]).mean() if both_available else np.nan)  # type: ignore[index]
    return np.array(distances)


def _position_distances(light: str) -> np.ndarray:
    """Return the distance of J-PRK positions to those of massless M-PRK; J-PRK needs a positive mass."""
    zero, distances = _state(_M, light, 0.0), []
    assert zero is not None
    for mass in _MASSES:
        state = _state(_J, light, mass)
        distances.append(np.nan if state is None else relative_distances(state[1:, :4], zero[1:, :4]).mean())
    return np.array(distances)


def _mean_residual_force(result: Result, light: str) -> float:
    """Return the mean absolute force on the light mass, which is zero without mass.

    The force is ``-m g - kappa v - G^T lam`` with the multipliers at the end of each step.
    """
    k, q, v, lam = result.info.parameters, result.q, result.v, result.multipliers
    first_rod, second_rod = q[:, :2], q[:, 2:] - q[:, :2]
    down = np.array([0.0, -1.0]) * k["g"]
    if light == "m1":
        force = k["m1"] * down - k["kappa"] * v[:, :2] - lam[:, :1] * first_rod + lam[:, 1:] * second_rod
    else:
        force = k["m2"] * down - k["kappa"] * v[:, 2:] - lam[:, 1:] * second_rod
    return float(np.abs(force[1:]).mean())


def _plot_against_mass(axes: Axes, curves: Mapping[str, np.ndarray], masses: tuple[float, ...], label: str) -> None:
    """Plot curves against the mass; the massless values are to the right of the smallest mass."""
    x = np.array([m if m > 0 else 1e-44 for m in masses])
    for i, (name, values) in enumerate(curves.items()):
        shown = np.isfinite(values) & (values > 0)
        style: dict[str, object] = dict(marker="osD^v"[i], markersize=3, linewidth=0.8, color=PALETTE[i])
        axes.loglog(x[shown], values[shown], label=name, **style)
    axes.set_xlim(3.0, 1e-45)
    ticks = [10.0**-k for k in range(0, 41, 10)]
    axes.set_xticks([*ticks, 1e-44], ["1", *(f"$10^{{-{k}}}$" for k in range(10, 41, 10)), "0"])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(label)
    legend(axes)


def _draw(light: str) -> tuple[Figure, list[Claim]]:
    schemes = (_M, _GGL)
    picture = new_figure(PAGE, 4.8)
    (a, b), (c, d) = picture.subplots(2, 2)
    distances = {scheme: _distances(scheme, light) for scheme in schemes}
    positions = _position_distances(light)
    curves = {PAIRS[s]: distances[s] for s in schemes} | {"J-PRK (positions)": positions}
    _plot_against_mass(a, curves, _MASSES, r"distance $\delta$ to no mass")
    if identical_from := _largest_identical_mass(distances[_M]):
        a.axvline(identical_from, color=PALETTE[7], linewidth=0.6, linestyle="--")
    masses = (*_MASSES, 0.0)
    for axes, name, label in ((b, "constraint", "mean $|g|$ (m$^2$)"), (c, "velocity_constraint", "mean $|dg/dt|$")):
        means = {
            PAIRS[s]: np.array([float(np.abs(_pendulum(s, light, m).observe(name)).mean()) for m in masses])
            for s in schemes
        }
        _plot_against_mass(axes, means, masses, label)
    c.set_ylim(1e-17, 1e-13)
    residual_forces = {
        PAIRS[s]: np.array([_mean_residual_force(_pendulum(s, light, m), light) for m in masses]) for s in schemes
    }
    _plot_against_mass(d, residual_forces, masses, "mean force on the light mass (N)")
    for axes in (a, b, c, d):
        axes.set_xlabel(f"$m_{light[1]}$ (kg)")
    picture.suptitle(
        f"double-pendulum, kappa = {_KAPPA} kg/s, h = {_STEPS[_M]} s, t = {_T_END:g} s", x=0.01, ha="left", color=GREY
    )
    claims = [
        *_limit_claims(light, distances),
        *_constraint_claims(light, residual_forces),
        *_breakdown(light, positions),
    ]
    return picture, claims


def _limit_claims(light: str, distances: Mapping[str, np.ndarray]) -> list[Claim]:
    largest = 1e-6 if light == "m1" else 1e-8
    claims = []
    for scheme, values in distances.items():
        power = convergence_power(_MASSES, values, lambda m: 1e-14 <= m <= largest)
        identical_from = _largest_identical_mass(values)
        claims += [
            claim_between(
                f"{PAIRS[scheme]}: the distance is proportional to the mass (power, from {largest:g} to 1e-14 kg)",
                power,
                0.9,
                1.1,
            ),
            claim_below(
                "until round-off: largest distance for masses up to 1e-20 kg.", float(values[10:].max()), 1e-11
            ),
            Claim(
                f"{PAIRS[scheme]} is bitwise identical to the massless run for sufficiently small masses.",
                f"from {identical_from:g} kg down" if identical_from else "never",
                bool(identical_from),
            ),
        ]
    return claims


def _largest_identical_mass(distances: np.ndarray) -> float:
    """Return the largest mass below which all runs are bitwise identical to the massless run, or 0."""
    different = np.flatnonzero(distances != 0.0)
    first_identical = int(different[-1]) + 1 if different.size else 0
    return _MASSES[first_identical] if first_identical < len(_MASSES) else 0.0


def _constraint_claims(light: str, residual_forces: Mapping[str, np.ndarray]) -> list[Claim]:
    masses = (*_MASSES, 0.0)
    worst = {
        (s, name): max(float(np.abs(_pendulum(s, light, m).observe(name)).mean()) for m in masses if m <= 1e-4)
        for s in (_M, _GGL)
        for name in ("constraint", "velocity_constraint")
    }
    claims = [
        claim_below(
            "Mean constraint violation for masses up to 1e-4 kg: M-PRK.", worst[_M, "constraint"], 1e-10, "m^2"
        ),
        claim_below(
            "The same for M-PRK-GGL, which is smaller.", worst[_GGL, "constraint"], ROUNDOFF_FACTOR * _EPS, "m^2"
        ),
        claim_below("At velocity level: M-PRK.", worst[_M, "velocity_constraint"], ROUNDOFF_FACTOR * _EPS, "m^2/s"),
        claim_below(
            "At velocity level: M-PRK-GGL.", worst[_GGL, "velocity_constraint"], ROUNDOFF_FACTOR * _EPS, "m^2/s"
        ),
    ]
    for name, values in residual_forces.items():
        power = convergence_power(_MASSES, values[:-1], lambda m: 1e-6 <= m <= 1e-2)
        claims.append(
            Claim(
                f"{name}: the force on the light mass decreases with the mass.",
                f"{values[0]:.1e} N at 1 kg, {values[3]:.1e} N at 1e-6 kg (power {power:.2f}), {values[-1]:.1e} N at 0",
                bool(values[3] < 1e-3 * values[0] and values[-1] < values[3]),
            )
        )
    return claims


def _breakdown(light: str, positions: np.ndarray) -> list[Claim]:
    """Return the claims on J-PRK, which failed in the document for masses from 1e-6 kg down."""
    completed = dict(zip(_MASSES, np.isfinite(positions), strict=True))
    pairs = [(_state(_J, light, mass), _state(_M, light, mass)) for mass in _MASSES]
    differences = [relative_distances(j[1:, :4], m[1:, :4]).mean() for j, m in pairs if j is not None and m is not None]
    lightest = min(mass for mass, state in completed.items() if state)
    measured = f"{sum(completed.values())} of {len(completed)} masses, the smallest {lightest:g} kg"
    step = f"in steps of {_STEPS[_J]:g} s"
    return [
        Claim(
            f"J-PRK succeeds with 1e-6 kg, where the published runs failed, {step},", measured, bool(completed[1e-6])
        ),
        Claim("and with masses smaller by nine orders of magnitude.", measured, lightest <= 1e-15),
        claim_below(
            "J-PRK positions agree with those of M-PRK for equal mass (largest distance).",
            float(max(differences)),
            1e-4,
        ),
    ]


_NOTE = (
    "The rods have length 1 (printed: 0). Masses, step size and end time are not legible in the document; here they "
    "are 1 to 1e-40 kg, 0.01 s and 10 s. M-PRK-GGL does not stagnate at 1e-12 kg: its distance decreases to round-off "
    "like that of M-PRK. Distances of exactly 0 are not plotted; the dashed line marks where they begin for M-PRK."
)


@figure(
    "symank-2025",
    13,
    "Double pendulum with a vanishing first mass",
    note=_NOTE + " J-PRK needs small steps for stability: between rods under tension, a light first mass is a stiff "
    "oscillator, and Lobatto IIIA-IIIB, like Stoermer-Verlet, is only stable for h omega of a few units. As the mass "
    "vanishes, the viscosity bounds the rate, here by 4e3 1/s, so steps need not be smaller than 5e-4 s. The velocity "
    "at the end of a step is inaccurate, because it contains the error of the last force divided by the mass: J-PRK "
    "is accurate in q and p, not in v. See docs/theory/papers/symank-2025.md.",
)
@house_style()
def first_mass() -> tuple[Figure, list[Claim]]:
    return _draw("m1")


@figure(
    "symank-2025",
    14,
    "Double pendulum with a vanishing second mass",
    note=_NOTE + " The light end mass follows along its rod. For J-PRK see figure 13.",
)
@house_style()
def second_mass() -> tuple[Figure, list[Claim]]:
    return _draw("m2")
