"""Figures 10 to 12 of Symank 2025: paths, energies and constraints of the pendulums."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from livens import problems
from livens.analysis.study.truncated_newton import truncated_newton
from livens.plot.curves import curve, path, time_axis
from livens.plot.style import GREY, PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce import panels
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import claim_above, claim_below, claim_between, claim_no_trend, roundoff_limit, run
from livens.reproduce.symank_2025.general import general_hamiltonian_claims, index_claims, partitioned_claims
from livens.reproduce.symank_2025.runs import PAIRS
from livens.results.result import Result

_J, _M, _GGL = PAIRS
_H, _T_END = 0.01, 240.0
#: Options of the double pendulum of 7.3.2, with a light first mass and an initial velocity.
UNEQUAL_MASSES = (("m1", 1.0), ("m2", 8.0), ("l1", 1.0), ("l2", 5.0), ("u1", 10.0))
#: End time in s, see the module `times`.
UNEQUAL_MASSES_T_END = 20.0
_EPS = float(np.finfo(float).eps)


def simple(scheme: str) -> Result:
    return run("pendulum", scheme, _H, _T_END)


def double(scheme: str) -> Result:
    return run("double-pendulum", scheme, _H, _T_END)


def double_unequal(scheme: str, t_end: float = UNEQUAL_MASSES_T_END) -> Result:
    return run("double-pendulum", scheme, _H, t_end, UNEQUAL_MASSES)


def _energy_deviations(results: Mapping[str, Result]) -> dict[str, np.ndarray]:
    energies = {scheme: result.observe("total_energy") for scheme, result in results.items()}
    return {scheme: H - H[0] for scheme, H in energies.items()}


@figure("symank-2025", 10, "Paths of the double pendulum")
@house_style()
def paths() -> tuple[Figure, list[Claim]]:
    result = double(_M)
    picture = new_figure(PAGE, 2.4)
    for axes, until in zip(picture.subplots(1, 3), (5.0, 30.0, _T_END), strict=True):
        rows = result.t <= until + 1e-9
        for i, name in enumerate(("first", "second")):
            path(axes, result.q[rows, 2 * i : 2 * i + 2], color=PALETTE[i], linewidth=0.3, label=f"{name} mass")
        axes.set_aspect("equal")
        axes.set_xlim(-2.2, 2.2)
        axes.set_ylim(-2.2, 1.4)
        axes.set_title(f"until $t$ = {until:g} s", color=GREY)
        axes.set_xlabel("$x$ (m)")
    picture.axes[0].set_ylabel("$y$ (m)")
    picture.axes[0].legend(loc="upper left", fontsize=6)
    early = result.t <= 5.0 + 1e-9
    others = [run("double-pendulum", scheme, _H, 5.0) for scheme in (_J, _GGL)]
    difference = max(float(np.abs(other.q - result.q[early]).max()) for other in others)
    lengths = [np.linalg.norm(part, axis=1) for part in (result.q[:, :2], result.q[:, 2:] - result.q[:, :2])]
    asymmetry = result.q[:, 2].mean() / np.ptp(result.q[:, 2])
    claims = [
        claim_below("All three methods give the same paths (until t = 5 s).", difference, 1e-3, "m"),
        claim_below(
            "The rods keep their lengths.", float(max(np.abs(length - 1).max() for length in lengths)), 1e-8, "m"
        ),
        claim_below(
            "The paths are symmetric about the vertical (mean of x2 over its range).", float(abs(asymmetry)), 0.1
        ),
    ]
    return panels.with_caption(picture, result), claims


@figure(
    "symank-2025",
    11,
    "Total energy of the pendulums",
    note="Published: a slow linear increase (a) or decrease (c) for M-PRK, and a slight decrease of the mean for "
    "J-PRK (a), attributed to numerical errors. With equations solved to round-off instead of 1e-8 these trends "
    "vanish. With Newton iterations truncated at a residual of 1e-8, M-PRK has a linear trend of the published size "
    "again (its sign depends on the solver). The energy of the simple pendulum, an integrable system, oscillates "
    "within the bound given by the order of these symmetric methods; the remaining trend of M-PRK and M-PRK-GGL is "
    "round-off of some 1e-15 J per step. On the chaotic double pendulum, M-PRK-GGL varies unsystematically, as "
    "published, and M-PRK returns after each oscillation.",
)
@house_style()
def energies() -> tuple[Figure, list[Claim]]:
    simples, doubles = ({scheme: run_with(scheme) for scheme in PAIRS} for run_with in (simple, double))
    simple_deviations, double_deviations = _energy_deviations(simples), _energy_deviations(doubles)
    picture = new_figure(PAGE, 4.8)
    (a, b), (c, d) = picture.subplots(2, 2)
    _plot_energy_deviations(a, simples, simple_deviations, "simple")
    _plot_energy_deviations(b, doubles, double_deviations, "double")
    _plot_energy_deviations(c, {s: doubles[s] for s in (_M, _GGL)}, double_deviations, "double, without J-PRK")
    _plot_energies(d, doubles[_M])
    picture.suptitle(f"pendulum and double-pendulum, h = {_H} s", x=0.01, ha="left", color=GREY)
    range_simple = {label: float(np.ptp(simple_deviations[scheme])) for scheme, label in PAIRS.items()}
    range_double = {label: float(np.ptp(double_deviations[scheme])) for scheme, label in PAIRS.items()}
    t, largest = simples[_J].t, float(simples[_J].observe("kinetic_energy").max())
    rounding = 4 * _EPS * largest * len(t)
    claims = [
        claim_between(
            "Simple pendulum: energy deviations of J-PRK are of order 1e-8 J,", range_simple["J-PRK"], 1e-9, 1e-7, "J"
        ),
        claim_no_trend("an oscillation without a trend.", t, simple_deviations[_J], "J"),
        claim_below("M-PRK: at most four roundings per step.", range_simple["M-PRK"], rounding, "J"),
        claim_below("M-PRK-GGL: at most four roundings per step.", range_simple["M-PRK-GGL"], rounding, "J"),
        *_truncation_claims(),
        claim_between(
            "Double pendulum: energy deviations of J-PRK are of order 1e-5 J,", range_double["J-PRK"], 1e-6, 1e-4, "J"
        ),
        claim_no_trend("without a trend.", t, double_deviations[_J], "J"),
        claim_between("Energy deviations of M-PRK are of the order 1e-7 J,", range_double["M-PRK"], 1e-8, 1e-6, "J"),
        claim_no_trend("without a trend.", t, double_deviations[_M], "J"),
        claim_between(
            "Energy deviations of M-PRK-GGL are of the order 1e-7 J,", range_double["M-PRK-GGL"], 1e-8, 1e-6, "J"
        ),
        _claim_no_systematic_change("and vary unsystematically.", t, double_deviations[_GGL]),
        claim_above(
            "J-PRK has the largest deviations (ratio).",
            range_double["J-PRK"] / max(range_double["M-PRK"], range_double["M-PRK-GGL"]),
            10,
        ),
    ]
    return picture, claims


def _truncation_claims() -> list[Claim]:
    """Return the claims on the energy of the simple pendulum with the residual tolerance of the document."""
    run = truncated_newton(problems.load("pendulum"), 1e-8, scheme="M-PRK", h=_H, t_end=40.0)
    energy = 0.5 * np.sum(run["v"] ** 2, axis=1) + 9.81 * run["q"][:, 1]
    trend = float(np.polyfit(run.t / run.t[-1], energy, 1)[0]) * _T_END / run.t[-1]
    return [
        claim_between("M-PRK with residuals of 1e-8: linear change in 240 s,", abs(trend), 2e-9, 2e-7, "J"),
        claim_between(
            "a trend (linear change over the range).", abs(trend) * run.t[-1] / _T_END / float(np.ptp(energy)), 0.5, 1.1
        ),
    ]


def _claim_no_systematic_change(text: str, t: np.ndarray, values: np.ndarray) -> Claim:
    """Return the claim that means over 20 s neither all rise nor all fall."""
    means = [values[(t >= start) & (t < start + 20)].mean() for start in np.arange(0.0, _T_END, 20.0)]
    up, down = int((np.diff(means) > 0).sum()), int((np.diff(means) < 0).sum())
    return Claim(text, f"means over 20 s rise {up} times and fall {down} times, at least 2 of each", min(up, down) >= 2)


def _plot_energy_deviations(
    axes: Axes, results: Mapping[str, Result], changes: Mapping[str, np.ndarray], label: str
) -> None:
    power = math.floor(math.log10(max(np.abs(changes[scheme]).max() for scheme in results)))
    for i, (scheme, name) in enumerate(PAIRS.items()):
        if scheme in results:
            curve(axes, results[scheme].t, changes[scheme] / 10.0**power, color=PALETTE[i], linewidth=0.5, label=name)
    axes.set_ylabel(f"$H - H_0$ ($10^{{{power}}}$ J)")
    axes.set_title(label, pad=16, color=GREY)
    time_axis(axes, results[_M])
    legend(axes)


def _plot_energies(axes: Axes, result: Result) -> None:
    """Plot kinetic, potential and total energy of the first 1500 steps."""
    rows = slice(0, 1501)
    names = {"kinetic_energy": "$T$", "potential_energy": "$V$", "total_energy": "$H$"}
    for i, (name, label) in enumerate(names.items()):
        style = {"linewidth": 0.7, "color": PALETTE[(0, 1, 6)[i]]}
        axes.plot(result.t[rows], result.observe(name)[rows], label=label, **style)  # type: ignore[arg-type]
    axes.set_ylabel("energy (J)")
    axes.set_xlabel("$t$ (s)")
    axes.set_title("double, M-PRK", pad=16, color=GREY)
    legend(axes)


@figure(
    "symank-2025",
    12,
    "Constraints of the double pendulum",
    note="The document adds u1 = 10, a velocity along the first rod, which violates its constraint. Here the velocity "
    "is normal to the rod. Step size and end time are not given; here they are 0.01 s and 20 s. M-PRK-GGL and J-PRK, "
    "published with 1e-9 and 1e-11, satisfy the constraints to round-off if the equations are solved to round-off.",
)
@house_style()
def constraints() -> tuple[Figure, list[Claim]]:
    results = {scheme: double_unequal(scheme) for scheme in PAIRS}
    picture = new_figure(PAGE, 4.8)
    (a, b), (c, d) = picture.subplots(2, 2)
    g = {scheme: np.abs(result.observe("constraint")) for scheme, result in results.items()}
    hidden = {scheme: np.abs(result.observe("velocity_constraint")) for scheme, result in results.items()}
    drifting = results[_M].observe("constraint")
    for i in (0, 1):
        curve(a, results[_M].t, 1e6 * drifting[:, i], color=PALETTE[i], linewidth=0.8, label=f"$g_{i + 1}$")
    a.set_ylabel("M-PRK: $g$ (mm$^2$)")
    time_axis(a, results[_M])
    legend(a)
    limits = {scheme: roundoff_limit(results[scheme], "constraint") for scheme in PAIRS}
    for axes, scheme in ((b, _GGL), (c, _J)):
        curves = {f"$|g_{i + 1}|$": g[scheme][:, i] for i in (0, 1)}
        panels.logarithmic(axes, results[scheme], curves, limits[scheme] / 1000, f"{PAIRS[scheme]}: $|g|$ (m$^2$)")
    curves = {PAIRS[scheme]: hidden[scheme].max(axis=1) for scheme in PAIRS}
    hidden_limit = roundoff_limit(results[_M], "velocity_constraint")
    panels.logarithmic(d, results[_M], curves, hidden_limit / 1000, r"$|\mathrm{d}g/\mathrm{d}t|$ (m$^2$/s)")
    claims = [
        claim_above("M-PRK: constraint drift at the end", float(g[_M][-1].max()), 1e-9, "m^2"),
        claim_above(
            "and its growth after the first tenth of the run (ratio).",
            float(g[_M].max() / g[_M][: len(g[_M]) // 10].max()),
            2,
        ),
        claim_below("M-PRK-GGL has no drift: round-off.", float(g[_GGL].max()), limits[_GGL], "m^2"),
        claim_below("J-PRK has no drift: round-off.", float(g[_J].max()), limits[_J], "m^2"),
        *(
            claim_below(
                f"{PAIRS[scheme]}: velocity constraints hold to round-off.",
                float(hidden[scheme].max()),
                hidden_limit,
                "m^2/s",
            )
            for scheme in PAIRS
        ),
        *index_claims(),
        *general_hamiltonian_claims(),
        *partitioned_claims(),
    ]
    return panels.with_caption(picture, results[_M], "and two others"), claims
