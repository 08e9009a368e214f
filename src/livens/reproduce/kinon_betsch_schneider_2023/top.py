"""Figures 3 to 10 of Kinon et al. 2023: steady precession of a top with directors, by the variational integrator."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from livens import problems
from livens.errors import IntegrationError
from livens.plot.curves import curve, time_axis
from livens.plot.style import COLUMN, GREY, PALETTE, house_style, legend, new_figure
from livens.reproduce import panels
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import (
    claim_above,
    claim_below,
    claim_constant,
    claim_constraints_hold,
    claim_no_trend,
    claim_order,
    roundoff_limit,
    run,
)
from livens.results.result import Result
from livens.run.simulate import simulate

_HEIGHT = 0.0375
_SCHEMES = ("ggl-variational", "symplectic-euler", "ggl-classic")
_STEPS = tuple(2e-4 / 2**i for i in range(6))
_GROUPS = {"$|d_i| = 1$": (0, 1, 2), "$d_i \\cdot d_j = 0$": (3, 4, 5), "tip": (6, 7, 8)}


def _top(scheme: str = "ggl-variational") -> Result:
    """Return a run, or the part before its failure."""
    try:
        return run("gyroscopic-top", scheme, 0.002, 2.0)
    except IntegrationError as error:
        if scheme == "ggl-variational" or error.result is None:
            raise
        return error.result


def _momenta(result: Result) -> np.ndarray:
    """Return the angular momentum about the tip, summed over centre and directors."""
    parts = [np.cross(result.q[:, i : i + 3], result.p[:, i : i + 3]) for i in (0, 3, 6, 9)]
    return np.asarray(sum(parts))


@figure("kinon-betsch-schneider-2023", 3, "Energies of the top")
@house_style()
def energies() -> tuple[Figure, list[Claim]]:
    result = _top()
    picture, axes = panels.single_panel()
    panels.energies(axes, result, "hamiltonian", "$H$")
    H = result.observe("hamiltonian")
    claims = [
        claim_below(
            "H stays near its initial value (largest relative deviation).", float(np.abs(H / H[0] - 1).max()), 1e-3
        ),
        claim_no_trend("H does not drift.", result.t, H, "J"),
    ]
    return panels.with_caption(picture, result), claims


@figure("kinon-betsch-schneider-2023", 4, "Angular momentum of the top")
@house_style()
def angular_momentum() -> tuple[Figure, list[Claim]]:
    result = _top()
    picture, axes = panels.single_panel()
    momenta = _momenta(result)
    for i in range(3):
        curve(axes, result.t, momenta[:, i], label=f"$L_{i + 1}$", color=PALETTE[i])
    axes.set_ylabel("angular momentum (kg m$^2$/s)")
    time_axis(axes, result)
    legend(axes)
    change = float(np.abs(momenta[:, 2] - momenta[0, 2]).max())
    # round-off errors accumulate like a random walk
    claims = [
        claim_below(
            "L3 is constant over the run.", change, roundoff_limit(result, "L3") * np.sqrt(len(result.t)), "kg m^2/s"
        ),
        claim_above(
            "Gravity changes the other components.", float(np.ptp(momenta[:, :2], axis=0).min()), 0.01, "kg m^2/s"
        ),
    ]
    return panels.with_caption(picture, result), claims


@figure(
    "kinon-betsch-schneider-2023",
    5,
    "Changes of the Hamiltonian of the top",
    note="In addition to the increments of the variational integrator, the deviation of H from its initial value is "
    "shown for three schemes. The one-step discretisation of the classical GGL equations gains energy until a step "
    "has no solution. Symplectic Euler, whose velocities violate the hidden constraints, has a constant deviation "
    "from its first step on.",
)
@house_style()
def hamiltonian() -> tuple[Figure, list[Claim]]:
    result = _top()
    picture, left, right = panels.two_panels()
    steps = result.observe("hamiltonian", increments=True)
    curve(left, result.t[1:], steps, color=PALETTE[0], linewidth=0.7)
    left.set_ylabel("$H_{n+1} - H_n$ (J)")
    time_axis(left, result)
    deviations = {}
    for i, scheme in enumerate(_SCHEMES):
        compared = _top(scheme)
        H = compared.observe("hamiltonian")
        deviations[scheme] = np.abs(H / H[0] - 1)
        right.semilogy(compared.t[1:], deviations[scheme][1:], color=PALETTE[i], linewidth=0.8, label=scheme)
    right.set_ylabel("$|H - H_0|/H_0$")
    time_axis(right, result)
    legend(right)
    claims = [
        claim_above("The variational integrator does not conserve H exactly,", float(np.abs(steps).max()), 1e-9, "J"),
        claim_below("but its error is bounded (relative to H).", float(deviations["ggl-variational"].max()), 1e-3),
        claim_above(
            "The classical GGL scheme gains energy (relative to H).", float(deviations["ggl-classic"].max()), 0.1
        ),
    ]
    return panels.with_caption(picture, result, "and two others"), claims


@figure("kinon-betsch-schneider-2023", 6, "Changes of the angular momentum of the top about the vertical")
@house_style()
def momentum_increments() -> tuple[Figure, list[Claim]]:
    result = _top()
    picture, axes = panels.single_panel()
    panels.increments(axes, result, "L3", r"$|\Delta L_3|$ (kg m$^2$/s)")
    return panels.with_caption(picture, result), [
        claim_constant("Increments of L3 are round-off.", result, "L3", "kg m^2/s")
    ]


@figure("kinon-betsch-schneider-2023", 7, "Constraints of the top on configuration level")
@house_style()
def constraints() -> tuple[Figure, list[Claim]]:
    result = _top()
    picture, axes = panels.single_panel()
    panels.violations(axes, result, "constraint", _GROUPS, r"max $|g_k|$ (1 or m)")
    return panels.with_caption(picture, result), [
        claim_constraints_hold("All nine constraints hold to round-off.", result)
    ]


@figure("kinon-betsch-schneider-2023", 8, "Constraints of the top on velocity level")
@house_style()
def hidden() -> tuple[Figure, list[Claim]]:
    result = _top()
    picture, axes = panels.single_panel()
    panels.violations(axes, result, "velocity_constraint", _GROUPS, r"max $|\mathrm{d}g_k/\mathrm{d}t|$ (1/s or m/s)")
    values = np.abs(result.observe("velocity_constraint"))
    claims = [
        claim_above("Velocity constraints of the directors are violated.", float(values[:, :6].max()), 1e-6, "1/s"),
        claim_below(
            "Velocity constraints of the tip hold, because its constraints are linear.",
            float(values[:, 6:].max()),
            roundoff_limit(result, "velocity_constraint"),
            "m/s",
        ),
    ]
    euler = float(np.abs(_top("symplectic-euler").observe("velocity_constraint")).max())
    text = "Violations are smaller than with symplectic Euler, which does not enforce velocity constraints (ratio)."
    claims.append(claim_below(text, float(values.max()) / euler, 0.1))
    return panels.with_caption(picture, result), claims


@figure("kinon-betsch-schneider-2023", 9, "Convergence of the height of the centre of mass")
@house_style()
def convergence() -> tuple[Figure, list[Claim]]:
    problem = problems.load("gyroscopic-top")
    errors = {}
    for scheme in _SCHEMES:
        final_heights = [simulate(problem, scheme=scheme, h=h, t_end=0.001, progress=False).q[-1, 2] for h in _STEPS]
        errors[scheme] = [abs(float(final_height) / _HEIGHT - 1) for final_height in final_heights]
    picture = new_figure(COLUMN, 2.8)
    panels.orders(picture.add_subplot(), _STEPS, errors, 1, r"relative error of $\varphi_3$")
    picture.suptitle("gyroscopic-top, t = 0.001 s", x=0.01, ha="left", color=GREY)
    claims = [claim_order(f"{scheme} is of order 1.", 1, _STEPS, values) for scheme, values in errors.items()]
    return picture, claims


@figure("kinon-betsch-schneider-2023", 10, "Height of the centre of mass")
@house_style()
def height() -> tuple[Figure, list[Claim]]:
    result = _top()
    picture, axes = panels.single_panel()
    axes.axhline(_HEIGHT, color=PALETTE[7], linewidth=2.5, alpha=0.5, label="exact")
    curve(axes, result.t, result.q[:, 2], color=PALETTE[0], label="ggl-variational", linewidth=0.8)
    axes.set_ylabel(r"$\varphi_3$ (m)")
    time_axis(axes, result)
    legend(axes)
    relative_error = result.q[:, 2] / _HEIGHT - 1
    claims = [
        claim_below(
            "The height stays near the exact one (largest relative error).", float(np.abs(relative_error).max()), 0.1
        ),
        claim_above("The height exceeds the exact one", float(relative_error.max()), 1e-6),
        claim_above("and falls below it (relative).", float(-relative_error.min()), 1e-6),
        claim_no_trend("The height does not drift.", result.t, result.q[:, 2], "m"),
    ]
    return panels.with_caption(picture, result), claims
