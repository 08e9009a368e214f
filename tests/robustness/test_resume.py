"""Runs that go on: after an event, after a kill, with a later end, and what a file must be told again."""

import dataclasses
import functools
import os
import shutil
import types

import numpy as np
import pytest
from typer.testing import CliRunner

import livens as lv
from livens.cli import app
from livens.engine.steppers import fused
from livens.results import recorder
from livens.results.storage.hdf5_writer import RunFile
from livens.run import driver as run_module
from livens.run import startup

CROSSING = lv.Event(lambda q: q[0] - 0.1, name="crossing", direction=-1, terminal=True)
TURNING = lv.Event(lambda q: q[0] + 0.3, name="turning")
EVERY = [1, 3]


def oscillator():
    return lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2 + q[0] ** 4 / 4)


def equal(**options):
    return lv.simulate(oscillator(), [1.0], [0.0], scheme="gauss-2", h=0.01, **options)


def controlled(**options):
    control = lv.StepControl(tolerance=1e-9, largest=0.1)
    return lv.simulate(oscillator(), [1.0], [0.0], scheme="gauss-3", h=0.001, control=control, **options)


def fictive(**options):
    return lv.simulate(lv.problems.load("kepler"), scheme="sundman", h=0.02, **options)


def taylor(**options):
    control = lv.StepControl(tolerance=1e-10, largest=0.1)
    return lv.simulate(oscillator(), [1.0], [0.0], scheme="taylor", control=control, **options)


def again(march, path, **options):
    return lv.resume(path, system=None if march is fictive else oscillator(), **options)


#: Each march with what its motion agrees to.
MARCHES = {equal: 1e-7, controlled: 1e-6, fictive: 0.1, taylor: 1e-6}


@pytest.fixture
def moments(monkeypatch, tmp_path):
    """Every commit of a run, as a file of its own: what a kill right after it would leave."""
    kept = []
    commit = RunFile.commit

    def commit_and_keep(file, record):
        commit(file, record)
        kept.append(tmp_path / f"moment-{len(kept)}.h5")
        shutil.copyfile(file.path, kept[-1])

    monkeypatch.setattr(RunFile, "commit", commit_and_keep)
    monkeypatch.setattr(recorder, "COMMIT_INTERVAL", 0.0)
    monkeypatch.setattr(recorder, "MAX_IO_SHARE", np.inf)
    monkeypatch.setattr(startup, "_CHUNK_STEPS", 29)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # the machine does not fail here
    return kept


def assert_same(one, other):
    assert one.status == other.status == "complete"
    for name in other.stored:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    assert one.summary == other.summary and one.events == other.events
    for name in ("steps", "newton_iterations", "rejected", "repivots", "reference_steps"):
        assert getattr(one.statistics, name) == getattr(other.statistics, name), name


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("march", MARCHES)
def test_a_run_goes_on_from_its_event(tmp_path, march, every):
    """Time and state belong together, no event is found twice, and the motion is the one without interruption."""
    path = tmp_path / "run.h5"
    stopped = march(t_end=20.0, events=[CROSSING, TURNING], every=every, out=path)
    times = [stopped.t[-1]]
    assert stopped.events[-1].name == "crossing" and times[-1] == stopped.events[-1].t < 20.0
    rows, fictive_times = len(stopped), []
    for _ in range(2):
        stopped = again(march, path, events=[TURNING, CROSSING])
        assert stopped.t[rows - 1] == times[-1], "the row of the event stays"
        times.append(stopped.t[-1])
        assert times[-1] > times[-2] + 1.0
        rows = len(stopped)
    whole = again(march, path, t_end=21.0, events=())
    fine = march(t_end=21.0)
    assert whole.t[-1] == pytest.approx(21.0, abs=1e-12) and np.all(np.diff(whole.t) > 0)
    for name in ("q", "p"):
        found, wanted = whole.last(name), fine.last(name)
        assert np.abs(found - wanted).max() < MARCHES[march], name
    for t in times:
        here = int(np.flatnonzero(whole.t == t)[0])
        assert whole.q[here, 0] == pytest.approx(0.1, abs=1e-3 if march is fictive else 1e-6)
    if march is fictive:
        fictive_times = whole.fictive_time
        assert np.all(np.diff(fictive_times) > 0)
        if every == 1:
            ratio = np.diff(whole.t) / np.diff(fictive_times)
            assert np.abs(np.diff(ratio) / ratio[1:]).max() < 0.2, "time goes smoothly with fictive time"
    names = [event.name for event in whole.events]
    assert names.count("crossing") == 3 and len({event.t for event in whole.events}) == len(names)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("march", MARCHES)
def test_killed_after_an_event(tmp_path, march, every, moments):
    """Event, go on, be killed at any commit, go on: bit for bit as if it had not been killed."""
    path, events = tmp_path / "run.h5", [CROSSING, TURNING]
    march(t_end=4.0, events=events, every=every, out=path)
    first = tmp_path / "first.h5"
    shutil.copyfile(path, first)
    moments.clear()
    harmless = [lv.Event(CROSSING.function, name="crossing", direction=-1), TURNING]
    whole = again(march, path, t_end=6.0123, events=harmless)
    seen = {*moments[::5], moments[-1]}
    assert len(seen) > (1 if march is taylor else 2)  # its steps are long
    for killed in seen:
        assert lv.load(killed).status == "running"
        assert_same(again(march, killed, events=harmless), whole)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("march", MARCHES)
def test_a_later_end_and_a_kill(tmp_path, march, every, moments):
    """Killed at any commit, or ended earlier and then gone on with: bit for bit the run that nothing happened to."""
    path = tmp_path / "run.h5"
    whole = march(t_end=5.0, events=[TURNING], every=every, out=path)
    for killed in {*moments[::7], moments[-1]}:
        assert_same(again(march, killed, events=[TURNING]), whole)
    turn = whole.events[0].t
    for i, end in enumerate((0.5, turn + 1e-3, 3.14159)):
        path = tmp_path / f"{i}.h5"
        march(t_end=end, events=[TURNING], every=every, out=path)
        assert_same(again(march, path, t_end=5.0, events=[TURNING]), whole)


@pytest.mark.parametrize("every", EVERY)
def test_an_event_in_the_last_steps_of_a_controlled_run(tmp_path, every, monkeypatch):
    """They are taken outside the regular ones, several of them if one fails; none of their rows may get lost."""
    path, stops = tmp_path / "run.h5", 0
    take = run_module.make_stepping

    def impatient(plan, layout):
        """All that is left is taken as last steps."""
        march = take(plan, layout)
        march.over = lambda carry: carry.t > 0.5
        return march

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "make_stepping", impatient)
        patch.setattr(startup, "_CHUNK_STEPS", 4)
        stopped = controlled(t_end=20.0, events=[CROSSING], every=every, out=path)
    stops = stopped.t[-1]
    whole = again(controlled, path, t_end=20.0, events=())
    assert np.array_equal(whole.t[: len(stopped)], stopped.t) and whole.t[len(stopped) - 1] == stops
    assert np.all(np.diff(whole.t) > 0)
    assert whole.statistics.steps == controlled(t_end=20.0).statistics.steps or whole.statistics.steps > len(stopped)
    assert np.abs(whole.last("q") - controlled(t_end=20.0).last("q")).max() < 1e-6


# -- kinds of models --------------------------------------------------------------------------------------------------
def contact():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.06], radius=0.05, mass=0.1)
    rubbing = lv.contacts.Friction(0.3, slip_tolerance=0.02)
    mb.contact(ball, mb.ground, law=lv.contacts.Hertz(3e5), dissipation=0.1, friction=rubbing, name="floor")
    mb.initial(ball, velocity=[0.4, 0, 0], omega=[0, -40.0, 0])
    return mb, dict(t_end=0.0723, h=2e-4)


def beam():
    mb = lv.Multibody(planar=True)
    section = lv.Section.general(EA=1e4, GA=1e4, GJ=2.0, EI=2.0, mass=1.0, inertia=0.01, radius=0.01)
    tip = mb.beam(
        "beam", points=[[0, 0], [1, 0]], section=section, elements=2, clamp_first=mb.ground, damping_time=0.05
    ).b
    mb.wrench("moment", tip, torque=lambda t: [3.0 * lv.math.sin(5 * t)])
    return mb, dict(t_end=2.01, h=0.02)


def turning():
    mb = lv.Multibody(planar=True)
    arm = mb.rod("arm", a=[0, 0], b=[1, 0], mass=1.0)
    return mb, mb.revolute("hinge", mb.ground, arm, at=[0, 0])


def controller():
    """With a state of its own, which is an integral here."""
    mb, hinge = turning()

    def law(t, seen, state):
        return [-2.0 * seen[0] - state[0]], [state[0] + 0.1 * seen[0]]

    mb.sampled_controller("keeper", hinge, period=0.03, law=law, inputs="hinge.angle", state=[0.1])
    return mb, dict(t_end=1.005, h=0.01)


def stop():
    mb, hinge = turning()
    mb.motor(hinge, torque=1.0, name="push")
    mb.limit("end", hinge, lower=-0.2, upper=0.2, stiffness=1e4, restitution=0.7)
    return mb, dict(t_end=2.005, h=0.01)


def bounce():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.5], radius=0.05, mass=0.1)
    mb.rigid_contact(ball, mb.ground, restitution=0.8, friction=0.2)
    return mb, dict(t_end=1.005, h=0.01)


def cheap_and_expensive(scheme):
    def made():
        elements = [
            lv.Element("xy", kinetic=lambda v: v @ v / 2, potential=lambda q: 3 * q[0] ** 2, name="spring"),
            lv.Element("xy", potential=lambda q: lv.math.sin(q[0] + q[1]), expensive=True, name="field"),
        ]
        options = dict(q0=[1.0, 0.2], v0=[0.0, 1.0], scheme=scheme, h=0.01, t_end=1.005)
        return lv.System(["x", "y"], elements=elements), options

    return made


def assembled(**more):
    def made():
        both = [
            lv.Element([i, i + 1], potential=lambda q: (q[1] - q[0]) ** 4 + (q[1] - q[0]) ** 2, name=f"spring {i}")
            for i in range(11)
        ]
        masses = [lv.Element([i], kinetic=lambda v: v[0] ** 2 / 2, name=f"mass {i}") for i in range(12)]
        options = dict(q0=np.sin(np.arange(12.0)), v0=np.zeros(12), tier="assembled", t_end=1.005, h=0.01)
        return lv.System(12, elements=[*masses, *both]), options | more

    return made


def radau():
    """Stiff, so that the number of stages changes."""
    model = lv.FirstOrder("x y", rhs=lambda x: [x[1], 50 * (1 - x[0] ** 2) * x[1] - x[0]])
    control = lv.StepControl(tolerance=1e-7)
    return model, dict(x0=[2.0, 0.0], scheme="radau", control=control, t_end=60.0)


KINDS = {
    "radau": radau,
    "contact": contact,
    "beam": beam,
    "controller": controller,
    "stop": stop,
    "bounce": bounce,
    "imex": cheap_and_expensive("imex"),
    "semi-explicit": cheap_and_expensive("semi-explicit:0,0.5"),
    "assembled": assembled(),
    "assembled, controlled": assembled(control=lv.StepControl(), scheme="livens-em"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_goes_on(kind, tmp_path, moments):
    """Killed at any commit, or ended earlier: bit for bit the run that nothing happened to."""
    model, options = KINDS[kind]()
    drawn = isinstance(model, lv.Multibody)
    run = model.simulate if drawn else functools.partial(lv.simulate, model)
    known = dict(system=model.system if drawn else model, events=options.get("events", ()))
    whole = run(**options, out=tmp_path / "whole.h5")
    assert len(moments) > 3
    for killed in {*moments[:: max(1, len(moments) // 4)], moments[-1]}:
        assert_same(lv.resume(killed, **known), whole)
    early = tmp_path / "early.h5"
    run(**options | dict(t_end=0.4567 * options["t_end"]), out=early)
    assert_same(lv.resume(early, t_end=options["t_end"], **known), whole)


@pytest.mark.parametrize("kind", ["controller", "bounce"])
def test_what_fails_in_a_function_of_the_user_leaves_the_run_up_to_there(kind, tmp_path, moments):
    """And the run goes on from there when that is mended, with nothing left out."""
    model, options = KINDS[kind]()
    whole = model.simulate(**options)
    calls = []

    def faulty(function, answer):
        @functools.wraps(function)
        def wrong(*given):
            calls.append(given)
            return answer() if len(calls) > (2 if kind == "controller" else 1) else function(*given)

        return wrong

    for i, (answer, kept) in enumerate([(lambda: {"v": [np.nan]}, lv.InputError), (lambda: 1 / 0, ZeroDivisionError)]):
        path = tmp_path / f"{i}.h5"
        other, given = KINDS[kind]()
        calls.clear()
        if kind == "controller":
            sampled = next(iter(other.system.controllers))
            other.system.controllers = (dataclasses.replace(sampled, law=faulty(sampled.law, answer)),)
        else:
            events = other.system.model_events
            other.system.model_events = tuple(dataclasses.replace(e, action=faulty(e.action, answer)) for e in events)
        with pytest.raises(kept) as caught:
            other.simulate(**given, out=path)
        run = lv.load(path, system=other.system)
        assert run.status == "failed" and 0.02 < run.t[-1] < 0.95 and np.isfinite(run.q).all()
        if kept is lv.InputError:
            assert caught.value.result.status == "failed" and len(caught.value.result) == len(run)
        assert_same(lv.resume(path, system=model.system, events=options.get("events", ())), whole)


def test_events_have_to_be_given_again(tmp_path):
    path = tmp_path / "run.h5"
    equal(t_end=0.5, events=[TURNING, lv.Event(lambda q: q[0])], out=path)
    assert lv.load(path).info.events == ("turning", "event 1")
    with pytest.raises(lv.InputError, match=r"has the events turning, event 1: pass them again"):
        lv.resume(path, system=oscillator(), t_end=1.0)
    with pytest.raises(lv.InputError, match=r"has the events event 1: pass them again"):
        lv.resume(path, system=oscillator(), t_end=1.0, events=[TURNING])
    with pytest.raises(lv.InputError, match=r"events must be a list"):
        lv.resume(path, system=oscillator(), t_end=1.0, events=7)
    assert lv.load(path).t[-1] == pytest.approx(0.5), "a refused resume changes nothing"
    on = lv.resume(path, system=oscillator(), t_end=1.0, events=())
    assert on.info.events == ()
    assert lv.resume(path, system=oscillator(), t_end=2.0).t[-1] == pytest.approx(2.0)


def test_what_resume_cannot_change_on_the_command_line(tmp_path):
    path, call = tmp_path / "run.h5", CliRunner().invoke
    lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.01, out=path)
    for option in (["--every", "2"], ["--compress"], ["--tier", "reference"], ["--threads", "2"], ["--force"]):
        answer = call(app, ["run", str(path), "--resume", "--t-end", "0.02", *option])
        assert isinstance(answer.exception, lv.InputError) and option[0] in str(answer.exception)


def test_compiling_under_way_is_booked_as_compiling(monkeypatch):
    """A clock that only goes on when a pivot order is looked for."""
    now = [0.0]
    clock = types.SimpleNamespace(perf_counter=lambda: now[0], monotonic=lambda: now[0])
    step = lv.prepare(oscillator(), scheme="gauss-2", h=0.01)
    step.run([1.0], [0.0], t_end=0.1)
    repivot = fused.FusedStepper.advance

    def advance(stepper, carry, steps, policy, going):
        found = repivot(stepper, carry, steps, policy, going)
        w = stepper._workspaces.prepare(found.final, 1)
        stepper._repivot(found.final.unknown_history[-1], w, 0, set())
        w = stepper._workspaces.prepare(carry, steps)
        return repivot(stepper, carry, steps, policy, going)

    def order_for(*arguments):
        now[0] += 100.0
        return order(*arguments)

    order = type(step_of(step)).pivot_order_for
    monkeypatch.setattr(type(step_of(step)), "pivot_order_for", order_for)
    monkeypatch.setattr(fused.FusedStepper, "advance", advance)
    for module in (fused, run_module):
        monkeypatch.setattr(module, "time", clock)
    made = step.run([1.0], [0.0], t_end=0.105)  # its last step is shorter: not one of those that are taken in one go
    assert made.statistics.repivots and made.statistics.wall_s == 0.0 and made.statistics.compile_s >= 100.0


def step_of(prepared):
    from livens.engine.compiled_step import compiled_step

    return compiled_step(prepared.model, prepared.scheme)
