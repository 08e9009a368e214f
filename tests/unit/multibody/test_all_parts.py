"""Every force, drive, controller, coupling and connection that can be drawn: a new one must bring its case.

Joints of the table have their own test, `test_all_joints`, which reads the table.
"""

import inspect

import coupling_cases as couplings
import force_cases as forces
import numpy as np
import pytest
from conftest import measured_order
from force_cases import MOMENT, G, in_hinge, in_slide, on_line

import livens as lv
from livens import math as m
from livens.multibody.builder.constraints import ConstraintMethods
from livens.multibody.builder.control import ControlMethods
from livens.multibody.builder.couplings import CouplingMethods
from livens.multibody.builder.forces import ForceMethods
from livens.multibody.builder.joint_forces import JointForceMethods
from livens.multibody.builder.joints import JointMethods
from livens.multibody.builder.point_forces import PointForceMethods
from livens.multibody.joint_types import SPATIAL_JOINTS

BEYOND = dict(times=(0.03, 0.06), steps=(0.006, 0.003, 0.0015, 0.00075))  # a limit is left again after a while


def rubbing(t, y):
    """Dry friction with a Stribeck curve, smooth enough to be resolved."""
    r = y[1]
    return -(0.5 + 0.4 / (1 + (r / 0.8) ** 2)) * r / np.hypot(r, 0.3)


def steered(t, y):
    return 20 * (0.3 * np.sin(t) - y[0]) + 3 * (0.3 * np.cos(t) - y[1]) + 1.5


STEERED = dict(reference=lambda t: 0.3 * m.sin(t), reference_rate=lambda t: 0.3 * m.cos(t), feedforward=1.5)
GAINS = dict(kp=20, kd=3)
DRY = dict(static=0.9, stribeck=0.8, rate_tolerance=0.3)

#: By the method that draws it; several where it has several forms.
CASES = {
    "spring": on_line(
        lambda mb, ball: mb.spring("spring", [0, 0, 0], ball, stiffness=40, free_length=0.7),
        lambda length, rate: 40 * (length - 0.7),
        ["spring"],
    ),
    "spring at a lever": forces.spring_at_a_lever(),
    "damper": on_line(
        lambda mb, ball: mb.damper("damper", ball, [0, 0, 0], damping=5), lambda length, rate: 5 * rate, ["damper"]
    ),
    "spring_damper": on_line(
        lambda mb, ball: mb.spring_damper("strut", ball, [0, 0, 0], stiffness=40, damping=5, free_length=0.7),
        lambda length, rate: 40 * (length - 0.7) + 5 * rate,
        ["strut", "strut damper"],
    ),
    "force_law": on_line(
        lambda mb, ball: mb.force_law("law", ball, [0, 0, 0], lambda length, rate: 40 * (length - 0.7) ** 3 + 5 * rate),
        lambda length, rate: 40 * (length - 0.7) ** 3 + 5 * rate,
        ["law"],
    ),
    "gravitation": forces.attracting(),
    "torsion_spring": in_hinge(
        lambda mb, hinge: mb.torsion_spring("coil", hinge, stiffness=6, rest_angle=0.2),
        lambda t, y: -6 * (y[0] - 0.2),
        "coil",
    ),
    "torsion_damper": in_hinge(
        lambda mb, hinge: mb.torsion_damper("oil", hinge, damping=0.7), lambda t, y: -0.7 * y[1], "oil"
    ),
    "motor": in_hinge(
        lambda mb, hinge: mb.motor(hinge, torque=lambda t, a, r: 2 * m.sin(3 * t) - a - 0.3 * r, name="motor"),
        lambda t, y: 2 * np.sin(3 * t) - y[0] - 0.3 * y[1],
        "motor",
    ),
    "input": in_hinge(
        lambda mb, hinge: mb.motor(hinge, torque=mb.input("torque", 1.5), name="motor"), lambda t, y: 1.5, "motor"
    ),
    "motor in the plane": in_hinge(
        lambda mb, hinge: mb.motor(hinge, torque=lambda t, a, r: 2 * m.sin(3 * t) - a - 0.3 * r, name="motor"),
        lambda t, y: 2 * np.sin(3 * t) - y[0] - 0.3 * y[1],
        "motor",
        planar=True,
    ),
    "motor that slides": in_slide(
        lambda mb, guide: mb.motor(guide, force=lambda t, x, v: 9 * m.cos(4 * t) - 20 * x - v, name="motor"),
        lambda t, y: 9 * np.cos(4 * t) - 20 * y[0] - y[1],
        "motor",
    ),
    "drive of an angle": couplings.driven_arm("angle"),
    "drive of a rate": couplings.driven_arm("rate"),
    "drive of a position": couplings.driven_slide("position"),
    "drive of a speed": couplings.driven_slide("velocity"),
    "pd": in_hinge(lambda mb, hinge: mb.pd(hinge, name="servo", **GAINS, **STEERED), steered, "servo"),
    "pd that slides": in_slide(lambda mb, guide: mb.pd(guide, name="servo", **GAINS, **STEERED), steered, "servo"),
    "pid": in_hinge(
        lambda mb, hinge: mb.pid(hinge, name="servo", ki=15, **GAINS, **STEERED),
        lambda t, y: steered(t, y) + 15 * y[2],
        "servo",
        more=[lambda t, y: 0.3 * np.sin(t) - y[0]],
    ),
    "pid that slides": in_slide(
        lambda mb, guide: mb.pid(guide, name="servo", ki=15, **GAINS, **STEERED),
        lambda t, y: steered(t, y) + 15 * y[2],
        "servo",
        more=[lambda t, y: 0.3 * np.sin(t) - y[0]],
    ),
    "sampled_controller": couplings.sampled(),
    "limit": in_hinge(
        lambda mb, hinge: mb.limit("stop", hinge, lower=-0.5, upper=0.2, stiffness=100, damping=20),
        lambda t, y: -(y[0] - 0.2) * (100 + 20 * y[1]),
        "stop",
        start=(0.35, 0.2),
        **BEYOND,
    ),
    "limit that slides": in_slide(
        lambda mb, guide: mb.limit("stop", guide, lower=-0.1, stiffness=400, damping=90),
        lambda t, y: (-0.1 - y[0]) * (400 - 90 * y[1]),
        "stop",
        start=(-0.3, -0.2),
        **BEYOND,
    ),
    "friction": in_hinge(
        lambda mb, hinge: mb.friction("dry", hinge, torque=0.5, **DRY),
        rubbing,
        "dry",
        start=(0.3, -0.5),
        steps=(0.01, 0.005, 0.0025, 0.00125),
    ),
    "friction that slides": in_slide(
        lambda mb, guide: mb.friction("dry", guide, force=0.5, **DRY), rubbing, "dry", start=(0.1, 1.0)
    ),
    "armature": in_hinge(
        lambda mb, hinge: mb.armature(hinge, inertia=0.4, name="rotor"),
        lambda t, y: -0.4 * (G / 2 * np.cos(y[0])) / (MOMENT + 0.4),
        "rotor",
    ),
    "armature in the plane": in_hinge(
        lambda mb, hinge: mb.armature(hinge, inertia=0.4, name="rotor"),
        lambda t, y: 0.4 * (G / 2 * np.cos(y[0])) / (MOMENT + 0.4),
        "rotor",
        planar=True,
    ),
    "armature that slides": in_slide(
        lambda mb, guide: (
            mb.armature(guide, inertia=3.0, name="rotor"),
            mb.motor(guide, force=lambda t, x, v: -30 * x, name="motor"),
        ),
        lambda t, y: -30 * y[0] - 3.0 * (-30 * y[0] - 2 * 0.8 * G) / (2 + 3.0),
        "motor.force + rotor",
    ),
    "bushing": forces.on_a_bushing(),
    "cable": forces.over_pulleys(),
    "wrench": forces.under_a_wrench("space"),
    "wrench in the axes of the body": forces.under_a_wrench("body"),
    "penalty_joint": forces.held_softly(),
    "distance": couplings.on_a_string(),
    "point_on_surface": couplings.in_a_bowl(),
    "point_on_curve": couplings.on_a_helix(),
    "rolling": couplings.rolling_ball(),
    "knife_edge": couplings.skating(),
    "gear": couplings.coupled(
        lambda mb, j: mb.gear("teeth", *j, ratio=-2.5), [-2.5, -1], [0.5, 0], "teeth", [3.0, -7.5]
    ),
    "belt": couplings.coupled(
        lambda mb, j: mb.belt("belt", *j, radii=[0.3, 0.1]), [0.3, -0.1], [0.5, 0.2], "belt", [2.0, 6.0]
    ),
    "belt that crosses": couplings.coupled(
        lambda mb, j: mb.belt("belt", *j, radii=[0.3, 0.1], crossed=True), [0.3, 0.1], [0.5, 0.2], "belt", [2.0, -6.0]
    ),
    "differential": couplings.coupled(
        lambda mb, j: mb.differential("gears", *j), [0.5, 0.5, -1], [0.0, 0.1, 0.4], "gears", [4.0, 1.0, 2.5]
    ),
    "couple": couplings.coupled(
        lambda mb, j: mb.couple("sum", *zip(j, [2.0, -0.5, 1.5], strict=True)),
        [2.0, -0.5, 1.5],
        [0.3, 0.1, 0.0],
        "sum",
        [1.0, 10.0, 2.0],
    ),
    "rack": couplings.racked(),
}
#: Methods that draw nothing that acts or holds (what is shown, ends of forces), the general joint, whose kinds are in
#: the table, and what other files compare: wheels (`tests/claims/test_wheels.py`) and compiled forces
#: (`tests/claims/test_implicit_external_force.py`).
OTHERS = {"joint", "observe", "marker", "wheel", "external_force"}


def drawn(*classes):
    """Public methods of classes, by name."""
    return {
        name for one in classes for name, value in vars(one).items() if inspect.isfunction(value) and name[0] != "_"
    }


def test_every_part_has_a_case():
    """A method that is added to a drawing is missing here until it has one."""
    have = {name.split(" ")[0] for name in CASES} | set(SPATIAL_JOINTS) | OTHERS
    assert (
        drawn(
            PointForceMethods,
            JointForceMethods,
            ForceMethods,
            ControlMethods,
            JointMethods,
            ConstraintMethods,
            CouplingMethods,
        )
        == have
    )


@pytest.mark.parametrize("name", CASES)
def test_motion_and_force(name):
    """Second order with four step sizes in everything that is named; constraints and the balance at round-off."""
    case = CASES[name]
    mb, times = case.draw(), np.array(case.times)
    truth, errors = case.truth(times), {}
    for h in case.steps:
        run = mb.simulate(t_end=times[-1] + h, h=h)
        energy = run["total_energy"] - run.supplied_energy + run.dissipated_energy
        sizes = [np.abs(run[part]).max() for part in ("kinetic_energy", "potential_energy")]
        assert np.ptp(energy) < case.balance * max(1.0, *sizes)
        assert run.summary.max_constraint < 1e-14
        at = np.round(times / h).astype(int)
        for quantity, rows in truth.items():
            found = sum(run[one] for one in quantity.split(" + "))[at]
            errors.setdefault(quantity, []).append(np.abs(found - rows).max() / max(1.0, np.abs(rows).max()))
    for quantity, found in errors.items():
        if quantity in case.exact:
            assert max(found) < 1e-12, (quantity, found)
        elif max(found) > 1e-9:  # what is constant is exact, up to that of the reference
            assert found[-1] < 1e-2 and abs(measured_order(case.steps, found) - 2) < 0.1, (quantity, found)
    assert {quantity for quantity, found in errors.items() if max(found) > 1e-9} or case.exact


@pytest.mark.parametrize("name", ["gear", "belt", "belt that crosses", "differential", "couple", "rack"])
def test_couplings_over_ten_turns(name):
    """Angles go on over full turns, and no tooth is lost: the weighted sum stays as it is to round-off."""
    mb = CASES[name].draw()
    run = mb.simulate(t_end=40.0, h=0.05)
    angles = [run[f"{joint}.angle"] for joint, one in mb.joints.items() if one.joint_type.angle]
    assert max(np.abs(angle).max() for angle in angles) > 20 * np.pi
    assert max(np.abs(np.diff(angle)).max() for angle in angles) < np.pi
    (coupling,) = mb.couplings
    assert np.abs(run[f"{coupling}.violation"]).max() < 1e-11 and np.abs(run["total_energy"]).max() < 1e3


def test_what_acts_in_a_hinge_over_ten_turns():
    """A motor, friction and a damper in an axle that goes round and round: all of them as at the start of a turn."""
    mb = lv.Multibody()
    wheel = mb.cylinder("wheel", at=[0, 0, 0], axis=[0, 0.6, 0.8], length=0.1, radius=0.3, mass=2)
    axle = mb.revolute("axle", mb.ground, wheel, axis=[0, 0.6, 0.8])
    mb.motor(axle, torque=0.5, name="motor")
    mb.friction("dry", axle, torque=0.1, rate_tolerance=0.01)
    mb.torsion_damper("oil", axle, damping=0.02)
    mb.initial(axle, rate=20.0)
    run = mb.simulate(t_end=5.0, h=0.02)
    assert run["axle.angle"][-1] > 20 * np.pi and np.all(np.diff(run["axle.angle"]) > 0)
    assert np.abs(run["axle.rate"] - 20.0).max() < 1e-3  # what drives it is what holds it back
    assert np.abs(run["motor.torque"] - 0.5).max() < 1e-13
    assert (
        np.abs(run["dry.torque"] + 0.1).max() < 1e-6
        and np.abs(run["oil.torque"] + 0.02 * run["axle.rate"]).max() < 1e-12
    )
