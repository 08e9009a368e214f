"""Figures 1 to 4 of paper III in Modin 2009: energy drift of adaptive methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from livens import scaling
from livens.plot.curves import curve, time_axis
from livens.plot.style import PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import claim_above, claim_between, claim_ranked
from livens.reproduce.modin_2009.extensions import (
    energy_error,
    higher_order_claims,
    non_reversible_claims,
    splitting_claims,
)
from livens.reproduce.modin_2009.runs import (
    adaptive,
    claim_drift,
    claim_no_drift,
    linear_change,
    until_failure,
    with_title,
)
from livens.results.result import Result
from livens.schemes.scaling import Scaling

_SYMM = "step-density"
_HORIZON = "The horizon is not legible; here it is t = {}, and claims are also tested over ten times this horizon."


class _Example:
    """Example of paper III: a symplectic method compared with SYMM."""

    def __init__(
        self, name: str, symplectic: str, label: str, eps: float, t_end: float, density: Any, g: Scaling | None = None
    ) -> None:
        self.name, self.label, self.eps, self.t_end = name, label, eps, t_end
        self._symplectic, self._density, self._g = symplectic, density, g

    def _run(self, scheme: str, multiple: int) -> Result:
        # every seventh step of the long runs suffices for the range of the energy
        return adaptive(self.name, scheme, self.eps, multiple * self.t_end, (), self._g, 7 if multiple > 1 else 1)

    def symplectic_run(self, multiple: int = 1) -> Result:
        """Return the symplectic run over a multiple of the horizon."""
        return self._run(self._symplectic, multiple)

    def symmetric_run(self, multiple: int = 1) -> Result:
        return self._run(_SYMM, multiple)

    def objective(self, result: Result) -> np.ndarray:
        """Return ``log(Q/rho)``, which is zero for the exact motion."""
        return np.asarray(np.log(self._density(result.q) / result.step_density))

    def draw(self) -> Figure:
        """Plot energy errors of both methods and ``log(Q/rho)`` of SYMM, over one and ten times the horizon."""
        picture = new_figure(PAGE, 4.2)
        for (upper, lower), multiple in zip(picture.subplots(2, 2).T, (1, 10), strict=True):
            symm, symp = self.symmetric_run(multiple), self.symplectic_run(multiple)
            curve(upper, symm.t, energy_error(symm), color=PALETTE[1], linewidth=0.6, label="SYMM")
            curve(upper, symp.t, energy_error(symp), color=PALETTE[0], linewidth=0.6, label=self.label)
            curve(lower, symm.t, self.objective(symm), color=PALETTE[1], linewidth=0.6, label="SYMM")
            for axes in (upper, lower):
                time_axis(axes, symm)
            legend(upper)
            upper.set_ylabel("$H - H_0$")
            lower.set_ylabel(r"$\log(Q/\varrho)$")
        return with_title(picture, rf"{self.name}, $\epsilon$ = {self.eps:g}")

    def symplectic_claims(self) -> list[Claim]:
        """Return the claims on the symplectic method."""
        claims = []
        for multiple, label in ((1, "does not drift"), (10, "does not drift over ten times the horizon")):
            run = self.symplectic_run(multiple)
            text = f"{self.label} {label} (energy, {run.statistics.steps} steps)."
            claims.append(claim_no_drift(text, run.t, energy_error(run)))
        return claims

    def drift_claims(self) -> list[Claim]:
        """Return the claims on SYMM."""
        claims = []
        for multiple, label in ((1, ""), (10, " over ten times the horizon")):
            run = self.symmetric_run(multiple)
            claims.append(claim_drift(f"The energy of SYMM drifts{label},", run.t, energy_error(run)))
            claims.append(claim_drift("and log(Q/rho) drifts as well.", run.t, self.objective(run)))
        ratio = float(
            np.abs(energy_error(self.symmetric_run(10))[-1]) / np.abs(energy_error(self.symplectic_run(10))).max()
        )
        claims.append(
            claim_above(f"The final error of SYMM exceeds the largest error of {self.label} (ratio).", ratio, 5.0)
        )
        return claims


_KEPLER = _Example("kepler", "sundman", "SYMP(T,V)", 0.02, 200 * np.pi, lambda q: np.linalg.norm(q, axis=1) ** -1.5)


def _claim_fewer_evaluations(e: float) -> Claim:
    """Return the claim that Stoermer-Verlet needs more steps than SYMP(T,V) at the same energy error."""
    options = (("e", e),)
    symp = adaptive("kepler", "sundman", 0.02, 2 * np.pi, options)
    error, steps = symp.summary.max_energy_drift, symp.statistics.steps
    h = 2 * np.pi / (10 * steps)
    for _ in range(4):  # the error is O(h^2) for sufficiently small steps
        fixed = adaptive("kepler", "stormer-verlet", h, 2 * np.pi, options, None, 1000)
        h *= float(np.clip(np.sqrt(error / fixed.summary.max_energy_drift), 1e-2, 1e2))
    ratio = fixed.statistics.steps / steps
    text = f"Constant steps need more force evaluations at the same largest energy error, e = {e:g} (ratio)."
    return claim_above(text, ratio, 5.0)


@figure("modin-2009", "III.1", "Energy errors for Kepler's problem", note=_HORIZON.format("628, a hundred periods"))
@house_style()
def kepler() -> tuple[Figure, list[Claim]]:
    picture, claims = _KEPLER.draw(), _KEPLER.symplectic_claims()
    for multiple, label in ((1, "SYMM does not drift"), (10, "SYMM does not drift over ten times the horizon")):
        run = _KEPLER.symmetric_run(multiple)
        claims.append(claim_no_drift(f"{label}: energy,", run.t, energy_error(run)))
        claims.append(claim_no_drift("log(Q/rho).", run.t, _KEPLER.objective(run)))
    runs = {"SYMP(T,V)": _KEPLER.symplectic_run(10), "SYMM": _KEPLER.symmetric_run(10)}
    errors = {name: float(np.abs(energy_error(result)).max()) for name, result in runs.items()}
    claims.append(claim_ranked("The error constant of SYMP(T,V) is smaller.", errors))
    return picture, [
        *claims,
        _claim_fewer_evaluations(0.8),
        _claim_fewer_evaluations(0.99),
        *higher_order_claims(),
        *splitting_claims(),
    ]


def _walls(q: np.ndarray) -> np.ndarray:
    return np.asarray(1 / q[:, 0] ** 2 + 1 / (q[:, 0] - 10) ** 2)


_OSCILLATOR = _Example(
    "non-reversible-oscillator", "sundman", "SYMP(T,V)", 0.2, 3600.0, lambda q: np.sqrt(_walls(q) + 0.01 * q[:, 0])
)


@figure(
    "modin-2009",
    "III.2",
    "Energy errors for a non-reversible oscillator",
    note=_HORIZON.format("3600") + " The statement of the text that log(Q/rho) of SYMP(T,V) drifts refers to SYMM: "
    "SYMP(T,V) has no rho. Over a hundred times the horizon SYMP(T,V) does not drift, while the step density of SYMM "
    "deteriorates until it reaches zero, and the run fails.",
)
@house_style()
def oscillator() -> tuple[Figure, list[Claim]]:
    ratio = linear_change(_OSCILLATOR.symmetric_run(10).t, energy_error(_OSCILLATOR.symmetric_run(10)))
    ratio /= linear_change(_OSCILLATOR.symmetric_run().t, energy_error(_OSCILLATOR.symmetric_run()))
    broken = until_failure(_OSCILLATOR.name, _SYMM, _OSCILLATOR.eps, 100 * _OSCILLATOR.t_end, (), None, 100)
    longest = _OSCILLATOR.symplectic_run(100)
    claims = [
        *_OSCILLATOR.symplectic_claims(),
        claim_no_drift(
            f"No drift over 100 horizons ({longest.statistics.steps} steps).", longest.t, energy_error(longest)
        ),
        *_OSCILLATOR.drift_claims(),
        claim_between("The drift is linear: energy change over ten times the horizon (ratio).", ratio, 8, 12),
        Claim(
            "SYMM fails before a hundred times the horizon.",
            f"{broken.status} at {broken.t[-1] / _OSCILLATOR.t_end:.0f} times",
            broken.status == "failed",
        ),
        *non_reversible_claims(),
    ]
    return _OSCILLATOR.draw(), claims


_PERTURBED = _Example(
    "non-reversible-oscillator",
    "sundman-doubled",
    "SYMP(q)",
    0.2,
    3600.0,
    lambda q: np.sqrt(_walls(q)),
    scaling.user_scaling(lambda q: (1 / q[0] ** 2 + 1 / (q[0] - 10) ** 2) ** -0.5),
)


@figure(
    "modin-2009",
    "III.3",
    "Energy errors for a non-reversible oscillator, scaled by the walls alone",
    note=_HORIZON.format("3600") + " G as printed is large near the walls: it is the square of the step density Q. "
    "The scaling is its power -1/2, as in example 2. F01 and F10 need the initial energy H0, and each E surrounds the "
    "F of its own pair. SYMP(q) is chaotic for a step of 0.25, in the paper for 0.3.",
)
@house_style()
def perturbed() -> tuple[Figure, list[Claim]]:
    claims = [*_PERTURBED.symplectic_claims(), *_PERTURBED.drift_claims()]
    result, finer = (
        _PERTURBED.symplectic_run(),
        adaptive(_PERTURBED.name, "sundman-doubled", _PERTURBED.eps / 2, _PERTURBED.t_end, (), _PERTURBED._g),
    )
    copies, finer_copies = (float(np.abs(run.q_0 - run.q_1).max()) for run in (result, finer))
    claims += [
        claim_between("First integrals z0 - z1 remain small (largest difference of the copies of q),", copies, 0.1, 1),
        claim_between("and are proportional to the step (ratio with half the step).", copies / finer_copies, 1.8, 2.2),
    ]
    for eps in (0.25, 0.3):
        broken = until_failure(_PERTURBED.name, "sundman-doubled", eps, _PERTURBED.t_end, (), _PERTURBED._g)
        largest = float(np.abs(energy_error(broken)).max())
        claims.append(
            claim_above(f"With eps = {eps:g}, SYMP(q) is unstable (largest change of H, of 1.02).", largest, 1.0)
        )
    return _PERTURBED.draw(), claims


_MAGNET = _Example(
    "magnetic-pendulum",
    "sundman",
    "SYMP(T,V)",
    0.001,
    73.0,
    lambda q: np.sqrt(1 - np.cos(q[:, 0]) + 0.1 / (np.cos(q[:, 0]) ** 2 + (1.05 - np.sin(q[:, 0])) ** 2)),
)


@figure(
    "modin-2009",
    "III.4",
    "Energy errors for a pendulum beside a magnet",
    note=_HORIZON.format("73") + " V as printed is -0.95 at the lowest point, where V^(-1/2) does not exist. With the "
    "gravitational energy g (1 - cos q), which is zero there, V is positive everywhere. The energy of SYMM decreases "
    "until, after three horizons, the excess of 1/8 that carries the pendulum past the magnet is lost. The motion "
    "reverses, and the energy then increases at the same rate: the method is reversible.",
)
@house_style()
def magnet() -> tuple[Figure, list[Claim]]:
    symm = _MAGNET.symmetric_run(10)
    reversal = int(np.argmax(symm.p[:, 0] < 0))
    rates = [
        linear_change(symm.t[part], energy_error(symm)[part]) / np.ptp(symm.t[part])
        for part in (slice(reversal), slice(reversal, None))
    ]
    claims = [
        claim_above(
            "The pendulum rotates in one direction (smallest momentum).", float(_MAGNET.symplectic_run(10).p.min()), 0.1
        ),
        *_MAGNET.symplectic_claims(),
        *_MAGNET.drift_claims(),
        claim_between(
            "The motion of SYMM reverses after the loss of the excess energy 1/8.",
            -float(energy_error(symm)[reversal]),
            0.115,
            0.135,
        ),
        claim_between("The drift then changes its sign (ratio of the rates).", rates[1] / rates[0], -1.05, -0.95),
    ]
    return _MAGNET.draw(), claims
