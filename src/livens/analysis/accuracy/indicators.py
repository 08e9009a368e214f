"""A-posteriori error indicators without additional runs: energy, algebraic variables, steps per oscillation."""

from __future__ import annotations

import math
from typing import Any

import casadi as ca
import numpy as np

from livens.analysis.accuracy.refined_runs import RunSamples
from livens.analysis.observables import iterate_blocks
from livens.analysis.round_off import ROUND_OFF_FACTOR, RoundOffBound, mean_step, round_off
from livens.models.base import Model
from livens.models.energy_round_off import AT_REST
from livens.results.result import Result
from livens.types import FloatArray

#: Number of rows at which algebraic variables are checked.
_SAMPLES = 40


def steps_per_oscillation(samples: RunSamples, name: str) -> float | None:
    """Return the steps per oscillation, from the ratio of second to first differences: ``2 sin(omega h / 2)``."""
    values = getattr(samples, name)
    if len(values) < 5 or samples.spacing != 1:
        return None
    with np.errstate(all="ignore"):
        first_differences = np.diff(values[:-1] / samples.size(name), axis=0)
        total = float((first_differences**2).sum())
        difference_ratio = (
            math.sqrt(float((np.diff(first_differences, axis=0) ** 2).sum()) / total) if total > 0 else 0.0
        )
    if not math.isfinite(difference_ratio):
        return None
    angle = 2 * math.asin(min(difference_ratio / 2, 1.0))
    return 2 * math.pi / angle if angle > 0 else math.inf


def energy_error(run: Result, model: Model, negligible: float = 0.0) -> float | None:
    """Return a lower bound of the error of a conservative run: a relative error e changes the energy by about 2 e T.

    Errors above `negligible` are compared with the round-off of the energy.
    """
    name = "total_energy" if getattr(model, "homogeneous_kinetic_energy", True) else "generalized_energy"
    needed = {"q", "v", "p"} <= set(run.stored) and name in model.view.observable_names
    if not model.conservative or not needed:
        return None
    initial_energy: float | None = None
    change = kinetic = 0.0
    for _, (energy, p, v) in iterate_blocks(run, [name, "p", "v"]):
        initial_energy = float(energy[0]) if initial_energy is None else initial_energy
        change = max(change, float(np.abs(energy - initial_energy).max()))
        kinetic = max(kinetic, float(np.abs(np.einsum("ij,ij->i", p, v)).max()) / 2)
    error = change / (2 * kinetic) if kinetic > 0 else 0.0
    if error > negligible and change <= ROUND_OFF_FACTOR * math.sqrt(max(run.statistics.steps, 1)) * round_off(
        run, name
    ):
        return 0.0  # of a slow motion, whose kinetic energy is smaller than the rounding of the potential energy
    return error if math.isfinite(error) else math.inf


def is_at_rest(run: Result, model: Model) -> bool:
    """Return True if the kinetic energy of a run is that of round-off: a mechanism at rest.

    Positions must be constant to round-off as well: a slow motion is not a rest.
    """
    if not {"q", "v", "p"} <= set(run.stored) or "total_energy" not in model.view.observable_names:
        return False
    names = [name for name in model.view.symbols if name in run.stored]
    bound = RoundOffBound(model, ["total_energy"], run.parameter_vector, mean_step(run))
    low, high, kinetic = np.array(np.inf), np.array(-np.inf), 0.0
    for t, state in iterate_blocks(run, names):
        q, v, p = (state[names.index(name)] for name in ("q", "v", "p"))
        low, high = np.minimum(low, q.min(axis=0)), np.maximum(high, q.max(axis=0))
        kinetic = max(kinetic, float(np.abs(np.einsum("ij,ij->i", p, v)).max()) / 2)
        bound.update(t, state)
    return kinetic <= bound.energy * max(run.statistics.steps, 1) and is_constant(low, high)


def is_constant(low: FloatArray, high: FloatArray) -> bool:
    """Return True if the range of a variable, of these extreme values, is round-off."""
    return bool(np.linalg.norm(high - low) <= AT_REST * np.linalg.norm(np.maximum(np.abs(low), np.abs(high))))


def algebraic_defect(run: Result, model: Any, size: dict[str, object]) -> dict[str, tuple[float, float]]:
    """Return the defect of states without a derivative, in x and in y, and the uncertainty of the defect.

    The derivatives of the other states are difference quotients of five rows; five rows of twice the spacing give their
    uncertainty. Refined runs do not show this error: a method that integrates multipliers may converge to wrong values.
    """
    names = [name for name in model.view.symbols if name in run.stored]
    if not hasattr(model, "descriptor") or model.is_ode or names[:1] != ["x"] or len(run.t) < 12:
        return {}
    d = model.descriptor
    x = np.hstack([getattr(run, name) for name in names])
    if run.info.every != 1 or run.info.control or d.x.numel() != x.shape[1]:
        return {}
    scale = np.concatenate([size[name] for name in names])
    parts = [d.residual, ca.jacobian(d.residual, d.x), ca.jacobian(d.residual, d.xdot)]
    function = ca.Function("f", [d.x, d.xdot, d.t, d.k], parts)
    k, h = run.parameter_vector, run.t[1] - run.t[0]
    defect, uncertainty = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    free = np.zeros(0, dtype=int)
    for n in np.unique(np.linspace(4, len(run.t) - 6, _SAMPLES).astype(int)):
        fine = (x[n - 2] - 8 * x[n - 1] + 8 * x[n + 1] - x[n + 2]) / (12 * h)
        coarse = (x[n - 4] - 8 * x[n - 2] + 8 * x[n + 2] - x[n + 4]) / (24 * h)
        corrections = []
        for derivative in (fine, coarse):
            residual, by_x, by_rate = (np.array(part) for part in function(x[n], derivative, run.t[n], k))
            free = np.flatnonzero(~np.any(by_rate != 0, axis=0))
            corrections.append(np.linalg.lstsq(by_x[:, free], residual.ravel(), rcond=None)[0] / scale[free])
        defect[free] = np.maximum(defect[free], np.abs(corrections[0]))
        uncertainty[free] = np.maximum(uncertainty[free], np.abs(corrections[0] - corrections[1]) / 15)
    defects: dict[str, tuple[float, float]] = {}
    begin = 0
    for name in names:
        columns = np.arange(begin, begin + getattr(run, name).shape[1])
        begin = int(columns[-1]) + 1
        if np.isin(columns, free).any():
            defects[name] = float(defect[columns].max()), float(uncertainty[columns].max())
    return defects
