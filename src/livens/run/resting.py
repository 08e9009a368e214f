"""Event-driven rigid contact: sequential Newton-Coulomb impacts, then the search for consistent contact modes.

Contact modes are open, sticking and sliding. An impact changes velocities by Newton restitution and Coulomb friction.
Closed contacts take part: impacts are solved one after the other, fastest first, until no contact approaches.
Flights become shorter and shorter, infinitely many in a finite time (Zeno behaviour). If the next flight is a small
fraction of a step, the contact closes persistently. The accelerations decide whether closed contacts stay closed, slide
or stick: normal forces are compressive, and friction forces lie within the friction cone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import Namespace
from livens.models.summed import dynamics
from livens.models.system import System
from livens.multibody.contacts.geometry.base import slip
from livens.multibody.contacts.landing import SLOW, Landing, slipping, tangents
from livens.run.events import CLOSED, Situation
from livens.schemes.recipes.twists import twists

#: Shortest flight between impacts, relative to the step size; shorter flights close the contact.
_SHORT = 1e-3
#: Slip velocity below which a contact sticks (m/s); events are localised slightly beyond zero.
_STILL = 10 * SLOW
#: A slip that friction stops within this fraction of a step has stopped: states within a step are not more accurate.
_SOON = 0.02
#: Largest number of sequential impacts.
_MOST = 10_000
#: Relative velocities below this fraction of the largest are round-off.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class State:
    """Contact kinematics and dynamics in one state: gaps, relative velocities, accelerations without contact forces."""

    gaps: np.ndarray
    rates: np.ndarray
    free: np.ndarray
    #: Delassus matrix W = G M^-1 G^T, and M^-1 G^T.
    answer: np.ndarray
    change: np.ndarray
    twist: np.ndarray
    #: Tangent unit vectors in world axes, one column per slip component, for all contacts.
    along: np.ndarray


class Resting:
    """Unilateral contacts of a system and their resolution."""

    def __init__(self, system: System, landings: Sequence[Landing]) -> None:
        self.system, self.landings = system, list(landings)
        numbers = {id(element): i for i, element in enumerate(system.elements)}
        first, self.rows, self.where = 0, list[slice](), list[dict[str, list[int]]]()
        for landing in self.landings:
            count = len(landing.idle)
            self.rows.append(slice(first, first + count))
            first += count
            self.where.append(_places(system, numbers[id(landing.element)], landing))
        self.size = first
        self.normals = [own.start for own in self.rows]
        self._write()

    # -- expressions ---------------------------------------------------------------------------------------------------
    def _write(self) -> None:
        system, tw, d = self.system, twists(self.system), dynamics(self.system)
        u = ca.SX.sym("u", tw.size)
        moving = tw.lifted(d.q, u)
        touches = [_touch(landing, system) for landing in self.landings]
        found = []
        for landing, where, touch in zip(self.landings, self.where, touches, strict=True):
            i = where["coordinates"]
            count = len(landing.idle)
            gap, rates, along, slips, normal = touch(d.q[i], moving[i], d.k[where["parameters"]])
            found.append((gap, rates[:count], along, slips, normal))
        rates = ca.vertcat(*(one[1] for one in found))
        G, bias = ca.jacobian(rates, u), ca.jtimes(rates, d.q, moving)
        force = ca.gradient(d.T - d.V, d.q) - ca.gradient(d.R, d.v) + d.F
        free = tw.accelerations(d.q, u, tw.contracted(d.q, force), d.k, gyroscopic=True)
        still = ca.SX.zeros(tw.size)
        columns = [tw.accelerations(d.q, still, G[j, :].T, d.k, gyroscopic=False) for j in range(self.size)]
        change = ca.horzcat(*columns)
        answer = G @ change
        gaps, along = ca.vertcat(*(one[0] for one in found)), ca.horzcat(*(one[2] for one in found))
        outputs = [gaps, rates, G @ free + bias, answer, change, u, along]
        pressing = self._pressing(outputs[2], answer, [(one[2], one[3], one[4]) for one in found], d.k)
        slides = [self._slides(i, one[3], one[4], d.k) for i, one in enumerate(found)]
        arguments = [d.q, u, d.v, d.t, d.k]
        of_twist = ca.Function("rest", arguments, [*outputs, pressing, ca.vertcat(*slides)])
        here = [d.q, d.v, d.t, d.k]
        all_of_it = of_twist(d.q, tw.twist(d.q, d.v), d.v, d.t, d.k)
        self._numbers = ca.Function("numbers", here, [ca.densify(one) for one in all_of_it[:7]])
        self._signals = ca.Function("signals", here, [all_of_it[0], all_of_it[7], all_of_it[8]])
        self._lifted = ca.Function("lifted", [d.q, u], [moving])

    def _switch(self, i: int, word: str, k: Any) -> Any:
        return k[self.where[i][word][0]]

    def _pressing(self, free: Any, answer: Any, ways: Any, k: Any) -> Any:
        """Return the contact forces for the modes given by the parameters."""
        on, columns = [], []
        for i, (own, (along, slips, normal)) in enumerate(zip(self.rows, ways, strict=True)):
            touching, sticking = self._switch(i, "touching", k), self._switch(i, "sticking", k)
            column = answer[:, own.start]
            if own.stop - own.start > 1:
                way = _way(slips, normal, k[self.where[i]["direction"]])
                rubbing = (1 - sticking) * self._switch(i, "friction", k) * (along.T @ way)
                column = column - answer[:, own.start + 1 : own.stop] @ rubbing
            columns += [column, *(answer[:, j] for j in range(own.start + 1, own.stop))]
            on += [touching, *[touching * sticking] * (own.stop - own.start - 1)]
        held = ca.vertcat(*on)
        matrix = ca.diag(held) @ ca.horzcat(*columns) + ca.diag(1 - held)
        return ca.solve(ca.densify(matrix), -held * free)

    def _slides(self, i: int, slips: Any, normal: Any, k: Any) -> Any:
        """Return the slip guard: positive while the slip keeps its direction."""
        if not self.landings[i].friction:
            return ca.SX(1)
        forwards = ca.dot(slips, k[self.where[i]["direction"]])
        return forwards - ca.sqrt(ca.dot(slips, slips) + SLOW**2 / 4) / 2 + SLOW

    # -- guards: each event is a zero crossing with decreasing value --------------------------------------------------
    def hit(self, i: int, q: Any, v: Any, t: Any, k: Any) -> Any:
        touching = self._switch(i, "touching", k)
        return (1 - touching) * self._signals(q, v, t, k)[0][i] + touching

    def left(self, i: int, q: Any, v: Any, t: Any, k: Any) -> Any:
        touching = self._switch(i, "touching", k)
        return touching * self._signals(q, v, t, k)[1][self.normals[i]] + 1 - touching

    def slips(self, i: int, q: Any, v: Any, t: Any, k: Any) -> Any:
        sticking, forces = self._switch(i, "sticking", k), self._signals(q, v, t, k)[1][self.rows[i]]
        held = self._switch(i, "friction", k) * forces[0] - ca.sqrt(ca.dot(forces[1:], forces[1:]) + 1e-300)
        return sticking * held + 1 - sticking

    def stops(self, i: int, q: Any, v: Any, t: Any, k: Any) -> Any:
        sliding = self._switch(i, "touching", k) * (1 - self._switch(i, "sticking", k))
        return sliding * self._signals(q, v, t, k)[2][i] + 1 - sliding

    def apart(self, k: np.ndarray) -> np.ndarray:
        """Return the parameters with all contacts open."""
        free = k.copy()
        free[[where[word][0] for where in self.where for word in ("touching", "sticking")]] = 0.0
        return free

    # -- reset maps ---------------------------------------------------------------------------------------------------
    def state(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> State:
        gaps, rates, free, answer, change, twist, along = (np.array(part) for part in self._numbers(q, v, t, k))
        return State(gaps.ravel(), rates.ravel(), free.ravel(), answer, change, twist.ravel(), along)

    def settled(
        self,
        q: np.ndarray,
        v: np.ndarray,
        t: float,
        k: np.ndarray,
        h: float,
        struck: Collection[int] = (),
        leaving: int | None = None,
        sliding: int | None = None,
        ending: int | None = None,
        before: Situation | None = None,
    ) -> Mapping[str, Any]:
        """Solve the impacts at the given contacts, then determine the contact modes consistent with the accelerations.

        Contacts `impacting` have just closed; contact `separating` opens, contact `slipping` starts to slide, and the
        slip of contact `reversing` has stopped or reversed. If an action of another event changed the state, `before`
        is the state before it: velocities that the action sets at closed contacts are not numerical drift.
        """
        s, k_before = self.state(q, v, t, k), k if before is None else before[2]
        known = touched = [i for i in range(len(self.landings)) if k_before[self.where[i]["touching"][0]] > 0]
        near = np.flatnonzero(s.gaps <= CLOSED).tolist()  # just closed, or about to separate
        error = s.rates
        if before is not None:
            touched = [i for i in known if i in near]
            error = self.state(before[0], before[1], t, k_before).rates
        active = sorted({*touched, *struck, *near} - {leaving})
        P = self._blows(s, self._at_rest(s, touched, k_before, error), active, k, h)
        rates = s.rates + s.answer @ P
        rounding = _ROUNDING * max(float(np.abs(s.rates).max(initial=0.0)), 1e-3)
        pressed = {i: self._pressed(s, i, active) for i in active}
        slow = [i for i in active if rates[self.normals[i]] <= max(10 * rounding, _SHORT * h / 2 * pressed[i])]
        touching = [i for i, force in zip(slow, _one_sided(*self._between(s, slow)), strict=True) if force > 0]
        touching, ways = self._modes(s, rates, touching, sliding, ending, k, h)
        held = [j for i in touching for j in self._held(i, ways)]
        if held:
            P[held] += np.linalg.solve(s.answer[np.ix_(held, held)], -rates[held])
        changes: dict[str, Any] = {}
        for i in {*active, *known}:
            name, on = self.landings[i].name, i in touching
            changes[f"{name}.touching"] = float(on)
            changes[f"{name}.sticking"] = float(on and i not in ways and bool(self.landings[i].friction))
            if i in ways:
                changes[f"{name}.direction"] = self._along(s, i) @ ways[i]
        new = np.array(self._lifted(q, s.twist + s.change @ P)).ravel()
        return {"q": self._closed(q, s, active), "v": new if P.any() else v, "parameters": changes}

    def _closed(self, q: np.ndarray, s: State, active: Sequence[int]) -> np.ndarray:
        """Project positions onto closed gaps up to round-off.

        A remaining gap would be larger than the height of the shortest flights.
        """
        rows = [self.normals[i] for i in active]
        if not rows or not np.abs(s.gaps[list(active)]).max() > 1e-15:
            return q
        push = np.linalg.lstsq(s.answer[np.ix_(rows, rows)], -s.gaps[list(active)], rcond=1e-12)[0]
        return q + np.array(self._lifted(q, s.change[:, rows] @ push)).ravel()

    def _along(self, s: State, i: int) -> np.ndarray:
        """Return the tangent unit vectors of a contact in world axes, as columns."""
        count = self.landings[i].spot.first.dimension - 1
        return s.along[:, i * count : (i + 1) * count]

    def _held(self, i: int, sliding: Collection[int]) -> list[int]:
        """Return the rows of the relative velocities that a closed contact constrains to zero."""
        own = self.rows[i]
        return [own.start] if i in sliding else list(range(own.start, own.stop))

    def _between(self, s: State, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the normal Delassus block of some contacts, and their free normal accelerations."""
        rows = [self.normals[i] for i in places]
        return s.answer[np.ix_(rows, rows)], s.free[rows]

    def _pressed(self, s: State, i: int, active: Sequence[int]) -> float:
        """Return the normal approach acceleration of contact i, with the other active contacts kept closed."""
        others = [j for j in active if j != i]
        forces = _one_sided(*self._between(s, others))
        rows = [self.normals[j] for j in others]
        return -float(s.free[self.normals[i]] + s.answer[self.normals[i], rows] @ forces)

    def _at_rest(self, s: State, touched: Sequence[int], k: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Return impulses that remove the numerical velocity drift of closed contacts (no impacts, no restitution)."""
        sliding = [i for i in touched if not k[self.where[i]["sticking"][0]] > 0]
        held = [j for i in touched for j in self._held(i, sliding)]
        P = np.zeros(self.size)
        P[held] = np.linalg.lstsq(s.answer[np.ix_(held, held)], -error[held], rcond=1e-12)[0]
        return P

    def _blows(self, s: State, P: np.ndarray, active: Sequence[int], k: np.ndarray, h: float) -> np.ndarray:
        """Add the impulses of sequential impacts, fastest first, until no contact approaches."""
        rates = s.rates + s.answer @ P
        least = _ROUNDING * float(np.abs(rates).max(initial=0.0))
        for _ in range(_MOST):
            i = min(active, key=lambda j: float(rates[self.normals[j]]), default=None)
            if i is None or rates[self.normals[i]] >= -least:
                return P
            own = self.rows[i]
            back = -self.landings[i].restitution * rates[own.start]
            lands = 2 * back < _SHORT * h * self._pressed(s, i, active)
            mu = float(k[self.where[i]["friction"][0]])
            blow = impulse(s.answer[own, own], rates[own], 0.0 if lands else self.landings[i].restitution, mu)
            P[own] += blow
            rates += s.answer[:, own] @ blow
        names = ", ".join(self.landings[i].name for i in active)
        raise InputError(
            f"impacts at {names} did not terminate after 10000 iterations; use a compliant contact (mb.contact)"
        )

    def _modes(
        self,
        s: State,
        rates: np.ndarray,
        touching: list[int],
        sliding: int | None,
        ending: int | None,
        k: np.ndarray,
        h: float,
    ) -> tuple[list[int], dict[int, np.ndarray]]:
        """Return the closed contacts and the slip directions of the sliding ones; the others with friction stick."""
        ways: dict[int, np.ndarray] = {}
        for i in touching:
            slips = rates[self.rows[i]][1:]
            size = float(np.linalg.norm(slips))
            if size > _STILL:
                ways[i] = slips / size
        for i in list(ways):
            along = self._along(s, i) @ ways[i]
            # states within a step are not exact: a slip that has reversed has passed zero
            turned = i == ending and along @ k[self.where[i]["direction"]] <= 0
            slow = self._stopping(s, i, touching, ways, k) * _SOON * h
            if turned or slow > rates[self.rows[i]][1:] @ ways[i]:
                del ways[i]
        tried = 2 * len(touching) + 2
        for _ in range(tried):
            forces = self._forces(s, touching, ways, k)
            pulling = [i for i in touching if forces[self.normals[i]] <= 0]
            if pulling:
                touching = [i for i in touching if i not in pulling]
                continue
            free = None
            for i in touching:
                own = forces[self.rows[i]]
                if i in ways or len(own) == 1:
                    continue
                needed = float(np.linalg.norm(own[1:]))
                if needed > 0 and (i == sliding or needed > k[self.where[i]["friction"][0]] * own[0]):
                    free = i, -own[1:] / needed
                    break
            if free is None:
                break
            ways[free[0]] = free[1]
        return touching, {i: way for i, way in ways.items() if i in touching}

    def _stopping(
        self, s: State, i: int, touching: Sequence[int], ways: Mapping[int, np.ndarray], k: np.ndarray
    ) -> float:
        """Return the deceleration of a slip by friction."""
        own, forces = self.rows[i], self._forces(s, touching, ways, k)
        for j in ways:
            forces[self.rows[j]][1:] = -k[self.where[j]["friction"][0]] * forces[self.normals[j]] * ways[j]
        return -float((s.free + s.answer @ forces)[own][1:] @ ways[i])

    def _forces(self, s: State, touching: Sequence[int], ways: Mapping[int, np.ndarray], k: np.ndarray) -> np.ndarray:
        """Return the contact forces of the closed contacts, some of which slide."""
        held = [j for i in touching for j in self._held(i, ways)]
        pushes = np.eye(self.size)
        for i in touching:
            if i in ways and len(ways[i]):
                own = self.rows[i]
                pushes[own.start + 1 : own.stop, own.start] = -k[self.where[i]["friction"][0]] * ways[i]
        found = np.zeros(self.size)
        if not held:
            return found
        matrix = (s.answer @ pushes)[np.ix_(held, held)]
        if np.linalg.cond(matrix) > 1e12:
            names = ", ".join(self.landings[i].name for i in touching)
            raise InputError(
                f"contact forces at {names} are statically indeterminate (condition number of the Delassus matrix > "
                "1e12); use a compliant contact (mb.contact)"
            )
        if any(matrix[held.index(self.normals[i]), held.index(self.normals[i])] <= 0 for i in touching):
            names = ", ".join(self.landings[i].name for i in touching)
            raise InputError(
                f"{names}: Painleve paradox, no contact force satisfies the friction law; use a compliant contact "
                "(mb.contact)"
            )
        found[held] = np.linalg.solve(matrix, -s.free[held])
        return found


def impulse(W: np.ndarray, rates: np.ndarray, e: float, mu: float) -> np.ndarray:
    """Return the impulse of one impact (Newton restitution, Coulomb friction), normal component first."""
    closing, normal = float(rates[0]), np.eye(len(rates))[0]
    sticking = np.linalg.solve(W, -rates - e * closing * normal)
    if len(rates) == 1 or np.linalg.norm(sticking[1:]) <= mu * sticking[0]:
        return np.asarray(sticking)
    sliding = rates - closing * normal
    size = float(np.linalg.norm(sliding))
    along = normal if not size else normal - mu * sliding / size
    return np.asarray(-(1 + e) * closing / (normal @ W @ along) * along)


def _one_sided(W: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Solve the normal contact problem ``0 <= f, W f + a >= 0`` by dropping tensile contacts one at a time."""
    kept, forces = list(range(len(free))), np.zeros(len(free))
    while kept:
        own = np.linalg.lstsq(W[np.ix_(kept, kept)], -free[kept], rcond=1e-12)[0]
        if own.min() > 0:
            forces[kept] = own
            break
        kept.pop(int(np.argmin(own)))
    return forces


def _places(system: System, number: int, landing: Landing) -> dict[str, list[int]]:
    """Return the indices of the coordinates and parameters of a contact in those of the system."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    where = list(system.parameter_indices[number])
    own, found, first = where[system.shared.size :], dict[str, list[int]](), 0
    for name, value in landing.element.parameters.values.items():
        size = int(np.size(value))
        found[name] = own[first : first + size]
        first += size
    return found | {"coordinates": [place[name] for name in landing.coordinates], "parameters": where}


def _touch(landing: Landing, system: System) -> ca.Function:
    """Return a function for gap, relative velocities, tangent basis, slip velocity and normal of a contact."""
    spot, element = landing.spot, landing.element
    n, size = len(landing.coordinates), system.shared.size
    q, v, k = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("k", size + element.parameters.size)
    named = system.shared.symbols(k[:size]) | element.parameters.symbols(k[size:]) | element.constants
    a, b = spot.first.placement, spot.second.placement
    own, rates = m.symbols(q), m.symbols(v)
    gap, normal, point = spot.geometry.touch(a, b, own, Namespace(named))
    slips, axes = slip(a, b, own, rates, normal, point), tangents(normal)
    opening = ca.jtimes(m.expression(gap), q, v)
    along = [m.expression(m.array([m.dot(axis, slips)])) for axis in axes]
    columns = ca.horzcat(*(m.expression(m.array(axis)) for axis in axes))
    outputs = [
        m.expression(gap),
        ca.vertcat(opening, *along),
        columns,
        *(m.expression(m.array(x)) for x in (slips, normal)),
    ]
    return ca.Function("touch", [q, v, k], outputs)


def _way(slips: Any, normal: Any, direction: Any) -> Any:
    return m.expression(m.array(slipping(m.symbols(slips), m.symbols(normal), m.symbols(direction))))
