"""Implicit Runge-Kutta steps by fixed-point iteration; the stages occupy SIMD lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.engine.aligned import aligned
from livens.engine.emit import Emitter, literal
from livens.engine.kernels import simple_kernel, writer
from livens.engine.loop import Policy
from livens.engine.lowering.function import lowered
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import call
from livens.engine.native import Code, find_or_compile
from livens.engine.newton import DONE, FAILED, PAST, REACHED, TAKEN, Workspace
from livens.engine.reference import ReferenceSolver
from livens.engine.steps import Buffers, Carry, Cost, Steps, Trouble, finite, steps_of
from livens.schemes.recipes.swept_stages import SweptStages
from livens.schemes.tableaus import Tableau
from livens.schemes.tableaus.families import gauss_weights_rest
from livens.schemes.tableaus.polynomials import Interpolant

if TYPE_CHECKING:
    from livens.engine.compiled import CompiledStep

#: Maximum number of fixed-point iterations of a step.
_MOST_SWEEPS = 100
#: Convergence tolerances relative to the state: predicted change of the next iteration, and change below which
#: stagnation is accepted.
_ROUNDING, _NEARLY = 2.0**-55, 1e-11


def lanes_of(s: int) -> int:
    """Return the number of SIMD lanes for s stages."""
    return max(2, 1 << (s - 1).bit_length())


@dataclass(frozen=True, eq=False)
class StageRoom(Record):
    """Kernels and arrays of the stages of one step; lane arrays have a row of `width` numbers for each variable."""

    sweep: int  # addresses of native code
    carry_on: int
    velocity: int
    width: int
    stages: int
    variables: int
    columns: Integers  # indices of the variables in the state
    v: int  # offset of the velocities
    t: int
    energy: int
    weights: Doubles
    rest: Doubles  # rounding errors of the weights
    Y: Doubles  # initial state and energy in all lanes
    c: Doubles  # h and parameters in all lanes
    F: Doubles  # stage derivatives, including that of time, double buffered
    changes: Doubles  # largest changes of the derivatives of q and of p
    low: Doubles  # compensation of state and time
    M: Doubles  # stepper state after every step: compensation and step size
    memory: int  # its size


@lowered
def _swept(r: StageRoom, z: Doubles, F: int, size: int) -> int:
    """Iterate the stages of a step from z to convergence; return the iteration count, negative if it diverges.

    `active_half` is the buffer half of the initial stage derivatives; every iteration swaps the halves.
    """
    half = r.variables // 2
    places, momenta = 1e-300, 1e-300
    for i in range(half):
        places = max(places, abs(z[r.columns[i]]))
        momenta = max(momenta, abs(z[r.columns[half + i]]))
    by_q, by_p, before, now = abs(r.c[0]) / places, abs(r.c[0]) / momenta, np.inf, F
    for sweep in range(1, _MOST_SWEEPS + 1):
        call(r.sweep, r.F + now * size, r.Y, r.c, r.changes, r.F + (1 - now) * size)
        now = 1 - now
        change = by_q * r.changes[0] + by_p * r.changes[1]
        if not change < np.inf:
            return -sweep
        # the remaining error decreases by the ratio of the last changes
        if change == 0.0 or (before < np.inf and change * change <= _ROUNDING * before):
            return sweep
        if change < _NEARLY and change >= before:
            return sweep
        before = change
    return -_MOST_SWEEPS


@lowered
def _added(r: StageRoom, i: int, old: float, slopes: Doubles) -> float:
    """Return ``old + h sum b_j F_j`` of variable i by compensated summation."""
    total, rest = 0.0, 0.0
    for j in range(r.stages):
        total += r.weights[j] * slopes[j]
        rest += r.rest[j] * slopes[j]
    change = r.c[0] * (total + rest) + r.low[i]
    new = old + change
    shifted = new - old
    r.low[i] = (old - (new - shifted)) + (change - shifted)
    return new


@lowered
def sweep_steps(
    r: StageRoom, w: Workspace, h: float, last: float, entry: int, limit: float, done: int, steps: int
) -> int:
    """Take fixed steps from number `done`; return a status code. `h_prev` is the previous step size, 0 if none."""
    n, width, size = r.variables, r.width, (r.variables + 1) * r.width
    now = 0
    for s in range(done, steps):
        z, new = w.Z + s * w.entries, w.Z + (s + 1) * w.entries
        past, x = w.X + (s + PAST - 1) * w.unknowns, w.X + (s + PAST) * w.unknowns
        for i in range(n):
            for j in range(width):
                r.Y[i * width + j] = z[r.columns[i]]
        for j in range(width):
            r.Y[n * width + j], r.c[j] = z[r.energy], h
        if last == h:
            for i in range(n):
                for j in range(width):
                    r.F[now * size + i * width + j] = past[(j if j < r.stages else 0) * n + i]
            call(r.carry_on, r.F + now * size, r.Y, r.c, r.changes, r.F + (1 - now) * size)
        else:  # with h = 0 all stage derivatives are those at the initial state
            for j in range(width):
                r.c[j] = 0.0
            call(r.sweep, r.F + now * size, r.Y, r.c, r.changes, r.F + (1 - now) * size)
            for j in range(width):
                r.c[j] = h
        now = 1 - now
        sweeps = _swept(r, z, now, size)
        w.told[TAKEN] = s
        if sweeps < 0:
            return FAILED
        if sweeps % 2 == 1:
            now = 1 - now
        F = r.F + now * size
        for i in range(w.entries):
            new[i] = z[i]
        for i in range(n):
            new[r.columns[i]] = _added(r, i, z[r.columns[i]], F + i * width)
            for j in range(r.stages):
                x[j * n + i] = F[i * width + j]
        new[r.t] = _added(r, n, z[r.t], F + n * width)
        call(r.velocity, new, new, w.c, r.changes, new + r.v)
        w.iterations[s] = sweeps
        last = h
        memory = r.M + s * r.memory
        for i in range(n + 1):
            memory[i] = r.low[i]
        memory[n + 1] = h
        if entry >= 0 and new[entry] > limit:  # a NaN completes the step, which is rejected later
            return REACHED
    w.told[TAKEN] = steps
    return DONE


class SweptStepper:
    """Stepper of implicit Runge-Kutta schemes in fictive time, by fixed-point iteration."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        e = compiled.equations
        assert isinstance(e, SweptStages)
        self.cost = Cost()
        self._compiled, self._e, self._k = compiled, e, k
        self._codes = compiled.once("swept", lambda: (_sweep_code(e), _carry_code(e), _velocity_code(e)))
        self._buffers = Buffers(k, np.zeros(0, dtype=np.int64), spare=compiled.spare)

    def release(self) -> None:
        self._buffers.release()

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: dict[str, Any]) -> None:
        """Do nothing: the integrator state is complete."""

    def _room(self, carry: Carry, steps: int) -> StageRoom:
        e, width, n = self._e, lanes_of(self._e.tableau.s), self._e.variables
        low = np.zeros(n + 1)
        if carry.memory.size:
            low[:] = carry.memory[: n + 1]
        constants = aligned(1 + self._k.size, width)
        constants[1:] = self._k[:, None]
        sweep, carry_on, velocity = (code.address for code in self._codes)
        return StageRoom(
            sweep,
            carry_on,
            velocity,
            width,
            e.tableau.s,
            n,
            np.array(e.columns, dtype=np.int64),
            e.layout["v"].start,
            e.layout["t"].start,
            e.layout["start_energy"].start,
            np.array(e.tableau.b),
            gauss_weights_rest(e.tableau.s),
            aligned(n + 1, width),
            constants,
            aligned(2, n + 1, width),
            np.zeros(2),
            low,
            np.zeros((steps, n + 2)),
            n + 2,
        )

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        w, r = self._buffers.filled(carry, steps), self._room(carry, steps)
        w.c[0], w.c[1] = policy.h, 0.0
        n, done, reached = self._e.variables, 0, False
        last = float(carry.memory[n + 1]) if carry.memory.size else 0.0
        trouble: Trouble | None = None
        while done < steps and not reached and trouble is None:
            status = sweep_steps(r, w, policy.h, last, policy.entry, policy.limit, done, steps)
            done, reached = int(w.told[TAKEN]), status == REACHED
            if status == FAILED:
                trouble = self._newton_step(w, done)
                reached = trouble is None and policy.entry >= 0 and not w.Z[done + 1, policy.entry] <= policy.limit
                r.low[:], last = 0.0, policy.h
                r.M[done, -1] = last
                done += trouble is None and not reached
        if reached and not np.isfinite(w.Z[done + 1]).all() and np.isfinite(w.Z[done]).all():
            entry = int(np.argmin(np.isfinite(w.Z[done + 1])))
            what = "the state is not finite any more"
            reached, trouble = False, Trouble(np.inf, 0.0, self._e.layout.name_of(entry), what, policy.h)
        found = steps_of(w, carry, done, policy, trouble, reached)
        memory = r.M[done - 1].copy() if done else carry.memory
        found = replace(found, carry=replace(found.carry, memory=memory), M=r.M[:done])
        return finite(found, w, self._e.layout)

    def _newton_step(self, w: Workspace, done: int) -> Trouble | None:
        """Solve a step by Newton iteration if the fixed-point iteration does not converge."""
        solver: ReferenceSolver = self._compiled.once("reference", lambda: ReferenceSolver(self._compiled.flat))
        guess = self._compiled.flat.guess_function(w.Z[done], w.c).full().ravel()
        x, count, trouble, _, _ = solver.solve(guess, w.Z[done], w.c)
        if trouble is None:
            self.cost.reference_steps += 1
            w.X[done + PAST], w.iterations[done] = x, count
            w.Z[done + 1] = self._compiled.flat.ended(x, w.Z[done], w.c)
        return trouble


# -- native code ------------------------------------------------------------------------------------------------------
class _Sweep(Emitter):
    """Emitter that shares reciprocals: a vector division takes as long as ten products."""

    def _divided(self, a: str, b: str) -> str:
        return self.mul(a, self.reciprocal(b))


def _vector(values: Sequence[float]) -> str:
    return "<" + ", ".join(f"double {literal(value)}" for value in values) + ">"


def _columns(matrix: np.ndarray, width: int) -> list[str]:
    """Return the columns of a matrix as vectors; lanes without a stage repeat the first entry."""
    return [_vector([*column, *[column[0]] * (width - len(column))]) for column in matrix.T.tolist()]


def _spread(emitter: Emitter, a: str, lane: int) -> str:
    lanes = ", ".join([f"i32 {lane}"] * emitter.width)
    return emitter.value(f"shufflevector {emitter.type} {a}, {emitter.type} poison, <{emitter.width} x i32> <{lanes}>")


def _times(emitter: Emitter, columns: Sequence[str], a: str) -> str:
    """Return a matrix-vector product in two independent chains."""
    parts: list[str] = []
    for j, column in enumerate(columns):
        one = _spread(emitter, a, j)
        if j < 2:
            parts.append(emitter.mul(one, column))
        else:
            parts[j % 2] = emitter.intrinsic("fma", one, column, parts[j % 2])
    return parts[0] if len(parts) == 1 else emitter.add(*parts)


def _largest(emitter: Emitter, values: Sequence[str]) -> str:
    """Return the maximum over all lanes of the values. NaN propagates."""
    found = values[0]
    for value in values[1:]:
        found = emitter.intrinsic("maximum", found, value)
    name = f"llvm.vector.reduce.fmaximum.v{emitter.width}f64"
    return emitter.reduced(name, "double", emitter.type, found)


def _sweep_code(e: SweptStages) -> Code:
    """Compile ``sweep(F, Y, c, changes, out)``: stage derivatives at the stages given by the derivatives F."""
    width, n = lanes_of(e.tableau.s), e.variables

    def text() -> str:
        emitter = _Sweep("sweep", 5, width)
        columns, h = _columns(e.tableau.A, width), emitter.load(2, 0)
        slopes = [emitter.load(0, i) for i in range(n)]
        stages = [
            emitter.intrinsic("fma", _times(emitter, columns, slopes[i]), h, emitter.load(1, i)) for i in range(n)
        ]
        parameters = emitter.inputs(2, e.rates.nnz_in(2), 1)
        (found,) = emitter.graph(e.rates, [stages, [emitter.load(1, n)], parameters])
        for i, value in enumerate(found):
            emitter.store(value, 4, i)
        for i, some in enumerate((range(n // 2), range(n // 2, n))):
            changes = [emitter.fabs(emitter.sub(found[j], slopes[j])) for j in some]
            where = emitter.value(f"getelementptr inbounds double, ptr %a3, i64 {i}")
            emitter.lines.append(f"store double {_largest(emitter, changes)}, ptr {where}, align 8")
        return emitter.text()

    return find_or_compile(f"{writer()} {__name__} {width} {e.content}", text, "sweep")


def _carry_code(e: SweptStages) -> Code:
    """Compile ``carry(F, Y, c, changes, out)``: stage extrapolation by the collocation polynomial to the next step."""
    width, T = lanes_of(e.tableau.s), e.tableau

    def text() -> str:
        emitter = Emitter("carry", 5, width)
        columns = _columns(_onward(T), width)
        for i in range(e.variables):
            emitter.store(_times(emitter, columns, emitter.load(0, i)), 4, i)
        return emitter.text()

    return find_or_compile(f"{writer()} {__name__} {width} {T.c.tolist()} {e.variables}", text, "carry")


def _onward(T: Tableau) -> np.ndarray:
    return Interpolant.through(T.c).lagrange(1.0 + T.c)


def _velocity_code(e: SweptStages) -> Code:
    z, c = ca.SX.sym("z", e.layout.size), ca.SX.sym("c", 2 + e.velocity.nnz_in(1))
    velocity = e.velocity(z[list(e.columns)], c[2:])
    return simple_kernel(ca.Function("velocity", [ca.SX.sym("x", 0), z, c], [velocity]), "velocity")
