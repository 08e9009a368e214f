"""Step of a granular box: contacts are detected within the step, so that its equations have no graph."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from livens.errors import InputError
from livens.expressions.state_layout import Layout
from livens.models.base import sha256_of
from livens.models.granular_box import GranularBox
from livens.schemes.core.step_equations import StepEquations, StepGraph
from livens.types import FloatArray


@dataclass(frozen=True, eq=False)
class GranularEquations(StepEquations):
    """Scheme (5) of Modin 2009, paper V with all contacts in A and the constant weight in B.

    The state contains the accelerations of A at the end of the previous step, and the power dissipated by contacts.
    """

    granular_box: GranularBox
    alpha: float
    extrapolate_velocity: bool

    @functools.cached_property
    def layout(self) -> Layout:  # type: ignore[override]  # declared as attribute in the base class
        return self.granular_box.layout.extended(A=self.granular_box.n + 1)

    @property
    def n_unknowns(self) -> int:
        return 0

    @property
    def loops_over_bodies(self) -> bool:
        return True

    def to_single_graph(self) -> StepGraph:
        raise InputError(
            "a granular box is stepped by loops over cells and has no graph: derivatives, ensembles in lanes and "
            "the reference tier need one"
        )

    @functools.cached_property
    def fingerprint(self) -> str:
        return sha256_of(["crowd", self.granular_box.fingerprint, self.alpha, self.extrapolate_velocity])


def initial_contact_force(
    granular_box: GranularBox, alpha: float, values: Mapping[str, FloatArray], k: FloatArray, h: float
) -> np.ndarray:
    """Return A of the first step: contact accelerations and dissipated power, without previous acceleration."""
    parameters = granular_box.granular_parameters(np.asarray(k, dtype=float).ravel())
    q, v = np.asarray(values["q"], dtype=float), np.asarray(values["v"], dtype=float)
    contact_forces = parameters.contact_forces(q + alpha * h * v, v)
    return np.append(contact_forces.forces / parameters.masses, contact_forces.dissipated_power)
