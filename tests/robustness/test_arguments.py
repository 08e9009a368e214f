"""Bad values for every argument of public functions: a sentence, or a result, and never another exception."""

import inspect
import pickle
import subprocess
import sys
from pathlib import Path

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


def of_contacts():
    mb, c = lv.Multibody(), lv.contacts
    ball = mb.sphere("ball", at=[0, 0, 1], radius=0.1, mass=1.0)
    point = [0.0, 0.0, 1.0]
    given = {
        c.HalfSpace: dict(body=mb.ground, at=point, normal="z"),
        c.Sphere: dict(body=ball, radius=0.1, at=point),
        c.HollowSphere: dict(body=ball, radius=0.1, at=point),
        c.Box: dict(body=ball, size=[1, 1, 1], at=point, rotation=np.eye(3), rounding=0.1),
        c.Capsule: dict(body=ball, a=[0, 0, 0], b=point, radius=0.1),
        c.Cylinder: dict(body=ball, radius=0.1, length=1.0, at=point, axis="x"),
        c.HollowCylinder: dict(body=ball, radius=0.1, at=point, axis="x"),
        c.Torus: dict(body=ball, major_radius=1.0, minor_radius=0.1, at=point, axis="x"),
        c.Ellipsoid: dict(body=ball, half=[1, 2, 3], at=point, rotation=np.eye(3)),
        c.PointCloud: dict(body=ball, points=[point, point], radius=0.1),
        c.Friction: dict(coefficient=0.1),
        c.ElasticMaterial: {},
        c.Linear: dict(stiffness=1.0),
        c.Hertz: dict(stiffness=1.0),
        c.CustomLaw: dict(energy=lambda depth: depth**2),
        c.hertz_stiffness: dict(curvatures_a=[1, 1], curvatures_b=[0, 0]),
    }
    found = {f"contacts.{function.__name__}": (function, good) for function, good in given.items()}
    touch = lambda **given: lv.Multibody.contact(mb, **{"name": f"contact {len(mb._pair_contacts)}", **given})  # noqa: E731
    touch.__signature__ = inspect.signature(mb.contact)
    return found | {"contact": (touch, dict(body_a=ball, body_b=mb.ground, stiffness=1.0))}


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
        "fixed_point_body": (lv.bodies.fixed_point_body, dict(name="a", inertia=inertia)),
        "director_body": (lv.bodies.director_body, dict(name="a", inertia=inertia)),
        "torsion_spring": (lv.bodies.torsion_spring, dict(body_a=wheel, body_b=wheel, stiffness=1.0)),
        "linearise": (lv.linearise, dict(model=model, q0=[0.1])),
        "jvp": (run.jvp, dict(q0=[1.0])),
        "vjp": (run.vjp, dict(cotangents={"q": np.ones_like(run.q)})),
        "value_and_gradient": (lv.value_and_gradient, dict(loss=lambda q: q[0])),
        "gradient": (lv.value_and_gradient(lambda q: q[0]), dict(step=prepared, q0=[1.0], v0=[0.0], t_end=0.3)),
        "hessian": (lv.hessian, dict(loss=lambda q: q[0], by="q0")),
        "second": (lv.hessian(lambda q: q[0], "q0"), dict(step=prepared, q0=[1.0], v0=[0.0], t_end=0.3)),
        "tangents": (lv.jvp, dict(step=prepared, along={"q0": [1.0]}, q0=[1.0], v0=[0.0], t_end=0.3)),
        "fit": (
            lv.study.fit,
            dict(model=prepared, observe=lambda q: q[0], data=[1.0, 0.9, 0.8], t=[0.1, 0.2, 0.3], by="q0")
            | dict(q0=[1.0], v0=[0.0], most=3),
        ),
        "optimise": (
            lv.study.optimise,
            dict(model=prepared, loss=lambda q: q[0] ** 2, by="v0", q0=[1.0], v0=[0.0], t_end=0.3, most=3),
        ),
        "lyapunov": (lv.study.lyapunov, dict(model=prepared, q0=[1.0], v0=[0.0], t_end=0.3)),
        "periodic_orbit": (lv.study.periodic_orbit, dict(model=prepared, period=6.3, q0=[1.0], v0=[0.0], most=2)),
        "uncertainty": (
            lv.study.uncertainty,
            dict(model=prepared, uncertain={"q0": (1.0, 0.1)}, outputs={"x": lambda q: q[0]}, members=3)
            | dict(q0=[1.0], v0=[0.0], t_end=0.3),
        ),
        "ensemble": (lv.ensemble, dict(model=model, q0=[[1.0], [2.0]], v0=[0.0], h=0.1, t_end=0.3)),
        **of_contacts(),
        "solve_ivp": (lv.solve_ivp, dict(fun=lambda t, y: -y, t_span=(0.0, 1.0), y0=[1.0])),
        "compare": (lv.study.compare, dict(problem=PENDULUM, schemes="livens-em", h=0.01, t_end=0.02)),
    }


#: Arguments that are truth values, which anything has in Python.
TRUTHS = {"progress", "force", "terminal", "increments", "equivariant", "find", "fixed_period", "expensive"}
NAMES = [*functions()]


def unexpected_errors(function, good):
    """Return the exceptions other than those of livens after bad values, one argument at a time."""
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
    return raw


@pytest.mark.parametrize("name", NAMES)
def test_bad_values_get_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lv.simulate(PENDULUM, t_end=0.01, out="run.h5")
    function, good = functions()[name]
    raw = unexpected_errors(function, good)
    assert not raw, "\n".join(raw)


#: Program of the fuzz of `lv.from_sympy`: odd values alter the cache of SymPy, so it has a process of its own.
SYMPY_PROGRAM = """
import livens as lv
from sympy.physics.mechanics import dynamicsymbols
from test_arguments import unexpected_errors

x = dynamicsymbols("x")
v = x.diff(dynamicsymbols._t)
print("\\n".join(unexpected_errors(lv.from_sympy, dict(source=(v**2 / 2, x**2 / 2), coordinates=[x]))), end="")
"""


def test_bad_values_of_sympy_models_get_a_sentence():
    pytest.importorskip("sympy")
    done = subprocess.run(
        [sys.executable, "-c", SYMPY_PROGRAM], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


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
    assert lv.bodies.damper(BALL, other, damping=0.5).name == "damper ball-other"


def test_steps_below_the_last_digit_and_more_rows_than_memory():
    start = dict(q0=[1.0], v0=[0.0])
    with pytest.raises(lv.InputError, match="smaller than the resolution"):
        lv.simulate(oscillator(), **start, h=1e-3, t0=1e14, t_end=1e14 + 1)
    with pytest.raises(lv.InputError, match="not enough memory"):
        lv.simulate(oscillator(), **start, h=1e-13, t_end=100.0)


# -- all of them, by their signatures ---------------------------------------------------------------------------------
#: Public modules whose functions are tried; those of `math` and `rotations` are formulas, and take what Python takes.
MODULES = "bodies contacts shapes scaling symmetry tableaus schemes problems scenario port_hamiltonian study".split()
#: Not called by users, or only with what others made.
NOT_TRIED = {"Result", "scenario.Scenario", "study.sweep"}


def public():
    """Every public function and class, by its name."""
    for module in MODULES:
        home = getattr(lv, module)
        for name in home.__all__ if hasattr(home, "__all__") else [n for n in vars(home) if n in ("sphere", "box")]:
            yield f"{module}.{name}", getattr(home, name)
    for name in lv._HOMES:
        yield name, getattr(lv, name)


def tried():
    for name, function in public():
        error = isinstance(function, type) and issubclass(function, BaseException)
        if callable(function) and not error and name not in NOT_TRIED:
            yield name, function


def parameters_of(function):
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one for one in found if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]


#: Public names that users do not call: results of other functions, base classes and decorators.
NOT_CALLED = {"Ensemble", "ParetoFront"}


def public_callables():
    """Functions and classes of the package and its studies, except exceptions and results."""
    for module in (lv, lv.study):
        for name in module.__all__:
            value = getattr(module, name)
            is_result = module is lv.study and isinstance(value, type)
            is_error = isinstance(value, type) and issubclass(value, BaseException)
            if callable(value) and not inspect.ismodule(value) and not (is_result or is_error or name in NOT_CALLED):
                yield name, value


@pytest.mark.parametrize(("name", "function"), list(public_callables()))
def test_unknown_arguments_are_named(name, function):
    with pytest.raises(lv.InputError, match="has no argument 'no_such_argument'"):
        function(no_such_argument=1)


@pytest.mark.parametrize("label", POOL)
def test_every_public_function_answers_with_a_sentence(label, tmp_path, monkeypatch):
    """One invalid value for all required arguments and for each optional one: about 3000 calls."""
    monkeypatch.chdir(tmp_path)
    raw, value, calls = [], POOL[label], 0
    for name, function in tried():
        parameters = parameters_of(function)
        needed = {one.name: value for one in parameters if one.default is one.empty}
        for more in [{}, *({one.name: value} for one in parameters if one.name not in {*needed, *TRUTHS})]:
            calls += 1
            try:
                function(**needed, **more)
            except Warning:
                continue
            except lv.LivensError as error:
                assert str(error)
            except Exception as error:
                raw.append(f"{name} {', '.join(more)}: {type(error).__name__}: {error}"[:200])
    assert calls > 300 and not raw, "\n".join(raw)


# -- methods ----------------------------------------------------------------------------------------------------------
def drawing():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    mb.revolute("hinge", mb.ground, arm, at=[0, 0, 0], axis="y")
    return mb


#: Methods that other rooms call, those that draw or write, and those tried above with everything else right.
OTHERS = {
    "Multibody": {"attach", "view"},
    "Result": {"attach", "view", "animate"},
    "Ensemble": set(),
    "Prepared": {"run"},
    "System": {"scene_for", "stored_parameters", "visuals"},
}


def methods(one):
    """Names of the methods of an object that are ours, but for those that are tried elsewhere."""
    for name in dir(one):
        if not name.startswith("_") and name not in OTHERS[type(one).__name__]:
            value = getattr(type(one), name, None)
            if inspect.isfunction(value) or inspect.ismethod(value):
                yield name


def bad_calls_of_methods(labels):
    """Return calls without a clear message and the number of calls; each call has a new mechanism."""
    step, mb = lv.prepare(PENDULUM), drawing()
    many = lv.ensemble(PENDULUM, parameters={"g": [9.0, 10.0]}, t_end=0.01)
    made = [drawing, lambda: mb.simulate(t_end=0.01, h=0.005), lambda: many, lambda: step, lambda: mb.system]
    raw, calls = [], 0
    for make in made:
        one = make()
        for name in methods(one):
            parameters = parameters_of(getattr(one, name))
            for label in labels:
                value = POOL[label]
                needed = {p.name: value for p in parameters if p.default is p.empty}
                for more in [{}, *({p.name: value} for p in parameters if p.name not in {*needed, *TRUTHS})]:
                    calls += 1
                    here = make() if make is drawing else one
                    try:
                        getattr(here, name)(**needed, **more)
                    except Warning:
                        continue
                    except lv.LivensError as error:
                        assert str(error)
                    except Exception as error:
                        if label != "raises":  # what a function of the user raises is the user's
                            raw.append(f"{name} {label} {', '.join(more)}: {type(error).__name__}: {error}"[:200])
    return raw, calls


def test_methods_answer_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw, calls = bad_calls_of_methods(["text", "nan", "large", "object", "matrix", "long"])
    assert calls > 600 and not raw, "\n".join(raw)


@pytest.mark.slow
def test_methods_answer_all_bad_values_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw, calls = bad_calls_of_methods(POOL)
    assert calls > 2500 and not raw, "\n".join(raw)


def test_mistyped_arguments_get_a_suggestion():
    run = lv.simulate(PENDULUM, t_end=0.01)
    for call, words in (
        (lambda: lv.simulate(PENDULUM, tend=1), "simulate has no argument 'tend'; did you mean 't_end'?"),
        (lambda: lv.prepare(PENDULUM, scheem="livens-em"), "prepare has no argument 'scheem'; did you mean 'scheme'?"),
        (lambda: lv.prepare(PENDULUM).run(tend=1), "Prepared.run has no argument 'tend'; did you mean 't_end'?"),
        (lambda: lv.load("run.h5", sytem=1), "load has no argument 'sytem'; did you mean 'system'?"),
        (lambda: lv.System("x", kinetc=lambda v: v @ v), "System has no argument 'kinetc'; did you mean 'kinetic'?"),
        (lambda: lv.Event(lambda q: q[0], terminl=True), "did you mean 'terminal'?"),
        (lambda: lv.StepControl(tolerence=1e-6), "did you mean 'tolerance'?"),
        (lambda: lv.Multibody(gravty=[0, 0, 1]), "did you mean 'gravity'?"),
        (lambda: lv.Multibody().simulate(tend=1), "Multibody.simulate has no argument 'tend'; did you mean 't_end'?"),
        (lambda: lv.Multibody().body(nme="a"), "Multibody.body has no argument 'nme'; did you mean 'name'?"),
        (lambda: lv.ensemble(PENDULUM, q=[1]), "ensemble has no argument 'q'; did you mean 'q0'?"),
        (lambda: lv.study.compare(PENDULUM, scheme="livens-em"), "did you mean 'schemes'?"),
        (lambda: lv.bodies.gravity(bdy=BALL), "did you mean 'body'?"),
        (lambda: run.at(time=0.1), "Result.at has no argument 'time'"),
        (lambda: run.accuracy(second=1), "run.accuracy has no argument 'second'; did you mean 'seconds'?"),
        (lambda: run.animate("a.html", frmes=3), "an animation as html has no option 'frmes'"),
        (lambda: lv.simulate(), "missing a required argument: 'model'"),
        (lambda: lv.scenario.load(3), "the path of a scenario must be the name of a file, got 3"),
    ):
        with pytest.raises(lv.InputError) as caught:
            call()
        assert words in str(caught.value)


def test_errors_of_a_users_own_function_stay_what_they_are():
    """Only what is wrong with the call is said in our words."""
    with pytest.raises(lv.ModelError, match="potential: TypeError"):
        lv.System("x", kinetic=lambda v: v @ v / 2, potential=lambda q: 1 + None)
    assert lv.simulate.__name__ == "simulate" and inspect.signature(lv.simulate).parameters["t_end"].default is None
    assert pickle.loads(pickle.dumps(lv.simulate)) is lv.simulate


def test_deeply_nested_arguments_get_a_sentence():
    """Lists in lists exceed Python's recursion limit where they are printed; endless functions are named as before."""
    deep = []
    for _ in range(5000):
        deep = [deep]
    mb = lv.Multibody()
    body = mb.box("a", at=[0, 0, 1], size=[0.2, 0.2, 0.2], mass=1.0)
    for call in (
        lambda: mb.wrench("w", body, force=deep),
        lambda: mb.wheel("w", body, deep, 0.1),
        lambda: mb.contact_group("g", deep),
        lambda: lv.solve_ivp(lambda t, y: [y[0]], (0, 1), {"y0": deep}),
        lambda: lv.optimal_control(lv.problems.load("cart-pole"), t_end=1.0, steps=4, inputs=deep),
    ):
        with pytest.raises(lv.InputError):
            call()

    def endless(q):
        return endless(q)

    with pytest.raises(lv.ModelError, match="potential: RecursionError"):
        lv.System("x", kinetic=lambda v: v @ v / 2, potential=endless)
