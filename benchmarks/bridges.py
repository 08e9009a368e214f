"""Bridges: models from SymPy, steps with new inputs, environments of Gymnasium and steps of an FMU."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import livens as lv
from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal

#: Number of single steps, of environments, of their steps, and of steps of an FMU per round.
_STEPS, _ENVIRONMENTS, _VECTOR_STEPS, _FMU_STEPS = 2000, 1024, 20, 10_000
_H = 0.02
_OBSERVATION = ["slide.position", "hinge.angle", "slide.velocity", "hinge.rate"]


#: Integrators of `mujoco.rollout`: the default of first order, and that of the inverted pendulum of Gymnasium.
_INTEGRATORS = ("Euler", "RK4")
#: Model of `_cart_pole` for MuJoCo, with a place for the integrator.
_MJCF = f"""<mujoco><option integrator="%s" timestep="{_H}" gravity="0 0 -9.81"/><worldbody><body>
<joint name="slide" type="slide" axis="1 0 0" damping="1"/><geom type="box" size="0.2 0.1 0.1" mass="10" contype="0"/>
<body><joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.02" mass="5" contype="0"/>
</body></body></worldbody><actuator><motor joint="slide" gear="100"/></actuator></mujoco>"""


def _cart_pole() -> lv.Multibody:
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    cart = mb.box("cart", at=[0, 0, 0], size=[0.4, 0.2, 0.2], mass=10.0)
    pole = mb.rod("pole", a=[0, 0, 0], b=[0, 0, 0.6], mass=5.0)
    slide = mb.prismatic("slide", mb.ground, cart, axis="x")
    hinge = mb.revolute("hinge", cart, pole, at=[0, 0, 0], axis="y")
    mb.motor(slide, force=lambda t, position, velocity, k: 100 * k.u - velocity, parameters=dict(u=0.0), name="motor")
    mb.initial(hinge, angle=0.01)
    return mb


def _elapsed(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _is_installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


class SympyModels:
    """Double pendulum from SymPy: time of a warm run beside SymPy's right-hand side integrated by SciPy."""

    name = "sympy"

    def __init__(self) -> None:
        self._ours, self._theirs = Minimum(), Minimum()
        self._calls: tuple[Callable[[], Any], Callable[[], Any]] | None = None

    def run_round(self, first: bool, log: Log) -> None:
        if not _is_installed("sympy"):
            return
        self._calls = self._calls or self._make_calls()
        ours, theirs = self._calls
        for _ in range(3):
            self._ours.add(_elapsed(ours))
            self._theirs.add(_elapsed(theirs))

    @staticmethod
    def _make_calls() -> tuple[Callable[[], Any], Callable[[], Any]]:
        import sympy as sp
        from scipy.integrate import solve_ivp
        from sympy.physics.mechanics import LagrangesMethod, dynamicsymbols

        a, b = dynamicsymbols("a b")
        t = dynamicsymbols._t
        x1, y1 = sp.sin(a), -sp.cos(a)
        x2, y2 = x1 + sp.sin(b), y1 - sp.cos(b)
        kinetic = sum(s.diff(t) ** 2 for s in (x1, y1, x2, y2)) / 2
        potential = 9.81 * (y1 + y2)
        model = lv.from_sympy((kinetic, potential), [a, b])
        step = lv.prepare(model, "taylor", q0=[1.0, 0.5], v0=[0.0, 0.0], t_end=5.0)
        step.run()
        method = LagrangesMethod(kinetic - potential, [a, b])
        method.form_lagranges_equations()
        state = [a, b, a.diff(t), b.diff(t)]
        rate = sp.lambdify(state, list(method.rhs()))

        def by_scipy() -> Any:
            return solve_ivp(lambda _, y: rate(*y), (0, 5), [1.0, 0.5, 0, 0], method="DOP853", rtol=1e-11, atol=1e-11)

        return step.run, by_scipy

    def add_to_report(self, report: BenchReport) -> None:
        if self._calls is None:
            report.skipped["SymPy"] = "not installed"
            return
        ours, theirs = 1e3 * self._ours.value, 1e3 * self._theirs.value
        case = "double pendulum from SymPy, 5 s"
        report.lines.append(ComparisonRow(case, ours, "ms", Goal(">=", 10), "SymPy and SciPy", theirs))


class Environments:
    """Step with a new input, `gym.Env` and `gym.VectorEnv` of a cart-pole, beside Gymnasium and `mujoco.rollout`."""

    name = "environments"

    def __init__(self) -> None:
        self._times = {name: Minimum() for name in ("run", "drive", "env", "vector", "gymnasium", *_INTEGRATORS)}
        self._calls: dict[str, tuple[Callable[[], Any], int]] = {}

    def run_round(self, first: bool, log: Log) -> None:
        if first:
            self._calls = self._make_calls()
            for call, _ in self._calls.values():
                call()
        for name, (call, n_steps) in self._calls.items():
            self._times[name].add(_elapsed(call) / n_steps)

    @staticmethod
    def _make_calls() -> dict[str, tuple[Callable[[], Any], int]]:
        mb = _cart_pole()
        step = lv.prepare(mb.problem(), "lie-em", h=_H, redundant="remove", t_end=_STEPS * _H)
        drive = step.drive(["motor.u"], _OBSERVATION)

        forces = (1e-3 * np.sin(0.01 * np.arange(_STEPS))).tolist()

        def drive_steps() -> None:
            drive.reset()
            for force in forces:
                drive.inputs[0] = force
                drive.advance()

        calls: dict[str, tuple[Callable[[], Any], int]] = {"run": (step.run, _STEPS), "drive": (drive_steps, _STEPS)}
        if not _is_installed("gymnasium"):
            return calls
        environment: dict[str, Any] = dict(
            action="motor.u",
            observation=_OBSERVATION,
            reward=lambda observation, action: 1.0 - observation[..., 1] ** 2,
            terminated=lambda observation: np.abs(observation[..., 1]) > 0.2,
            dt=2 * _H,
            substeps=2,
            scheme="lie-em",
        )
        env, action = lv.gym.Env(mb, **environment), np.zeros(1, dtype=np.float32)
        calls["env"] = _episodes(env, action), _STEPS
        many, actions = lv.gym.VectorEnv(mb, _ENVIRONMENTS, **environment), np.zeros((_ENVIRONMENTS, 1))
        many.reset(seed=0)
        calls["vector"] = lambda: [many.step(actions) for _ in range(_VECTOR_STEPS)], _VECTOR_STEPS * _ENVIRONMENTS
        if _is_installed("mujoco"):
            calls |= _mujoco_calls(action)
        return calls

    def add_to_report(self, report: BenchReport) -> None:
        us = {name: 1e6 * time.value for name, time in self._times.items()}
        report.lines.append(
            ComparisonRow(
                "cart-pole, step with a new input beyond the step", us["drive"] - us["run"], "us", Goal("<=", 4)
            )
        )
        if "env" not in self._calls:
            report.skipped["Gymnasium"] = "not installed"
            return
        many = f"cart-pole, gym.VectorEnv({_ENVIRONMENTS}), one action"
        for case, name, peer, peer_name, goal in (
            ("cart-pole, gym.Env, one action", "env", "Gymnasium (MuJoCo)", "gymnasium", 2),
            *((many, "vector", f"mujoco.rollout, {name}", name, 10) for name in _INTEGRATORS),
        ):
            theirs = us[peer_name] if peer_name in self._calls else None
            report.lines.append(ComparisonRow(case, us[name], "us", Goal(">=", goal), peer, theirs))


def _episodes(env: Any, action: np.ndarray) -> Callable[[], None]:
    """Return a function that takes steps, and starts again at the end of every episode."""

    def episodes() -> None:
        env.reset(seed=0)
        for _ in range(_STEPS):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return episodes


def _mujoco_calls(action: np.ndarray) -> dict[str, tuple[Callable[[], Any], int]]:
    """Return steps of the same cart-pole in `mujoco.rollout`, and of Gymnasium's inverted pendulum."""
    calls: dict[str, tuple[Callable[[], Any], int]]
    calls = {name: (_rollouts(name), _VECTOR_STEPS * _ENVIRONMENTS) for name in _INTEGRATORS}
    import gymnasium

    if not _is_installed("imageio"):  # Gymnasium imports it to write pictures
        sys.modules["imageio"] = ModuleType("imageio")
    calls["gymnasium"] = _episodes(gymnasium.make("InvertedPendulum-v5"), action), _STEPS
    return calls


def _rollouts(integrator: str) -> Callable[[], None]:
    """Return a function that takes two steps of all environments in `mujoco.rollout`, in one thread."""
    import mujoco
    from mujoco import rollout

    model = mujoco.MjModel.from_xml_string(_MJCF % integrator)
    data = mujoco.MjData(model)
    state = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states, controls = np.tile(state, (_ENVIRONMENTS, 1)), np.zeros((_ENVIRONMENTS, 2, 1))

    def roll() -> None:
        for _ in range(_VECTOR_STEPS):
            rollout.rollout(model, data, states, controls)

    return roll


class FmuSteps:
    """Steps of an FMU in one communication step, beside the same steps of `lv.simulate`."""

    name = "fmu"

    def __init__(self) -> None:
        self._ours, self._fmu = Minimum(), Minimum()
        self._calls: tuple[Callable[[], Any], Callable[[], Any]] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def run_round(self, first: bool, log: Log) -> None:
        if not _is_installed("ziglang", "fmpy"):
            return
        if self._calls is None:
            log("exporting an FMU")
            self._calls = self._make_calls()
        run, fmu = self._calls
        self._ours.add(_elapsed(run))
        self._fmu.add(_elapsed(fmu))

    def _make_calls(self) -> tuple[Callable[[], Any], Callable[[], Any]]:
        import fmpy
        from fmpy.fmi3 import FMU3Slave

        h, problem = 1e-3, _cart_pole().problem()
        self._folder = tempfile.TemporaryDirectory()
        path = lv.fmu(problem, Path(self._folder.name) / "cart.fmu", outputs=_OBSERVATION[:1], scheme="lie-em", h=h)
        description = fmpy.read_model_description(str(path))
        slave = FMU3Slave(
            guid=description.guid,
            unzipDirectory=fmpy.extract(str(path), self._folder.name),
            modelIdentifier=description.coSimulation.modelIdentifier,
            instanceName="cart",
        )
        slave.instantiate()
        slave.enterInitializationMode(startTime=0.0)
        slave.exitInitializationMode()
        step = lv.prepare(problem, "lie-em", h=h, t_end=_FMU_STEPS * h, redundant="remove")
        step.run()
        return step.run, lambda: slave.doStep(0.0, _FMU_STEPS * h)

    def add_to_report(self, report: BenchReport) -> None:
        if self._calls is None:
            report.skipped["FMPy"] = "ziglang or FMPy is not installed"
            return
        fmu, ours = (1e6 * time.value / _FMU_STEPS for time in (self._fmu, self._ours))
        report.lines.append(ComparisonRow("cart-pole, step of an FMU", fmu, "us", Goal(">=", 0.91), "livens run", ours))
