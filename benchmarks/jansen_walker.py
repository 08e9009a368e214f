"""Jansen walker beside MuJoCo: cost of a millisecond, and error of the legs against their closed form."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import livens as lv
from benchmarks.case import Log
from benchmarks.ours import Minimum
from benchmarks.report import BenchReport, ComparisonRow, Goal
from livens import contacts
from livens.multibody.body import Body
from livens.run.prepare import prepare

#: Published lengths in m, for a scale of 1:1.
LENGTHS = dict(a=38.0, b=41.5, c=39.3, d=40.1, e=55.8, f=39.4, g=36.7, h=65.7, i=49.0, j=50.0, k=61.9, l=7.8, m=15.0)
L = {name: value / 100 for name, value in LENGTHS.items()}
RATE, START = 2.0, 0.3
#: Phase of the crank pin and side of each leg.
LEGS = [(phase, side) for phase in (0.0, np.pi) for side in (1, -1)]
CHASSIS, CRANK, PART = 4.0, 0.5, 0.3
WEIGHT = 9.81 * (CHASSIS + CRANK + 24 * PART)


def meet(p: np.ndarray, r_p: float, q: np.ndarray, r_q: float, side: int) -> np.ndarray:
    """Return the intersection of two circles on one side of the line from p to q."""
    distance = np.linalg.norm(q - p)
    along = (q - p) / distance
    x = (r_p**2 - r_q**2 + distance**2) / (2 * distance)
    return np.asarray(p + x * along + side * np.sqrt(r_p**2 - x**2) * np.array([-along[1], along[0]]))


def leg(crank_angle: float, phase: float, side: int) -> dict[str, np.ndarray]:
    """Return the joints of a leg in closed form, relative to the axle and in the frame of the chassis."""
    angle = crank_angle + phase if side > 0 else np.pi - (crank_angle + phase)
    pivot, pin = np.array([-L["a"], -L["l"]]), L["m"] * np.array([np.cos(angle), np.sin(angle)])
    top, low = meet(pivot, L["b"], pin, L["j"], 1), meet(pivot, L["c"], pin, L["k"], -1)
    back = meet(pivot, L["d"], top, L["e"], 1)
    knee = meet(back, L["f"], low, L["g"], -1)
    foot = meet(knee, L["h"], low, L["i"], -1)
    points = dict(pivot=pivot, pin=pin, top=top, low=low, back=back, knee=knee, foot=foot)
    return {name: point * [side, 1] for name, point in points.items()}


def walker() -> lv.Multibody:
    """Build the walker: 26 bodies in closed loops on compliant feet with friction."""
    legs = [leg(START, phase, side) for phase, side in LEGS]
    axle_at = np.array([0, -min(points["foot"][1] for points in legs)])
    mb = lv.Multibody(planar=True, gravity=[0, -9.81])
    chassis = mb.body("chassis", mass=CHASSIS, inertia=0.5, position=axle_at)
    crank = mb.body("crank", mass=CRANK, inertia=0.01, position=axle_at)
    axle = mb.revolute("axle", chassis, crank, at=axle_at)
    floor, friction = contacts.HalfSpace(mb.ground, normal=[0, 1]), contacts.Friction(0.8, slip_tolerance=1e-3)
    for n, joints in enumerate(legs):
        at = {name: point + axle_at for name, point in joints.items()}

        def part(name: str, *corners: str, at: dict[str, np.ndarray] = at, n: int = n) -> Body:
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


def leg_error(crank_angle: float, chassis: np.ndarray, lower_parts: list[np.ndarray]) -> float:
    """Return the largest error of the distances of the lower parts, which carry the feet, from the chassis."""
    errors = []
    for (phase, side), position in zip(LEGS, lower_parts, strict=True):
        points = leg(crank_angle, phase, side)
        centre = (points["knee"] + points["low"] + points["foot"]) / 3
        errors.append(abs(float(np.linalg.norm(position - chassis) - np.linalg.norm(centre))))
    return max(errors)


#: Step size of both codes in s, end time of the measured run, and steps of one timing.
_H, _T_END, _STEPS = 1e-3, 100.0, 1000
#: Error of the legs in m up to which a simulated second is timed, and step sizes of MuJoCo in s. Its joints are soft:
#: with the stiffest constraints, of two steps, the error falls with the square of the step.
_LEG_TOLERANCE, _MUJOCO_STEPS = 2e-7, (1e-3, 2e-4, 5e-5, 2e-5)


class JansenWalker:
    """Case of the walker: steps of a millisecond in both codes, and a second at equal error of the legs."""

    name = "jansen walker"

    def __init__(self) -> None:
        self._ours, self._theirs, self._theirs_at_equal_error = Minimum(), Minimum(), Minimum()
        self._errors: dict[str, float] = {}

    def run_round(self, first: bool, log: Log) -> None:
        problem = walker().problem(h=_H)
        step = prepare(problem)
        if first:
            log("jansen walker for 100 s")
            run = step.run(problem.q0, problem.v0, h=_H, t_end=_T_END, every=1000)
            positions = [run[name] for name in ("chassis.position", *(f"lower{n}.position" for n in range(len(LEGS))))]
            self._errors["livens"] = max(
                leg_error(START + RATE * t, row[0], list(row[1:]))
                for t, row in zip(run.t, np.stack(positions, axis=1), strict=True)
            )
        start = time.process_time()
        step.run(problem.q0, problem.v0, h=_H, t_end=_STEPS * _H, every=_STEPS)
        self._ours.add((time.process_time() - start) / _STEPS * 1e9)
        self._run_mujoco(first)

    def _run_mujoco(self, first: bool) -> None:
        try:
            import mujoco
        except ImportError:
            return
        model = mujoco.MjModel.from_xml_string(_mujoco_file())
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.ctrl[0] = RATE
        start = time.process_time()
        mujoco.mj_step(model, data, _STEPS)
        self._theirs.add((time.process_time() - start) / _STEPS * 1e9)
        if first:
            self._errors["MuJoCo"] = max(_mujoco_error(mujoco, model, data) for _ in range(int(_T_END)))
        for step_size in _MUJOCO_STEPS:
            model.opt.timestep, model.eq_solref[:, 0] = step_size, 2 * step_size
            mujoco.mj_resetDataKeyframe(model, data, 0)
            data.ctrl[0] = RATE
            mujoco.mj_step(model, data, round(0.1 / step_size))
            start = time.process_time()
            mujoco.mj_step(model, data, round(0.2 / step_size))
            elapsed = time.process_time() - start
            if max(_mujoco_error(mujoco, model, data, 0.1) for _ in range(10)) < _LEG_TOLERANCE:
                self._theirs_at_equal_error.add(elapsed / 0.2 * 1e3)
                return

    def add_to_report(self, report: BenchReport) -> None:
        theirs = self._theirs.value / 1e3 if "MuJoCo" in self._errors else None
        case = "Jansen walker, 26 bodies: a step of 1 ms"
        report.lines.append(ComparisonRow(case, self._ours.value / 1e3, "us", None, "MuJoCo", theirs))
        if theirs is not None:
            case = f"Jansen walker: a simulated second with errors of the legs below {_LEG_TOLERANCE * 1e6:g} um"
            ours, equal = self._ours.value / 1e6 / _H, self._theirs_at_equal_error.value
            reached = equal if np.isfinite(equal) else None
            report.lines.append(ComparisonRow(case, ours, "ms", Goal(">=", 3.0), "MuJoCo", reached))
        for code, error in self._errors.items():
            report.lines.append(
                ComparisonRow(f"Jansen walker, 100 s: error of the legs in um, {code}", error * 1e6, "")
            )


def _mujoco_file() -> str:
    """Return the exported walker with feet, floor and drive."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "walker.xml"
        walker().to_mjcf(file)
        text = file.read_text(encoding="utf-8")
    touches = 'contype="1" conaffinity="1" friction="0.8 0 0"'
    text = text.replace("<option ", f'<option timestep="{_H}" integrator="implicitfast" ')
    text = text.replace("<worldbody>", f'<worldbody><geom type="plane" size="0 0 1" zaxis="0 1 0" {touches}/>')
    for n, (phase, side) in enumerate(LEGS):
        points = leg(START, phase, side)
        x, y = points["foot"] - (points["knee"] + points["low"] + points["foot"]) / 3
        foot = f'<geom type="sphere" size="0.001" pos="{x:.12g} {y + 0.001:.12g} 0" {touches}/>'
        text = re.sub(rf'(<body name="lower{n}"[^>]*>)', rf"\1{foot}", text)
    return text.replace("</worldbody>", '</worldbody><actuator><velocity joint="axle" kv="1000"/></actuator>')


def _mujoco_error(mujoco: Any, model: Any, data: Any, duration: float = 1.0) -> float:
    """Return the error of the legs after a further second, or another duration in s."""
    mujoco.mj_step(model, data, round(duration / model.opt.timestep))
    mujoco.mj_kinematics(model, data)
    lower_parts = [data.body(f"lower{n}").xpos[:2] for n in range(len(LEGS))]
    return leg_error(START + float(data.joint("axle").qpos[0]), data.body("chassis").xpos[:2], lower_parts)
