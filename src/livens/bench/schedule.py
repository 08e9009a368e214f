"""Cases of the benchmark and the order of their execution."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import livens
from livens.bench.ball_bearing import BallBearing
from livens.bench.balls import Balls
from livens.bench.beams import Beams
from livens.bench.case import Case, Say
from livens.bench.core import one_core
from livens.bench.crowds import Crowds
from livens.bench.ensembles import Ensembles
from livens.bench.equal_error import EqualError
from livens.bench.films import Films
from livens.bench.four_bar import FourBar
from livens.bench.gradients import Gradients
from livens.bench.iftomm import IFToMM
from livens.bench.kepler import Kepler
from livens.bench.lanes import LanesInSteps
from livens.bench.large import Large
from livens.bench.mechanisms import DrawnToFirstStep, Steps
from livens.bench.memory import LongRun
from livens.bench.pendulum import Pendulum
from livens.bench.prepared import Prepared
from livens.bench.report import Report
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
    *(FourBar, Pendulum, Variants, Kepler, WorkPrecision, Scaling, FirstStep, Prepared, Ensembles, Crowds, Gradients),
    *(LongRun, Help, Large, Beams, Series, StiffEquations, EqualError, Steps, DrawnToFirstStep, SliderCrank, IFToMM),
    *(BallBearing, Balls, LanesInSteps, Films),
)


def chosen(only: str) -> list[type[Case]]:
    """Return the cases whose names contain one of the comma-separated texts; all cases for an empty text."""
    texts = [text.strip() for text in only.split(",")]
    found = [case for case in CASES if any(text in case.name for text in texts)]
    if not found:
        raise InputError(f"no case has '{only}' in its name; there are {', '.join(case.name for case in CASES)}")
    return found


def run(rounds: int, say: Say, only: str = "") -> Report:
    """Run all cases in rounds, so that load peaks of the machine affect all cases equally."""
    if rounds < 1:
        raise InputError(f"rounds must be at least 1, got {rounds}")
    cases = [case() for case in chosen(only)]
    with one_core():
        for number in range(1, rounds + 1):
            for case in cases:
                where = f"round {number} of {rounds}: {case.name}"
                say(where)
                case.play(number == 1, lambda what: say(f"{where}, {what}"))
    report = Report(rounds, _machine())
    for case in cases:
        case.tell(report)
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
