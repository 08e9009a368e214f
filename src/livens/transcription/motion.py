"""Optimal motion: states, inputs, cost and duals of a solved control problem."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from livens.errors import InputError, explain_call_errors, suggestion
from livens.models.base import Model
from livens.results.result import Result
from livens.transcription.compiled_replay import CompiledMap
from livens.transcription.ipopt_solver import Solution
from livens.transcription.motion_points import MotionPoint, quantity
from livens.transcription.transcription import Transcription
from livens.types import ModelFunction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from livens.transcription.motion_replay import Replay


@explain_call_errors
class OptimalMotion:
    """Motion found by `livens.optimal_control`: rows over time as of a run, inputs, cost and duals.

    Parameters
    ----------
    transcription : Transcription
        Nonlinear program.
    solution : Solution
        Solution of the program.
    ipopt : mapping, optional
        Options of IPOPT, for `refined`.
    progress : bool, optional
        Progress bar, as of `livens.simulate`.
    """

    def __init__(
        self,
        transcription: Transcription,
        solution: Solution,
        ipopt: Mapping[str, object] | None = None,
        progress: bool | None = None,
    ) -> None:
        self.transcription, self.solution, self.ipopt, self.progress = transcription, solution, ipopt, progress
        #: Motions of all initial guesses of a multi-start, best first.
        self.alternatives: tuple[OptimalMotion, ...] = (self,)
        self.cost, self.converged, self.statistics = solution.cost, solution.converged, solution.statistics
        problem, w = transcription.problem, solution.w
        duration = float(w[transcription.duration_index])
        #: Times of the nodes, (n_steps + 1,).
        self.t = problem.t0 + duration * transcription.tau
        self.h = duration * transcription.fractions
        self.free = transcription.free_of(w)
        self._map = CompiledMap(transcription.stage)

    # -- trajectory ---------------------------------------------------------------------------------------------------
    @property
    def system(self) -> Model:
        """Model of the motion.

        Returns
        -------
        Model
            Model passed to `optimal_control`.
        """
        return self.transcription.problem.model

    @property
    def t_end(self) -> float:
        """End time in seconds.

        Returns
        -------
        float
            Time of the last node.
        """
        return float(self.t[-1])

    @functools.cached_property
    def parameter_rows(self) -> np.ndarray:
        """Parameter vector of every step, with inputs and free parameters.

        Returns
        -------
        ndarray of shape (n_steps, n_parameters)
            Parameters of the step equations.
        """
        return self.transcription.parameters_of(self.solution.w)

    @functools.cached_property
    def states(self) -> np.ndarray:
        """State vectors at all nodes; parts that the program does not contain follow from the step equations.

        Returns
        -------
        ndarray of shape (n_steps + 1, n_state)
            States in the layout of the scheme.
        """
        transcription, stage, w = self.transcription, self.transcription.stage, self.solution.w
        problem, layout, active = transcription.problem, stage.layout, stage.active
        nodes = w[transcription.node_index][:, : len(active)]
        states = np.zeros((len(self.t), layout.size))
        if problem.has_fixed_start:
            states[0] = transcription.initial_state_vector
        else:
            start = w[transcription.start_index]
            if "q" in layout:
                q, v = np.split(start, 2)
                k = self.parameter_rows[0]
                p = np.array(stage.mechanics(q, v, problem.t0, k)[0]).ravel()
                values = {"q": q, "v": v, "p": p}
                values |= problem.scheme.initial_scheme_state(stage.model, values, k, problem.t0, self.h[0])
            else:
                values = {"x": start} | ({"y": problem.reference["y"]} if "y" in layout else {})
            states[0] = layout.pack(values)
        states[0, active] = nodes[0]
        unknowns = w[transcription.unknown_index]
        for i in range(transcription.n_steps):
            c = np.concatenate([[self.h[i], self.t[i]], self.parameter_rows[i]])
            states[i + 1] = np.array(stage.step(unknowns[i], states[i], c)[1]).ravel()
            states[i + 1, active] = nodes[i + 1]
        return states

    def __getattr__(self, name: str) -> np.ndarray:
        if name in ("q", "v", "p", "x", "y", "multipliers", "supplied_energy", "dissipated_energy"):
            layout = self.transcription.stage.layout
            if name in layout:
                rows = self.states[:, layout[name]]
                return rows[:, 0] if name.endswith("_energy") else rows
        raise AttributeError(f"an optimal motion of a {self.system.type_label} has no '{name}'")

    @property
    def u(self) -> np.ndarray:
        """Input values: one row per step for constant inputs, one row per node of all steps for other shapes.

        Returns
        -------
        ndarray of shape (n_rows, n_inputs)
            Columns in the order of `inputs`; vectors have several columns.
        """
        transcription, w = self.transcription, self.solution.w
        if transcription.problem.shape.is_continuous:
            return np.asarray(w[transcription.input_nodes])
        values = transcription.inputs_of(w)
        return np.asarray(values.reshape(-1, values.shape[-1]))

    @property
    def input_times(self) -> np.ndarray:
        """Times of the rows of `u`: nodes for linear inputs, otherwise the interior nodes of the steps.

        Returns
        -------
        ndarray of shape (n_rows,)
            Times in seconds.
        """
        shape = self.transcription.problem.shape
        if shape.is_continuous:
            return self.t
        return np.asarray((self.t[:-1, None] + self.h[:, None] * shape.nodes[None, :]).ravel())

    def input_at(self, name: str, t: ArrayLike) -> np.ndarray:
        """Return an input at any time.

        Parameters
        ----------
        name : str
            Name of the input.
        t : float or array_like
            Times in seconds. At a node, the value of the step that begins there is returned.

        Returns
        -------
        ndarray
            Values, with the shape of `t` and, for vectors, one more axis.
        """
        problem, times = self.transcription.problem, np.asarray(t, dtype=float)
        names = [parameter.name for parameter in problem.inputs]
        if name not in names:
            raise InputError(f"unknown input '{name}'{suggestion(str(name), names)}")
        number = names.index(name)
        offset = sum(parameter.size for parameter in problem.inputs[:number])
        size, shape = problem.inputs[number].size, problem.shape
        step = np.clip(np.searchsorted(self.t, times.ravel(), side="right") - 1, 0, len(self.h) - 1)
        theta = (times.ravel() - self.t[step]) / self.h[step]
        symbol = ca.SX.sym("theta")
        basis = np.array(ca.Function("basis", [symbol], [ca.vertcat(*shape.basis(symbol))])(theta[None, :]))
        values = self.transcription.inputs_of(self.solution.w)[step, :, offset : offset + size]
        interpolated = np.einsum("js,sji->si", basis.reshape(shape.n_nodes, -1), values)
        return (
            interpolated.reshape(times.shape)
            if not problem.inputs[number].entry.shape
            else interpolated.reshape(*times.shape, size)
        )

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """Inputs by name: the rows of `u` of each input, at `input_times`; argument `inputs` of `livens.simulate`.

        Constant inputs of steps of equal size have one row per step, as `livens.simulate` needs them.

        Returns
        -------
        dict of str to ndarray
            Values of shape (n_rows,) for numbers, (n_rows, size) for vectors.
        """
        values, offset = dict[str, np.ndarray](), 0
        for parameter in self.transcription.problem.inputs:
            part = self.u[:, offset : offset + parameter.size]
            values[parameter.name] = part if parameter.entry.shape else part[:, 0]
            offset += parameter.size
        return values

    # -- quantities ---------------------------------------------------------------------------------------------------
    def __getitem__(self, name: str) -> np.ndarray:
        return self.observe(name)

    def observe(self, what: str | ModelFunction) -> np.ndarray:
        """Return a quantity at every node.

        Parameters
        ----------
        what : str or callable
            Name of a coordinate, output or observable, or a function of some of ``q v p t u k``.

        Returns
        -------
        ndarray
            One row per node; angles are unwrapped.
        """
        stage, model = self.transcription.stage, self.transcription.stage.model
        point = MotionPoint.of_symbols(model, model.parameter_count, stage.n_inputs)
        expression, is_angle = quantity(model, what, point)
        function = ca.Function("observed", point.symbols, [ca.densify(expression)])
        n = len(self.t)
        layout, argument_names = stage.layout, {"lam": "multipliers"}
        parts = [self.states[:, layout[argument_names.get(name, name)]].T for name in point.state]
        k = self.parameter_rows[np.maximum(np.arange(n) - 1, 0)].T
        u = self._node_inputs().T if stage.n_inputs else np.zeros((0, n))
        values = np.array(function.map(n)(*parts, self.t[None, :], k, u)).T
        values = np.unwrap(values, axis=0) if is_angle else values
        return values[:, 0] if values.shape[1] == 1 else values

    def _node_inputs(self) -> np.ndarray:
        """Return the inputs at the nodes, of the step that ends there."""
        shape = self.transcription.problem.shape
        values = self.transcription.inputs_of(self.solution.w)
        left = np.array([float(b) for b in shape.basis(ca.SX(0.0))])
        right = np.array([float(b) for b in shape.basis(ca.SX(1.0))])
        return np.vstack([np.einsum("j,ji->i", left, values[0])[None], np.einsum("j,sji->si", right, values)])

    @functools.cached_property
    def costs(self) -> dict[str, float]:
        """Terms of the cost without their weights.

        Returns
        -------
        dict of str to float
            Values by name: "effort", "time", "supplied", the name of a function ("lambda" for an unnamed one), "final".
        """
        totals = sum(block.cost_terms(self.solution.w) for block in self.transcription.blocks)
        return dict(zip(self.transcription.stage.cost_names, np.ravel(totals).tolist(), strict=True))

    @functools.cached_property
    def duals(self) -> dict[str, np.ndarray]:
        """Multipliers of the constraints by name: derivatives of the cost with respect to the bounds, up to the sign.

        Returns
        -------
        dict of str to ndarray
            One row per step for step equations and path conditions, one entry per row for conditions at the ends.
        """
        named: dict[str, np.ndarray] = {}
        offset = 0
        for block in self.transcription.blocks:
            count = block.count * block.functions.n_constraints
            values = self.solution.duals[offset : offset + count].reshape(block.count, -1)
            offset += count
            for label in dict.fromkeys(block.functions.labels):
                columns = [i for i, other in enumerate(block.functions.labels) if other == label]
                part = values[:, columns]
                named[label] = part[0] if block is self.transcription.blocks[-1] else part
        return named

    def worst_conditions(self, count: int = 5) -> list[tuple[str, float]]:
        """Return the conditions with the largest violations.

        Parameters
        ----------
        count : int, default 5
            Number of conditions.

        Returns
        -------
        list of (str, float)
            Names with time, and violations.
        """
        from livens.transcription.diagnosis import worst_conditions

        return worst_conditions(self, count)

    # -- simulation ---------------------------------------------------------------------------------------------------
    def replay(self) -> Replay:
        """Simulate the motion with the compiled steps of the simulator, from the same start with the same inputs.

        Returns
        -------
        Replay
            Simulated run, and its difference to the motion.
        """
        from livens.transcription.motion_replay import replay

        return replay(self, self._map)

    def to_result(self) -> Result:
        """Return the motion as a result, for plots, animations and reports.

        Returns
        -------
        Result
            Rows of the motion, with the inputs as parameters that change from step to step.
        """
        from livens.transcription.motion_replay import as_result

        return as_result(self, self.states)

    # -- accuracy -----------------------------------------------------------------------------------------------------
    @functools.cached_property
    def step_errors(self) -> np.ndarray:
        """Local error of every step relative to the range of the motion, from two steps of half the size.

        Returns
        -------
        ndarray of shape (n_steps,)
            Richardson estimates; infinite where a half step fails.
        """
        from livens.transcription.refinement import local_errors

        return local_errors(self, self._map)

    def accuracy(self) -> float:
        """Return the largest local error of a step relative to the range of the motion, from half steps.

        Returns
        -------
        float
            Maximum of `step_errors`. A motion that replays to round-off may still be inaccurate.
        """
        return float(self.step_errors.max(initial=0.0))

    def energy_imbalance(self) -> float:
        """Return the largest energy that is neither stored before nor supplied, relative to the range of the energy.

        Returns
        -------
        float
            Maximum of ``|E - E_0 - supplied + dissipated|`` over the range of E; 0 for models without energy.
        """
        from livens.transcription.diagnosis import energy_imbalance

        return energy_imbalance(self)

    def refined(self, tolerance: float, *, max_steps: int = 2000, max_rounds: int = 8) -> OptimalMotion:
        """Solve the problem on finer meshes until every step has a local error below a tolerance.

        Parameters
        ----------
        tolerance : float
            Largest local error of a step relative to the range of the motion.
        max_steps : int, default 2000
            Largest number of steps.
        max_rounds : int, default 8
            Largest number of meshes.

        Returns
        -------
        OptimalMotion
            Motion on the last mesh; `step_errors` contains its errors.
        """
        from livens.transcription.refinement import refined

        return refined(self, tolerance, max_steps, max_rounds)

    # -- pictures -----------------------------------------------------------------------------------------------------
    def plot(self, *quantities: str | ModelFunction) -> Figure:
        """Plot quantities and inputs over time.

        Parameters
        ----------
        *quantities : str or callable
            Quantities to plot, as of `observe`. Default: all coordinates or states.

        Returns
        -------
        matplotlib.figure.Figure
            One panel per quantity and per input, with the bounds of the inputs.
        """
        from livens.transcription.motion_plot import plot_motion

        return plot_motion(self, quantities)

    def view(self, **options: Any) -> Any:
        """Return the animation of the motion.

        Parameters
        ----------
        **options
            Arguments of `Result.view`.

        Returns
        -------
        Animation
            Animation of the bodies.
        """
        return self.to_result().view(**options)

    # -- summary ------------------------------------------------------------------------------------------------------
    @property
    def message(self) -> str:
        """Explanation of a motion that did not converge; empty for a converged motion.

        Returns
        -------
        str
            Status of the solver, the worst conditions and hints.
        """
        from livens.transcription.diagnosis import explain

        return "" if self.converged else explain(self)

    def summary(self) -> str:
        """Return cost, size, time and accuracy as text, with warnings.

        Returns
        -------
        str
            Several lines; `str` of the motion is the first line.
        """
        from livens.transcription.diagnosis import summary

        return summary(self)

    def __str__(self) -> str:
        s = self.statistics
        state = "converged" if self.converged else f"NOT converged ({s['status']})"
        return (
            f"optimal motion, {state}: cost {self.cost:.9g}, t_end {self.t_end:.6g}, {len(self.h)} steps of "
            f"{self.transcription.problem.scheme.name}, {s['variables']} variables, {s['iterations']} iterations, "
            f"{s['setup_s'] + s['solve_s']:.2f} s"
        )

    __repr__ = __str__
