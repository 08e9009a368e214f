"""Step of a granular box: contacts are detected within the step, so that its equations have no graph."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.expressions.layout import Layout
from livens.models.crowd import Crowd
from livens.models.model import digest_of
from livens.schemes.step import FlatEquations, StepEquations


@dataclass(frozen=True, eq=False)
class CrowdEquations(StepEquations):
    """Scheme (5) of S003 paper V with all contacts in A and the constant weight in B.

    The state contains the accelerations of A at the end of the previous step, and the power dissipated by contacts.
    """

    crowd: Crowd
    alpha: float
    extrapolated: bool

    @functools.cached_property
    def layout(self) -> Layout:  # type: ignore[override]  # declared as attribute in the base class
        return self.crowd.layout.with_(A=self.crowd.n + 1)

    def flatten(self) -> FlatEquations:
        raise InputError(
            "a granular box is stepped by loops over cells and has no graph: derivatives, ensembles in lanes and "
            "the reference tier need one"
        )

    @functools.cached_property
    def fingerprint(self) -> str:
        return digest_of(["crowd", self.crowd.digest, self.alpha, self.extrapolated])


def crowd_start(crowd: Crowd, alpha: float, values: Any, k: Any, h: float) -> np.ndarray:
    """Return A of the first step: contact accelerations and dissipated power, without previous acceleration."""
    numbers = crowd.numbers(np.asarray(k, dtype=float).ravel())
    q, v = np.asarray(values["q"], dtype=float), np.asarray(values["v"], dtype=float)
    found = numbers.touching(q + alpha * h * v, v)
    return np.append(found.forces / numbers.masses, found.lost)
