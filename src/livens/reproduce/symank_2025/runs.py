"""Shared functions of the figures of Symank: runs with controlled steps, distances of runs, names of the schemes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from livens import problems
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.run.step_control import StepControl

#: Schemes for constrained systems with three stages, and their names in the document.
PAIRS = {"lobatto-iiia-iiib-3": "J-PRK", "murua-3": "M-PRK", "murua-ggl-3": "M-PRK-GGL"}
#: Schemes for unconstrained systems.
METHODS = {"gauss-3": "Gauss", "lobatto-iiic-3": "Lobatto IIIC"}


@functools.lru_cache(maxsize=128)
def controlled(
    name: str, scheme: str, h: float, t_end: float, control: StepControl, options: tuple[tuple[str, Any], ...] = ()
) -> Result:
    """Return a run of a built-in problem with step-size control and first step h."""
    problem = problems.load(name, **dict(options))
    return simulate(problem, scheme=scheme, h=h, t_end=t_end, control=control, progress=False)


def relative_distances(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the distance of Symank 2025 7.2.3 for each variable: the mean of ``|(x - x0)/x0|`` over all times.

    The distance is zero where both values are zero.
    """
    difference = np.abs(values - reference)
    size = np.where(difference > 0, np.abs(reference), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.mean(difference / size, axis=0))


def convergence_power(sizes: Sequence[float], distances: Any, selected: Callable[[float], bool]) -> float:
    """Return the power of the size with which distances decrease, by least squares in logarithms."""
    pairs = [(size, distance) for size, distance in zip(sizes, distances, strict=True) if selected(size)]
    logarithms = np.log(np.array(pairs))
    return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])
