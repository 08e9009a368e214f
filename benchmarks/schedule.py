"""Cases of the benchmark and the order of their execution."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import livens
from benchmarks.adaptive_steps import AdaptiveSteps, CostOfControl
from benchmarks.ball_bearing import BallBearing
from benchmarks.balls import Balls
from benchmarks.beams import Beams
from benchmarks.bridges import Environments, FmuSteps, SympyModels
from benchmarks.case import Case, Log
from benchmarks.core import single_core
from benchmarks.ensembles import Ensembles
from benchmarks.equal_error import EqualError
from benchmarks.films import Animations
from benchmarks.four_bar import FourBar
from benchmarks.gradients import Gradients
from benchmarks.iftomm import IFToMM
from benchmarks.initial_value import InitialValueProblems
from benchmarks.jansen_walker import JansenWalker
from benchmarks.kepler import Kepler
from benchmarks.lanes import SimdSteps
from benchmarks.large import Large
from benchmarks.large_ensembles import LargeEnsembles
from benchmarks.mechanisms import MechanismSteps, ModelToFirstStep
from benchmarks.memory import LongRun
from benchmarks.optimal_control import ControlProblems
from benchmarks.pendulum import Pendulum
from benchmarks.prepared import Prepared
from benchmarks.report import BenchReport
from benchmarks.robots.control_loop import ControlLoop
from benchmarks.scaling import Scaling
from benchmarks.series import Series
from benchmarks.slider_crank import SliderCrank
from benchmarks.startup import FirstStep, Help
from benchmarks.stiff import StiffEquations
from benchmarks.variants import Variants
from benchmarks.work_precision import WorkPrecision
from livens.errors import InputError

#: Cases in the order of execution.
CASES: tuple[type[Case], ...] = (
    *(
        FourBar,
        Pendulum,
        Variants,
        Kepler,
        WorkPrecision,
        Scaling,
        FirstStep,
        Prepared,
        Ensembles,
        LargeEnsembles,
        Gradients,
    ),
    *(
        LongRun,
        Help,
        InitialValueProblems,
        SympyModels,
        Environments,
        FmuSteps,
        ControlProblems,
        Large,
        Beams,
        Series,
        StiffEquations,
        EqualError,
        MechanismSteps,
        ModelToFirstStep,
        SliderCrank,
        IFToMM,
    ),
    *(AdaptiveSteps, CostOfControl, BallBearing, Balls, JansenWalker, SimdSteps, Animations, ControlLoop),
)


def selected_cases(only: str) -> list[type[Case]]:
    """Return the cases whose names contain one of the comma-separated texts; all cases for an empty text."""
    texts = [text.strip() for text in only.split(",")]
    selected = [case for case in CASES if any(text in case.name for text in texts)]
    if not selected:
        raise InputError(f"no case has '{only}' in its name; there are {', '.join(case.name for case in CASES)}")
    return selected


def run_benchmark(rounds: int, log: Log, only: str = "") -> BenchReport:
    """Run all cases in rounds, so that load peaks of the machine affect all cases equally."""
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, got {rounds}")
    cases = [case() for case in selected_cases(only)]
    with single_core():
        for number in range(1, rounds + 1):
            for case in cases:
                position = f"round {number} of {rounds}: {case.name}"
                log(position)
                case.run_round(number == 1, lambda what: log(f"{position}, {what}"))
    report = BenchReport(rounds, _machine())
    for case in cases:
        case.add_to_report(report)
    return report


def _machine() -> dict[str, str]:
    about = {"livens": livens.__version__, "Python": platform.python_version(), "on": _processor()}
    if hasattr(
        os, "getloadavg"
    ):  # the benchmark itself is a load of one; a much higher load makes the times unreliable
        about["load"] = f"{os.getloadavg()[1]:.1f} of {os.cpu_count()} cores"
    return about


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
