"""Initial guesses of a transcription: from a path, a simulation, another motion, or the start at rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.models.system import System
from livens.transcription.energy_guess import energy_guess
from livens.transcription.transcription import Transcription
from livens.validation import check_choice

if TYPE_CHECKING:
    from livens.transcription.motion import OptimalMotion

#: Number of Gauss-Newton iterations for the unknowns of the steps between given nodes.
_GAUSS_NEWTON_ITERATIONS = 3
#: Names of a guess that is given as a mapping.
_NAMES = ("q", "v", "x", "u", "t", "t_end", "multipliers")
#: Relative length of the shortest duration for the geometric mean of open time bounds.
_SHORTEST_FRACTION = 1e-3


def initial_guess(transcription: Transcription, guess: object) -> np.ndarray:
    """Return the variables from which the solver starts.

    Parameters
    ----------
    transcription : Transcription
        Program to solve.
    guess : None, OptimalMotion, Result, mapping or "energy"
        Motion, simulation or rows ``q``, ``v``, ``x``, ``u`` over time, with ``t_end``; "energy": simulation with
        energy-shaping control. None: the straight path to the end if the end is known and there are no constraints,
        else the start.
    """
    if isinstance(guess, np.ndarray):  # variables of an earlier solution of the same program
        return np.clip(guess, transcription.lower, transcription.upper)
    if isinstance(guess, str):
        check_choice("guess", guess, ("energy",))
        guess = energy_guess(transcription.problem)
    path = _Path(transcription, guess)
    w = np.zeros(transcription.size)
    w[transcription.duration_index] = path.duration
    _set_nodes(transcription, w, path)
    w[transcription.value_index] = path.inputs()
    if transcription.problem.free:
        values = getattr(guess, "free", {})
        w[transcription.free_index] = np.concatenate(
            [
                np.ravel(values.get(parameter.name, transcription.problem.k[parameter.indices[0]]))
                for parameter in transcription.problem.free
            ]
        )
    w = np.clip(w, transcription.lower, transcription.upper)
    _set_unknowns(transcription, w, path)
    return np.clip(w, transcription.lower, transcription.upper)


class _Path:
    """State and inputs of a guess as functions of the relative time."""

    def __init__(self, transcription: Transcription, guess: object) -> None:
        self.transcription, problem = transcription, transcription.problem
        self.is_mechanical = isinstance(problem.model, System)
        self.position = "q" if self.is_mechanical else "x"
        self.rows, self.own_tau, duration, self.input_rows = self._read(guess)
        low, high = problem.duration
        if duration is None or low == high:
            duration = low if low == high else np.sqrt(max(low, _SHORTEST_FRACTION * high) * high)
        self.duration = float(np.clip(duration, low, high))
        self.is_given = guess is not None

    def _read(self, guess: Any) -> tuple[dict[str, np.ndarray], np.ndarray, float | None, Any]:
        problem = self.transcription.problem
        if guess is None:
            return self._default_rows(), np.array([0.0, 1.0]), None, None
        if isinstance(guess, Mapping):
            for name in guess:
                if name not in _NAMES:
                    raise InputError(f"unknown name '{name}' in guess{suggestion(str(name), _NAMES)}")
            rows = {name: self._checked(name, guess[name]) for name in ("q", "v", "x", "multipliers") if name in guess}
            if self.position not in rows:
                rows |= self._default_rows()
            t = np.asarray(guess["t"], dtype=float) if "t" in guess else None
            duration = float(guess["t_end"]) - problem.t0 if "t_end" in guess else None
            n_rows = len(rows[self.position])
            tau = np.linspace(0, 1, n_rows) if t is None else (t - t[0]) / (t[-1] - t[0])
            if len(tau) != n_rows:
                raise InputError(f"t in guess has {len(tau)} entries for {n_rows} rows of {self.position}")
            return rows, tau, (t[-1] - t[0] if t is not None and duration is None else duration), guess.get("u")
        names = [
            name
            for name in ("q", "v", "x", "multipliers")
            if name in getattr(guess, "stored", ("q", "v", "x", "multipliers"))
        ]
        rows = {name: self._checked(name, getattr(guess, name)) for name in names if _has(guess, name)}
        if self.position not in rows:
            raise InputError(f"guess must be a motion, a run or a mapping with rows of {self.position}, got {guess!r}")
        t = np.asarray(guess.t, dtype=float)
        return rows, (t - t[0]) / (t[-1] - t[0]), float(t[-1] - t[0]), guess if hasattr(guess, "input_at") else None

    def _checked(self, name: str, value: object) -> np.ndarray:
        problem = self.transcription.problem
        rows = np.asarray(value, dtype=float)
        rows = rows.reshape(len(rows), -1)
        n = len(problem.model.constraint_names if name == "multipliers" else problem.model.coordinates)
        if rows.shape[1] != n:
            raise InputError(f"{name} in guess must have {n} columns, got {rows.shape[1]}")
        if not np.isfinite(rows).all():
            raise InputError(f"{name} in guess must be finite")
        return rows

    def _default_rows(self) -> dict[str, np.ndarray]:
        """Return the straight path from start to end, where the end is known, or the start."""
        problem, name = self.transcription.problem, self.position
        first = problem.reference[name]
        last = first.copy()
        if not len(problem.model.constraint_names):
            target = problem.end_values(name)
            last = np.where(np.isnan(target), first, target)
        rows = {name: np.array([first, last])}
        if name == "q" and not np.any(last != first):
            rows["v"] = np.array([problem.reference["v"]] * 2)
        return rows

    def interpolate(self, name: str, tau: np.ndarray) -> np.ndarray:
        rows = self.rows[name]
        return (
            np.column_stack([np.interp(tau, self.own_tau, column) for column in rows.T])
            if rows.size
            else np.zeros((len(tau), 0))
        )

    def inputs(self) -> np.ndarray:
        """Return the input values, (n_steps, n_nodes, n_inputs)."""
        transcription = self.transcription
        problem, nodes = transcription.problem, transcription.problem.shape.nodes
        tau = transcription.tau[:-1, None] + transcription.fractions[:, None] * nodes[None, :]
        n = transcription.stage.n_inputs
        if self.input_rows is None or not n:
            constants = [problem.k[parameter.indices[0]] for parameter in problem.inputs]
            return np.broadcast_to(np.concatenate([np.zeros(0), *constants]), (*tau.shape, n))
        if hasattr(self.input_rows, "input_at"):
            motion: OptimalMotion = self.input_rows
            times = motion.t[0] + tau.ravel() * (motion.t[-1] - motion.t[0])
            columns = [motion.input_at(parameter.name, times).reshape(len(times), -1) for parameter in problem.inputs]
            return np.hstack(columns).reshape(*tau.shape, n)
        if isinstance(self.input_rows, Mapping):
            parts = [
                np.asarray(self.input_rows.get(parameter.name, problem.k[parameter.indices[0]]), dtype=float)
                for parameter in problem.inputs
            ]
            length = max(len(part) if part.ndim else 1 for part in parts)
            rows = np.hstack(
                [
                    np.broadcast_to(part.reshape(-1, parameter.size), (length, parameter.size))
                    for part, parameter in zip(parts, problem.inputs, strict=True)
                ]
            )
        else:
            rows = np.asarray(self.input_rows, dtype=float)
            rows = rows.reshape(len(rows), -1)
        if rows.shape[1] != n:
            raise InputError(f"u in guess must have {n} columns, one per input, got {rows.shape[1]}")
        row_tau = np.linspace(0, 1, len(rows))
        return np.stack([np.interp(tau, row_tau, column) for column in rows.T], axis=-1)


def _has(guess: object, name: str) -> bool:
    try:
        return getattr(guess, name, None) is not None
    except InputError:
        return False


def _set_nodes(transcription: Transcription, w: np.ndarray, path: _Path) -> None:
    """Write the states of the path at all nodes."""
    stage, problem, layout = transcription.stage, transcription.problem, transcription.stage.layout
    tau, n_active = transcription.tau, len(transcription.stage.active)
    k = stage.model.parameter_vector(problem.parameters)
    states = np.zeros((len(tau), layout.size))
    times = problem.t0 + path.duration * tau
    if path.is_mechanical:
        q = path.interpolate("q", tau)
        v = path.interpolate("v", tau) if "v" in path.rows else np.gradient(q, path.duration * tau, axis=0)
        states[:, layout["q"]], states[:, layout["v"]] = q, v
        for i, t in enumerate(times):
            p = np.array(stage.mechanics(q[i], v[i], t, k)[0]).ravel()
            values = {"q": q[i], "v": v[i], "p": p}
            h = path.duration * transcription.fractions[min(i, transcription.n_steps - 1)]
            values |= problem.scheme.initial_scheme_state(stage.model, values, k, t, h)
            for name, value in values.items():
                states[i, layout[name]] = np.ravel(value)
        if "multipliers" in path.rows and layout.sizes.get("multipliers"):
            states[:, layout["multipliers"]] = path.interpolate("multipliers", tau)
    else:
        states[:, layout["x"]] = path.interpolate("x", tau)
        if "y" in layout:
            states[:, layout["y"]] = problem.reference["y"]
    states[~np.isfinite(states)] = 0.0
    if problem.has_fixed_start:
        states[0] = transcription.initial_state_vector
    w[transcription.node_index[:, :n_active]] = states[:, stage.active]
    if not problem.has_fixed_start:
        start = [states[0, layout[name]] for name in (("q", "v") if path.is_mechanical else ("x",))]
        w[transcription.start_index] = np.concatenate(start)
    if path.is_mechanical:
        n = len(problem.model.coordinates)
        if stage.has_node_velocity:
            w[transcription.node_index[:, n_active : n_active + n]] = states[:, layout["v"]]
        if stage.has_end_velocity:
            w[transcription.end_auxiliary_index[:n]] = states[-1, layout["v"]]
    transcription.__dict__["guess_states"] = states


def _set_unknowns(transcription: Transcription, w: np.ndarray, path: _Path) -> None:
    """Write the unknowns of all steps: the scheme's guess, fitted to the nodes if a path is given."""
    stage = transcription.stage
    if not stage.graph.size:
        return
    states: np.ndarray = transcription.__dict__.pop("guess_states")
    k = transcription.parameters_of(w)
    times = transcription.problem.t0 + path.duration * transcription.tau
    guess = stage.graph.initial_guess_function
    for i in range(transcription.n_steps):
        c = np.concatenate([[path.duration * transcription.fractions[i], times[i]], k[i]])
        x = np.array(guess(states[i], c)).ravel()
        w[transcription.unknown_index[i]] = np.where(np.isfinite(x), x, 0.0)
    if path.is_given:
        _fit_unknowns(transcription, w)


def _fit_unknowns(transcription: Transcription, w: np.ndarray) -> None:
    """Fit the unknowns to the nodes by Gauss-Newton: least squares of step equations and continuity."""
    block, f = transcription.blocks[0], transcription.stage.stage
    n_equations = transcription.stage.graph.size + len(transcription.stage.active)
    first = 2 * transcription.stage.n_node
    columns = np.arange(first, first + transcription.stage.graph.size)
    evaluate = f.jacobian.map(block.count) if block.count > 1 else f.jacobian
    in_columns = np.isin(f.jacobian_columns, columns) & (f.jacobian_rows < n_equations)
    rows, local = f.jacobian_rows[in_columns], f.jacobian_columns[in_columns] - first
    best, best_norm = w[transcription.unknown_index].copy(), np.full(block.count, np.inf)
    for _ in range(_GAUSS_NEWTON_ITERATIONS + 1):
        values, nonzeros = (np.array(part).T for part in evaluate(w[block.index].T, block.data.T))
        norms = np.linalg.norm(values[:, :n_equations], axis=1)
        improved = norms < best_norm
        best[improved], best_norm[improved] = w[transcription.unknown_index[improved]], norms[improved]
        for i in range(block.count):
            if not (np.isfinite(values[i]).all() and np.isfinite(nonzeros[i]).all()):
                continue
            jacobian = np.zeros((n_equations, columns.size))
            np.add.at(jacobian, (rows, local), nonzeros[i][in_columns])
            step = np.linalg.lstsq(jacobian, -values[i, :n_equations], rcond=1e-10)[0]
            w[transcription.unknown_index[i]] += step
    w[transcription.unknown_index] = best
