"""Cases of the benchmark and the order of their execution."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import livens
from livens.bench.ball_bearing import BallBearing
from livens.bench.balls import Balls
from livens.bench.beams import Beams
from livens.bench.case import Case, Log
from livens.bench.core import single_core
from livens.bench.ensembles import Ensembles
from livens.bench.equal_error import EqualError
from livens.bench.films import Animations
from livens.bench.four_bar import FourBar
from livens.bench.gradients import Gradients
from livens.bench.iftomm import IFToMM
from livens.bench.initial_value import InitialValueProblems
from livens.bench.kepler import Kepler
from livens.bench.lanes import SimdSteps
from livens.bench.large import Large
from livens.bench.large_ensembles import LargeEnsembles
from livens.bench.mechanisms import MechanismSteps, ModelToFirstStep
from livens.bench.memory import LongRun
from livens.bench.pendulum import Pendulum
from livens.bench.prepared import Prepared
from livens.bench.report import BenchReport
from livens.bench.scaling import Scaling
from livens.bench.series import Series
from livens.bench.slider_crank import SliderCrank
from livens.bench.startup import FirstStep, Help
from livens.bench.stiff import StiffEquations
from livens.bench.variants import Variants
from livens.bench.work_precision import WorkPrecision
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
    *(BallBearing, Balls, SimdSteps, Animations),
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
