"""Figures 13 and 14 of S002: a double pendulum one of whose masses vanishes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from livens.errors import InputError, IntegrationError
from livens.plot.style import GREY, PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import ROUNDINGS, below, between, run
from livens.reproduce.s002.runs import PAIRS, rate, relative_distances
from livens.results.result import Result

_J, _M, _GGL = PAIRS
_MASSES = tuple(10.0**-k for k in range(0, 41, 2))
_KAPPA = 0.01
_T_END = 10.0
#: J-PRK is no method for stiff systems, see the note.
_STEPS = {_J: 5e-4, _M: 0.01, _GGL: 0.01}
_EPS = float(np.finfo(float).eps)


def _pendulum(scheme: str, light: str, mass: float) -> Result:
    options = {"m1": 1.0, "m2": 1.0, "kappa": _KAPPA, light: mass}
    return run("double-pendulum", scheme, _STEPS[scheme], _T_END, tuple(options.items()))


@functools.lru_cache(maxsize=256)
def _state(scheme: str, light: str, mass: float) -> np.ndarray | None:
    """Positions, velocities and multipliers at all times; nothing if the run cannot be made."""
    try:
        result = _pendulum(scheme, light, mass)
    except (IntegrationError, InputError):
        return None
    every = round(0.01 / _STEPS[scheme])
    return np.hstack([result.q, result.v, result.multipliers])[::every]


def _distances(scheme: str, light: str) -> np.ndarray:
    """Mean relative distance of all ten variables to the run without mass, after the first instant (all at rest)."""
    zero = _state(scheme, light, 0.0)
    found = []
    for mass in _MASSES:
        here = _state(scheme, light, mass)
        known = zero is not None and here is not None
        found.append(relative_distances(here[1:], zero[1:]).mean() if known else np.nan)  # type: ignore[index]
    return np.array(found)


def _positions(light: str) -> np.ndarray:
    """Of J-PRK, which needs mass, their distance to those of M-PRK without mass."""
    zero, found = _state(_M, light, 0.0), []
    assert zero is not None
    for mass in _MASSES:
        here = _state(_J, light, mass)
        found.append(np.nan if here is None else relative_distances(here[1:, :4], zero[1:, :4]).mean())
    return np.array(found)


def _balance(result: Result, light: str) -> float:
    """Mean absolute right-hand side of the equation of motion of the light mass: zero without mass.

    ``-m g - kappa v - G^T lam`` with the multipliers at the ends of steps.
    """
    k, q, v, lam = result.facts.parameters, result.q, result.v, result.multipliers
    first, second = q[:, :2], q[:, 2:] - q[:, :2]
    down = np.array([0.0, -1.0]) * k["g"]
    if light == "m1":
        force = k["m1"] * down - k["kappa"] * v[:, :2] - lam[:, :1] * first + lam[:, 1:] * second
    else:
        force = k["m2"] * down - k["kappa"] * v[:, 2:] - lam[:, 1:] * second
    return float(np.abs(force[1:]).mean())


def _against_mass(axes: Axes, curves: Mapping[str, np.ndarray], masses: tuple[float, ...], label: str) -> None:
    """Points against the mass; that of no mass at all stands to the right of the smallest."""
    x = np.array([m if m > 0 else 1e-44 for m in masses])
    for i, (name, values) in enumerate(curves.items()):
        shown = np.isfinite(values) & (values > 0)
        style: dict[str, Any] = dict(marker="osD^v"[i], markersize=3, linewidth=0.8, color=PALETTE[i])
        axes.loglog(x[shown], values[shown], label=name, **style)
    axes.set_xlim(3.0, 1e-45)
    ticks = [10.0**-k for k in range(0, 41, 10)]
    axes.set_xticks([*ticks, 1e-44], ["1", *(f"$10^{{-{k}}}$" for k in range(10, 41, 10)), "0"])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(label)
    legend(axes)


def _drawn(light: str) -> tuple[Figure, list[Claim]]:
    schemes = (_M, _GGL)
    picture = new_figure(PAGE, 4.8)
    (a, b), (c, d) = picture.subplots(2, 2)
    distances = {scheme: _distances(scheme, light) for scheme in schemes}
    positions = _positions(light)
    curves = {PAIRS[s]: distances[s] for s in schemes} | {"J-PRK (positions)": positions}
    _against_mass(a, curves, _MASSES, r"distance $\delta$ to no mass")
    if same := _same_from(distances[_M]):
        a.axvline(same, color=PALETTE[7], linewidth=0.6, linestyle="--")
    masses = (*_MASSES, 0.0)
    for axes, name, label in ((b, "constraint", "mean $|g|$ (m$^2$)"), (c, "velocity_constraint", "mean $|dg/dt|$")):
        means = {
            PAIRS[s]: np.array([float(np.abs(_pendulum(s, light, m).observe(name)).mean()) for m in masses])
            for s in schemes
        }
        _against_mass(axes, means, masses, label)
    c.set_ylim(1e-17, 1e-13)
    left = {PAIRS[s]: np.array([_balance(_pendulum(s, light, m), light) for m in masses]) for s in schemes}
    _against_mass(d, left, masses, "mean force on the light mass (N)")
    for axes in (a, b, c, d):
        axes.set_xlabel(f"$m_{light[1]}$ (kg)")
    picture.suptitle(
        f"double-pendulum, kappa = {_KAPPA} kg/s, h = {_STEPS[_M]} s, t = {_T_END:g} s", x=0.01, ha="left", color=GREY
    )
    claims = [*_limit_claims(light, distances), *_constraint_claims(light, left), *_breakdown(light, positions)]
    return picture, claims


def _limit_claims(light: str, distances: Mapping[str, np.ndarray]) -> list[Claim]:
    largest = 1e-6 if light == "m1" else 1e-8
    claims = []
    for scheme, values in distances.items():
        power = rate(_MASSES, values, lambda m: 1e-14 <= m <= largest)
        same = _same_from(values)
        claims += [
            between(
                f"{PAIRS[scheme]}: the distance falls with the mass (power, from {largest:g} to 1e-14 kg)",
                power,
                0.9,
                1.1,
            ),
            below("until it is round-off: largest for masses up to 1e-20 kg.", float(values[10:].max()), 1e-11),
            Claim(
                f"{PAIRS[scheme]} gives the run without mass to the last bit if the mass is small enough.",
                f"from {same:g} kg down" if same else "not",
                bool(same),
            ),
        ]
    return claims


def _same_from(distances: np.ndarray) -> float:
    """The mass from which on all smaller ones give the run without mass to the last bit; 0 if there is none."""
    apart = np.flatnonzero(distances != 0.0)
    first = int(apart[-1]) + 1 if apart.size else 0
    return _MASSES[first] if first < len(_MASSES) else 0.0


def _constraint_claims(light: str, left: Mapping[str, np.ndarray]) -> list[Claim]:
    masses = (*_MASSES, 0.0)
    worst = {
        (s, name): max(float(np.abs(_pendulum(s, light, m).observe(name)).mean()) for m in masses if m <= 1e-4)
        for s in (_M, _GGL)
        for name in ("constraint", "velocity_constraint")
    }
    claims = [
        below("Mean violation of constraints, up to 1e-4 kg: M-PRK", worst[_M, "constraint"], 1e-10, "m^2"),
        below("and M-PRK-GGL, the better one.", worst[_GGL, "constraint"], ROUNDINGS * _EPS, "m^2"),
        below("On velocity level: M-PRK", worst[_M, "velocity_constraint"], ROUNDINGS * _EPS, "m^2/s"),
        below("and M-PRK-GGL.", worst[_GGL, "velocity_constraint"], ROUNDINGS * _EPS, "m^2/s"),
    ]
    for name, values in left.items():
        power = rate(_MASSES, values[:-1], lambda m: 1e-6 <= m <= 1e-2)
        claims.append(
            Claim(
                f"{name}: the force on the light mass falls with it.",
                f"{values[0]:.1e} N at 1 kg, {values[3]:.1e} N at 1e-6 kg (power {power:.2f}), {values[-1]:.1e} N at 0",
                bool(values[3] < 1e-3 * values[0] and values[-1] < values[3]),
            )
        )
    return claims


def _breakdown(light: str, positions: np.ndarray) -> list[Claim]:
    """J-PRK, which the document could not run from 1e-6 kg on."""
    ran = dict(zip(_MASSES, np.isfinite(positions), strict=True))
    pairs = [(_state(_J, light, mass), _state(_M, light, mass)) for mass in _MASSES]
    apart = [relative_distances(j[1:, :4], m[1:, :4]).mean() for j, m in pairs if j is not None and m is not None]
    lightest = min(mass for mass, here in ran.items() if here)
    words = f"{sum(ran.values())} of {len(ran)} masses, the smallest {lightest:g} kg"
    step = f"in steps of {_STEPS[_J]:g} s"
    return [
        Claim(f"J-PRK runs where the published one hardly went on, with 1e-6 kg, {step},", words, bool(ran[1e-6])),
        Claim("and with masses that are lighter by nine decades.", words, lightest <= 1e-15),
        below("Its positions are those of M-PRK with the same mass (largest distance).", float(max(apart)), 1e-4),
    ]


_NOTE = (
    "The rods have length 1 (printed: 0); masses, step and end of the document cannot be read, ours are 1 to 1e-40 kg, "
    "0.01 s and 10 s. The approach of M-PRK-GGL does not stagnate at 1e-12 kg: it goes down to round-off like that of "
    "M-PRK. Where a distance is exactly 0, there is no point; the dashed line marks from where on that is so for M-PRK."
)


@figure(
    "S002",
    13,
    "A double pendulum whose first mass vanishes",
    note=_NOTE + " J-PRK needs small steps, and not because of an error: between rods under tension a light first mass "
    "is a stiff oscillator, and Lobatto IIIA-IIIB is, like the Stoermer-Verlet method it generalises, stable for h "
    "omega of a few units only. As the mass vanishes the viscosity bounds the rate, to 4e3 1/s here: the step need not "
    "get smaller than 5e-4 s. What gets lost is the velocity at the end of a step, which is the error of the last "
    "force over the mass: J-PRK is right in q and p, not in v. See docs/reproduce.md.",
)
@house_style()
def first_mass() -> tuple[Figure, list[Claim]]:
    return _drawn("m1")


@figure(
    "S002",
    14,
    "A double pendulum whose second mass vanishes",
    note=_NOTE + " The light mass at the end trails along its rod. For J-PRK see figure 13.",
)
@house_style()
def second_mass() -> tuple[Figure, list[Claim]]:
    return _drawn("m2")
