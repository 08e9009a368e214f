"""Wrong use of every method of a drawing gets one sentence: each argument of a good call is spoilt in turn."""

import ctypes
import inspect

import numpy as np
import pytest

import livens as lv
from livens.multibody.body import Body, Marker
from livens.multibody.builder.bodies import BodyMethods
from livens.multibody.builder.constraints import ConstraintMethods
from livens.multibody.builder.control import ControlMethods
from livens.multibody.builder.couplings import CouplingMethods
from livens.multibody.builder.forces import ForceMethods
from livens.multibody.builder.joint_forces import JointForceMethods
from livens.multibody.builder.joints import JointMethods
from livens.multibody.builder.point_forces import PointForceMethods
from livens.multibody.joint import Joint
from livens.multibody.joint_types import PLANAR_JOINTS, SPATIAL_JOINTS


class World:
    """Two bodies, a particle, two hinges and a slide."""

    def __init__(self):
        mb = self.mb = lv.Multibody(gravity=[0, 0, -9.81])
        self.ground = mb.ground
        self.a = mb.box("a", at=[0, 0, 1], size=[0.3, 0.2, 0.1], mass=1)
        self.b = mb.box("b", at=[1, 0, 1], size=[0.3, 0.2, 0.1], mass=1)
        self.dot = mb.particle("dot", at=[2, 0, 1], mass=1)
        self.tip = self.b.point("tip", at=[1.1, 0, 1])
        wheels = [mb.cylinder(f"wheel{i}", at=[i, 1, 1], length=0.1, radius=0.2, mass=1) for i in range(3)]
        self.axles = [mb.revolute(f"axle{i}", mb.ground, wheel, axis="z") for i, wheel in enumerate(wheels)]
        self.slide = mb.prismatic("slide", mb.ground, mb.sphere("slider", at=[5, 0, 0], radius=0.1, mass=1), axis="x")


def law(*_):
    return 0.0


@ctypes.CFUNCTYPE(None, *[ctypes.POINTER(ctypes.c_double)] * 5)
def no_force(q, v, t, k, force):
    """A compiled force of zero."""


#: A good call of every method: arguments and options, from a world.
GOOD = {
    "fixed": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1])),
    "revolute": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1], axis=[0, 0, 1])),
    "prismatic": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1], axis=[0, 0, 1])),
    "cylindrical": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1], axis=[0, 0, 1])),
    "screw": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1], axis=[0, 0, 1], lead=0.1)),
    "universal": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1], axis=[1, 0, 0], second_axis=[0, 1, 0])),
    "spherical": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1])),
    "planar": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1], axis=[0, 0, 1])),
    "point_on_line": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1], axis=[0, 0, 1])),
    "point_on_plane": lambda w: (("new", w.a, w.b), dict(at=[0.5, 0, 1], axis=[0, 0, 1])),
    "joint": lambda w: (("revolute", "new", w.a, w.b), dict(at=[0.5, 0, 1], axis=[0, 0, 1])),
    "penalty_joint": lambda w: (("new", w.a, w.b), dict(frequency=10.0, damping_ratio=0.5, at=[0.5, 0, 1])),
    "distance": lambda w: (("new", w.a, w.tip), dict(length=1.0)),
    "point_on_surface": lambda w: (
        ("new", w.a, w.b),
        dict(surface=lambda x: x[2], at=[0.5, 0, 1], origin=[0, 0, 1]),
    ),
    "point_on_curve": lambda w: (
        ("new", w.a, w.b),
        dict(curve=lambda x: [x[1], x[2]], at=[0.5, 0, 1], origin=[0, 0, 1]),
    ),
    "rolling": lambda w: (("new", w.ground, w.a), dict(radius=1.0, at=[0, 0, 0], normal=[0, 0, 1], axis=[1, 0, 0])),
    "knife_edge": lambda w: (("new", w.ground, w.a), dict(lateral=[0, 1, 0], at=[0, 0, 1])),
    "couple": lambda w: (("new", (w.axles[0], 1.0), (w.axles[1], 2.0)), {}),
    "armature": lambda w: ((w.axles[0],), dict(inertia=0.2, name="new")),
    "gear": lambda w: (("new", *w.axles[:2]), dict(ratio=2.0)),
    "rack": lambda w: (("new", w.axles[0], w.slide), dict(radius=0.1)),
    "belt": lambda w: (("new", *w.axles[:2]), dict(radii=[0.1, 0.2])),
    "differential": lambda w: (("new", *w.axles), {}),
    "spring": lambda w: (("new", w.a, w.tip), dict(stiffness=10.0, free_length=1.0)),
    "damper": lambda w: (("new", w.a, w.tip), dict(damping=1.0)),
    "force_law": lambda w: (("new", w.a, w.tip), dict(force=lambda length, rate: length - 1 + rate)),
    "marker": lambda w: (("new",), dict(position=lambda t: [t, 0.0, 0.0])),
    "wheel": lambda w: (("new", w.a, [0, 0, 1], 0.01), dict(rate=10.0)),
    "spring_damper": lambda w: (("new", w.a, w.tip), dict(stiffness=10.0, damping=1.0, free_length=1.0)),
    "gravitation": lambda w: (("new", w.a, w.b), dict(constant=1.0)),
    "torsion_spring": lambda w: (("new", w.axles[0]), dict(stiffness=1.0, rest_angle=0.1)),
    "torsion_damper": lambda w: (("new", w.axles[0]), dict(damping=1.0)),
    "motor": lambda w: ((w.axles[0],), dict(torque=1.0, name="new")),
    "input": lambda w: (("new",), dict(value=1.0)),
    "drive": lambda w: ((w.axles[0],), dict(angle=1.0, name="new")),
    "pd": lambda w: (
        (w.axles[0],),
        dict(kp=1.0, kd=1.0, reference=0.1, reference_rate=0.0, feedforward=0.0, name="new"),
    ),
    "pid": lambda w: (
        (w.axles[0],),
        dict(kp=1.0, kd=1.0, ki=1.0, reference=0.1, reference_rate=0.0, feedforward=0.0, name="new"),
    ),
    "sampled_controller": lambda w: (("new", w.axles[0]), dict(period=0.1, law=law, inputs="axle0.angle", state=[0.0])),
    "limit": lambda w: (
        ("new", w.axles[0]),
        dict(lower=-1.0, upper=1.0, stiffness=10.0, damping=1.0, restitution=0.5),
    ),
    "friction": lambda w: (("new", w.axles[0]), dict(torque=1.0, static=2.0, stribeck=0.2, rate_tolerance=0.01)),
    "bushing": lambda w: (("new", w.a, w.b), dict(stiffness=[1.0] * 6, damping=[1.0] * 6, at=[0.5, 0, 1])),
    "cable": lambda w: (("new", w.a, [0.5, 0, 2], w.tip), dict(stiffness=10.0, free_length=1.0, damping=1.0)),
    "wrench": lambda w: (("new", w.a), dict(force=[1.0, 0, 0], torque=[0, 0, 1.0], at=[0.1, 0, 1])),
    "observe": lambda w: (("new", lambda q, v: q[0]), {}),
    "external_force": lambda w: ((no_force,), dict(depends_on_velocity=False)),
    "sensor": lambda w: (("new", w.tip), dict(relative_to=w.a)),
    "body": lambda w: (("new",), dict(mass=1.0, inertia=[1.0, 1, 1], centre=[0.0, 0, 1], position=[0.0, 0, 0])),
    "rod": lambda w: (("new",), dict(a=[0.0, 0, 0], b=[1.0, 0, 0], mass=1.0, radius=0.1)),
    "box": lambda w: (("new",), dict(at=[0.0, 0, 0], size=[1.0, 1, 1], mass=1.0)),
    "plate": lambda w: (("new",), dict(at=[0.0, 0, 0], size=[1.0, 1], mass=1.0)),
    "cylinder": lambda w: (("new",), dict(at=[0.0, 0, 0], axis=[0, 0, 1], length=1.0, radius=0.1, mass=1.0)),
    "ring": lambda w: (("new",), dict(at=[0.0, 0, 0], axis=[0, 0, 1], radius=1.0, mass=1.0, tube_radius=0.1)),
    "sphere": lambda w: (("new",), dict(at=[0.0, 0, 0], radius=0.1, mass=1.0)),
    "particle": lambda w: (("new",), dict(at=[0.0, 0, 0], mass=1.0)),
}
#: Numbers that may be below zero, or not be there at all.
SIGNED = {
    "rate",
    "ratio",
    "lead",
    "rest_angle",
    "angle",
    "reference",
    "reference_rate",
    "feedforward",
    "lower",
    "upper",
    "torque",
    "force",
    "at",
}
SIGNED |= {"position", "centre", "a", "b", "axis", "second_axis", "normal", "lateral", "origin", "state", "value"}
#: Directions, which must not be zero, and numbers that must not.
NOT_ZERO = {"axis", "second_axis", "normal", "lateral", "ratio", "mass", "size", "period", "frequency", "radii"}
NOT_ZERO |= {"stribeck", "rate_tolerance"}


def numeric(value):
    return not isinstance(value, (bool, str)) and not callable(value) and np.asarray(value).dtype.kind in "fi"


def spoilt(method, good):
    """Calls with one argument spoilt: ``(words for it, args, options)``."""
    here, there = World(), World()
    args, options = good(here)
    foreign, other = good(there)
    mechanical = (Body, Joint, Marker)
    for i, value in enumerate(args):
        if isinstance(value, mechanical) and value is not here.ground:
            of_another = foreign[i]
            yield f"argument {i} of another mechanism", here, (*args[:i], of_another, *args[i + 1 :]), options
            yield f"argument {i} a number", here, (*args[:i], 3.0, *args[i + 1 :]), options
            yield f"argument {i} missing", here, (*args[:i], None, *args[i + 1 :]), options
    for word, value in options.items():
        if isinstance(value, mechanical):
            yield f"{word} of another mechanism", here, args, options | {word: other[word]}
        if not numeric(value):
            continue
        bad = [("no number", "far"), ("not finite", np.full(np.shape(value), np.nan)), ("infinite", np.inf)]
        if np.ndim(value):
            bad.append(("too long", [*value, 1.0]))
        if word not in SIGNED and (method, word) != ("rack", "radius"):
            bad.append(("negative", -np.asarray(value)))
        if word in NOT_ZERO:
            bad.append(("zero", 0 * np.asarray(value)))
        for words, one in bad:
            if not (words == "too long" and word == "state"):
                yield f"{word} {words}", here, args, options | {word: one}
    parts = [i for i, value in enumerate(args) if isinstance(value, Body) and value is not here.ground]
    if len(parts) == 2:
        i, j = parts
        yield "with itself", here, (*args[:j], args[i], *args[j + 1 :]), options
    if "name" not in options:
        at = 1 if method == "joint" else 0
        for name in ("a", "", "with.dot", 3, "ground"):
            yield f"the name {name!r}", here, (*args[:at], name, *args[at + 1 :]), options
    else:
        yield "the name of a body", here, args, options | dict(name="a")


def test_every_method_is_here():
    classes, mine = (
        (
            BodyMethods,
            PointForceMethods,
            JointForceMethods,
            ForceMethods,
            ControlMethods,
            JointMethods,
            ConstraintMethods,
            CouplingMethods,
        ),
        {"sensor"},
    )
    public = {name for one in classes for name, value in vars(one).items() if inspect.isfunction(value)}
    assert {name for name in public if name[0] != "_"} | mine == set(GOOD)
    assert set(SPATIAL_JOINTS) | set(PLANAR_JOINTS) <= set(GOOD)


@pytest.mark.parametrize("method", GOOD)
def test_wrong_use_gets_its_sentence(method):
    """Nothing but an InputError in one line; and the mechanism is as it was: the good call is taken afterwards."""
    good, count = GOOD[method], 0
    for words, world, args, options in spoilt(method, good):
        with pytest.raises(lv.InputError) as told:
            getattr(world.mb, method)(*args, **options)
        said = str(told.value)
        assert said and "\n" not in said and len(said) < 240, (words, said)
        count += 1
    assert count > 3
    args, options = good(world)
    added = getattr(world.mb, method)(*args, **options)
    if method == "input":  # an input that no element uses is refused
        world.mb.motor(world.axles[0], torque=added)
    world.mb.check()


def test_over_constrained_mechanisms_say_so():
    """A bar that is held at both ends by fixed joints to two places: nothing moves, and what is too much is named."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    bar = mb.rod("bar", a=[0, 0, 0], b=[1, 0, 0], mass=1)
    mb.fixed("left", mb.ground, bar, at=bar.a)
    mb.fixed("right", mb.ground, bar, at=bar.b)
    report = mb.check()
    assert (report.mobility, report.redundant, report.indeterminate_reactions) == (0, 6, ("left", "right"))
    run = mb.simulate(t_end=0.1, h=0.01)
    assert np.ptp(run["bar.position"], axis=0).max() < 1e-15
    assert run["left.force"][5, 2] + run["right.force"][5, 2] == pytest.approx(9.81)
    # two pins that are farther apart than the bar is long
    torn = lv.Multibody(planar=True)
    bar = torn.rod("bar", a=[0, 0], b=[1, 0], mass=1)
    torn.revolute("left", torn.ground, bar, at=[0, 0])
    torn.revolute("right", torn.ground, bar, at=[1.2, 0], at_second=bar.b)
    with pytest.raises(lv.InputError, match=r"cannot be assembled: '(left|right): along 1' stays open by 0\.1"):
        torn.check()


def parallel_cranks(error, third):
    """Three parallel cranks of a coupler, the third one redundant: it fits with exact lengths only."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    coupler = mb.rod("coupler", a=[0, 0, 1], b=[2, 0, 1], mass=1.0)
    for i, x in enumerate((0.0, 1.0, 2.0)):
        top, axis = [x, 0, 1], [0, 1, 0]
        crank = mb.rod(f"crank{i}", a=[x, 0, 0], b=top, mass=1.0)
        mb.revolute(f"base{i}", crank, mb.ground, at=[x, 0, 0], axis=axis)
        if i < 2:
            mb.revolute(f"top{i}", crank, coupler, at=top, axis=axis)
        elif third == "hinge":
            mb.revolute(f"top{i}", crank, coupler, at=top, at_second=[x + error, 0, 1 + error], axis=axis)
        elif third == "penalty":
            mb.penalty_joint(f"top{i}", crank, coupler, joint_type="revolute", frequency=20.0, at=top, axis=axis)
    for name in ("base0",) if third == "hinge" else ("base0", "base2"):
        mb.initial(mb.connections[name], rate=1.0)
    return mb


def test_loops_that_fit_with_exact_lengths_only():
    """Lengths with few digits leave a gap that no motion closes; the message names the cause and what to do."""
    options = dict(h=1e-3, t_end=0.1)
    exact = parallel_cranks(0.0, "hinge").simulate(**options)
    assert exact.summary.max_constraint < 1e-14
    message = r"'base\d: along 3' stays open by [1-9]e-10\. .* rounded lengths: .* Remove a joint .* by a penalty"
    with pytest.raises(lv.InputError, match=message):
        parallel_cranks(3e-9, "hinge").simulate(**options)
    for remedy, difference in (("removed", 0.1), ("penalty", 1e-3)):
        run = parallel_cranks(3e-9, remedy).simulate(**options)
        assert np.abs(run["coupler.position"] - exact["coupler.position"]).max() < difference


def test_targets_and_units():
    world = World()
    mb, axle = world.mb, world.axles[0]
    for targets, words in (
        (dict(angle=90), r"In degrees it is written 90\*lv\.deg"),
        (dict(position=1.0), "does not slide"),
        (dict(angle=[1.0, 2.0]), "angle"),
        (dict(angle=np.nan), "angle"),
        (dict(angle="half a turn"), "angle"),
    ):
        with pytest.raises(lv.InputError, match=words):
            mb.initial(axle, **targets)
    with pytest.raises(lv.InputError, match="velocity must be 3 numbers"):
        mb.initial(world.a, velocity=[1.0, 2.0])
    for foreign in (World().a, World().axles[0], 3):
        with pytest.raises(lv.InputError, match="of this mechanism"):
            mb.initial(foreign, velocity=[1.0, 0, 0])


def test_gravity_out_of_the_plane_is_refused():
    """It would be dropped, and the mechanism weightless."""
    with pytest.raises(lv.InputError, match="x-y plane"):
        lv.Multibody(planar=True, gravity=[0, 0, -9.81])
    assert lv.Multibody(planar=True, gravity=[0, -9.81, 0]).gravity.tolist() == [0, -9.81]
