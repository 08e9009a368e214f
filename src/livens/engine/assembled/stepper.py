"""Stepper of the assembled tier for one run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.assembled import code, loop
from livens.engine.assembled.assembly import Bench
from livens.engine.assembled.fronts import Fronts, no_fronts
from livens.engine.assembled.indexed import LAST
from livens.engine.assembled.loop import BOOK, CHORDS, PARTS_DONE, TAKEN, Room
from livens.engine.assembled.parts import Parts, bounds, serve
from livens.engine.assembled.prediction import REACH, RING, WEIGHTS
from livens.engine.assembled.rooms import Rooms
from livens.engine.assembled.solver import AssembledSolver
from livens.engine.assembled.sweep import SweepTables, in_parts
from livens.engine.assembled.team import at_work, team_of
from livens.engine.loop import Policy
from livens.engine.newton import DONE
from livens.engine.step_size import FEWER, NO_CONTROL, UNITS, Control, last_size, next_size, shorten
from livens.engine.steps import Carry, Cost, Steps, Trouble, finite

if TYPE_CHECKING:
    from livens.engine.compiled import CompiledStep


class AssembledStepper:
    """Stepper for large systems: element kernels over index maps, and elimination by front classes.

    Steps that static pivots do not solve are solved by SuperLU with pivoting; otherwise the failure is reported.
    """

    def __init__(self, compiled: CompiledStep, k: np.ndarray, control: Control | None = None, threads: int = 1) -> None:
        self._compiled, self.cost = compiled, Cost()
        self._control = NO_CONTROL if control is None else control
        self._k = k
        assembly, elimination = compiled.assembly, compiled.elimination
        extra = elimination.pool_size - int(assembly.tops[0]) if elimination is not None else 0
        self._bench = bench = Bench(assembly, k, extra)
        self._fronts = Fronts(elimination, bench, threads) if elimination is not None else None
        self._solver = AssembledSolver(bench)
        fronts = no_fronts() if self._fronts is None else self._fronts.arrays
        self._pieces, self._count = assembly.pieces, len(assembly.pieces.weights)
        sums = assembly.row_sums
        self._rows, self._row_places, self._sums = sums.rows, sums.places, sums.compile()
        self._sum_tables = sums.tables(bench.impulses)
        self._parts = Parts(
            assembly.pieces.size,
            assembly.addresses,
            bench.context,
            bench.pool,
            bench.floors,
            bench.ends,
            bench.errors,
            bench.kinds.size,
            bench.kinds,
            assembly.row_sums.rows.size,
            np.array([[code.address, batch.first] for code, batch in zip(self._sums, sums.batches, strict=True)]),
            assembly.bound_sums.starts,
            assembly.bound_sums.positions,
            assembly.end_sums.starts,
            assembly.end_sums.positions,
            assembly.summed.size,
            assembly.summed,
            assembly.blank.size,
            assembly.blank,
            WEIGHTS,
            REACH,
            bench.impulses,
            assembly.first_multiplier,
            assembly.turning,
            team_of(threads if self._fronts is not None else 1, bench.tables, fronts.tables, self._sum_tables),
            self._sweep(threads),
            fronts,
        )
        self._rooms = Rooms(self._new_room, compiled.once("rooms", list))
        code.prepare()

    def _sweep(self, threads: int) -> SweepTables:
        """Return the tile tables; several threads or a small system use one tile."""
        e, bench, none = self._compiled.elimination, self._bench, np.zeros(0, dtype=np.int64)
        if e is None or self._fronts is None or threads > 1 or e.sweep.parts == 1:
            return SweepTables(1, none, none, none)
        parts = e.sweep.parts
        of_pieces = [e.sweep.in_order(int(blocks)) for blocks in bench.tables[:, LAST]]
        of_fronts = [e.of_fronts[batch.of.number][batch.first : batch.stop] for batch in e.batches]
        return SweepTables(
            parts,
            in_parts(bench.tables, of_pieces, parts),
            in_parts(self._sum_tables, e.of_sums, parts),
            in_parts(self._fronts.arrays.tables, of_fronts, parts),
        )

    # -- stepper protocol ---------------------------------------------------------------------------------------------
    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: dict[str, Any]) -> None:
        """Restore nothing: the integrator state is complete."""

    def release(self) -> None:
        """Keep the chunk workspaces for later runs."""
        self._rooms.release()

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        assert policy.entry < 0, "schemes with a fictive time have no elements"
        w = self._filled(carry, steps)
        with at_work(self._parts.team, self._serve):
            if policy.controlled:
                return self._controlled(carry, w, steps, policy, going)
            return self._equal(carry, w, steps, policy)

    def _serve(self, rank: int, number: int) -> None:
        """Run the worker loop of another thread."""
        serve(self._parts, rank, number)

    def _equal(self, carry: Carry, w: Room, steps: int, policy: Policy) -> Steps:
        done, trouble = 0, None  # completed substeps
        while done < steps * self._count and trouble is None:
            if self._fronts is not None:
                chords = self._fronts.chords
                status = loop.advance(self._parts, w, policy.h, policy.origin, policy.first, done, steps, chords)
                done = int(w.told[PARTS_DONE])
                if status == DONE:
                    break
                if status == CHORDS:
                    self._keep_factors()
                    continue
            self._set_time(w, done, policy.h, policy.origin + (policy.first + done // self._count) * policy.h)
            trouble = self._refused(w, done)
            done += trouble is None
        done //= self._count
        t = policy.origin + np.arange(policy.first + 1, policy.first + done + 1) * policy.h
        return self._steps(carry, w, done, t, np.full(done, policy.h), trouble)

    def _set_time(self, w: Room, r: int, h: float, t: float) -> None:
        """Set size and time of substep r of a step of size h from t."""
        part = r % self._count
        w.c[0], w.c[1] = w.weights[part] * h, t + w.begins[part] * h

    def _keep_factors(self) -> None:
        begun = time.perf_counter()
        assert self._fronts is not None
        self._fronts.enable_chords()
        self.cost.compile_s += time.perf_counter() - begun

    # -- arrays -------------------------------------------------------------------------------------------------------
    def _filled(self, carry: Carry, steps: int) -> Room:
        """Return a workspace for `n_steps` steps, initialised with the integrator state."""
        w, there = self._rooms.for_steps(carry, steps)
        if there:
            return w
        w.Z[0], w.dx.ravel()[:], w.c[2:] = carry.z, carry.dx, self._k
        np.take(carry.scale.reshape(w.dx.shape), self._rows, axis=1, out=w.scale)
        self._by_step(w.X)[:RING] = carry.x if len(carry.x) == RING else carry.x[-1]
        known = carry.memory.size == self._count * (self._pieces.memory.size + BOOK)
        constants = np.concatenate([[0.0, carry.t], self._k])
        self._by_step(w.M)[0] = carry.memory if known else loop.first_memory(self._pieces, carry.z, constants)
        return w

    def _new_room(self, steps: int) -> Room:
        pieces = self._pieces
        sizes = pieces.layout.size, pieces.size, self._rows.size, pieces.memory.size
        return Room.of(self._k, pieces.weights, *sizes, steps)

    def _by_step(self, parts: np.ndarray) -> np.ndarray:
        """Return a view with one row per step of an array with one row per substep."""
        return parts.reshape(-1, self._count * parts.shape[1])

    def _steps(
        self,
        before: Carry,
        w: Room,
        taken: int,
        t: np.ndarray,
        sizes: np.ndarray,
        trouble: Trouble | None = None,
        reached: bool = False,
    ) -> Steps:
        last, X, M = float(t[-1]) if taken else before.t, self._by_step(w.X), self._by_step(w.M)
        states = np.ascontiguousarray(w.Z[: taken * self._count + 1 : self._count])
        scale = np.take(w.scale, self._row_places, axis=1).ravel()
        carry = Carry(last, states[-1], X[taken : taken + RING], w.dx.ravel().copy(), scale, M[taken])
        self._rooms.ended(carry, taken)
        times, X, M = np.concatenate([[before.t], t]), X[RING : RING + taken], M[1 : taken + 1]
        steps = Steps(times, states, sizes, X, w.iterations[:taken], before, carry, trouble, reached, M=M)
        return finite(steps, w, self._compiled.layout)

    # -- single steps and substeps ------------------------------------------------------------------------------------
    def _refused(self, w: Room, r: int) -> Trouble | None:
        """Solve a substep from other initial guesses, then with pivoting; return the failure, if any."""
        count, part = self._count, r % self._count
        z, c, x = w.Z[r], w.c, w.X[r + RING * count]
        trouble: Trouble | None = None
        self._solver.memory = w.M[r]
        smooth = loop.start_step(self._parts, r, w)
        own = self._pieces.guess(z, c, lambda y: self._bench.residual(y, z, w.M[r], c))
        guesses = [own, w.X[r + RING * count - count].copy()]
        if self._fronts is not None:
            for guess in guesses:
                status, corrections = self._solve(w, r, guess)
                if status == DONE:
                    loop.finish_step(self._parts, r, corrections, w)
                    return None
        elif smooth:
            guesses.insert(0, x.copy())
        for guess in guesses:
            solution, corrections, trouble, dx, scale = self._solver.solve(guess, z, c)
            if trouble is None:
                x[:], w.dx[part], w.scale[part] = solution, dx, scale[self._rows]
                self._bench.residual(x, z, w.M[r], c)  # computes the impulses
                loop.finish_step(self._parts, r, corrections, w)
                self.cost.reference_steps += 1
                return None
        return trouble

    def _solve(self, w: Room, r: int, guess: np.ndarray) -> tuple[int, int]:
        """Solve by Newton's method on fronts from an initial guess, with updated round-off bounds."""
        assert self._fronts is not None
        x, part = w.X[r + RING * self._count], r % self._count
        x[:], w.dx[part] = guess, 0.0
        self._bench.context[0] = w.M[r].ctypes.data
        bounds(self._parts, x, w.Z[r], w.c, w.dx[part], w.scale[part])
        return loop.solve_step(self._parts, x, w.Z[r], w, part, False), int(w.told[TAKEN])

    # -- adaptive steps -----------------------------------------------------------------------------------------------
    def _controlled(self, carry: Carry, w: Room, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        """Take adaptive steps, one call per step; see the time loop in `livens.engine`."""
        times = [carry.t]
        trouble, reached, done = None, False, 0
        while done < steps and trouble is None and not reached:
            found = self._controlled_step(w, done, times[-1], policy, going)
            if isinstance(found, Trouble):
                trouble = found
                break
            end, reached = found
            if end is not None:
                times.append(end)
                done += 1
        self.cost.rejected, self.cost.unsolved = int(going[0]["failures"]), int(going[0]["unsolved"])
        return self._steps(carry, w, done, np.array(times[1:]), np.diff(times), trouble, reached)

    def _controlled_step(
        self, w: Room, s: int, t: float, policy: Policy, going: np.ndarray
    ) -> Trouble | tuple[float | None, bool]:
        """Take step s with the largest size that succeeds; return its end time, if any, and whether it is the last."""
        control, now = self._control, going[0]
        shortest = max(control.smallest, UNITS * abs(t))
        if not now["size"] >= shortest:
            going["size"] = shortest
        while True:
            h = min(float(now["size"]), control.largest)
            if not h >= shortest:
                what = f"no step of at least {shortest:.3g} succeeded"
                first = s * self._count
                self._solver.memory = w.M[first]
                return self._solver.trouble(w.X[first + RING * self._count], w.Z[first], w.c, w.dx[0], what)
            left = policy.t_end - t
            if left < FEWER * h:
                if not policy.to_the_end:
                    return None, True
                h = last_size(h, left, now["last"] if now["since_failure"] > 0.0 else 0.0, control.largest)
            final = h >= left
            norm = self._attempt(w, s, h, t)
            if norm is not None and norm <= 1.0:
                break
            shorten(control, going, h, norm is not None, 0.0 if norm is None else norm)
        next_size(control, going, h, norm, final)
        return (policy.t_end if final else t + h), final

    def _attempt(self, w: Room, s: int, h: float, t: float) -> float | None:
        """Solve step s with size h; return the error estimate relative to the tolerance, None if it failed."""
        for r in range(s * self._count, (s + 1) * self._count):
            self._set_time(w, r, h, t)
            if not self._solved(w, r):
                return None
        if not self._control.absolute.size or self._pieces.error is None:
            return 0.0
        error, size = self._pieces.error(w.X[s + RING], w.Z[s], w.c)
        return float(np.max(np.abs(error) / (self._control.absolute + self._control.relative * size), initial=0.0))

    def _solved(self, w: Room, r: int) -> bool:
        """Solve substep r with the size and time in c; return True if it succeeded."""
        smooth = loop.start_step(self._parts, r, w)
        x, z = w.X[r + RING * self._count], w.Z[r]
        if self._fronts is not None:
            guess = x.copy() if smooth else self._pieces.guess(
                z, w.c, lambda y: self._bench.residual(y, z, w.M[r], w.c)
            )  # fmt: skip
            status, corrections = self._solve(w, r, guess)
            if status == DONE:
                loop.finish_step(self._parts, r, corrections, w)
                return True
        return self._refused(w, r) is None
