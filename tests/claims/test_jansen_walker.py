"""A walker with four legs of Theo Jansen on one crank: 26 bodies in closed loops on compliant feet with friction."""

import numpy as np
import pytest

import livens as lv
from livens import contacts

#: Published lengths in m, for a scale of 1:1.
LENGTHS = dict(a=38.0, b=41.5, c=39.3, d=40.1, e=55.8, f=39.4, g=36.7, h=65.7, i=49.0, j=50.0, k=61.9, l=7.8, m=15.0)
L = {name: value / 100 for name, value in LENGTHS.items()}
RATE, START = 2.0, 0.3
#: Phase of the crank pin and side of each leg.
LEGS = [(phase, side) for phase in (0.0, np.pi) for side in (1, -1)]
CHASSIS, CRANK, PART = 4.0, 0.5, 0.3
WEIGHT = 9.81 * (CHASSIS + CRANK + 24 * PART)


def meet(p, r_p, q, r_q, side):
    """The intersection of two circles on one side of the line from p to q."""
    distance = np.linalg.norm(q - p)
    along = (q - p) / distance
    x = (r_p**2 - r_q**2 + distance**2) / (2 * distance)
    return p + x * along + side * np.sqrt(r_p**2 - x**2) * np.array([-along[1], along[0]])


def leg(crank_angle, phase, side):
    """Closed form of a leg: its joints relative to the axle, in the frame of the chassis."""
    angle = crank_angle + phase if side > 0 else np.pi - (crank_angle + phase)
    pivot, pin = np.array([-L["a"], -L["l"]]), L["m"] * np.array([np.cos(angle), np.sin(angle)])
    top, low = meet(pivot, L["b"], pin, L["j"], 1), meet(pivot, L["c"], pin, L["k"], -1)
    back = meet(pivot, L["d"], top, L["e"], 1)
    knee = meet(back, L["f"], low, L["g"], -1)
    foot = meet(knee, L["h"], low, L["i"], -1)
    points = dict(pivot=pivot, pin=pin, top=top, low=low, back=back, knee=knee, foot=foot)
    return {name: point * [side, 1] for name, point in points.items()}


def walker():
    legs = [leg(START, phase, side) for phase, side in LEGS]
    axle_at = np.array([0, -min(points["foot"][1] for points in legs)])
    mb = lv.Multibody(planar=True, gravity=[0, -9.81])
    chassis = mb.body("chassis", mass=CHASSIS, inertia=0.5, position=axle_at)
    crank = mb.body("crank", mass=CRANK, inertia=0.01, position=axle_at)
    axle = mb.revolute("axle", chassis, crank, at=axle_at)
    floor, friction = contacts.HalfSpace(mb.ground, normal=[0, 1]), contacts.Friction(0.8, slip_tolerance=1e-3)
    for n, joints in enumerate(legs):
        at = {name: point + axle_at for name, point in joints.items()}

        def part(name, *corners, at=at, n=n):
            x = np.array([at[corner] for corner in corners])
            inertia = PART * max(((x - x.mean(axis=0)) ** 2).sum(axis=1)) / 3
            return mb.body(f"{name}{n}", mass=PART, inertia=inertia, position=x.mean(axis=0))

        j, k, c, f = (
            part("j", "pin", "top"),
            part("k", "pin", "low"),
            part("c", "pivot", "low"),
            part("f", "back", "knee"),
        )
        upper, lower = part("upper", "pivot", "top", "back"), part("lower", "knee", "low", "foot")
        for i, (one, other, joint) in enumerate((
            (chassis, upper, "pivot"), (chassis, c, "pivot"), (crank, j, "pin"), (crank, k, "pin"), (j, upper, "top"),
            (k, c, "low"), (c, lower, "low"), (upper, f, "back"), (f, lower, "knee"),
        )):  # fmt: skip
            mb.revolute(f"joint{n}{i}", one, other, at=at[joint])
        foot = contacts.PointCloud(lower, [at["foot"]])
        mb.contact(foot, floor, stiffness=5e4, dissipation=1.0, friction=friction, name=f"foot{n}")
    mb.drive(axle, rate=RATE)
    return mb


def checked(run):
    """Legs as in closed form, no drift of energy, and the mean load of the feet."""
    assert run.summary.max_energy_drift < 1e-10 and run.summary.max_constraint < 1e-12
    chassis = run["chassis.position"]
    for n, (phase, side) in enumerate(LEGS):
        distance = np.linalg.norm(run[f"lower{n}.position"] - chassis, axis=1)
        for row in range(0, len(run.t), max(1, len(run.t) // 20)):
            points = leg(START + RATE * run.t[row], phase, side)
            centre = (points["knee"] + points["low"] + points["foot"]) / 3
            assert distance[row] == pytest.approx(np.linalg.norm(centre), abs=1e-10)
    assert np.abs(chassis[:, 1] - chassis[0, 1]).max() < 0.02


def test_a_walker_takes_its_first_steps():
    run = walker().simulate(t_end=4.0, h=1e-3, every=10)
    checked(run)
    assert run["chassis.position"][-1, 0] < -1.5
    assert all(run[f"foot{n}.normal_force"].max() > WEIGHT / 4 for n in range(4))


@pytest.mark.slow
def test_a_walker_walks_for_a_hundred_seconds():
    """A limit cycle: the same way in every turn of the crank, and the feet carry the weight on average."""
    run = walker().simulate(t_end=100.0, h=1e-3, every=20)
    checked(run)
    turn = 2 * np.pi / RATE
    ways = np.diff(np.interp(np.arange(2, 100 / turn - 1) * turn, run.t, run["chassis.position"][:, 0]))
    assert np.ptp(ways) < 1e-3 * abs(ways.mean())
    load = sum(np.asarray(run[f"foot{n}.normal_force"]) for n in range(4))[len(run.t) // 2 :]
    assert load.mean() == pytest.approx(WEIGHT, rel=1e-3)
