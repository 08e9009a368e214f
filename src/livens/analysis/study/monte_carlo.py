"""Uncertainty propagation by Monte Carlo sampling of initial values and parameters, on ensembles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.analysis.study.design_variables import DesignVariables, as_prepared
from livens.engine.observables.kernel_table import ObservableKernel
from livens.errors import InputError, explain_call_errors
from livens.models import observable
from livens.models.base import Model
from livens.models.problem import Problem
from livens.results.ensemble import Ensemble
from livens.run.ensemble.api import ensemble
from livens.run.prepare import Prepared
from livens.schemes.core.scheme import Scheme
from livens.types import ArrayLike, Expr, ModelFunction
from livens.validation import check_array, check_integer


@dataclass(frozen=True)
class Uncertainty:
    """Monte Carlo samples of uncertain inputs and of the outputs.

    Parameters
    ----------
    inputs : dict of str to ndarray of shape (n_members,)
        Samples of the uncertain inputs by name.
    t : ndarray of shape (n_times,)
        Times of the outputs.
    outputs : dict of str to ndarray of shape (n_members, n_times, ...)
        Samples of the outputs by name.
    failures : dict of int to str
        Reasons of failed members.
    """

    inputs: dict[str, np.ndarray]
    t: np.ndarray
    outputs: dict[str, np.ndarray]
    failures: dict[int, str]

    def samples(self, name: str) -> np.ndarray:
        """Return the samples of an output at the final time, without failed members.

        Parameters
        ----------
        name : str
            Name of the output.

        Returns
        -------
        ndarray of shape (n_successful, ...)
            Samples.
        """
        return self._successful(name)[:, -1]

    def mean(self, name: str) -> np.ndarray:
        """Return the mean of an output at every time.

        Parameters
        ----------
        name : str
            Name of the output.

        Returns
        -------
        ndarray of shape (n_times, ...)
            Mean over the members.
        """
        return np.asarray(self._successful(name).mean(axis=0))

    def deviation(self, name: str) -> np.ndarray:
        """Return the standard deviation of an output at every time.

        Parameters
        ----------
        name : str
            Name of the output.

        Returns
        -------
        ndarray of shape (n_times, ...)
            Standard deviation over the members.
        """
        return np.asarray(self._successful(name).std(axis=0, ddof=1))

    def quantiles(self, name: str, at: ArrayLike = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Return quantiles of an output at every time.

        Parameters
        ----------
        name : str
            Name of the output.
        at : array_like, default (0.05, 0.5, 0.95)
            Probabilities between 0 and 1.

        Returns
        -------
        ndarray of shape (n_quantiles, n_times, ...)
            Quantiles over the members.

        Raises
        ------
        InputError
            If a probability is outside of [0, 1].
        """
        probabilities = check_array("the quantiles", at)
        if np.any((probabilities < 0) | (probabilities > 1)):
            raise InputError(f"quantiles lie between 0 and 1, got {at!r}")
        return np.asarray(np.quantile(self._successful(name), probabilities, axis=0))

    def rank_correlation(self, name: str) -> dict[str, float]:
        """Return Spearman's rank correlations of an output at the final time with the uncertain inputs.

        Parameters
        ----------
        name : str
            Name of the output.

        Returns
        -------
        dict of str to float
            Rank correlation by input.
        """
        successful = [i for i in range(len(next(iter(self.inputs.values())))) if i not in self.failures]
        values = self.samples(name).reshape(len(successful), -1)[:, 0]
        return {label: _spearman(samples[successful], values) for label, samples in self.inputs.items()}

    def _successful(self, name: str) -> np.ndarray:
        if name not in self.outputs:
            raise InputError(f"unknown output '{name}'; known outputs: {', '.join(self.outputs)}")
        values = self.outputs[name]
        successful = [i for i in range(len(values)) if i not in self.failures]
        if len(successful) < 2:
            raise InputError(f"nearly all members failed; first reason: {next(iter(self.failures.values()), '?')}")
        return values[successful]

    def __str__(self) -> str:
        lines = []
        for name in self.outputs:
            mean, deviation = np.ravel(self.mean(name)[-1]), np.ravel(self.deviation(name)[-1])
            low, high = (np.ravel(x) for x in self.quantiles(name, (0.05, 0.95))[:, -1])
            for i in range(mean.size):
                label = name if mean.size == 1 else f"{name}[{i}]"
                spread = f"± {deviation[i]:.2g}, 90 % between {low[i]:.5g} and {high[i]:.5g}"
                lines.append(f"{label} = {mean[i]:.6g} {spread}")
        return "\n".join(lines)


@explain_call_errors
def uncertainty(
    model: Model | Problem | Prepared,
    uncertain: Mapping[str, Any],
    outputs: Mapping[str, ModelFunction],
    *,
    members: int = 1000,
    every: int | None = None,
    seed: int = 0,
    threads: int = 1,
    q0: Any = None,
    v0: ArrayLike | None = None,
    p0: Any = None,
    x0: Any = None,
    parameters: Mapping[str, object] | None = None,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
) -> Uncertainty:
    """Propagate uncertain parameters and initial values through a model by Monte Carlo sampling.

    All members are run as one ensemble, see `livens.ensemble`. Initial values are projected to the nearest consistent
    values. Failed members are excluded and listed in `failures`. Samples are reproducible by `seed`.

    Parameters
    ----------
    model : Model, Problem or Prepared
        Model to simulate.
    uncertain : dict of str to distribution
        Names of parameters or initial values (``g``, ``v0[1]``, ``q0``). Each has the ``(mean, standard deviation)`` of
        a normal distribution, a distribution of ``scipy.stats`` (any object with ``rvs``), or one sample per member.
    outputs : dict of str to str or callable
        Observables, or functions of the state, by name.
    members : int, default 1000
        Number of samples.
    every : int, optional
        Number of steps between evaluations of the outputs. Default: initial and final time only.
    seed : int, default 0
        Seed of the random samples.
    threads : int, default 1
        Number of threads.
    q0, v0, p0, x0 : array_like of shape (n,), optional
        Initial values that are certain.
    parameters : dict of str to float, optional
        Parameter values that are certain.
    scheme : str or Scheme, optional
        Integration scheme.
    h : float, optional
        Step size.
    t_end : float, optional
        Final time.
    t0 : float, optional
        Initial time.

    Returns
    -------
    Uncertainty
        Samples of inputs and outputs.

    Raises
    ------
    InputError
        If a name or a distribution is invalid.

    Examples
    --------

    >>> import livens as lv
    >>> pendulum, x = lv.problems.load("simple-pendulum"), {"x": lambda q: q[0]}
    >>> found = lv.study.uncertainty(pendulum, {"g": (9.81, 0.05)}, x, members=400, h=0.01, t_end=0.5)
    >>> round(float(found.deviation("x")[-1]), 3)  # 0.05 times 0.0996, the derivative
    0.005
    """
    step = as_prepared(model, scheme=scheme, h=h)
    count = check_integer("members", members, minimum=2, maximum=2**28)
    if not isinstance(uncertain, Mapping) or not uncertain:
        raise InputError(f"uncertain must map names to distributions, got {uncertain!r}")
    if not isinstance(outputs, Mapping) or not outputs:
        raise InputError(f"outputs must map names to observables or functions of the state, got {outputs!r}")
    variables = DesignVariables(
        step,
        {name: _representative(specification) for name, specification in uncertain.items()},
        dict(q0=q0, v0=v0, p0=p0, x0=x0),
        parameters,
    )
    random = np.random.default_rng(check_integer("seed", seed, minimum=0))
    inputs = np.empty((count, len(variables.labels)))
    for name, distribution in uncertain.items():
        labels = [i for i, label in enumerate(variables.labels) if label == name or label.partition("[")[0] == name]
        inputs[:, labels] = _samples(name, distribution, count, len(labels), random)
    rows = [variables.to_inputs(x) for x in inputs]
    initial_values: dict[str, Any] = {name: np.array([initial[name] for initial, _ in rows]) for name in rows[0][0]}
    values = {name: np.array([changed[name] for _, changed in rows]) for name in rows[0][1]}
    columns, shapes = _columns(step.model, outputs)
    runs = ensemble(
        step._model,
        parameters=values,
        scheme=step.scheme,
        h=step._defaults.get("h", h),
        t_end=step._defaults.get("t_end") if t_end is None else t_end,
        t0=step._defaults.get("t0") if t0 is None else t0,
        every=2**50 if every is None else check_integer("every", every, minimum=1),
        project=True,
        threads=threads,
        **initial_values,
    )
    evaluated = _evaluate_outputs(step.model, runs, columns, shapes, values)
    return Uncertainty(dict(zip(variables.labels, inputs.T, strict=True)), runs.t, evaluated, runs.failures)


def _representative(distribution: ArrayLike) -> Any:
    """Return a representative value of the right shape, if the distribution shows it; otherwise None."""
    if hasattr(distribution, "rvs"):
        return None
    return distribution[0] if isinstance(distribution, (tuple, list, np.ndarray)) and len(distribution) else None


def _samples(name: str, distribution: ArrayLike, count: int, size: int, random: np.random.Generator) -> np.ndarray:
    if hasattr(distribution, "rvs"):
        return np.asarray(distribution.rvs(size=(count, size), random_state=random), dtype=float)
    if isinstance(distribution, tuple) and len(distribution) == 2:
        mean, deviation = (check_array(f"the distribution of {name}", part) for part in distribution)
        if np.any(deviation < 0):
            raise InputError(f"the standard deviation of {name} must not be negative, got {distribution[1]!r}")
        try:
            return np.asarray(
                random.normal(np.broadcast_to(mean, size), np.broadcast_to(deviation, size), (count, size))
            )
        except ValueError:
            raise InputError(f"the distribution of {name} must have {size} numbers, got {distribution!r}") from None
    samples = check_array(f"the samples of {name}", distribution)
    if samples.ndim == 0 or samples.shape[0] != count or samples.size != count * size:
        raise InputError(f"{name} needs (mean, deviation), a distribution, or one sample for each of {count} members")
    return samples.reshape(count, size)


def _columns(model: Model, outputs: Mapping[str, ModelFunction]) -> tuple[Any, dict[str, tuple[int, ...]]]:
    columns, shapes = [], dict[str, tuple[int, ...]]()
    for name, output in outputs.items():
        if isinstance(output, str):
            if output not in model.view.observable_names:
                raise InputError(f"unknown observable '{output}'; known: {', '.join(model.view.observable_names)}")
            column = ca.densify(ca.SX(model.view.observable(output)))
            shapes[name] = () if column.numel() == 1 else (int(column.numel()),)
        elif callable(output):
            column, shapes[name] = observable.trace_observable(model, output)
        else:
            raise InputError(f"outputs map names to observables or functions of the state, got {output!r}")
        columns.append(column)
    return ca.vertcat(*columns), shapes


def _evaluate_outputs(
    model: Model, runs: Ensemble, columns: Expr, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    table, parts = ObservableKernel(model, columns), list(model.view.symbols)
    evaluated = np.empty((len(runs), len(runs.t), table.width))
    for i in range(len(runs)):
        states = np.hstack([runs.arrays[name][i] for name in parts])
        k = model.parameter_vector({name: rows[i] for name, rows in values.items()})
        evaluated[i] = table(runs.t, states, k)
    outputs, offset = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape, dtype=int))
        outputs[name] = evaluated[:, :, offset : offset + size].reshape(len(runs), len(runs.t), *shape)
        offset += size
    return outputs


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    ranks = [np.argsort(np.argsort(x, kind="stable"), kind="stable").astype(float) for x in (a, b)]
    return float(np.corrcoef(ranks)[0, 1])
