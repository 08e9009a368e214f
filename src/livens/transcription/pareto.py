"""Pareto fronts: optimal motions for a sequence of weights of two or more objectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.models.base import Model
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.transcription.api import optimal_control
from livens.transcription.motion import OptimalMotion
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """Optimal motions of `livens.pareto_front`, in the order of the weights.

    Parameters
    ----------
    objectives : tuple of str
        Names of the objectives.
    weights : ndarray of shape (n_motions, n_objectives)
        Weights of the objectives.
    motions : tuple of OptimalMotion
        Optimal motions, one per row of weights.
    """

    objectives: tuple[str, ...]
    weights: np.ndarray
    motions: tuple[OptimalMotion, ...]

    @property
    def costs(self) -> np.ndarray:
        """Values of the objectives without weights; NaN for motions that did not converge.

        Returns
        -------
        ndarray of shape (n_motions, n_objectives)
            One row per motion.
        """
        rows = [list(motion.costs.values())[: len(self.objectives)] for motion in self.motions]
        converged = np.array([motion.converged for motion in self.motions])
        return np.where(converged[:, None], np.array(rows), np.nan)

    @property
    def converged(self) -> bool:
        """Convergence of all motions.

        Returns
        -------
        bool
            False if one search failed or was interrupted.
        """
        return all(motion.converged for motion in self.motions)

    def plot(self) -> Figure:
        """Plot the second objective over the first one.

        Returns
        -------
        matplotlib.figure.Figure
            Front of the first two objectives.
        """
        from livens.transcription.motion_plot import plot_front

        return plot_front(self)


@explain_call_errors
def pareto_front(
    model: Model | Multibody | Problem,
    objectives: Sequence[str | ModelFunction],
    weights: ArrayLike,
    **arguments: Any,
) -> ParetoFront:
    """Solve an optimal control problem for a sequence of weights of its objectives.

    Each motion is the initial guess of the next one. The sequence ends with a motion whose search was interrupted.

    Parameters
    ----------
    model : System, Multibody, PortHamiltonian, FirstOrder or Problem
        Model, as of `livens.optimal_control`.
    objectives : sequence of str or callable
        Objectives, as in `minimise` of `livens.optimal_control`.
    weights : array_like of shape (n_motions, n_objectives) or (n_motions,)
        Weights of the objectives. For two objectives, numbers are weights of the second one, and the first has the
        weight 1.
    **arguments
        Further arguments of `livens.optimal_control`.

    Returns
    -------
    ParetoFront
        Motions and values of the objectives.

    Raises
    ------
    InputError
        If the weights do not fit the objectives, or an argument of `livens.optimal_control` is invalid.

    Examples
    --------
    The least effort to move a mass of 1 kg by 1 m in the time T is 12/T^3:

    >>> import livens as lv
    >>> cart = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, forces=lambda k: [k.u], parameters=dict(u=0.0))
    >>> front = lv.pareto_front(
    ...     cart, ("effort", "time"), [1, 10, 100], inputs={"u": None}, t_end=(0.1, 10), scheme="gauss-2", steps=4,
    ...     start=dict(q0=[0], v0=[0]), end=dict(q=[1], v=[0]),
    ... )
    >>> [round(float(effort * time**3), 6) for effort, time in front.costs]
    [12.0, 12.0, 12.0]
    """
    chosen = [objectives] if isinstance(objectives, str) or callable(objectives) else list(objectives)
    rows = check_array("weights", weights)
    if rows.ndim == 1 and len(chosen) == 2:
        rows = np.column_stack([np.ones_like(rows), rows])
    if len(chosen) < 2 or rows.ndim != 2 or rows.shape[1] != len(chosen) or not len(rows):
        raise InputError(
            f"a Pareto front needs two or more objectives and rows with one weight each, got {len(chosen)} objectives "
            f"and weights of shape {rows.shape}"
        )
    if "minimise" in arguments:
        raise InputError("a Pareto front has objectives and weights instead of minimise")
    motions, guess = list[OptimalMotion](), arguments.pop("guess", None)
    for row in rows:
        minimise = list(zip(chosen, row.tolist(), strict=True))
        motions.append(optimal_control(model, minimise=minimise, guess=guess, **arguments))
        if motions[-1].converged:
            guess = motions[-1]
        if motions[-1].statistics["status"] == "Interrupted":
            break
    names = tuple(motions[0].transcription.stage.cost_names[: len(chosen)])
    return ParetoFront(names, rows[: len(motions)], tuple(motions))
