"""Slider-cranks with a clearance joint: a pin in a hole with compliant contact, a slider in a guide with rigid contact.

Pin in a hole: dimensions of Flores, Ambrosio, Claro and Lankarani (2006), Mechanism and Machine Theory 41, 247-261,
with crank 0.05 m at 5000 rpm, rod 0.12 m, bearing radius 10 mm, steel, the law of Hertz and the dissipation of Hunt and
Crossley. The publication shows forces as curves only. The peak asserted here is that of an independent code of the same
equations, in the angle of the rod and the position of the slider, with DOP853 at 1e-12.

Slider in a guide: translational clearance joint of Flores, Leine and Glocker (2010), Multibody System Dynamics 23,
165-190, with rigid impacts. The published impulses are those of the reference file that Siconos distributes with its
example of this mechanism (examples/Mechanics/SliderCrank/SliderCrankMoreauJeanCombinedProjectionOSI.ref).
"""

import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import livens as lv
from livens import contacts

CRANK, ROD, BEARING, CLEARANCE = 0.05, 0.12, 0.010, 0.0005
ROD_MASS, ROD_INERTIA, SLIDER_MASS = 0.21, 0.00025, 0.14
SPEED, DISSIPATION, YOUNG, POISSON = 5000 * 2 * np.pi / 60, 0.3, 207e9, 0.3
#: Published stiffness of this clearance, in N/m^1.5.
STIFFNESS = 6.61e10
T_END = 2 * np.pi / SPEED


def mechanism():
    mb = lv.Multibody(planar=True)
    crank = mb.body("crank", mass=0.3, inertia=1e-4, position=[CRANK / 2, 0])
    rod = mb.body("rod", mass=ROD_MASS, inertia=ROD_INERTIA, position=[CRANK + ROD / 2, 0])
    slider = mb.body("slider", mass=SLIDER_MASS, inertia=1e-4, position=[CRANK + ROD, 0])
    axle = mb.revolute("axle", mb.ground, crank, at=[0, 0])
    mb.revolute("crank pin", crank, rod, at=[CRANK, 0])
    mb.prismatic("guide", mb.ground, slider, axis="x")
    mb.drive(axle, rate=SPEED)
    steel = contacts.ElasticMaterial(YOUNG, POISSON)
    pin = contacts.Sphere(rod, BEARING - CLEARANCE, at=[CRANK + ROD, 0])
    hole = contacts.HollowSphere(slider, BEARING, at=[CRANK + ROD, 0])
    mb.contact(pin, hole, law=contacts.Hertz(materials=steel), dissipation=DISSIPATION, name="joint")
    mb.initial(crank, omega=SPEED, velocity=[0, SPEED * CRANK / 2])
    # the rod turns so that its end moves along the guide
    omega = -SPEED * CRANK / ROD
    mb.initial(rod, omega=omega, velocity=[0, SPEED * CRANK + omega * ROD / 2])
    return mb


def contact_force(e, rate, stiffness):
    """Force of the pin on the hole for its eccentricity and the rate of this."""
    distance = np.linalg.norm(e)
    depth = distance - CLEARANCE
    if depth <= 0:
        return np.zeros(2)
    n = e / distance
    return stiffness * depth**1.5 * max(0.0, 1 + DISSIPATION * (n @ rate)) * n


@functools.cache
def reference():
    """Angle of the rod and position of the slider by DOP853, and the largest force."""
    J = ROD_INERTIA + ROD_MASS * (ROD / 2) ** 2

    def force(t, y):
        c, s = np.cos(SPEED * t), np.sin(SPEED * t)
        e = CRANK * np.array([c, s]) + ROD * np.array([np.cos(y[0]), np.sin(y[0])]) - [y[1], 0]
        pin_rate = SPEED * CRANK * np.array([-s, c]) + ROD * y[2] * np.array([-np.sin(y[0]), np.cos(y[0])])
        return contact_force(e, pin_rate - [y[3], 0], STIFFNESS_HERTZ)

    def slope(t, y):
        f, pin = force(t, y), -(SPEED**2) * CRANK * np.array([np.cos(SPEED * t), np.sin(SPEED * t)])
        across = np.array([-np.sin(y[0]), np.cos(y[0])])
        return [y[2], y[3], (-ROD_MASS * ROD / 2 * across @ pin - ROD * across @ f) / J, f[0] / SLIDER_MASS]

    start = [0.0, CRANK + ROD, -SPEED * CRANK / ROD, 0.0]
    run = solve_ivp(slope, (0, T_END), start, method="DOP853", rtol=1e-12, atol=1e-14, max_step=4e-6, dense_output=True)
    times = np.linspace(0, T_END, 24001)
    return run.y[:, -1], max(np.linalg.norm(force(t, y)) for t, y in zip(times, run.sol(times).T, strict=True))


STIFFNESS_HERTZ = (
    4 / 3 * YOUNG / (2 * (1 - POISSON**2)) * np.sqrt(BEARING * (BEARING - CLEARANCE) / CLEARANCE)
)  # sphere in a sphere


def test_the_stiffness_is_the_published_one():
    mb = mechanism()
    (element,) = [element for element in mb.system.elements if element.name == "joint"]
    stiffness = element.parameters.values["stiffness"]
    assert stiffness == pytest.approx(STIFFNESS_HERTZ, rel=1e-12)
    assert stiffness == pytest.approx(STIFFNESS, rel=1e-3)


def test_peak_force_and_motion_of_a_revolution():
    """All bounces of the pin in one revolution against the equations in angle and position; the balance of energy."""
    end, peak = reference()
    run = mechanism().simulate(t_end=T_END, h=T_END / 24000, scheme="lie-em", every=1)
    forces = run["joint.normal_force"]
    starts = np.count_nonzero(np.diff((forces > 0).astype(int)) > 0)
    assert starts >= 2 and peak > 10 * SLIDER_MASS * SPEED**2 * CRANK  # many times that of a joint without clearance
    assert forces.max() == pytest.approx(peak, rel=2e-3)
    assert run["slider.position"][-1, 0] == pytest.approx(end[1], abs=2e-6)
    assert run.summary.max_energy_drift < 1e-11
    assert np.diff(run.dissipated_energy).min() >= -1e-12


CRANK_LENGTH, ROD_LENGTH, HALF_HEIGHT, GUIDE_CLEARANCE, G = 0.153, 0.306, 0.025, 0.001, 9.81
LINK_MASS, GUIDED_MASS, CRANK_INERTIA, LINK_INERTIA = 0.038, 0.076, 7.4e-5, 5.9e-4
CRANK_RATE, LINK_RATE, RESTITUTION, FRICTION = 150.0, -75.0, 0.4, 0.01
#: Ends of the steps of 1e-4 s with the first three impacts, and impulses of both edges of the slider, in N s.
PUBLISHED_IMPACTS = {
    0.0028: 5.634395774558617e-02 + 5.578332135010778e-02,
    0.0059: 1.654623147297900e-02 + 1.638159235384490e-02,
    0.0079: 5.604513609714148e-03 + 5.548747305139802e-03,
}


def guided_slider_crank():
    """The slider does not turn in the published motion (below 1e-16 rad): each face has one contact, at its centre."""
    mb = lv.Multibody(planar=True, gravity=[0, -G])
    pin, end = CRANK_LENGTH, CRANK_LENGTH + ROD_LENGTH
    crank = mb.body("crank", mass=LINK_MASS, inertia=CRANK_INERTIA, position=[pin / 2, 0])
    rod = mb.body("rod", mass=LINK_MASS, inertia=LINK_INERTIA, position=[(pin + end) / 2, 0])
    # an inertia that keeps the slider from turning: less than 1e-6 rad in this time
    slider = mb.body("slider", mass=GUIDED_MASS, inertia=1.0, position=[end, 0])
    mb.revolute("axle", mb.ground, crank, at=[0, 0])
    mb.revolute("crank pin", crank, rod, at=[pin, 0])
    mb.revolute("slider pin", rod, slider, at=[end, 0])
    for name, side in (("upper", 1.0), ("lower", -1.0)):
        face = contacts.PointCloud(slider, [[end, side * HALF_HEIGHT]])
        surface = contacts.HalfSpace(mb.ground, normal=[0, -side], at=[0, side * (HALF_HEIGHT + GUIDE_CLEARANCE)])
        mb.rigid_contact(face, surface, restitution=RESTITUTION, friction=FRICTION, name=name)
    pin_speed = CRANK_RATE * CRANK_LENGTH
    mb.initial(crank, omega=CRANK_RATE, velocity=[0, pin_speed / 2])
    mb.initial(rod, omega=LINK_RATE, velocity=[0, pin_speed + LINK_RATE * ROD_LENGTH / 2])
    return mb


def reduced_mass(q):
    """Mass matrix for the angles of crank and rod."""
    coupling = (LINK_MASS / 2 + GUIDED_MASS) * CRANK_LENGTH * ROD_LENGTH * np.cos(q[1] - q[0])
    first = CRANK_INERTIA + (LINK_MASS / 4 + LINK_MASS + GUIDED_MASS) * CRANK_LENGTH**2
    return np.array([[first, coupling], [coupling, LINK_INERTIA + (LINK_MASS / 4 + GUIDED_MASS) * ROD_LENGTH**2]])


def reduced_force(q, v):
    """Weights and velocity-dependent terms for the angles of crank and rod."""
    coupling = (LINK_MASS / 2 + GUIDED_MASS) * CRANK_LENGTH * ROD_LENGTH * np.sin(q[0] - q[1])
    weight = G * np.array([(1.5 * LINK_MASS + GUIDED_MASS) * CRANK_LENGTH, (LINK_MASS / 2 + GUIDED_MASS) * ROD_LENGTH])
    return -np.array([coupling * v[1] ** 2, -coupling * v[0] ** 2]) - weight * np.cos(q)


def guide_jacobians(q):
    """Gradients of the upper gap and of the slip in the angles of crank and rod."""
    lengths = np.array([CRANK_LENGTH, ROD_LENGTH])
    return -lengths * np.cos(q), -lengths * np.sin(q)


def impulse_directions(q, slip):
    """Generalised impulse of a unit normal impulse with Coulomb friction."""
    normal, tangent = guide_jacobians(q)
    return normal - FRICTION * np.sign(slip) * tangent


def time_stepping(h, t_end):
    """Moreau-Jean time stepping with projection: times and impulses of the impacts.

    One Newton iteration per step of the theta method with theta = 1/2, and the mass matrix at the predicted angles.
    """
    q, v, impacts = np.zeros(2), np.array([CRANK_RATE, LINK_RATE]), []
    lengths = np.array([CRANK_LENGTH, ROD_LENGTH])
    for n in range(round(t_end / h)):
        predicted = q + h * v
        difference, columns = 1e-5, []
        for axis in np.eye(2):
            above = reduced_force(predicted + h * difference * axis / 2, v + difference * axis)
            below = reduced_force(predicted - h * difference * axis / 2, v - difference * axis)
            columns.append(reduced_mass(predicted) @ axis - h / 2 * (above - below) / (2 * difference))
        response = np.linalg.inv(np.column_stack(columns))
        u = v + response @ (h / 2 * (reduced_force(predicted, v) + reduced_force(q, v)))
        end = q + h * (v + u) / 2
        if lengths @ np.sin(end) > GUIDE_CLEARANCE:
            normal, tangent = guide_jacobians(end)
            direction = impulse_directions(end, tangent @ u)
            before = guide_jacobians(q)[0] @ v
            impulse = (-RESTITUTION * before - normal @ u) / (normal @ response @ direction)
            u = u + response @ direction * impulse
            end = q + h * (v + u) / 2
            for _ in range(5):
                normal = guide_jacobians(end)[0]
                step = response @ normal / (normal @ response @ normal)
                end = end - step * (GUIDE_CLEARANCE - lengths @ np.sin(end))
            impacts.append(((n + 1) * h, impulse))
        q, v = end, u
    return np.array(impacts)


def test_published_impulses_of_a_slider_with_clearance():
    """The steps of the published data, their limit for small steps, and the events of the mechanism."""
    published = np.array(list(PUBLISHED_IMPACTS.items()))
    steps = time_stepping(1e-4, 0.008)
    np.testing.assert_allclose(steps[:, 0], published[:, 0], rtol=1e-12)  # in the same steps
    np.testing.assert_allclose(steps[:, 1], published[:, 1], rtol=4e-3)

    run = guided_slider_crank().simulate(t_end=0.008, h=1e-5)
    impacts = []
    for event in run.events:
        assert event.name == "upper"
        i = int(np.searchsorted(run.t, event.t))  # the states before and after the impact
        q = np.array([run["axle.angle"][i], run["axle.angle"][i] + run["crank pin.angle"][i]]).ravel()
        jump = np.array([(run[f"{body}.omega"][i + 1] - run[f"{body}.omega"][i]).item() for body in ("crank", "rod")])
        direction = impulse_directions(q, run["slider.velocity"][i, 0])
        momentum = reduced_mass(q) @ jump
        impulse = direction @ momentum / (direction @ direction)
        # after an event, velocities start on their constraints, which lie-em meets between nodes: 1e-6 m/s at this h
        assert momentum == pytest.approx(direction * impulse, abs=1e-6)
        assert run["slider.velocity"][i + 1, 1] == pytest.approx(-RESTITUTION * run["slider.velocity"][i, 1], abs=3e-6)
        impacts.append((event.t, impulse))
    impacts = np.array(impacts)
    limit = time_stepping(1e-6, 0.008)
    np.testing.assert_allclose(impacts[:, 0], limit[:, 0], atol=3e-6)
    np.testing.assert_allclose(impacts[:, 1], limit[:, 1], rtol=2e-3)
    # the published steps have an error of order 1: 1.1 % of the peak
    assert impacts[:, 1].max() == pytest.approx(max(PUBLISHED_IMPACTS.values()), rel=0.012)
    np.testing.assert_allclose(impacts[:, 1], published[:, 1], rtol=0.02)
    assert run.summary.max_energy_drift < 1e-12
