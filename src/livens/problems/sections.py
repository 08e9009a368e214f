"""Sections of the built-in problems, shared by ``livens list``, the lab and the gallery of the documentation."""

from __future__ import annotations

from collections.abc import Iterable

#: Title of the section of problems that no other section names, such as user-defined problems.
REMAINING = "More problems"
#: Names of the problems by section, in the order of the listings.
SECTIONS = {
    "Start here": "simple-pendulum double-pendulum double-four-bar slider-crank kepler six-axis-arm",
    "Mechanisms": (
        "bricard rssr double-wishbone flyball-governor andrews-squeezer gimbal-gyroscope spatial-slider-crank "
        "spring-four-bar flexible-slider-crank n-four-bar double-four-bar-damped double-four-bar-multibody "
        "closed-loop-bars closed-loop-bars-directors closed-loop-bars-multibody"
    ),
    "Rigid bodies and tops": (
        "heavy-top lie-heavy-top rattleback tippe-top free-rigid-body rolling-disc gyroscopic-top euler-top"
    ),
    "Pendulums and oscillators": (
        "pendulum spherical-pendulum spring-pendulum spring-pendulum-spherical nonlinear-pendulum magnetic-pendulum "
        "viscous-pendulum pendulum-penalty mass-spring-damper mass-spring-redundant spring-chain four-particles "
        "two-oscillators vanishing-mass non-reversible-oscillator cart-pole"
    ),
    "Contact": (
        "bouncing-ball newtons-cradle dominoes box-stack snooker balls-in-a-box ball-in-a-bowl billiard two-walls"
    ),
    "Elastic bodies": (
        "roll-up 45-degree-bend flying-spaghetti-2d flying-spaghetti-3d right-angle-cantilever princeton-beam "
        "beam-bari beam-slider-crank hanging-net cable-drop"
    ),
    "Bearings and vehicles": "ball-bearing wheelset car-axis rotating-shaft rotor",
    "Celestial mechanics": "outer-solar-system pleiades",
    "Hamiltonian systems": "henon-heiles fput fput-stiff toda fekete",
    "Multi-physics": "loudspeaker motor-slider-crank rlc-circuit",
    "Joints": (
        "joint-revolute joint-prismatic joint-cylindrical joint-screw joint-universal joint-spherical joint-planar "
        "joint-curve joint-helix joint-gear joint-rack joint-shafts"
    ),
    "Large systems": "chain link-chain hinge-chain net",
}


def by_section(names: Iterable[str]) -> dict[str, list[str]]:
    """Return names of problems by section, in the order of the sections; unknown names come last.

    >>> by_section(["kepler", "own-problem", "double-pendulum"])
    {'Start here': ['double-pendulum', 'kepler'], 'More problems': ['own-problem']}
    """
    remaining = dict.fromkeys(names)
    sections: dict[str, list[str]] = {}
    for title, members in SECTIONS.items():
        present = [name for name in members.split() if name in remaining]
        if present:
            sections[title] = present
        for name in present:
            del remaining[name]
    if remaining:
        sections[REMAINING] = sorted(remaining)
    return sections
