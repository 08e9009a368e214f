"""Uncertainty propagation by Monte Carlo sampling of initial values and parameters, on ensembles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.analysis.study.unknowns import Unknowns, prepared
from livens.engine.table import Table
from livens.errors import InputError
from livens.expressions.numbers import array, whole_number
from livens.models import observable
from livens.models.model import Model
from livens.models.problem import Problem
from livens.results.ensemble import Ensemble
from livens.run.ensemble import ensemble
from livens.run.prepare import Prepared
from livens.schemes.base import Scheme


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

    drawn: dict[str, np.ndarray]
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
        return self._good(name)[:, -1]

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
        return np.asarray(self._good(name).mean(axis=0))

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
        return np.asarray(self._good(name).std(axis=0, ddof=1))

    def quantiles(self, name: str, at: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
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
        wanted = array("the quantiles", at)
        if np.any((wanted < 0) | (wanted > 1)):
            raise InputError(f"quantiles lie between 0 and 1, got {at!r}")
        return np.asarray(np.quantile(self._good(name), wanted, axis=0))

    def influence(self, name: str) -> dict[str, float]:
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
        good = [i for i in range(len(next(iter(self.drawn.values())))) if i not in self.failures]
        values = self.samples(name).reshape(len(good), -1)[:, 0]
        return {label: _rank_correlation(drawn[good], values) for label, drawn in self.drawn.items()}

    def _good(self, name: str) -> np.ndarray:
        if name not in self.outputs:
            raise InputError(f"unknown output '{name}'; known outputs: {', '.join(self.outputs)}")
        values = self.outputs[name]
        kept = [i for i in range(len(values)) if i not in self.failures]
        if len(kept) < 2:
            raise InputError(f"nearly all members failed; first reason: {next(iter(self.failures.values()), '?')}")
        return values[kept]

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


def uncertainty(
    model: Model | Problem | Prepared,
    uncertain: Mapping[str, Any],
    outputs: Mapping[str, str | Callable[..., Any]],
    *,
    members: int = 1000,
    every: int | None = None,
    seed: int = 0,
    threads: int = 1,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    x0: Any = None,
    parameters: Mapping[str, Any] | None = None,
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
        Names of parameters or initial values (``g``, ``v0[1]``, ``q0``), each with ``(mean, standard deviation)`` of a
        normal distribution, a distribution of ``scipy.stats`` (any object with ``rvs``), or one sample per member.
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
    step = prepared(model, scheme=scheme, h=h)
    count = whole_number("members", members, least=2, most=2**28)
    if not isinstance(uncertain, Mapping) or not uncertain:
        raise InputError(f"uncertain must map names to distributions, got {uncertain!r}")
    if not isinstance(outputs, Mapping) or not outputs:
        raise InputError(f"outputs must map names to observables or functions of the state, got {outputs!r}")
    unknowns = Unknowns(
        step, {name: _typical(given) for name, given in uncertain.items()}, dict(q0=q0, v0=v0, p0=p0, x0=x0), parameters
    )
    random = np.random.default_rng(whole_number("seed", seed, least=0))
    drawn = np.empty((count, len(unknowns.labels)))
    for name, distribution in uncertain.items():
        labels = [i for i, label in enumerate(unknowns.labels) if label == name or label.partition("[")[0] == name]
        drawn[:, labels] = _samples(name, distribution, count, len(labels), random)
    rows = [unknowns.given(numbers) for numbers in drawn]
    starts: dict[str, Any] = {name: np.array([start[name] for start, _ in rows]) for name in rows[0][0]}
    values = {name: np.array([changed[name] for _, changed in rows]) for name in rows[0][1]}
    columns, shapes = _columns(step.model, outputs)
    many = ensemble(
        step._model,
        parameters=values,
        scheme=step.scheme,
        h=step._defaults.get("h", h),
        t_end=step._defaults.get("t_end") if t_end is None else t_end,
        t0=step._defaults.get("t0") if t0 is None else t0,
        every=2**50 if every is None else whole_number("every", every, least=1),
        project=True,
        threads=threads,
        **starts,
    )
    found = _evaluated(step.model, many, columns, shapes, values)
    return Uncertainty(dict(zip(unknowns.labels, drawn.T, strict=True)), many.t, found, many.failures)


def _typical(given: Any) -> Any:
    """Return a representative value of the right shape, if the distribution shows it; otherwise None."""
    if hasattr(given, "rvs"):
        return None
    return given[0] if isinstance(given, (tuple, list, np.ndarray)) and len(given) else None


def _samples(name: str, given: Any, count: int, size: int, random: np.random.Generator) -> np.ndarray:
    if hasattr(given, "rvs"):
        return np.asarray(given.rvs(size=(count, size), random_state=random), dtype=float)
    if isinstance(given, tuple) and len(given) == 2:
        mean, deviation = (array(f"the distribution of {name}", part) for part in given)
        if np.any(deviation < 0):
            raise InputError(f"the standard deviation of {name} must not be negative, got {given[1]!r}")
        try:
            return np.asarray(
                random.normal(np.broadcast_to(mean, size), np.broadcast_to(deviation, size), (count, size))
            )
        except ValueError:
            raise InputError(f"the distribution of {name} must have {size} numbers, got {given!r}") from None
    samples = array(f"the samples of {name}", given)
    if samples.ndim == 0 or samples.shape[0] != count or samples.size != count * size:
        raise InputError(f"{name} needs (mean, deviation), a distribution, or one sample for each of {count} members")
    return samples.reshape(count, size)


def _columns(model: Model, outputs: Mapping[str, Any]) -> tuple[Any, dict[str, tuple[int, ...]]]:
    columns, shapes = [], dict[str, tuple[int, ...]]()
    for name, what in outputs.items():
        if isinstance(what, str):
            if what not in model.view.names:
                raise InputError(f"unknown observable '{what}'; known: {', '.join(model.view.names)}")
            column = ca.densify(ca.SX(model.view.expression(what)))
            shapes[name] = () if column.numel() == 1 else (int(column.numel()),)
        elif callable(what):
            column, shapes[name] = observable.read(model, what)
        else:
            raise InputError(f"outputs map names to observables or functions of the state, got {what!r}")
        columns.append(column)
    return ca.vertcat(*columns), shapes


def _evaluated(
    model: Model, many: Ensemble, columns: Any, shapes: Mapping[str, tuple[int, ...]], values: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    table, parts = Table(model, columns), list(model.view.symbols)
    found = np.empty((len(many), len(many.t), table.width))
    for i in range(len(many)):
        states = np.hstack([many.arrays[name][i] for name in parts])
        k = model.parameter_vector({name: rows[i] for name, rows in values.items()})
        found[i] = table(many.t, states, k)
    outputs, first = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape, dtype=int))
        outputs[name] = found[:, :, first : first + size].reshape(len(many), len(many.t), *shape)
        first += size
    return outputs


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    ranks = [np.argsort(np.argsort(x, kind="stable"), kind="stable").astype(float) for x in (a, b)]
    return float(np.corrcoef(ranks)[0, 1])
