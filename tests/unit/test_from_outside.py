"""Everything that can be added to livens is added here, in one file outside of it, and works like what is inside.

A scheme, a family of schemes, a discrete gradient, a joint, a shape that touches, a ready problem, observables, and a
kind of model: used by name, listed, run, saved, and resumed bit for bit. Nothing in the package is edited or told.
"""

import functools
import sys
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

import livens as lv
from livens import bodies, contacts
from livens import math as m
from livens.analysis.report import print_report
from livens.expressions.name_parsing import parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.expressions.tracing import FunctionTracer
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.schemes import gradients
from livens.schemes.core import catalogue
from livens.schemes.core.scheme import Scheme
from livens.schemes.discretization.element_scheme import ElementContribution, ElementScheme
from livens.schemes.gradients import DiscreteGradient, ItohAbe

FIELDS = ("t", "q", "v", "p", "multipliers", "supplied_energy", "dissipated_energy", "newton_iterations")


@pytest.fixture(scope="module", autouse=True)
def outside():
    """Definitions of a user script; other tests do not see them."""
    registries = Scheme._registry, Scheme._families, DiscreteGradient.registry, lv.problems._entries
    lv.schemes.all(), lv.problems.all()
    before = [dict(registry) for registry in registries]
    yield SimpleNamespace(Theta=theta_schemes(), gradient=gradient(), problem=problem())
    for registry, kept in zip(registries, before, strict=True):
        registry.clear()
        registry.update(kept)


# -- a scheme and a family of schemes ---------------------------------------------------------------------------------
def theta_schemes():
    class Theta(ElementScheme):
        """The balance of momentum with forces at ``q0 + theta h w``; ``q1 - q0 = h w`` with ``w = (v0 + v1)/2``."""

        family = "own-theta:<theta>"
        examples = ((0.25,), (0.75,))
        order, symplectic, symmetric = 1, False, False
        conserves = ("constraint",)
        group = "Methods for comparison"
        summary, source = "forces between both ends of the step", "this test"
        unknowns, multipliers, momentum_block = ("w",), ("lam",), "w"

        def __init__(self, theta):
            self.theta, self.name = theta, f"own-theta:{theta:g}"

        def initial_guess(self, old, h):
            return [old.v]

        def kinematic_update(self, old, x, h):
            return old.q + h * x.w, 2 * x.w - old.v

        def nodal_residual(self, old, x, h):
            return [-2 * old.p]

        def nodal_momentum(self, old, x, h):
            return -old.p

        def element_contribution(self, e, old, new, x, h, t):
            q, s = old.q + self.theta * h * x.w, t + self.theta * h
            F, R_v = e.F(q, x.w, s), e.R_v(q, x.w, s)
            force = e.T_q(q, x.w) - e.V_q(q, s) - e.G(q, s).T @ x.lam + F - R_v
            return ElementContribution(
                residuals=[2 * e.T_v(q, x.w) - h * force],
                constraint_residuals=[e.g(new.q, t + h) / h],
                momentum=2 * e.T_v(q, x.w),
                supplied_work=h * ca.dot(F, x.w),
                dissipated_work=h * ca.dot(R_v, x.w),
            )

    class Midpoint(Theta):
        name, aliases, order, symmetric = "own-midpoint", ("OM",), 2, True
        conserves = ("constraint", "momentum_maps")
        summary = "the midpoint rule once more"

        def __init__(self):
            self.theta = 0.5

    return Theta


SCHEMES = ["own-midpoint", "own-theta:0.3", "livens-em:own-gradient", "yoshida-4:own-midpoint"]


def test_schemes_are_found_by_name_and_listed(capsys, livens):
    names = [scheme.name for scheme in lv.schemes.all()]
    assert {"own-midpoint", "own-theta:0.25", "own-theta:0.75"} <= set(names)
    assert {"own-midpoint", "own-theta:<theta>"} <= set(lv.schemes.names())
    assert lv.schemes.get("OM").name == "own-midpoint" and lv.schemes.get("own-theta:.3").theta == 0.3
    assert lv.schemes.get("own-theta:0.3").traits.family == "own-theta:<theta>"
    assert "own-midpoint" in lv.schemes.compatible(lv.problems.load("simple-pendulum").model)
    assert "| `own-theta:<theta>` | 1 |" in catalogue.markdown()
    listed = livens("list", "schemes")
    assert "own-midpoint" in listed and "own-theta:<theta>" in listed
    assert "forces between both ends of the step" in livens("list", "schemes", "own-theta:0.3")


def test_the_midpoint_rule_is_the_one_inside():
    problem = lv.problems.load("double-four-bar")
    own, known = (lv.simulate(problem, scheme=name, t_end=0.2) for name in ("own-midpoint", "livens-midpoint"))
    assert np.abs(own.q - known.q).max() < 1e-13 and own.info.scheme == "own-midpoint"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("tier", ["fused", "reference"])
def test_a_scheme_runs_and_goes_on_bit_for_bit(tmp_path, scheme, tier):
    """Found by its name in the file, or given as an object."""
    problem, end = lv.problems.load("simple-pendulum"), 0.2
    whole = lv.simulate(problem, scheme=scheme, h=0.01, t_end=end, tier=tier)
    for given in (None, lv.schemes.get(scheme)):
        path = tmp_path / f"{given is None}.h5"
        lv.simulate(problem, scheme=scheme, h=0.01, t_end=end / 2, tier=tier, out=path)
        assert lv.load(path).info.scheme == scheme
        resumed = lv.resume(path, t_end=end, scheme=given)
        assert all(np.array_equal(getattr(resumed, name), getattr(whole, name)) for name in FIELDS)
        assert resumed.summary == whole.summary
    with pytest.raises(lv.InputError, match=f"was made with the scheme '{scheme}', not 'livens-em'"):
        lv.resume(path, t_end=2 * end, scheme="livens-em")


def test_a_scheme_that_is_no_longer_known_can_be_given(tmp_path, outside):
    """In another script the file's scheme has no name; its object is enough."""
    problem, own = lv.problems.load("simple-pendulum"), outside.Theta(0.3)
    lv.simulate(problem, scheme=own, h=0.01, t_end=0.1, out=tmp_path / "run.h5")
    whole = lv.simulate(problem, scheme=own, h=0.01, t_end=0.2)
    family = Scheme._families.pop("own-theta:<theta>")
    try:
        with pytest.raises(lv.InputError, match=r"unknown scheme 'own-theta:0.3'"):
            lv.resume(tmp_path / "run.h5", t_end=0.2)
        resumed = lv.resume(tmp_path / "run.h5", t_end=0.2, scheme=own)
    finally:
        Scheme._families["own-theta:<theta>"] = family
    assert np.array_equal(resumed.q, whole.q)


def test_schemes_are_prepared_controlled_reported_and_studied(capsys):
    problem = lv.problems.load("simple-pendulum")
    prepared = lv.prepare(problem, scheme="own-theta:0.3", h=0.01).run(t_end=0.1)
    assert np.array_equal(prepared.q, lv.simulate(problem, scheme="own-theta:0.3", h=0.01, t_end=0.1).q)
    run = lv.simulate(problem, scheme="own-midpoint", h=0.01, t_end=1.0, control=lv.StepControl(smallest=1e-4))
    print_report(run)
    assert "own-midpoint" in capsys.readouterr().out
    study = lv.study.converge(problem, ["own-midpoint", "own-theta:0.3"], t_end=0.5)
    assert [round(curve.fits["q"].order) for curve in study.curves] == [2, 1]


# -- a discrete gradient ----------------------------------------------------------------------------------------------
def gradient():
    class There(DiscreteGradient):
        """Itoh and Abe's, forth and back: symmetric, hence of second order."""

        name, order, symmetric, momenta = "own-gradient", 2, True, ("cyclic",)
        summary, source = "Itoh and Abe's, forth and back", "this test"

        def __call__(self, function, x, w, *others):
            return (ItohAbe()(function, x, w, *others) + ItohAbe()(function, x + w, -w, *others)) / 2

    return There


def test_a_gradient_is_found_and_conserves_energy(outside):
    assert outside.gradient() in gradients.all() and gradients.get("own-gradient") == outside.gradient()
    scheme = lv.schemes.get("livens-em:own-gradient")
    assert scheme.order == 2 and scheme.symmetric
    run = lv.simulate(lv.problems.load("double-four-bar"), scheme=scheme, t_end=0.5)
    assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 1e-13


# -- a joint ----------------------------------------------------------------------------------------------------------
def slider(body, point, direction):
    """A point of a body in the plane stays on a line through the origin."""
    return lv.Element(
        body.coordinates,
        constraints=_on_a_line(body.parametrisation),
        parameters=dict(X=point, normal=[-direction[1], direction[0]]),
        name=f"slider of {body.name}",
        constraint_names=["line"],
    )


@functools.cache
def _on_a_line(placement):
    return lambda q, k: [placement.point(q, k.X) @ k.normal]


def sliding_bar(angle=0.0):
    bar = bodies.planar_body("bar", mass=2.0, moment=0.5)
    joint = slider(bar, [-0.5, 0.0], [np.cos(angle), np.sin(angle)])
    return lv.System(bodies.coordinates([bar]), elements=[bar, joint, bodies.gravity(bar)])


def started(angle=0.0, speed=1.0):
    """The bar lies on the line, with one end in the origin, and moves along it."""
    bar, along = sliding_bar().elements[0], np.array([np.cos(angle), np.sin(angle)])
    q, v = bar.state(position=0.5 * along, orientation=angle, velocity=speed * along)
    return dict(q0=q, v0=v)


def test_a_joint(tmp_path):
    system = sliding_bar()
    assert system.constraint_names[-1] == "slider of bar: line"
    assert {"slider of bar.X", "slider of bar.normal", "bar.mass"} <= set(system.parameters)
    start = dict(scheme="livens-em", h=0.01, **started())
    whole = lv.simulate(system, t_end=2.0, **start)
    assert whole.summary.max_constraint < 1e-13 and whole.summary.max_energy_drift < 1e-13
    assert np.abs(whole.q[:, 1] - 0.5 * whole.q[:, 3]).max() < 1e-13
    lv.simulate(system, t_end=1.0, out=tmp_path / "run.h5", **start)
    resumed = lv.resume(tmp_path / "run.h5", t_end=2.0, system=sliding_bar())
    assert np.array_equal(resumed.q, whole.q) and np.array_equal(resumed.multipliers, whole.multipliers)
    tilted = {"slider of bar.normal": [-np.sin(0.3), np.cos(0.3)]}
    changed = lv.simulate(system, t_end=1.0, parameters=tilted, **(start | started(0.3)))
    built = lv.simulate(sliding_bar(0.3), t_end=1.0, **(start | started(0.3)))
    assert np.array_equal(changed.q, built.q)


# -- a shape that touches ---------------------------------------------------------------------------------------------
class FunnelSurface(contacts.AxisymmetricDistance):
    """The inside of a cone that opens upwards, with walls that rise by the angle `slope`."""

    def distance(self, w, k):
        height, away = w[0], m.sqrt(m.maximum(w[1] - w[0] ** 2, 0.0) + 1e-60)
        return height * m.cos(k.slope) - away * m.sin(k.slope)


class Funnel(contacts.CollisionShape):
    label, surface = "a funnel", FunnelSurface()
    characteristic_size = bounding_radius = np.inf

    def __init__(self, body, slope, at=None):
        super().__init__(body, at, slope=slope)


def in_a_funnel(slope, omega=3.0, stiffness=1e4, mass=0.5, radius=0.05):
    """A ball that goes round at one height: gravity and the push of the wall, m g / cos(slope), make its circle."""
    around, depth = 9.81 * np.tan(slope) / omega**2, mass * 9.81 / np.cos(slope) / stiffness
    height = (radius - depth + around * np.sin(slope)) / np.cos(slope)
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[around, 0, height], radius=radius, mass=mass)
    mb.contact(ball, Funnel(mb.ground, slope), stiffness=stiffness, name="wall")
    mb.initial(ball, velocity=[0, omega * around, 0])
    return mb, around, height


def test_a_shape_that_touches():
    mb, around, height = in_a_funnel(0.5)
    run = mb.simulate(t_end=2.0, h=1e-3)
    exact = np.stack([around * np.cos(3 * run.t), around * np.sin(3 * run.t), 0 * run.t + height], axis=1)
    assert np.abs(run["ball.position"] - exact).max() < 1e-4 * around
    assert run["wall.normal_force"] == pytest.approx(0.5 * 9.81 / np.cos(0.5), rel=1e-5)
    assert run.summary.max_energy_drift < 1e-13 and "wall.slope" in mb.system.parameters
    turning = run.observe("angular_momentum")[:, -1]
    assert np.abs(turning - turning[0]).max() < 1e-13
    steep, _, _ = in_a_funnel(0.7)
    q0, v0 = steep.initial_state
    changed = lv.simulate(mb.system, q0, v0, scheme="lie-em", h=1e-3, t_end=0.1, parameters={"wall.slope": 0.7})
    built = steep.simulate(t_end=0.1, h=1e-3)
    assert np.array_equal(changed.q, built.q)


# -- a ready problem --------------------------------------------------------------------------------------------------
def problem():
    @lv.problems.problem("own-bar", summary="a bar that slides on a line and falls", source="this test")
    def bar(speed: float = 1.0):
        return lv.Problem("own-bar", sliding_bar(), **started(speed=speed), scheme="own-midpoint", h=0.01, t_end=1.0)

    return bar


def test_a_problem_is_loaded_listed_and_run_by_its_name(tmp_path, livens):
    assert "own-bar" in [entry.name for entry in lv.problems.all()] and "own-bar" in livens("list", "problems")
    assert lv.problems.load("own-bar", speed=2.0).v0.tolist() == [2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    with pytest.raises(lv.InputError, match="did you mean 'speed'"):
        lv.problems.load("own-bar", sped=2.0)
    whole = lv.simulate(lv.problems.load("own-bar", speed=2.0), t_end=2.0)
    assert whole.info.scheme == "own-midpoint"
    assert "saved in own-bar.h5" in livens("run", "own-bar", "--set", "speed=2", "--set", "bar.moment=0.5")
    resumed = lv.resume(tmp_path / "own-bar.h5", t_end=2.0)
    assert np.array_equal(resumed.q, whole.q) and lv.load(tmp_path / "own-bar.h5").problem.factory_options == {
        "speed": 2.0
    }
    scenario = lv.scenario.parse("problem: own-bar\noptions: {speed: 2}\nt_end: 2\n")
    assert np.array_equal(scenario.run().q, whole.q)
    study = lv.study.sweep("own-bar", {"speed": [1.0, 2.0], "bar.mass": [1.0, 2.0]}, {"t_end": 0.1}, workers=1)
    assert study.column("status") == ["complete"] * 4


# -- observables ------------------------------------------------------------------------------------------------------
def height(q):
    """Return the height of the free end of the bar."""
    return q[1] + 0.5 * q[3]


def test_observables_and_events(tmp_path):
    own = lv.problems.load("own-bar")
    below = lv.Event(lambda q: height(q) + 0.5, name="below", direction=-1)
    run = lv.simulate(own, t_end=1.0, events=[below], out=tmp_path / "run.h5")
    assert run.observe(height) == pytest.approx(run.q[:, 3], abs=1e-13)
    assert lv.observe.reduce(lv.load(tmp_path / "run.h5"), height, "min") == run.observe(height).min()
    (event,) = run.events
    assert event.name == "below" and event.state["q"][3] == pytest.approx(-0.5, abs=1e-4)
    stop = lv.Event(lambda q: height(q) + 0.5, name="stop", terminal=True)
    stopped = lv.simulate(own, t_end=1.0, events=[stop])
    assert stopped.t[-1] == pytest.approx(event.t, abs=1e-9) and "stopped by the event 'stop'" in stopped.message


# -- a kind of model --------------------------------------------------------------------------------------------------
class GradientFlow(DescriptorModel):
    """``M x' = - grad f(x)``: downhill."""

    type_label = "gradient flow"

    def __init__(self, states, f, mobility=1.0):
        self.coordinates, self.model_parameters = (
            parse_names("states", states, "x"),
            Parameters(dict(mobility=mobility)),
        )
        self.n = len(self.coordinates)
        self.x, self.k = ca.SX.sym("x", self.n), ca.SX.sym("k", self.model_parameters.size)
        self.f = FunctionTracer({"x": self.x, "k": ParameterNamespace(self.model_parameters.unpack_symbols(self.k))})(
            "f", f, ()
        )

    @functools.cached_property
    def descriptor(self):
        rate = ca.SX.sym("xdot", self.n)
        residual = ca.densify(rate + self.k[0] * ca.gradient(self.f, self.x))
        return Descriptor(self.x, rate, ca.SX.sym("t"), self.k, residual, self.f)


def downhill(**changes):
    return GradientFlow("a b", lambda x: (x[0] ** 2 + 4 * x[1] ** 2) / 2, **changes)


@pytest.mark.parametrize("scheme", ["gauss-2", "radau-iia-3", "heun"])
def test_a_kind_of_model(tmp_path, scheme):
    model = downhill()
    assert scheme in lv.schemes.compatible(model) and "livens-em" not in lv.schemes.compatible(model)
    start = dict(x0=[1.0, 1.0], scheme=scheme, h=0.01)
    whole = lv.simulate(model, t_end=1.0, **start)
    assert whole.x[-1] == pytest.approx([np.exp(-1), np.exp(-4)], abs=1e-4)
    lv.simulate(model, t_end=0.5, out=tmp_path / "run.h5", **start)
    resumed = lv.resume(tmp_path / "run.h5", t_end=1.0, system=downhill())
    assert np.array_equal(resumed.x, whole.x)
    assert np.all(np.diff(resumed.observe("hamiltonian")) < 0) and np.all(np.diff(resumed.observe(lambda x: x[0])) < 0)
    changed = lv.simulate(model, t_end=1.0, parameters=dict(mobility=2.0), **start)
    assert np.array_equal(changed.x, lv.simulate(downhill(mobility=2.0), t_end=1.0, **start).x)
    with pytest.raises(lv.InputError, match="a gradient flow starts from x0"):
        lv.simulate(model, q0=[1.0, 1.0], h=0.01, t_end=1.0)


@pytest.fixture
def livens(monkeypatch, capsys, tmp_path):
    """The program, called in this process, where it knows what is defined here: what it prints."""
    from livens.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["livens", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        assert not stop.value.code, printed.err
        return printed.out

    return call
