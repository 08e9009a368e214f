"""Assembly of a mechanism: consistent initial configuration, and initial velocities of least kinetic energy."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import block_diag

from livens import math as m
from livens.errors import InputError
from livens.models.element_numbers import ElementNumbers
from livens.models.frames import Frame
from livens.models.summed import dynamics
from livens.models.system import System
from livens.multibody.actuators import angular_velocity
from livens.multibody.couplings import Coupling
from livens.multibody.joint import Joint
from livens.multibody.parts import Part

#: Relative rank tolerance of singular values and least-squares solutions.
_RANK = 1e-8
#: Largest change of an initial value per Gauss-Newton step, in rad or m.
_STRIDE = 0.25
#: Tolerances of the constraint residual and of required initial values.
_CLOSED, _HELD = 1e-11, 1e-9
#: Number of twist coordinates from which a model counts as large.
_LARGE = 150
_RATES = ("rate", "speed", "velocity", "omega")


@dataclass(frozen=True, eq=False)
class Target:
    """Initial condition: angle, rate, position or velocity of a joint, or position, velocity or omega of a body.

    For a coupling it is the phase: the weighted sum of its joint coordinates.
    """

    what: Joint | Part | Coupling
    quantity: str
    value: np.ndarray
    hold: bool

    @property
    def of_rates(self) -> bool:
        return self.quantity in _RATES

    @property
    def turns(self) -> bool:
        """True if the value is periodic with full turns; the last joint of a coupling has the coefficient one."""
        last = self.what.members[-1][1] if isinstance(self.what, Coupling) else self.quantity
        return last == "angle"

    def __str__(self) -> str:
        return f"{self.what.name}.{self.quantity}"


class Motion:
    """Twist coordinates of the bodies of a system: six per body in space, three in the plane."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.frames: tuple[Frame, ...] = system.frames
        self.size = sum(frame.dimension + frame.turning for frame in self.frames)

    def map(self, q: np.ndarray) -> np.ndarray:
        """Return the kinematic matrix N(q) with ``qdot = N u``; for q of shape (..., n), one matrix each."""
        found, first = np.zeros((*q.shape[:-1], self.system.n, self.size)), 0
        for frame in self.frames:
            d, turning = frame.dimension, frame.turning
            found[..., list(frame.position), first : first + d] = np.eye(d)
            for director in frame.directors:
                x = q[..., list(director)]
                found[..., list(director), first + d : first + d + turning] = _turned(x)
            first += d + turning
        return found

    def moved(self, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the coordinates after a small motion y (retraction); directors stay orthonormal."""
        new = q + self.map(q) @ y
        for frame in self.frames:
            if frame.directors:
                places = np.array(frame.directors)
                u, _, vh = np.linalg.svd(new[places])
                new[places] = u @ vh
        return new

    @functools.cached_property
    def constraints(self) -> tuple[int, ...]:
        """Indices of the constraints between bodies."""
        within = {i for frame in self.frames for i in frame.constraints}
        return tuple(i for i in range(self.system.m) if i not in within)


class Assembly:
    """Solver of the initial state of a mechanism, with the reference configuration as initial guess."""

    def __init__(self, system: System, parts: Sequence[Part], targets: Sequence[Target]) -> None:
        self.system, self.parts, self.targets = system, list(parts), list(targets)
        self.motion = Motion(system)
        self._rest = (np.zeros(system.n), 0.0, ca.DM(system.parameter_vector()))
        drawn = np.concatenate(
            [
                part.element.placement.coordinates(part.position, _in_space(part.rotation))
                for part in parts
                if part.element is not None
            ]
        )
        #: Initial guess; additional states, such as integrator states of controllers, start from zero.
        self.drawn = np.concatenate([drawn, np.zeros(system.n - drawn.size)])

    @functools.cached_property
    def _function(self) -> ca.Function:
        system = self.system
        d = dynamics(system)
        kept = list(self.motion.constraints)
        g = d.g[kept] if kept else ca.SX(0, 1)
        positions, rates = self._expressions(d.q, d.v, False), self._expressions(d.q, d.v, True)
        arguments = [d.q, d.v, d.t, d.k]
        # evaluated at zero velocity: the hidden constraints then contain only their explicit time dependence
        hidden, G = (d.velocity_constraint[kept], d.G[kept, :]) if kept else (ca.SX(0, 1), ca.SX(0, system.n))
        outputs = [g, ca.jacobian(g, d.q), hidden, positions, ca.jacobian(positions, d.q), ca.jacobian(rates, d.v)]
        mass = ca.jacobian(d.fibre_derivative, d.v)
        return ca.Function("assembly", arguments, [ca.densify(o) for o in (*outputs, mass, G)])

    @functools.cached_property
    def as_drawn(self) -> bool:
        """True if a large model is consistent in its reference configuration: no dense system need be solved."""
        system = self.system
        if self.targets or self.motion.size < _LARGE or any(group.model.rates for group in system.groups):
            return False
        numbers = ElementNumbers(system, 0.0, system.parameter_vector())
        kept = list(self.motion.constraints)
        open_by, moved_by = numbers.constraints(self.drawn)[kept], numbers.rate(self.drawn, np.zeros(system.n))[kept]
        return bool(np.abs(open_by).max(initial=0.0) <= 1e-15 and not moved_by.any())

    def _at(self, q: np.ndarray) -> list[np.ndarray]:
        """Return constraint residuals, their Jacobian and time derivative, position targets and their Jacobian, the
        Jacobian of rate targets, the mass matrix, and the Jacobian of all constraints by velocities."""
        return [np.array(x) for x in self._function(q, *self._rest)]

    def _expressions(self, q: Any, v: Any, rates: bool) -> Any:
        """Return the measured quantities of the targets as expressions of the state."""
        place = {name: i for i, name in enumerate(self.system.coordinates)}
        found = []
        for target in self.targets:
            if target.of_rates != rates:
                continue
            names = target.what.coordinates
            i = [place[str(name)] for name in names]
            of_q, of_v = m.symbols(q[i]), m.symbols(v[i])
            found.append(m.expression(m.array(_measured(target, of_q, of_v))))
        return ca.densify(ca.vertcat(*found)) if found else ca.SX(0, 1)

    def _wanted(self, rates: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return target values, which of them are required, and which are angles."""
        chosen = [target for target in self.targets if target.of_rates == rates]
        values = [target.value for target in chosen]
        held = [np.full(target.value.size, target.hold) for target in chosen]
        angles = [np.full(target.value.size, target.turns) for target in chosen]
        none = np.zeros(0)
        return (
            np.concatenate(values) if values else none,
            np.concatenate(held) if held else none.astype(bool),
            np.concatenate(angles) if angles else none.astype(bool),
        )

    # -- positions ----------------------------------------------------------------------------------------------------
    @functools.cached_property
    def position(self) -> np.ndarray:
        """Coordinates that satisfy all joints and required targets; other targets in the least-squares sense."""
        if self.as_drawn:
            return self.drawn
        value, held, angles = self._wanted(False)
        q = self._closed(self.drawn, value[:0], held[:0], angles[:0])
        if not value.size:
            return q
        begin = self._at(q)[3].ravel()
        way = _wrapped(value - begin, angles)
        steps = max(1, int(np.ceil(np.abs(way).max() / _STRIDE)))
        for i in range(1, steps + 1):
            q = self._closed(q, begin + way * i / steps, held, angles)
        reached = self._at(q)[3].ravel()
        missed = np.abs(_wrapped(value - reached, angles)) * held
        if missed.max() > _HELD:
            names = [str(target) for target in self.targets if not target.of_rates for _ in range(target.value.size)]
            worst = int(np.argmax(missed))
            raise InputError(
                f"the initial values cannot be met: {names[worst]} is required to be {value[worst]:.6g}, and the "
                f"joints allow only {reached[worst]:.6g} nearby; relax some of the initial values with required=False"
            )
        return q

    def _closed(self, q: np.ndarray, value: np.ndarray, held: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """Solve by damped Gauss-Newton: constraints and required targets first, others in their null space."""
        size = np.inf
        for _ in range(60):
            g, G, _, have, H, _, mass, _ = self._at(q)
            N = self.motion.map(q)
            root = _root(N.T @ mass @ N)
            gap = _wrapped(value - have.ravel()[: value.size], angles)
            rows = np.vstack([G @ N, (H @ N)[: value.size][held]]) @ root
            residual = np.concatenate([-g.ravel(), gap[held]])
            y = _least(rows, residual)
            loose = (H @ N)[: value.size][~held] @ root
            if loose.size:
                free = null_space(rows)
                y = y + free @ _least(loose @ free, gap[~held] - loose @ y, loose)
            y = root @ y
            length = float(np.abs(y).max()) if y.size else 0.0
            if length <= 1e-15 or (length < 1e-12 and length >= size):
                break
            q = self.motion.moved(q, y * min(1.0, _STRIDE / length))
            size = length
        g = self._at(q)[0].ravel()
        if g.size and not np.abs(g).max() <= _CLOSED:
            worst = self.motion.constraints[int(np.nanargmax(np.abs(g)))]
            why = "the initial values cannot be met:" if value.size else "the mechanism cannot be assembled:"
            name = self.system.constraint_names[worst]
            raise InputError(f"{why} '{name}' stays open by {np.abs(g).max():.3g}")
        return q

    # -- velocities ---------------------------------------------------------------------------------------------------
    @functools.cached_property
    def velocity(self) -> np.ndarray:
        """Velocities of least kinetic energy that satisfy the constraints and the required rates."""
        if self.as_drawn:
            return np.zeros(self.system.n)
        q = self.position
        value, held, _ = self._wanted(True)
        _, _, hidden, _, _, V, mass, G = self._at(q)
        N = self.motion.map(q)
        root = _root(N.T @ mass @ N)
        rows = np.vstack([G @ N, (V @ N)[held]]) @ root
        wanted = np.concatenate([-hidden.ravel(), value[held]])
        y = _least(rows, wanted)
        missed = np.abs(rows @ y - wanted)
        if missed.size and missed.max() > _HELD * (1.0 + np.abs(wanted).max()):
            names = [str(t) for t in self.targets if t.of_rates and t.hold for _ in range(t.value.size)]
            names = [*(self.system.constraint_names[i] for i in self.motion.constraints), *names]
            raise InputError(
                "the initial values cannot be met: the joints do not allow the required rates, "
                f"see {names[int(np.argmax(missed))]}"
            )
        if (~held).any():
            loose, free = (V @ N)[~held] @ root, null_space(rows)
            y = y + free @ _least(loose @ free, value[~held] - loose @ y, loose)
        return np.asarray(N @ (root @ y))

    def settle(self, q: np.ndarray) -> None:
        """Use a configuration as initial state, at rest except for drives."""
        self.__dict__["position"] = q
        self.targets = [target for target in self.targets if not target.of_rates]
        self.__dict__.pop("velocity", None)
        self.__dict__["velocity"] = self._driven(q)

    def _driven(self, q: np.ndarray) -> np.ndarray:
        """Return the velocity of least kinetic energy that the rheonomic constraints impose."""
        if self.as_drawn:
            return np.zeros(self.system.n)
        _, _, hidden, _, _, _, mass, G = self._at(q)
        N = self.motion.map(q)
        root = _root(N.T @ mass @ N)
        return np.asarray(N @ (root @ _least(G @ N @ root, -hidden.ravel())))

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray]:
        return self.position, self.velocity

    def reached(self) -> list[tuple[str, float, float]]:
        """Return name, target and reached value of every initial condition, without the phases of couplings."""
        found = []
        for rates, matrix in ((False, None), (True, 5)):
            value, _, angles = self._wanted(rates)
            have = self._at(self.position)[3].ravel() if matrix is None else self._at(self.position)[5] @ self.velocity
            have = value - _wrapped(value - have, angles)
            chosen = [t for t in self.targets if t.of_rates == rates for _ in range(t.value.size)]
            rows = zip(chosen, value.tolist(), np.ravel(have).tolist(), strict=True)
            found += [(str(t), asked, now) for t, asked, now in rows if not isinstance(t.what, Coupling)]
        return found

    # -- ranks --------------------------------------------------------------------------------------------------------
    def generic(self) -> np.ndarray:
        """Return a generic configuration near the initial one, for rank decisions."""
        q = self.position
        _, _, _, _, _, _, mass, G = self._at(q)
        N = self.motion.map(q)
        root = _root(N.T @ mass @ N)
        free = null_space(G @ N @ root)
        if not free.shape[1]:
            return q
        way = root @ free @ np.random.default_rng(7).standard_normal(free.shape[1])
        try:
            return self.closed(self.motion.moved(q, 0.02 * way / np.abs(way).max()))
        except InputError:
            return q

    def closed(self, q: np.ndarray) -> np.ndarray:
        """Project a configuration onto the position constraints, without targets."""
        none = np.zeros(0)
        return self._closed(q, none, none.astype(bool), none.astype(bool))

    def rows(self, q: np.ndarray) -> np.ndarray:
        """Return the Jacobian of the constraints between bodies in twist coordinates."""
        return np.asarray(self._at(q)[7] @ self.motion.map(q))

    def joint_rows(self, q: np.ndarray) -> np.ndarray:
        """Return the Jacobian of the constraints between bodies in twist coordinates, with rows of unit length."""
        rows = self.rows(q)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(length > 0, length, 1.0))


def _measured(target: Target, q: Any, v: Any) -> Any:
    what = target.what
    if isinstance(what, Coupling):
        return [sum(weight * value for value, (_, _, weight) in zip(what.values(q), what.members, strict=True))]
    if isinstance(what, Joint):
        of = {"angle": what.angle, "position": what.position}
        of_rates = {"rate": what.rate, "speed": what.speed}
        value = of[target.quantity](q) if target.quantity in of else of_rates[target.quantity](q, v)
        return [value] if not isinstance(value, np.ndarray) or value.ndim == 0 else list(value)
    d = what.dimension
    if target.quantity == "omega":
        found = angular_velocity(what.placement, q, v)
        return [found] if d == 2 else list(found)
    return list((q if target.quantity == "position" else v)[:d])


def _turned(x: np.ndarray) -> np.ndarray:
    """Return the derivative of directors by rotations: ``omega x d`` in space, a quarter turn in the plane."""
    if x.shape[-1] == 2:
        return np.stack([-x[..., 1], x[..., 0]], axis=-1)[..., None]
    hat = np.zeros((*x.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        hat[..., i, j], hat[..., j, i] = x[..., k], -x[..., k]
    return hat


def _in_space(R: np.ndarray) -> np.ndarray:
    return R if R.shape == (3, 3) else block_diag(R, 1.0)


def _root(mass: np.ndarray) -> np.ndarray:
    """Return the mass whitening W with ``W^T M W = I``."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(mass)).T)


def _least(rows: np.ndarray, right: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
    """Return the minimum-norm least-squares solution; entries below the rank tolerance of `before` are set to zero."""
    if not rows.size:
        return np.zeros(rows.shape[1])
    if before is not None:
        rows = np.where(np.abs(rows) > _RANK * np.abs(before).max(initial=0.0), rows, 0.0)
    return np.asarray(np.linalg.lstsq(rows, right, rcond=_RANK)[0])


def least_change(rows: np.ndarray, wanted: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the velocity change of least kinetic energy with ``rows change = wanted`` (Gauss principle)."""
    root = _root(mass)
    return np.asarray(root @ _least(rows @ root, wanted))


def null_space(rows: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the null space, as columns."""
    if not rows.shape[0]:
        return np.eye(rows.shape[1])
    _, sizes, vh = np.linalg.svd(rows)
    rank = int((sizes > _RANK * max(sizes[0], 1e-300)).sum())
    return np.asarray(vh[rank:].T)


def _wrapped(gap: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return differences with angles wrapped to half a turn."""
    return np.where(angles, np.remainder(gap + np.pi, 2 * np.pi) - np.pi, gap) if gap.size else gap
