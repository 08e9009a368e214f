"""Figures 10 to 13 of Kinon and Betsch 2024: steady precession of a heavy top by four schemes."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

from livens import problems
from livens import rotations as rot
from livens.plot.curves import curve, round_off, time_axis
from livens.plot.style import COLUMN, PALETTE, caption, house_style, legend, new_figure
from livens.reproduce import panels
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import (
    claim_above,
    claim_below,
    claim_between,
    claim_constant,
    claim_order,
    claim_ranked,
    largest_increment,
    run,
)
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.schemes.discretization.element_scheme import ElementContribution, ElementFunctions, MechanicalState
from livens.schemes.energy_momentum.hamilton import CoEnergy, HamiltonEM

_SCHEMES = {"EML": "livens-em", "EMH": "hamilton-em", "MPL": "livens-midpoint", "MPH": "hamilton-midpoint"}
_HEIGHT = 0.0375
_CENTRE = np.array([0.0, 0.0, 0.075])
#: Step sizes of the convergence study; at 0.01 s the top rotates by 1.4 rad per step, outside the asymptotic range.
_STEPS = tuple(0.005 / 2**i for i in range(6))
_PRINTED = "MPH, (139)"
_AUTHORS = "MPH, metis"


def _top(name: str, h: float = 0.01, t_end: float = 2.0) -> Result:
    return run("heavy-top", _SCHEMES[name], h, t_end)


def _exact(t: np.ndarray) -> np.ndarray:
    """Return the exact positions of the centre of mass (120)."""
    reference = problems.load("heavy-top").reference
    assert reference is not None
    return np.array([rot.rotate(reference(float(time))["q"], _CENTRE) for time in t])


def _centre(result: Result) -> np.ndarray:
    return np.array([rot.rotate(q, _CENTRE) for q in result.q])


@figure(
    "kinon-betsch-2024",
    10,
    "Increments of the energy of the heavy top, by four schemes",
    note="MPL computes the velocity at the end of a step as v1 = 2 v_m - v0. Its component along q, the null space of "
    "the mass matrix, alternates in sign, and so does the energy computed from v; in positions and momenta, MPL and "
    "MPH have the same equations (see figure 13). At h = 0.01 s the midpoint equations of a step have several "
    "solutions: the rotation that belongs to the motion, by less than pi, and larger ones, which do not. A run with "
    "one of the latter has energy jumps; a claim tests this.",
)
@house_style()
def energies() -> tuple[Figure, list[Claim]]:
    picture, axes = panels.single_panel()
    picture.set_figheight(3.0)
    reference = _top("EML")
    changes = {name: np.abs(_top(name).observe("generalized_energy", increments=True)) for name in _SCHEMES}
    panels.logarithmic(
        axes,
        reference,
        changes,
        round_off(reference, "generalized_energy"),
        r"$|E_{n+1} - E_n|$ (J)",
        t=reference.t[1:],
    )
    caption(picture, reference, "and three others")
    claims = [
        claim_constant("EML conserves the generalised energy to round-off.", reference, "generalized_energy", "J"),
        claim_constant("EMH conserves the Hamiltonian to round-off.", _top("EMH"), "hamiltonian", "J"),
    ]
    for name in ("MPL", "MPH"):
        step = largest_increment(_top(name), "generalized_energy")
        claims.append(claim_above(f"{name} does not conserve energy.", step, 1e-4, "J"))
    for name in _SCHEMES:
        text = f"Each step of {name} takes the solution that belongs to the motion: largest rotation per step."
        claims.append(claim_below(text, _largest_rotation_per_step(_top(name)), np.pi, "rad"))
    difference = float(np.abs(_top("MPL", 0.008).q - _top("MPH", 0.008).q).max())
    claims.append(claim_below("With h = 0.008 s, MPL and MPH give the same motion.", difference, 1e-9))
    return picture, claims


def _largest_rotation_per_step(result: Result) -> float:
    """Return the largest rotation angle per step; q and -q are distinguished."""
    cosines = np.sum(result.q[1:] * result.q[:-1], axis=1)
    return float(2 * np.arccos(np.clip(cosines, -1, 1)).max())


@figure("kinon-betsch-2024", 11, "Angular momentum of the heavy top with EML", quick=True)
@house_style()
def angular_momentum() -> tuple[Figure, list[Claim]]:
    result = _top("EML")
    picture, left, right = panels.two_panels()
    momenta = np.array([rot.E(q) @ p / 2 for q, p in zip(result.q, result.p, strict=True)])
    for i in range(3):
        curve(left, result.t, momenta[:, i], label=f"$L_{i + 1}$", color=PALETTE[i])
    left.set_ylabel("angular momentum (kg m$^2$/s)")
    time_axis(left, result)
    legend(left)
    panels.increments(right, result, "L3", r"$|\Delta L_3|$ (kg m$^2$/s)")
    claims = [
        claim_constant(
            "Increments of the angular momentum about the vertical are round-off.", result, "L3", "kg m^2/s"
        ),
        claim_above(
            "Gravity changes the other components.", float(np.ptp(momenta[:, :2], axis=0).min()), 0.01, "kg m^2/s"
        ),
    ]
    return panels.with_caption(picture, result), claims


@figure("kinon-betsch-2024", 12, "Centre of mass of the heavy top")
@house_style()
def centre_of_mass() -> tuple[Figure, list[Claim]]:
    picture, left, right = panels.two_panels()
    t = np.linspace(0, 2, 801)
    errors = {}
    for axes, component, label in ((left, 2, r"$\varphi_3$ (m)"), (right, 0, r"$\varphi_1$ (m)")):
        axes.plot(t, _exact(t)[:, component], color=PALETTE[7], linewidth=2.5, alpha=0.5, label="exact")
        for i, name in enumerate(("EML", "EMH")):
            result = _top(name)
            style: dict[str, Any] = dict(color=PALETTE[i], linestyle=("-", "--")[i], linewidth=0.9)
            axes.plot(result.t, _centre(result)[:, component], label=name, **style)
            errors[name, component] = np.abs(_centre(result) - _exact(result.t))[:, component]
        axes.set_ylabel(label)
        time_axis(axes, _top("EML"))
        legend(axes)
    height = {name: float(errors[name, 2].max()) for name in ("EML", "EMH")}
    text = "Both schemes have similar height errors (ratio of the largest errors, EML to EMH)."
    claims = [claim_between(text, height["EML"] / height["EMH"], 0.5, 2.0)]
    for name in height:
        height_errors = [float(np.abs(_centre(_top(name, h)) - _HEIGHT)[:, 2].max()) for h in _STEPS[:4]]
        claims.append(claim_order(f"The largest height error has order 2 ({name}).", 2, _STEPS[:4], height_errors))
    # before phase errors accumulate
    early = {name: float(errors[name, 0][:11].max()) for name in ("EML", "EMH")}
    claims.append(
        claim_ranked("EML is closer to the horizontal motion than EMH (largest error up to t = 0.1 s, m).", early)
    )
    caption(picture, _top("EML"), "and hamilton-em")
    return picture, claims


@figure(
    "kinon-betsch-2024",
    13,
    "Errors of four schemes for the heavy top at t = 0.1 s",
    note="In the published figure both Livens schemes are more accurate than both Hamiltonian ones. The midpoint rule "
    "of the code of the authors (metis 1.1.1) explains it: the first equation of (133) has the inverse of M_4 at the "
    "midpoint of a step, the second one the derivative (143) of the co-energy with M_4^-1 from (139), which is the "
    "inverse for |q| = 1 only, and |q| < 1 there. This is the curve 'MPH, metis', behind EMH. With (139) in both "
    "equations, curve 'MPH, (139)', the midpoint rule is ahead of EMH. With the inverse of the mass matrix at the "
    "point of evaluation and its derivative, as in hamilton-midpoint, MPH has the same equations in (q, p) as MPL, "
    "because q_m . v_m = 0 cancels the augmented term: the two agree and are more accurate than EML.",
)
@house_style()
def convergence() -> tuple[Figure, list[Claim]]:
    errors = {name: [_error(scheme, h) for h in _STEPS] for name, scheme in _SCHEMES.items()}
    errors[_PRINTED] = [_error(_PrintedInverse(), h) for h in _STEPS]
    errors[_AUTHORS] = [_error(_MixedInverses(), h) for h in _STEPS]
    picture = new_figure(COLUMN, 3.0)
    axes = picture.add_subplot()
    shown = {name: errors[name] for name in ("MPL", "MPH", "EML", _PRINTED, "EMH", _AUTHORS)}
    panels.orders(axes, _STEPS, shown, 2, "relative error of the centre of mass")
    caption(picture, _top("EML", _STEPS[0], 0.1), "to 1.6e-4 s, t = 0.1 s")
    claims = [claim_order(f"{name} is of order 2.", 2, _STEPS, values) for name, values in errors.items()]
    finest = {name: values[-1] for name, values in errors.items()}
    difference = max(abs(a / b - 1) for a, b in zip(errors["MPL"][1:], errors["MPH"][1:], strict=True))
    claims += [
        claim_below("MPL and MPH have the same errors (largest relative difference).", difference, 1e-6),
        claim_ranked(
            "Errors at the smallest step.", {name: finest[name] for name in ("MPL", "EML", _PRINTED, "EMH", _AUTHORS)}
        ),
    ]
    return picture, claims


def _error(scheme: Any, h: float) -> float:
    """Return the relative error of the centre of mass (121)."""
    result = simulate(problems.load("heavy-top"), scheme=scheme, h=h, t_end=0.1, every=10**9, progress=False)
    exact = _reference()
    return float(np.linalg.norm(rot.rotate(result.q[-1], _CENTRE) - exact) / np.linalg.norm(exact))


@functools.cache
def _reference() -> np.ndarray:
    return np.asarray(_exact(np.array([0.1]))[0])


class _PrintedInverse(HamiltonEM):
    """Midpoint rule (133) with ``M_4^-1 = 1/4 Q_l(q) J_4^-1 Q_l(q)^T`` (139) at the midpoint of the step."""

    def velocity_factor(self, q: object) -> Any:
        """Return the factor of the velocity (139) at q."""
        return 1

    def element_contribution(
        self, e: ElementFunctions, old: MechanicalState, new: MechanicalState, x: Any, h: Any, t: Any
    ) -> ElementContribution:
        q_m, zero = old.q + h / 2 * x.u, ca.SX(e.n, 1)
        force = -e.V_q(q_m, t + h / 2) - e.G(q_m, 0).T @ x.lam
        velocity = v1 = zero
        if not e.model.T.is_zero():
            co = CoEnergy(e)
            gradient = co.gradient(co.invariant(q_m, x.p_m))
            velocity = self.velocity_factor(q_m) * (co.dt_dp(q_m).T @ gradient)
            force = force - co.dt_dq(x.p_m).T @ gradient
            v1 = co.dt_dp(new.q).T @ co.gradient(co.invariant(new.q, 2 * x.p_m - old.p))
        return ElementContribution(
            residuals=[-velocity, -h * force, -v1], constraint_residuals=[e.g(new.q, t + h) / h], momentum=zero
        )


class _MixedInverses(_PrintedInverse):
    """Midpoint rule of metis 1.1.1: the inverse of M_4 at the midpoint, with the derivative (143) of (139)."""

    def velocity_factor(self, q: Any) -> Any:
        """Return ``1/|q|^4``: ``Q_l(q) Q_l(q)^T = |q|^2``, so (139) is the inverse of M_4 times ``|q|^4``."""
        return 1 / ca.dot(q, q) ** 2
