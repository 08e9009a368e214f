"""Figures 1 to 4 of Kinon and Betsch 2024: singular and configuration-dependent mass matrices."""

from __future__ import annotations

from matplotlib.figure import Figure

from livens.plot.style import house_style
from livens.reproduce import panels, springs
from livens.reproduce.core import Claim, figure

_E_STEP = r"$|E_{n+1} - E_n|$ (J)"


@figure("kinon-betsch-2024", 1, "Energies of the two masses", note=springs.FACTOR_NOTE, quick=True)
@house_style()
def energies() -> tuple[Figure, list[Claim]]:
    picture, left, right = panels.two_panels()
    springs.chain_energies(left, right)
    return panels.with_caption(picture, springs.chain()), springs.chain_energy_claims()


@figure("kinon-betsch-2024", 2, "Constraint and increments of the energy of the two masses", quick=True)
@house_style()
def conserved() -> tuple[Figure, list[Claim]]:
    picture, left, right = panels.two_panels()
    panels.violations(left, springs.chain(), "constraint", {"$|g|$": [0]}, r"$|g(q)|$ (m$^2$)")
    panels.increments(right, springs.chain(), "generalized_energy", _E_STEP)
    return panels.with_caption(picture, springs.chain()), springs.chain_constraint() + springs.chain_conserves()


@figure("kinon-betsch-2024", 3, "Energies and motion of the spring pendulum", note=springs.DERIVATIVE_NOTE, quick=True)
@house_style()
def pendulum() -> tuple[Figure, list[Claim]]:
    """Plot energies and the distance from the reference motion; the source has a sketch here."""
    picture, left, right = panels.two_panels()
    panels.energies(left, springs.pendulum())
    springs.pendulum_distance(right)
    return panels.with_caption(
        picture, springs.pendulum()
    ), springs.pendulum_energy_claims() + springs.pendulum_motion_claims()


@figure(
    "kinon-betsch-2024",
    4,
    "Increments of total and generalised energy of the spring pendulum",
    quick=True,
    note="The published curves have a wrong derivative of T: see figure 3.",
)
@house_style()
def pendulum_increments() -> tuple[Figure, list[Claim]]:
    picture, left, right = panels.two_panels()
    panels.increments(left, springs.pendulum(), "total_energy", r"$|\Delta E_\mathrm{tot}|$ (J)")
    panels.increments(right, springs.pendulum(), "generalized_energy", _E_STEP)
    return panels.with_caption(picture, springs.pendulum()), springs.pendulum_total() + springs.pendulum_conserves()
