"""What the figures of S002 have in common: runs with controlled steps, distances of two runs, names of the schemes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from livens import problems
from livens.results.result import Result
from livens.run.control import StepControl
from livens.run.simulate import simulate

#: The schemes of the document for constrained systems, with three stages, as it calls them.
PAIRS = {"lobatto-iiia-iiib-3": "J-PRK", "murua-3": "M-PRK", "murua-ggl-3": "M-PRK-GGL"}
#: Those without constraints.
METHODS = {"gauss-3": "Gauss", "lobatto-iiic-3": "Lobatto IIIC"}


@functools.lru_cache(maxsize=128)
def controlled(
    name: str, scheme: str, h: float, t_end: float, control: StepControl, options: tuple[tuple[str, Any], ...] = ()
) -> Result:
    """A run of a ready problem whose first step is h and whose further ones are controlled."""
    problem = problems.load(name, **dict(options))
    return simulate(problem, scheme=scheme, h=h, t_end=t_end, control=control, progress=False)


def relative_distances(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """S002 7.2.3: the mean of ``|(x - x0)/x0|`` over all times, for every variable.

    Where both are zero (a variable that stays at rest), there is no distance.
    """
    apart = np.abs(values - reference)
    size = np.where(apart > 0, np.abs(reference), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.mean(apart / size, axis=0))


def rate(sizes: Sequence[float], distances: Any, chosen: Callable[[float], bool]) -> float:
    """The power of the size with which distances fall, by least squares in logarithms, over the chosen sizes."""
    pairs = [(size, distance) for size, distance in zip(sizes, distances, strict=True) if chosen(size)]
    logarithms = np.log(np.array(pairs))
    return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])
