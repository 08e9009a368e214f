"""Bad values for every argument of public functions: a sentence, or a result, and never another exception."""

import inspect

import numpy as np
import pytest

import livens as lv


class Odd:
    def __repr__(self):
        return "<odd>"


POOL = {
    "None": None,
    "text": "nonsense",
    "empty": "",
    "nan": float("nan"),
    "inf": float("inf"),
    "negative": -1.5,
    "huge": 1e308,
    "large": 10**400,
    "object": Odd(),
    "bytes": b"ab",
    "nested": [[[1.0], [2.0]], [[3.0]]],
    "matrix": np.zeros((3, 2)),
    "nothing": [],
    "map": {1: 2},
    "complex": 1j,
    "no arguments": lambda: 1.0,
    "many arguments": lambda a, b, c, d, e, f: 1.0,
    "raises": lambda q: 1 / 0,
    "long": "n" * 300,
    "set": {1, 2},
}
PENDULUM = lv.problems.load("simple-pendulum")
BALL = lv.bodies.particle("ball", 1.0)


def oscillator():
    return lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)


def functions():
    model, inertia = oscillator(), lv.bodies.Inertia(1.0, [1, 1, 1])
    prepared, run = lv.prepare(model, h=0.1), lv.simulate(model, [1.0], [0.0], h=0.1, t_end=0.3)
    wheel = lv.bodies.quaternion_body("wheel", inertia)
    return {
        "simulate": (lv.simulate, dict(model=model, q0=[1.0], v0=[0.0], h=0.1, t_end=0.3)),
        "prepare": (lv.prepare, dict(model=model, h=0.1)),
        "run": (prepared.run, dict(q0=[1.0], v0=[0.0], t_end=0.3)),
        "start": (prepared.start, dict(q0=[1.0], v0=[0.0])),
        "load": (lv.load, dict(path="run.h5")),
        "resume": (lv.resume, dict(path="run.h5")),
        "Event": (lv.Event, dict(function=lambda q: q[0])),
        "StepControl": (lv.StepControl, {}),
        "at": (run.at, dict(t=0.1)),
        "to_pandas": (run.to_pandas, dict(names="x")),
        "animate": (run.animate, dict(path="run.png")),
        "plot.coordinates": (run.plot.coordinates, {}),
        "problems.load": (lv.problems.load, dict(name="simple-pendulum")),
        "schemes.get": (lv.schemes.get, dict(name="livens-em")),
        "System": (lv.System, dict(coordinates="x y", kinetic=lambda v: v @ v / 2)),
        "speed": (lv.scaling.speed, {}),
        "kinetic": (lv.scaling.kinetic, {}),
        "coordinates": (lv.bodies.coordinates, dict(bodies=[BALL])),
        "linear_momentum": (lv.bodies.linear_momentum, dict(bodies=[BALL])),
        "gravity": (lv.bodies.gravity, dict(body=BALL)),
        "force": (lv.bodies.force, dict(body=BALL, f=[0.0, 0.0, 1.0])),
        "torque": (lv.bodies.torque, dict(body=wheel, tau=[0.0, 0.0, 1.0])),
        "particle": (lv.bodies.particle, dict(name="a", mass=1.0)),
        "quaternion_body": (lv.bodies.quaternion_body, dict(name="a", inertia=inertia)),
        "rotation_body": (lv.bodies.rotation_body, dict(name="a", inertia=inertia)),
        "director_body": (lv.bodies.director_body, dict(name="a", inertia=inertia)),
        "torsion_spring": (lv.bodies.torsion_spring, dict(first=wheel, second=wheel, stiffness=1.0)),
        "compare": (lv.study.compare, dict(problem=PENDULUM, schemes="livens-em", h=0.01, t_end=0.02)),
    }


#: Arguments that are truth values, which anything has in Python.
TRUTHS = {"progress", "force", "terminal", "increments", "equivariant"}
NAMES = list(functions())


@pytest.mark.parametrize("name", NAMES)
def test_bad_values_get_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lv.simulate(PENDULUM, t_end=0.01, out="run.h5")
    function, good = functions()[name]
    raw = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in TRUTHS or parameter.kind is parameter.VAR_KEYWORD:
            continue
        for label, value in POOL.items():
            if (parameter.name, label) == ("out", "text"):
                continue
            try:
                function(**{**good, parameter.name: value})
            except Warning:
                continue  # numbers that overflow say so
            except lv.LivensError as error:
                assert str(error)
            except Exception as error:
                raw.append(f"{parameter.name} = {label}: {type(error).__name__}: {error}")
    assert not raw, "\n".join(raw)


def test_names_of_problems_for_studies():
    assert lv.study.compare("simple-pendulum", "livens-em", h=0.01, t_end=0.02).problem == "simple-pendulum"
    with pytest.raises(lv.InputError, match="unknown problem"):
        lv.study.work_precision("nonsense")


def test_forces_as_numbers_and_bodies_as_points():
    other = lv.bodies.particle("other", 1.0)
    push = lv.bodies.force(BALL, [0.0, 0.0, 2.0])
    model = lv.System(lv.bodies.coordinates([BALL]), elements=[BALL, push])
    run = lv.simulate(model, [0.0] * 3, [0.0] * 3, h=0.1, t_end=1.0)
    assert run.q[-1] == pytest.approx([0.0, 0.0, 1.0])
    assert lv.bodies.damper(BALL, other, viscosity=0.5).name == "damper ball-other"


def test_steps_below_the_last_digit_and_more_rows_than_memory():
    start = dict(q0=[1.0], v0=[0.0])
    with pytest.raises(lv.InputError, match="smaller than the last digit"):
        lv.simulate(oscillator(), **start, h=1e-3, t0=1e14, t_end=1e14 + 1)
    with pytest.raises(lv.InputError, match="no room in memory"):
        lv.simulate(oscillator(), **start, h=1e-13, t_end=100.0)
