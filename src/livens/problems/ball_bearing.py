"""Deep-groove ball bearing: balls on races, cage and drive (Modin 2009, paper V and chapter 4)."""

from __future__ import annotations

import dataclasses

import numpy as np

from livens.errors import InputError
from livens.models.problem import Problem
from livens.problems import problem
from livens.problems.bearing.dimensions import Bearing
from livens.problems.bearing.initial_state import axial_equilibrium, radial_equilibrium
from livens.problems.bearing.model import bearing_system, initial_state
from livens.problems.bearing.roller.contact import RollerBearing
from livens.problems.bearing.roller.initial_state import roller_equilibrium
from livens.problems.bearing.roller.model import roller_initial_state, roller_system
from livens.validation import check_choice, check_positive

CASES = ("axial", "axial-step", "radial", "radial-step", "elastic", "rollers")
#: Load before a load step, relative to the load after the step; used for the initial equilibrium.
_INITIAL_LOAD_FRACTION = 0.1


@problem(
    "ball-bearing",
    summary="a deep-groove ball bearing: nine balls on races and in a cage, driven and loaded",
    source="Modin 2009, paper V, 6.3; Modin 2009, 4.3",
    source_run="semi-explicit:0.5,0.8, h = 1e-06 s",
    scheme="semi-explicit:0.5,0.8",
)
def ball_bearing(
    case: str = "axial",
    balls: int = 9,
    rpm: float = 1e4,
    load: float = 1000.0,
    friction: float = 0.05,
    contact_dissipation: float = -1.0,
    clearance: float = 15e-6,
    modes: int = 0,
    inner_modes: int = 0,
    cage_modes: int = 0,
    ovality: float = 0.0,
    slices: int = 8,
    scale: float = 1.0,
    penalty_frequency: float = 1e6,
) -> Problem:
    """Build a deep-groove ball bearing or a spherical roller bearing.

    `case` is "axial", "axial-step" (the load grows tenfold at t = 0), "radial", "radial-step", "elastic" or "rollers".
    `load` in N acts on the inner ring, which the drive rotates at `rpm`.

    "elastic" is the radial case with flexible parts: the outer ring has `modes` modal coordinates, the inner ring
    `inner_modes`, the cage `cage_modes`. If all three are 0, the outer ring has 16.

    "rollers" is a spherical roller bearing under a radial load, with two rows of `balls` rollers each. Each roller is
    divided into `slices` slices.

    `contact_dissipation` is the Hunt-Crossley parameter in s/m; 0 means no dissipation. A negative value selects the
    default: 0.25 for a start in equilibrium, 0.02 for a load step. `scale` multiplies all lengths (1.7 gives balls of
    0.01 kg). `ovality` in m is the amplitude of the radial deviation of the inner race, with two waves.
    `penalty_frequency` in Hz is the natural frequency of the penalty springs of housing and drive.
    """
    check_choice("case", case, CASES)
    is_load_step = case.endswith("-step")
    check_positive("option 'load'", load)
    damping = contact_dissipation if contact_dissipation >= 0 else 0.02 if is_load_step else 0.25
    if case == "rollers":
        contact_options = dict(friction=friction, damping=damping, clearance=clearance, slices=slices)
        frequency = check_positive("option 'penalty_frequency'", penalty_frequency)
        if modes or inner_modes or cage_modes or ovality or scale != 1:
            raise InputError("case 'rollers' has rigid and round rings of one size: remove modes, oval and scale")
        r = RollerBearing(balls, speed=rpm * np.pi / 30, radial=-load, penalty_frequency=frequency, **contact_options)  # type: ignore[arg-type]
        q0, v0 = roller_initial_state(r, roller_equilibrium(r))
        return Problem("ball-bearing", roller_system(r), q0, v0, "semi-explicit:0.5,0.8", 1e-6, 6e-4)
    if case == "elastic" and not (modes or inner_modes or cage_modes):
        modes = 16
    b = Bearing(
        balls=balls,
        speed=rpm * np.pi / 30,
        friction=friction,
        damping=damping,
        clearance=clearance,
        penalty_frequency=check_positive("option 'penalty_frequency'", penalty_frequency),
        axial=load if case.startswith("axial") else 0.0,
        radial=0.0 if case.startswith("axial") else -load,
        modes=modes,
        inner_modes=inner_modes,
        cage_modes=cage_modes,
        ovality=ovality,
    )
    b = _scale_dimensions(b, check_positive("option 'scale'", scale))
    initial_load = load * _INITIAL_LOAD_FRACTION if is_load_step else load
    equilibrium = (
        axial_equilibrium(b, initial_load) if case.startswith("axial") else radial_equilibrium(b, -initial_load)
    )
    q0, v0 = initial_state(b, equilibrium, cage=0.95)
    return Problem("ball-bearing", bearing_system(b), q0, v0, "semi-explicit:0.5,0.8", 1e-6, 6e-4)


def _scale_dimensions(b: Bearing, scale: float) -> Bearing:
    """Return a bearing scaled in all lengths, and in its masses with the cube; the clearance is not scaled."""
    if scale == 1:
        return b
    lengths = (
        "diameter",
        "pitch",
        "cage_width",
        "bore",
        "ring_radius",
        "inner_ring_radius",
        "ring_width",
        "ring_thickness",
    )
    masses = ("inner_mass", "outer_mass", "cage_mass")
    scaled_lengths = {name: getattr(b, name) * scale for name in lengths}
    return dataclasses.replace(b, **scaled_lengths, **{name: getattr(b, name) * scale**3 for name in masses})
