"""Figures of Kinon and Betsch 2023: energy-consistent scheme based on Livens' principle."""

from __future__ import annotations

from matplotlib.figure import Figure

from livens.plot.style import house_style
from livens.reproduce import panels, springs
from livens.reproduce.core import Claim, figure

_SEE_FIGURE_5 = "The published curve has a wrong derivative of T: see figure 5."
_E_STEP = r"$|E_{n+1} - E_n|$ (J)"


@figure("kinon-betsch-2023", 2, "Energies of the two masses", note=springs.FACTOR_NOTE, quick=True)
@house_style()
def energies() -> tuple[Figure, list[Claim]]:
    picture, left, right = panels.two_panels()
    springs.chain_energies(left, right)
    return panels.with_caption(picture, springs.chain()), springs.chain_energy_claims()


@figure("kinon-betsch-2023", 3, "Increments of the energy of the two masses", quick=True)
@house_style()
def increments() -> tuple[Figure, list[Claim]]:
    picture, axes = panels.single_panel()
    panels.increments(axes, springs.chain(), "generalized_energy", _E_STEP)
    return panels.with_caption(picture, springs.chain()), springs.chain_conserves()


@figure("kinon-betsch-2023", 4, "The constraint of the two masses", quick=True)
@house_style()
def constraint() -> tuple[Figure, list[Claim]]:
    picture, axes = panels.single_panel()
    panels.violations(axes, springs.chain(), "constraint", {"$|g|$": [0]}, r"$|g(q)|$ (m$^2$)")
    return panels.with_caption(picture, springs.chain()), springs.chain_constraint()


@figure("kinon-betsch-2023", 5, "Motion of the spring pendulum", note=springs.DERIVATIVE_NOTE, quick=True)
@house_style()
def motion() -> tuple[Figure, list[Claim]]:
    """Plot the elongation and its error; the source has a sketch here."""
    picture, left, right = panels.two_panels()
    springs.pendulum_motion(left, right)
    return panels.with_caption(picture, springs.pendulum()), springs.pendulum_motion_claims()


@figure("kinon-betsch-2023", 6, "Energies of the spring pendulum", note=_SEE_FIGURE_5, quick=True)
@house_style()
def pendulum_energies() -> tuple[Figure, list[Claim]]:
    picture, axes = panels.single_panel()
    panels.energies(axes, springs.pendulum())
    return panels.with_caption(picture, springs.pendulum()), springs.pendulum_energy_claims()


@figure("kinon-betsch-2023", 7, "Increments of the total energy of the spring pendulum", note=_SEE_FIGURE_5, quick=True)
@house_style()
def pendulum_total() -> tuple[Figure, list[Claim]]:
    picture, axes = panels.single_panel()
    panels.increments(axes, springs.pendulum(), "total_energy", r"$|\Delta E_\mathrm{tot}|$ (J)")
    return panels.with_caption(picture, springs.pendulum()), springs.pendulum_total()


@figure("kinon-betsch-2023", 8, "Increments of the generalised energy of the spring pendulum", quick=True)
@house_style()
def pendulum_increments() -> tuple[Figure, list[Claim]]:
    picture, axes = panels.single_panel()
    panels.increments(axes, springs.pendulum(), "generalized_energy", _E_STEP)
    return panels.with_caption(picture, springs.pendulum()), springs.pendulum_conserves()
