"""Figures 1 and 2 of paper IV in Modin 2009: Euler top by splittings of a Nambu system, constant and adaptive steps."""

from __future__ import annotations

import functools

import numpy as np
from matplotlib.figure import Figure

from livens import problems, scaling
from livens.plot.curves import curve
from livens.plot.style import PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import ROUNDOFF_FACTOR, claim_below, claim_between, claim_order, claim_ranked
from livens.reproduce.modin_2009.runs import adaptive, claim_no_drift, with_title
from livens.results.result import Result
from livens.run.simulate import simulate

_H, _T_END = 0.15, 150.0
_INERTIA, _ANGLE = (0.5, 1.0, 2.0), 0.2
#: Step in fictive time with the same mean step in time as the constant-step schemes.
_EPS = 0.054
_STEPS = {"nambu-t": _H, "nambu-t-g": _EPS, "nambu-mt": _H, "nambu-mt-g": _EPS}
_SYMBOLS = {"nambu-t": "T", "nambu-t-g": "T, G", "nambu-mt": "M, T", "nambu-mt-g": "M, T, G"}
_LABELS = {scheme: f"$\\Phi$ of {symbols}" for scheme, symbols in _SYMBOLS.items()}


def _top(scheme: str, scale: float = 1.0, t_end: float = _T_END) -> Result:
    return adaptive("euler-top", scheme, scale * _STEPS[scheme], t_end)


def _errors(result: Result, inertia: tuple[float, ...] = _INERTIA) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors of M and T along a run."""
    M, T = (result.x**2).sum(axis=1) / 2, (result.x**2 / np.array(inertia)).sum(axis=1) / 2
    return M - M[0], T - T[0]


def _worst(scheme: str, scale: float = 1.0) -> tuple[float, float]:
    M, T = (np.abs(values).max() for values in _errors(_top(scheme, scale)))
    return float(M), float(T)


@functools.cache
def _energy_error_other_order(scheme: str) -> float:
    """Return the error of T with the splitting order T2, T1, T3, by interchanging the first two axes."""
    I1, I2, I3 = _INERTIA
    inertia = (I2, I1, I3)
    system = problems.load("euler-top", I=inertia).model
    initial = [np.cos(_ANGLE), 0.0, np.sin(_ANGLE)]
    scaled = scaling.speed(0.01) if scheme.endswith("-g") else None
    result = simulate(system, x0=initial, scheme=scheme, h=_STEPS[scheme], t_end=_T_END, scaling=scaled, progress=False)
    return float(np.abs(_errors(result, inertia)[1]).max())


def _orbit_closure_defect(result: Result) -> float:
    """Return the orbit-closure defect, relative to the range of the error of T.

    On a closed orbit the error of T is a function of one angle. Points are sorted by this angle: neighbours closer than
    1e-3 come from different revolutions, and the error of T must not jump between them. The shortened last step is
    excluded.
    """
    x, T = result.x[:-1], _errors(result)[1][:-1]
    angle = np.arctan2(x[:, 0], x[:, 1])
    order = np.argsort(angle)
    near = np.diff(angle[order]) < 1e-3
    return float(np.abs(np.diff(T[order])[near]).max() / np.ptp(T))


@figure(
    "modin-2009",
    "IV.1",
    "Solutions in time and in fictive time",
    quick=True,
    note="The partial flow of M, T_i, G_2 does not change xi; the 0 printed for it would stop time.",
)
@house_style()
def solutions() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 3.8)
    upper, lower = picture.subplots(2, 1)
    for axes, scheme, label in ((upper, "nambu-t", "$t$ (s)"), (lower, "nambu-t-g", r"$\tau$")):
        result = _top(scheme)
        rounds = result.t <= 50
        abscissa = result.t if scheme == "nambu-t" else result.fictive_time
        for i in range(3):
            axes.plot(
                abscissa[rounds],
                result.x[rounds, i],
                color=PALETTE[i],
                marker=".",
                markersize=2,
                linewidth=0.7,
                label=f"$x_{i + 1}$",
            )
        axes.set_xlabel(label)
        axes.set_ylabel("$x$")
        legend(axes)
    largest_changes = {
        scheme: float(np.linalg.norm(np.diff(_top(scheme).x, axis=0)[:-1], axis=1).max())
        for scheme in ("nambu-t-g", "nambu-t")
    }
    mean = float(np.diff(_top("nambu-t-g").t)[:-1].mean())
    claims = [
        claim_between("The mean adaptive step equals the constant step.", mean, 0.147, 0.153, "s"),
        claim_ranked("In fictive time the solution is smoother (largest change of x per step).", largest_changes),
    ]
    for scheme in _STEPS:
        long_run = _top(scheme, 1.0, 100 * _T_END)
        text = (
            f"Orbits of {scheme} are closed: "
            f"largest jump of T between {len(long_run.t)} neighbouring points (relative)."
        )
        claims.append(claim_below(text, _orbit_closure_defect(long_run), 0.01))
    return with_title(picture, "euler-top, nambu-t with h = 0.15 s above, nambu-t-g below"), claims


@figure(
    "modin-2009",
    "IV.2",
    "Errors of the Hamiltonians, with constant and adaptive steps",
    quick=True,
    note="The paper reports significantly smaller errors with adaptive steps. This holds for straight lines (M, T). "
    "For rotations in the printed order T1, T2, T3 it does not: the error of T is larger with adaptive steps, by the "
    "same factor for all step sizes. In the order T2, T1, T3 it is smaller, and both errors are larger than in the "
    "printed order.",
)
@house_style()
def hamiltonians() -> tuple[Figure, list[Claim]]:
    picture = new_figure(PAGE, 4.4)
    panels = picture.subplots(3, 1, sharex=True)
    shown = (("nambu-mt", 0, "M"), ("nambu-mt", 1, "T"), ("nambu-t", 1, "T"))
    for axes, (scheme, which, name) in zip(panels, shown, strict=True):
        for i, variant in enumerate((scheme, f"{scheme}-g")):
            result = _top(variant)
            values = np.abs(_errors(result)[which])
            curve(axes, result.t, values, color=PALETTE[1 - i], linewidth=0.7, label=_LABELS[variant])
        axes.set_ylabel(f"error of {name}")
        legend(axes)
    panels[-1].set_xlabel("$t$ (s)")
    return with_title(picture, "euler-top, h = 0.15 s, adaptive steps with the same mean"), _error_claims()


def _error_claims() -> list[Claim]:
    (M, T), (M_g, T_g) = _worst("nambu-mt"), _worst("nambu-mt-g")
    halves = [1 / 2**i for i in range(4)]
    rotations = {scheme: [_worst(scheme, half)[1] for half in halves] for scheme in ("nambu-t", "nambu-t-g")}
    ratios = np.array(rotations["nambu-t"]) / np.array(rotations["nambu-t-g"])
    upper = ROUNDOFF_FACTOR * float(np.finfo(float).eps)
    claims = [
        claim_between("M, T: error of M, constant over adaptive steps (ratio).", M / M_g, 2, 10),
        claim_between("M, T: error of T, constant over adaptive steps (ratio).", T / T_g, 2, 10),
        claim_between(
            "T in the printed order T1, T2, T3: the same ratio, below 1 (adaptive steps have the larger error).",
            float(ratios[0]),
            0.5,
            0.8,
        ),
        claim_below("Variation of this ratio with steps 2, 4 and 8 times shorter.", float(np.ptp(ratios)), 0.1),
        claim_between(
            "T in the order T2, T1, T3: ratio.",
            _energy_error_other_order("nambu-t") / _energy_error_other_order("nambu-t-g"),
            1.5,
            10,
        ),
        *(claim_below(f"{scheme} conserves M.", _worst(scheme)[0], upper) for scheme in ("nambu-t", "nambu-t-g")),
        *(
            claim_order(
                f"The error of T with {scheme} is O(h^2).", 2, [_H * half for half in halves], rotations[scheme]
            )
            for scheme in rotations
        ),
    ]
    for scheme in _STEPS:
        long_run = _top(scheme, 1.0, 10 * _T_END)
        claims.append(
            claim_no_drift(f"T does not drift with {scheme}, over ten horizons.", long_run.t, _errors(long_run)[1])
        )
    return [*claims, *_other_claims()]


def _other_claims() -> list[Claim]:
    """Return claims on remark 4.3 (splitting of M instead of T) and on other extra Hamiltonians G2."""
    upper = ROUNDOFF_FACTOR * float(np.finfo(float).eps)
    split = adaptive("euler-top", "nambu-m", _H, 10 * _T_END)
    M, T = _errors(split)
    claims = [
        claim_below("Remark 4.3: with M split, T is conserved,", float(np.abs(T).max()), upper),
        claim_no_drift("and M does not drift.", split.t, M),
    ]
    steps = [0.054 / 2**i for i in range(2, 6)]
    for power in (-1, 2):
        name = f"nambu-t-g:{power}"
        errors = []
        for eps in steps:
            run = adaptive("euler-top", name, eps, 20.0)
            errors.append(float(np.abs(_errors(run)[1]).max()))
        claims.append(claim_order(f"With G2 = xi^{power}/{power} the error of T is O(eps^2),", 2, steps, errors))
        long_run = adaptive("euler-top", name, _EPS, 10 * _T_END)
        claims.append(claim_below("M is conserved,", float(np.abs(_errors(long_run)[0]).max()), upper))
        claims.append(claim_no_drift("and T does not drift.", long_run.t, _errors(long_run)[1]))
    return claims
