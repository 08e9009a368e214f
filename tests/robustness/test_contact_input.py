"""Bad input of contacts, case by case: each is an error or a warning that names the contact and a remedy."""

import warnings

import numpy as np
import pytest

import livens as lv
from livens import contacts
from livens.errors import InputError, IntegrationError, LivensWarning

WAYS = ("pair", "group", "rigid")
LAW = dict(stiffness=1e4)


def scene(height=1.0, radius=0.1, **options):
    mb = lv.Multibody(gravity=[0, 0, -9.81], **options)
    return mb, mb.sphere("ball", at=[0, 0, height], radius=radius, mass=1.0)


def touch(mb, way, a, b, **law):
    """Contact of two bodies by one of the ways; restitution is that of rigid contact."""
    if way == "pair":
        return mb.contact(a, b, **(LAW | law))
    if way == "group":
        return mb.contact_group("heap", [a, b], **(LAW | law))
    return mb.rigid_contact(a, b, **law)


# -- penetrating starts -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", WAYS)
def test_a_penetrating_start(way):
    mb, ball = scene(height=0.05)
    touch(mb, way, ball, mb.ground)
    with pytest.raises(InputError, match=r"overlap by 0\.05.*move them apart"):
        mb.simulate(t_end=0.1, h=1e-3)


def test_a_start_beyond_a_joint_stop():
    mb = lv.Multibody()
    box = mb.box("box", at=[0, 0, 0], size=[0.1, 0.1, 0.1], mass=1.0)
    rail = mb.prismatic("rail", mb.ground, box, axis="x")
    mb.limit("stop", rail, upper=-0.2, restitution=0.5)
    with pytest.raises(InputError, match="stop"):
        mb.simulate(t_end=0.1, h=1e-3)


# -- impossible pairs -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", WAYS)
def test_a_pair_without_a_geometry_names_those_there_are(way):
    mb, ball = scene()
    box = mb.box("box", at=[1, 0, 1], size=[0.1, 0.1, 0.1], mass=1.0)
    with pytest.raises(
        InputError, match=r"an ellipsoid with a box is not supported. Spheres and points touch all shapes"
    ):
        touch(mb, way, contacts.Ellipsoid(ball, [0.1, 0.1, 0.2]), box)
        _ = mb.system


@pytest.mark.parametrize("way", WAYS)
def test_a_body_with_itself(way):
    mb, ball = scene()
    with pytest.raises(InputError, match=r"two different|one body|only once"):
        touch(mb, way, ball, ball)


# -- forces that are not unique, impacts that do not terminate --------------------------------------------------------
@pytest.mark.parametrize("unique", [True, False])
def test_forces_that_are_not_unique(unique):
    mb, ball = scene(height=0.1 * np.sqrt(2))
    for i, angle in enumerate(np.arange(4) * np.pi / 2):
        wall = contacts.HalfSpace(mb.ground, normal=[np.cos(angle), np.sin(angle), 1.0])
        mb.rigid_contact(ball, wall, restitution=0.0, unique=unique, name=f"wall{i}")
    if unique:
        with pytest.raises(InputError, match=r"statically indeterminate.*use a compliant contact"):
            mb.simulate(t_end=0.1, h=1e-2)
    else:
        with pytest.warns(LivensWarning, match=r"statically indeterminate.*the motion is unique"):
            run = mb.simulate(t_end=0.1, h=1e-2)
        assert np.abs(run["ball.velocity"]).max() < 1e-12


def test_impacts_that_do_not_terminate():
    """A box bounces on its corners more and more often; a compliant contact is named as the remedy."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    box = mb.box("box", at=[0, 0, 0.3], size=[0.2, 0.2, 0.2], mass=1.0)
    mb.rigid_contact(box, mb.ground, restitution=0.5)
    with pytest.raises(IntegrationError, match=r"times within one step.*[Uu]se a compliant contact"):
        mb.simulate(t_end=2.0, h=0.01)


# -- arguments that do not exist --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda ball: contacts.Sphere(ball, raduis=0.1), "no argument 'raduis'; did you mean 'radius'"),
        (lambda ball: contacts.HalfSpace(ball, norml="z"), "no argument 'norml'; did you mean 'normal'"),
        (lambda ball: contacts.Capsule(), "Capsule"),
        (lambda ball: contacts.Friction(0.3, slip=1.0), "no argument 'slip'"),
        (lambda ball: contacts.Hertz(stifness=1.0), "did you mean 'stiffness'"),
    ],
)
def test_unknown_and_missing_arguments(make, words):
    _, ball = scene()
    with pytest.raises(InputError, match=words):
        make(ball)


# -- numbers out of range ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
@pytest.mark.parametrize("way", WAYS)
def test_friction_that_is_negative_or_not_finite(way, value):
    mb, ball = scene()
    with pytest.raises(InputError, match=r"friction.*(negative|finite)"):
        touch(mb, way, ball, mb.ground, friction=value)
    with pytest.raises(InputError, match=r"(negative|finite)"):
        contacts.Friction(value)


@pytest.mark.parametrize("value", [-0.1, 1.01, np.nan, np.inf])
def test_restitution_outside_zero_to_one(value):
    mb, ball = scene()
    with pytest.raises(InputError, match=r"restitution.*(between 0 and 1|finite)"):
        mb.rigid_contact(ball, mb.ground, restitution=value)
    rail = mb.prismatic("rail", mb.ground, ball, axis="x")
    with pytest.raises(InputError, match=r"restitution.*(between 0 and 1|negative|finite)"):
        mb.limit("stop", rail, upper=1.0, restitution=value)


@pytest.mark.parametrize("way", ["pair", "group"])
@pytest.mark.parametrize("law", [dict(stiffness=-1.0), dict(stiffness=np.nan), dict(dissipation=-1.0)])
def test_laws_out_of_range(way, law):
    mb, ball = scene()
    with pytest.raises(InputError, match=r"(stiffness|dissipation).*(greater than 0|negative|finite)"):
        touch(mb, way, ball, mb.ground, **law)


@pytest.mark.parametrize("way", ["pair", "group"])
def test_a_step_that_is_longer_than_the_collision(way):
    mb, ball = scene(height=2.0)
    touch(mb, way, ball, mb.ground, stiffness=1e6)
    with pytest.raises(InputError, match=r"lasts .* too short for steps of h = 0\.01: use h <= "):
        mb.simulate(t_end=1.0, h=1e-2)


# -- groups -----------------------------------------------------------------------------------------------------------
def test_a_group_with_a_body_twice():
    mb, ball = scene()
    other = mb.sphere("other", at=[1, 0, 1], radius=0.1, mass=1.0)
    with pytest.raises(InputError, match="only once"):
        mb.contact_group("heap", [ball, other, ball], **LAW)


def test_a_group_with_a_shape_twice():
    mb, ball = scene()
    mb.contact_group("heap", [ball, contacts.Sphere(ball, 0.1), mb.ground], **LAW)
    with pytest.raises(InputError, match=r"heap: the same shape of 'ball' is in the contact group twice.*leave one"):
        _ = mb.system


def pile():
    """Two balls above the ground, in a contact group."""
    mb, ball = scene()
    other = mb.sphere("other", at=[1, 0, 1], radius=0.1, mass=1.0)
    mb.contact_group("heap", [ball, other, mb.ground], **LAW)
    return mb, ball, other


@pytest.mark.parametrize(
    "make",
    [
        lambda mb, ball, other: mb.contact(other, ball, name="again", **LAW),
        lambda mb, ball, other: mb.contact(contacts.Sphere(ball, 0.1), other, name="again", **LAW),
        lambda mb, ball, other: mb.contact(ball, mb.ground, name="again", **LAW),
        lambda mb, ball, other: mb.contact(contacts.HalfSpace(mb.ground, normal="z"), ball, name="again", **LAW),
        lambda mb, ball, other: mb.contact_group("again", [ball, other], **LAW),
        lambda mb, ball, other: mb.contact_group("again", [mb.ground, other], **LAW),
    ],
)
def test_a_pair_that_would_act_twice(make):
    """A contact group contains all pairs of its shapes; another contact of the same shapes would double the force."""
    mb, ball, other = pile()
    make(mb, ball, other)
    with pytest.raises(InputError, match=r"again: the same shapes of .* in the contact group 'heap' too.*leave one"):
        _ = mb.system


def test_other_shapes_and_joined_bodies_of_a_group_take_contacts_of_their_own():
    """Other shapes of the same bodies, bodies that the group leaves out for their joint, and groups with one common
    shape."""
    mb, ball, other = pile()
    third = mb.sphere("third", at=[2, 0, 1], radius=0.1, mass=1.0)
    mb.spherical("joint", ball, other, at=[0.5, 0, 1])
    mb.contact(ball, other, **LAW)
    mb.contact(contacts.Sphere(ball, 0.05), mb.ground, name="core", **LAW)
    mb.contact_group("second", [third, mb.ground], **LAW)
    run = mb.simulate(t_end=1e-3, h=1e-4)
    assert run.t[-1] == pytest.approx(1e-3)


# -- tunnelling of fast small bodies ----------------------------------------------------------------------------------
@pytest.mark.parametrize("start", [0.0, 0.005, 0.03])
@pytest.mark.parametrize("way", WAYS)
def test_fast_small_bodies(way, start):
    """A bullet moves by ten diameters of the target in a step: compliant contacts warn, rigid contact finds it."""
    mb = lv.Multibody()
    bullet = mb.sphere("bullet", at=[start, 0, 0], radius=0.01, mass=0.01)
    target = mb.sphere("target", at=[0.8, 0.002, 0], radius=0.01, mass=1.0)
    mb.initial(bullet, velocity=[200.0, 0, 0])
    touch(mb, way, bullet, target, **({} if way == "rigid" else dict(stiffness=100.0)))
    if way != "rigid":
        with pytest.warns(LivensWarning, match=r"may (have passed|pass) through.*use smaller steps"):
            mb.simulate(t_end=0.02, h=1e-3)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error", LivensWarning)
        run = mb.simulate(t_end=0.02, h=1e-3)
    assert len(run.events) == 1 and run["target.velocity"][-1, 0] > 1.0
