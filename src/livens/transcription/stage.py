"""Transcription of one step and of both ends of a motion: expressions of local variables.

The node variables are the active part of the state: what the step equations, or functions of the user, depend on. All
other parts follow from the final state of the step. Schemes with a midpoint velocity only record the velocity at nodes;
where functions of the user depend on it, it is an additional node variable that belongs to the momentum,
``dT/dv(q, v) + G^T mu = p`` with ``G v + dg/dt = 0``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.equations_of_motion import equations_of_motion
from livens.models.linalg import SOLVED_RTOL, null_space
from livens.models.system import System
from livens.progress import report_progress
from livens.schemes.core.step_equations import StepGraph
from livens.schemes.discretization.midpoint_velocity import MidpointVelocity
from livens.transcription.control_problem import OBJECTIVES, ControlProblem
from livens.transcription.motion_points import STATE_ARGUMENTS, Condition, MotionPoint, named_conditions, quantity
from livens.transcription.nlp_blocks import BlockFunctions
from livens.transcription.step_inputs import stage_nodes
from livens.types import ModelFunction
from livens.validation import check_vector

#: Operations whose derivatives jump.
_SWITCHES = {ca.OP_IF_ELSE_ZERO, ca.OP_LT, ca.OP_LE, ca.OP_FABS, ca.OP_FMIN, ca.OP_FMAX, ca.OP_SIGN}


class StageModel:
    """Block functions of one step (`stage`) and of both ends (`ends`) of a motion, for any number of steps."""

    def __init__(self, problem: ControlProblem) -> None:
        self.problem, self.model, self.scheme = problem, problem.step_model, problem.scheme
        self.removed = tuple(problem.reference.removed_constraints)
        report_progress("deriving the equations of a step")
        self.graph = self._graph()
        self.layout = self.graph.layout
        self.n_inputs, self.n_free = (
            problem.polynomial_inputs.n_inputs,
            sum(parameter.size for parameter in problem.free),
        )
        self.quadrature = self._stage_quadrature()
        stage_values = [value for point in self.quadrature for value in point[2].values()]
        g = self.graph
        self.step = ca.Function("step", [g.x, g.z, g.c], [g.residual, g.final_state, *stage_values])
        self._choose_node_variables()
        report_progress("deriving derivatives of a step")
        self.stage, self.along = self._stage()
        self.ends, self.end_lower, self.end_upper = self._ends()

    def _graph(self) -> StepGraph:
        try:
            graph = self.scheme.equations(self.model, self.removed).to_single_graph()
        except NotImplementedError:
            raise InputError(
                f"scheme '{self.scheme.name}' has no equations of a step that could be transcribed: use a scheme such "
                "as livens-variational or gauss-3"
            ) from None
        if graph.external_force is not None:
            raise InputError("an external (compiled) force has no second derivatives: optimal_control cannot use it")
        return graph

    # -- sizes --------------------------------------------------------------------------------------------------------
    @property
    def n_node(self) -> int:
        """Number of variables of a node: active state, then velocity and multipliers if they are recorded only."""
        return len(self.active) + self.n_auxiliary

    @property
    def n_auxiliary(self) -> int:
        return self._auxiliary_size if self.has_node_velocity else 0

    @property
    def n_start(self) -> int:
        """Number of variables of a free start."""
        if self.problem.has_fixed_start:
            return 0
        return 2 * self.model.n if isinstance(self.model, System) else self.layout.sizes["x"]

    @property
    def n_end_auxiliary(self) -> int:
        return self._auxiliary_size if self.has_end_velocity else 0

    @functools.cached_property
    def kept_constraints(self) -> list[int]:
        n_constraints = self.model.m if isinstance(self.model, System) else 0
        return [i for i in range(n_constraints) if i not in self.removed]

    @property
    def _auxiliary_size(self) -> int:
        return len(self.model.coordinates) + len(self.kept_constraints)

    @functools.cached_property
    def has_switches(self) -> bool:
        """True if equations or costs have conditional or absolute values, whose derivatives jump."""
        functions = (self.stage.value, self.ends.value)
        return any(f.instruction_id(i) in _SWITCHES for f in functions for i in range(f.n_instructions()))

    # -- terms of the cost --------------------------------------------------------------------------------------------
    @functools.cached_property
    def cost_names(self) -> list[str]:
        """Names of the terms of the cost: objectives, functions by their names, and the final cost."""
        problem, names = self.problem, list[str]()
        for what in (
            *(objective for objective, _ in problem.objectives),
            *([] if problem.final is None else ["final"]),
        ):
            name = what if isinstance(what, str) else getattr(what, "__name__", "function").strip("<>")
            same = sum(other.partition(" ")[0] == name for other in names)
            names.append(f"{name} {same + 1}" if same else name)
        return names

    @property
    def cost_weights(self) -> list[float]:
        """Weights of the terms of the cost."""
        return [weight for _, weight in self.problem.objectives] + ([] if self.problem.final is None else [1.0])

    # -- points of the motion -----------------------------------------------------------------------------------------
    def point(self, z: ca.SX, t: ca.SX, k: ca.SX, u: ca.SX, velocity: ca.SX | None = None) -> MotionPoint:
        """Return the point of a state vector; `velocity` replaces a recorded velocity."""
        state = {name: z[self.layout[part]] for name, part in STATE_ARGUMENTS.items() if part in self.layout}
        return MotionPoint(state if velocity is None else {**state, "v": velocity}, t, k, u)

    def parameter_vector(self, values: Sequence[ca.SX], theta: ca.SX, t: ca.SX, h: ca.SX) -> ca.SX:
        """Return the parameter vector of a step with input values and free parameters."""
        k, offset = ca.SX(ca.DM(self.problem.k)), 0
        for parameter in self.problem.free:
            for indices in parameter.indices:
                k[indices] = theta[offset : offset + parameter.size]
            offset += parameter.size
        return self.problem.polynomial_inputs.parameters(k, values, t, h)

    def _stage_quadrature(self) -> list[tuple[float, float, dict[str, ca.SX]]]:
        """Return (node, weight, state by argument name) of the stages of a step; empty without stages."""
        nodes, weights = stage_nodes(self.scheme)
        values = self.graph.named_values
        names = {"q": "Q", "v": "V"} if "q" in self.layout else {"x": "X"}
        points = []
        for i, (node, weight) in enumerate(zip(nodes, weights, strict=True)):
            if any(f"{stage}{i + 1}" not in values for stage in names.values()):
                return []
            state = {name: values[f"{stage}{i + 1}"] for name, stage in names.items()}
            if "x" in state:
                n = self.layout.sizes["x"]
                x = state["x"]
                state = {"x": x[:n]} | ({"y": x[n:]} if "y" in self.layout else {})
            points.append((float(node), float(weight), state))
        return points

    # -- choice of the node variables ---------------------------------------------------------------------------------
    def _choose_node_variables(self) -> None:
        """Find the active state by sparsity, and whether velocities at nodes and at the end are recorded only."""
        problem, graph, layout = self.problem, self.graph, self.layout
        probe = MotionPoint.of_symbols(self.model, problem.step_model.parameter_count, self.n_inputs)
        running = [quantity(self.model, what, probe)[0] for what, _ in problem.objectives if what not in OBJECTIVES]
        both_nodes = ca.vertcat(*running) if running and not self.quadrature else ca.SX(0, 1)
        new_node = [c.rows for c in named_conditions(self.model, "along", problem.along, probe)]
        last_node = [c.rows for c in self._whole_conditions("end", problem.end, probe)]
        if problem.final is not None:
            last_node.append(quantity(self.model, problem.final, probe)[0])
        if problem.periodic:
            last_node += [probe.state[name] for name in ("q", "p", "x") if name in probe.state]
        along, ends = (ca.vertcat(*rows) if rows else ca.SX(0, 1) for rows in (new_node, last_node))
        is_recorded = (
            isinstance(self.scheme, MidpointVelocity)
            and isinstance(self.model, System)
            and self.model.mass_regular_on_nullspace
        )
        depends = functools.partial(_depends_on, symbols=probe.state)
        self.has_node_velocity = is_recorded and (depends(both_nodes, "v") or depends(along, "v"))
        self.has_end_velocity = is_recorded and not self.has_node_velocity and depends(ends, "v")
        entries = {
            name: range(layout[part].start, layout[part].stop)
            for name, part in STATE_ARGUMENTS.items()
            if part in layout
        }
        active = set(entries["q" if "q" in entries else "x"])
        active |= set(ca.jacobian_sparsity(graph.residual, graph.z).get_triplet()[1]) if graph.size else set()
        influences: dict[int, set[int]] = {}
        for i, j in zip(*ca.jacobian_sparsity(graph.final_state, graph.z).get_triplet(), strict=True):
            influences.setdefault(i, set()).add(j)
        if self.has_node_velocity or self.has_end_velocity:
            active |= set(entries["p"])
        for _, _, state in self.quadrature if running else ():
            for value in state.values():
                active |= set(ca.jacobian_sparsity(value, graph.z).get_triplet()[1])
        for name, indices in entries.items():
            if name == "v" and is_recorded:
                continue
            if depends(both_nodes, name):
                active |= set(indices)
            elif depends(along, name) or depends(ends, name):
                active |= {j for i in indices for j in influences.get(i, ())}
        pending = list(active)
        while pending:
            new = influences.get(pending.pop(), set()) - active
            active |= new
            pending += new
        if "supplied_energy" in layout and layout["supplied_energy"].start in active:
            raise InputError("conditions on the supplied energy are not available: use it as an objective")
        self.active = sorted(active)

    # -- one step -----------------------------------------------------------------------------------------------------
    def _stage_variables(self) -> _StageVariables:
        return _StageVariables(self)

    def _stage(self) -> tuple[BlockFunctions, list[Condition]]:
        s, problem = self._stage_variables(), self.problem
        old_velocity = s.old_auxiliary[: len(self.model.coordinates)] if self.has_node_velocity else None
        new_velocity = s.new_auxiliary[: len(self.model.coordinates)] if self.has_node_velocity else None
        new = self.point(s.new_state, s.t + s.h, s.k, s.input_at(1.0), new_velocity)
        old = self.point(s.old_state, s.t, s.k, s.input_at(0.0), old_velocity)
        terms = ca.SX.zeros(len(self.cost_names))
        for number, (objective, _) in enumerate(problem.objectives):
            if objective == "effort":
                gram = problem.shape.gram_matrix
                pairs = [(i, j) for i in range(len(gram)) for j in range(len(gram))]
                terms[number] = s.h * sum(gram[i, j] * ca.dot(s.values[i], s.values[j]) for i, j in pairs)
            elif objective == "supplied":
                terms[number] = s.final_state[self.layout["supplied_energy"]]
            elif callable(objective):
                terms[number] = s.h * self._running_cost(objective, s, old, new)
        along = named_conditions(self.model, "along", problem.along, new)
        rows = [s.residual, s.node1[: len(self.active)] - s.final_state[self.active]]
        labels = [*self.graph.equation_labels, *(f"continuity of {self.layout.entry_label(i)}" for i in self.active)]
        if self.has_node_velocity:
            rows.append(self._velocity_equations(new, s.new_auxiliary))
            labels += ["velocity at a node"] * int(rows[-1].numel())
        rows += [c.rows for c in along]
        labels += [c.name for c in along for _ in c.lower]
        weights = self.cost_weights
        return BlockFunctions("stage", s.vector, s.data, ca.vertcat(*rows), terms, weights, labels), along

    def _running_cost(self, objective: ModelFunction, s: _StageVariables, old: MotionPoint, new: MotionPoint) -> ca.SX:
        """Return the mean of a function over a step: by the quadrature of the scheme, or the trapezoidal rule."""
        if not self.quadrature:
            values = [_scalar(quantity(self.model, objective, point)[0]) for point in (old, new)]
            return (values[0] + values[1]) / 2
        total, offset = ca.SX(0), 0
        for node, weight, state in self.quadrature:
            count = len(state)
            stage_state = dict(zip(state, s.stage_values[offset : offset + count], strict=True))
            offset += count
            t = s.t + node * s.h
            if "q" in stage_state:
                stage_state["p"] = self._momentum(stage_state["q"], stage_state["v"], t, s.k)
                stage_state["lam"] = new.state["lam"]
            point = MotionPoint(stage_state, t, s.k, s.input_at(node))
            total += weight * _scalar(quantity(self.model, objective, point)[0])
        return total

    # -- velocities and momenta ---------------------------------------------------------------------------------------
    def _momentum(self, q: ca.SX, v: ca.SX, t: ca.SX, k: ca.SX) -> ca.SX:
        return self.mechanics(q, v, t, k)[0]

    @functools.cached_property
    def mechanics(self) -> ca.Function:
        """Function (q, v, t, k) -> (dT/dv, g, G v + dg/dt, G) of a mechanical system."""
        assert isinstance(self.model, System)
        d = equations_of_motion(self.model)
        outputs = [d.fibre_derivative, d.g, d.velocity_constraint, d.G]
        return ca.Function("mechanics", [d.q, d.v, d.t, d.k], [ca.densify(output) for output in outputs])

    def _velocity_equations(self, point: MotionPoint, auxiliary: ca.SX) -> ca.SX:
        """Return the equations of the velocity that belongs to the momentum at a point."""
        n, kept_rows = len(self.model.coordinates), self.kept_constraints
        v, mu = auxiliary[:n], auxiliary[n:]
        momentum, _, hidden, G = self.mechanics(point.state["q"], v, point.t, point.k)
        if not kept_rows:
            return momentum - point.state["p"]
        return ca.vertcat(momentum + G[kept_rows, :].T @ mu - point.state["p"], hidden[kept_rows])

    def null_space_at(self, q: np.ndarray) -> np.ndarray:
        """Return a basis of the velocities that the constraints admit at a position, as columns."""
        n = len(self.model.coordinates)
        if not self.kept_constraints:
            return np.eye(n)
        k = self.model.parameter_vector(self.problem.parameters)
        G = np.array(self.mechanics(q, np.zeros(n), self.problem.t0, k)[3])
        return null_space(G, SOLVED_RTOL)

    # -- conditions at the ends ---------------------------------------------------------------------------------------
    def _whole_conditions(self, argument: str, requested: Any, point: MotionPoint) -> list[Condition]:
        """Return all conditions; ``q``, ``v`` and ``x`` prescribe whole vectors, reduced to the degrees of freedom."""
        whole_names = ("q", "v") if "q" in point.state else ("x",)
        vectors = {
            name: value
            for name, value in requested.items()
            if name in whole_names
            and not (name in self.model.coordinates and (np.ndim(value) == 0 or isinstance(value, tuple)))
        }
        named = {name: value for name, value in requested.items() if name not in (*vectors, "q0", "v0", "x0", "y0")}
        conditions = named_conditions(self.model, argument, named, point)
        if "x" in vectors:
            return conditions + self._entries(argument, "x", vectors["x"], point.state["x"])
        if not self.kept_constraints:
            if "q" in vectors:
                conditions += self._entries(argument, "q", vectors["q"], point.state["q"])
            if "v" in vectors:
                conditions += self._velocity_entries(argument, vectors["v"], point)
            return conditions
        position = self.problem.reference["q"]
        if "q" in vectors:
            position = check_vector(f"q in {argument}", vectors["q"], self.model.coordinates)
            basis = ca.DM(self.null_space_at(position))
            conditions.append(_equation("q", basis.T @ (point.state["q"] - ca.DM(position))))
        if "v" in vectors:
            velocity = check_vector(f"v in {argument}", vectors["v"], self.model.coordinates)
            basis = ca.DM(self.null_space_at(position))
            conditions.append(_equation("v", basis.T @ self._momentum_gap(point, ca.SX(velocity))))
        return conditions

    def _entries(self, argument: str, name: str, value: object, state: ca.SX) -> list[Condition]:
        """Return conditions on the entries of a vector that are not None."""
        names = self.model.coordinates
        items = np.atleast_1d(np.asarray(value, dtype=object)).ravel()
        if items.size != len(names):
            raise InputError(f"'{name}' in {argument} has {len(names)} entries ({' '.join(names)}), got {items.size}")
        indices = [i for i, item in enumerate(items) if item is not None]
        target = check_vector(f"{name} in {argument}", [items[i] for i in indices], [names[i] for i in indices])
        return [Condition(name, state[indices], target, target)] if indices else []

    def _velocity_entries(self, argument: str, value: object, point: MotionPoint) -> list[Condition]:
        items = np.atleast_1d(np.asarray(value, dtype=object)).ravel()
        if items.size == len(self.model.coordinates) and all(item is not None for item in items):
            velocity = check_vector(f"v in {argument}", list(items), self.model.coordinates)
            return [_equation("v", self._momentum_gap(point, ca.SX(velocity)))]
        return self._entries(argument, "v", value, point.state["v"])

    def _momentum_gap(self, point: MotionPoint, v: ca.SX) -> ca.SX:
        """Return momenta minus the momenta of given velocities: schemes carry momenta from step to step."""
        return point.state["p"] - self._momentum(point.state["q"], ca.SX(v), point.t, point.k)

    def _ends(self) -> tuple[BlockFunctions, np.ndarray, np.ndarray]:
        problem, s = self.problem, self._stage_variables()
        start, first = ca.SX.sym("start", self.n_start), ca.SX.sym("node_first", self.n_node)
        auxiliary = ca.SX.sym("end_velocity", self.n_end_auxiliary)
        velocity = None
        if self.has_end_velocity or self.has_node_velocity:
            velocity = (auxiliary if self.has_end_velocity else s.new_auxiliary)[: len(self.model.coordinates)]
        last = self.point(s.new_state, s.t + s.h, s.k, s.input_at(1.0), velocity)
        conditions: list[Condition] = []
        if not problem.has_fixed_start:
            conditions += self._start_conditions(start, first, s)
        if self.has_end_velocity:
            conditions.append(_equation("velocity at the end", self._velocity_equations(last, auxiliary)))
        conditions += [
            Condition(f"end: {c.name}", c.rows, c.lower, c.upper)
            for c in self._whole_conditions("end", problem.end, last)
        ]
        if problem.periodic:
            conditions += self._periodic_conditions(start, last)
        terms = ca.SX.zeros(len(self.cost_names))
        for number, (objective, _) in enumerate(problem.objectives):
            if objective == "time":
                terms[number] = s.duration
        if problem.final is not None:
            terms[-1] = _scalar(quantity(self.model, problem.final, last)[0])
        rows = ca.vertcat(*(c.rows for c in conditions)) if conditions else ca.SX(0, 1)
        labels = [c.name for c in conditions for _ in c.lower]
        lower, upper = (
            np.concatenate([getattr(c, side) for c in conditions]) if conditions else np.zeros(0)
            for side in ("lower", "upper")
        )
        w = ca.vertcat(start, first, s.vector, auxiliary)
        return BlockFunctions("ends", w, s.data, rows, terms, self.cost_weights, labels), lower, upper

    def _start_conditions(self, start: ca.SX, first: ca.SX, s: _StageVariables) -> list[Condition]:
        """Return the equations of a free start: the first node, constraints, and conditions of the user."""
        problem, t0, prescribed = self.problem, self.problem.t0, self.problem.given_start
        # the parameters of the last step: inputs must not influence momenta or constraints of the start
        state_vector = ca.SX.zeros(self.layout.size)
        conditions: list[Condition] = []
        if isinstance(self.model, System):
            n = self.model.n
            q, v = start[:n], start[n:]
            p, g, hidden, _ = self.mechanics(q, v, t0, s.k)
            parts = {"q": q, "v": v, "p": p}
            parts |= self.scheme.symbolic_scheme_state(self.model, q, p, s.k, t0, s.h)  # type: ignore[arg-type]  # symbolic h
            kept_rows = self.kept_constraints
            if kept_rows and "q0" not in prescribed:
                conditions.append(_equation("constraints at the start", g[kept_rows]))
            if kept_rows and "v0" not in prescribed:
                conditions.append(_equation("hidden constraints at the start", hidden[kept_rows]))
        else:
            if "y" in self.layout and set(self.active) & set(range(*self.layout["y"].indices(self.layout.size))):
                raise InputError("the start of this DAE must be fixed: give x0 in start")
            parts = {"x": start}
        for name, value in parts.items():
            state_vector[self.layout[name]] = value
        conditions.insert(0, _equation("first node", first[: len(self.active)] - state_vector[self.active]))
        if self.has_node_velocity:
            auxiliary, n = first[len(self.active) :], len(self.model.coordinates)
            conditions.append(_equation("first velocity", auxiliary[:n] - start[n:]))
        point = self.point(state_vector, ca.SX(t0), s.k, s.input_at(0.0))
        requested = {name: value for name, value in problem.start.items() if name not in prescribed}
        conditions += [
            Condition(f"start: {c.name}", c.rows, c.lower, c.upper)
            for c in self._whole_conditions("start", requested, point)
        ]
        return conditions

    def _periodic_conditions(self, start: ca.SX, last: MotionPoint) -> list[Condition]:
        periodic = self.problem.periodic
        if "q" not in last.state:
            image = start
            if callable(periodic):
                image = ca.SX(m.to_casadi(m.array(periodic(m.from_casadi(start))).ravel()))
            return [_equation("periodic: x", last.state["x"] - image)]
        n = len(self.model.coordinates)
        q, v = start[:n], start[n:]
        if callable(periodic):
            q, v = (ca.SX(m.to_casadi(m.array(part).ravel())) for part in periodic(m.from_casadi(q), m.from_casadi(v)))
        basis = ca.DM(self.null_space_at(self.problem.reference["q"]))
        return [
            _equation("periodic: q", basis.T @ (last.state["q"] - q)),
            _equation("periodic: v", basis.T @ self._momentum_gap(last, v)),
        ]


class _StageVariables:
    """Local variables of one step and the expressions of the step equations in them."""

    def __init__(self, stage: StageModel) -> None:
        problem, shape = stage.problem, stage.problem.shape
        n_active = len(stage.active)
        self.node0, self.node1 = ca.SX.sym("node0", stage.n_node), ca.SX.sym("node1", stage.n_node)
        self.x = ca.SX.sym("x", stage.graph.size)
        self.values = [ca.SX.sym(f"u{j}", stage.n_inputs) for j in range(shape.n_nodes)]
        self.duration, self.theta = ca.SX.sym("duration"), ca.SX.sym("theta", stage.n_free)
        self.data = ca.SX.sym("data", 2)  # start and size of the step relative to the duration
        self.t, self.h = problem.t0 + self.duration * self.data[0], self.duration * self.data[1]
        self.vector = ca.vertcat(self.node0, self.node1, self.x, *self.values, self.duration, self.theta)
        self.k = stage.parameter_vector(self.values, self.theta, self.t, self.h)
        self.old_state = ca.SX.zeros(stage.layout.size)
        self.old_state[stage.active] = self.node0[:n_active]
        outputs = stage.step(self.x, self.old_state, ca.vertcat(self.h, self.t, self.k))
        self.residual, self.final_state, *self.stage_values = outputs
        self.new_state = ca.SX(self.final_state)
        self.new_state[stage.active] = self.node1[:n_active]
        self.old_auxiliary, self.new_auxiliary = self.node0[n_active:], self.node1[n_active:]
        self._shape = shape

    def input_at(self, theta: float) -> ca.SX:
        """Return the inputs at a relative time within the step."""
        basis = self._shape.basis(ca.SX(theta))
        return sum(
            (weight * value for weight, value in zip(basis[1:], self.values[1:], strict=True)),
            basis[0] * self.values[0],
        )


def _depends_on(expression: ca.SX, name: str, symbols: Mapping[str, ca.SX]) -> bool:
    return bool(expression.numel() and symbols[name].numel() and ca.depends_on(expression, symbols[name]))


def _equation(name: str, rows: ca.SX) -> Condition:
    zero = np.zeros(int(rows.numel()))
    return Condition(name, rows, zero, zero)


def _scalar(value: ca.SX) -> ca.SX:
    if value.numel() != 1:
        raise InputError(f"an objective must return one number, got {value.numel()}")
    return value
