"""Event-driven rigid contact: sequential Newton-Coulomb impacts, then the search for consistent contact modes.

Contact modes are open, sticking and sliding. An impact changes velocities by Newton restitution and Coulomb friction.
Closed contacts take part: impacts are solved one after the other, fastest first, until no contact approaches.
Flights become shorter and shorter, infinitely many in a finite time (Zeno behaviour). If the next flight is a small
fraction of a step, the contact closes persistently. The accelerations decide whether closed contacts stay closed, slide
or stick: normal forces are compressive, and friction forces lie within the friction cone.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, LivensWarning
from livens.expressions.parameters import ParameterNamespace
from livens.models.equations_of_motion import equations_of_motion
from livens.models.guarded_event import min_rebound_velocity
from livens.models.system import System
from livens.multibody.contacts.geometry.pair_geometry import slip_velocity
from livens.multibody.contacts.rigid_contact import SLIP_TOLERANCE, RigidContact, regularised_slip_direction, tangents
from livens.run.events.event import GAP_TOLERANCE, StateAndParameters
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.types import Expr

#: Slip velocity below which a contact sticks (m/s); events are localised slightly beyond zero.
_STICK_VELOCITY = 10 * SLIP_TOLERANCE
#: A slip that friction stops within this fraction of a step has stopped: states within a step are not more accurate.
_STOP_HORIZON = 0.02
#: Largest number of sequential impacts.
_MAX_IMPACTS = 10_000
#: Relative velocities below this fraction of the largest are round-off.
_VELOCITY_RTOL = 1e-12
#: Relative rank tolerance of Delassus matrices, of contacts and of joints.
_RANK_RTOL = 1e-12
#: Smallest eigenvalue of the Delassus matrix of independent rows, relative to its diagonal without joints.
_DEPENDENCE_TOL = 1e-8


@dataclass(frozen=True, eq=False)
class ContactState:
    """Contact kinematics and dynamics in one state: gaps, relative velocities, accelerations without contact forces."""

    gaps: np.ndarray
    relative_velocities: np.ndarray
    free_accelerations: np.ndarray
    #: Delassus matrix W = G B G^T and B G^T, with the inverse mass B that the joints leave.
    delassus: np.ndarray
    velocity_response: np.ndarray
    twist: np.ndarray
    #: Diagonal of the Delassus matrix without joints.
    free_delassus_diagonal: np.ndarray
    #: Tangent unit vectors in world axes, one column per slip component, for all contacts.
    tangent_basis: np.ndarray


class ContactDynamics:
    """Unilateral contacts of a system and their resolution."""

    def __init__(self, system: System, contacts: Sequence[RigidContact]) -> None:
        self.system, self.contacts = system, list(contacts)
        element_index = {id(element): i for i, element in enumerate(system.elements)}
        offset, self.slices, self.parameter_indices = 0, list[slice](), list[dict[str, list[int]]]()
        for contact in self.contacts:
            self.slices.append(slice(offset, offset + contact.n_directions))
            offset += contact.n_directions
            number = None if contact.element is None else element_index[id(contact.element)]
            self.parameter_indices.append(_indices(system, number, contact))
        self.size = offset
        self._indeterminate: set[str] = set()
        self.normal_rows = [slice_.start for slice_ in self.slices]
        #: Contacts that close persistently; the others only collide.
        self.persistent = [i for i, contact in enumerate(self.contacts) if contact.element is not None]
        self._joint_rows = _joint_rows(system, [element_index[id(c.element)] for c in self.contacts if c.element])
        self._derive_functions()

    # -- expressions ---------------------------------------------------------------------------------------------------
    def _derive_functions(self) -> None:
        """Derive gaps, velocities, free accelerations and the Delassus matrix ``W = G M^-1 G^T`` as functions."""
        system, tw, d = self.system, quasi_velocities(self.system), equations_of_motion(self.system)
        if not all(tw.has_constant_diagonal_mass):
            raise InputError(
                "rigid contact requires rigid bodies; use a compliant contact (mb.contact) on elastic ones"
            )
        u = ca.SX.sym("u", tw.size)
        q_rate = tw.to_qdot(d.q, u)
        terms = []
        for contact, indices in zip(self.contacts, self.parameter_indices, strict=True):
            i = indices["coordinates"]
            gap, relative_velocities, tangent_basis, slips, normal = _contact_kinematics(contact, system)(
                d.q[i], q_rate[i], d.k[indices["parameters"]]
            )
            terms.append((gap, relative_velocities[: contact.n_directions], tangent_basis, slips, normal))
        relative_velocities = ca.vertcat(*(term[1] for term in terms))
        G, bias = ca.jacobian(relative_velocities, u), ca.jtimes(relative_velocities, d.q, q_rate)
        force = ca.gradient(d.T - d.V, d.q) - ca.gradient(d.R, d.v) + d.F
        free_acceleration = tw.accelerations(d.q, u, tw.generalized_force(d.q, force), d.k, gyroscopic=True)

        def inverse_mass_times(jacobian: Expr) -> Expr:
            zero_twist = ca.SX.zeros(tw.size)
            columns = [
                tw.accelerations(d.q, zero_twist, row.T, d.k, gyroscopic=False) for row in ca.vertsplit(jacobian)
            ]
            return ca.horzcat(*columns) if columns else ca.SX(tw.size, 0)

        hidden = (
            ca.substitute(d.velocity_constraint[self._joint_rows], d.v, q_rate) if self._joint_rows else ca.SX(0, 1)
        )
        J = ca.jacobian(hidden, u)
        joint_bias = ca.jtimes(hidden, d.q, q_rate) + ca.jacobian(hidden, d.t)
        response, joint_response = inverse_mass_times(G), inverse_mass_times(J)
        gaps, tangent_basis = ca.vertcat(*(term[0] for term in terms)), ca.horzcat(*(term[2] for term in terms))
        accelerations, joint_accelerations = G @ free_acceleration + bias, J @ free_acceleration + joint_bias
        unconstrained = [gaps, relative_velocities, accelerations, G, response, J, joint_response, joint_accelerations]
        delassus = G @ response
        if self._joint_rows:
            delassus, accelerations = _eliminate_joints(
                delassus, accelerations, G @ joint_response, J @ joint_response, joint_accelerations
            )
        contact_forces = self._contact_forces(
            accelerations, delassus, [(term[2], term[3], term[4]) for term in terms], d.k
        )
        slip_guards = [self._slip_guard_expression(i, term[3], term[4], d.k) for i, term in enumerate(terms)]
        arguments, state_arguments = [d.q, u, d.v, d.t, d.k], [d.q, d.v, d.t, d.k]
        twist = tw.from_qdot(d.q, d.v)
        numbers = ca.Function("rest", arguments, [*unconstrained, u, tangent_basis])
        guards = ca.Function("guards", arguments, [gaps, contact_forces, ca.vertcat(*slip_guards)])
        values = numbers(d.q, twist, d.v, d.t, d.k)
        self._state_function = ca.Function("numbers", state_arguments, [ca.densify(term) for term in values])
        self._guard_function = ca.Function("signals", state_arguments, list(guards(d.q, twist, d.v, d.t, d.k)))
        self._lifted = ca.Function("lifted", [d.q, u], [q_rate])

    def _mode_flag(self, i: int, flag: str, k: Expr) -> Any:
        """Return a mode flag; a contact that only collides is open."""
        return k[self.parameter_indices[i][flag][0]] if i in self.persistent else 0.0

    def friction_coefficient(self, i: int, k: np.ndarray) -> float:
        """Return the friction coefficient of a contact."""
        if i not in self.persistent:
            return self.contacts[i].friction
        return float(k[self.parameter_indices[i]["friction"][0]])

    def _contact_forces(self, free_accelerations: Expr, delassus: Expr, slip_terms: Any, k: Any) -> Expr:
        """Return the contact forces for the modes given by the parameters."""
        active_flags, columns = [], []
        for i, (slice_, (tangent_basis, slips, normal)) in enumerate(zip(self.slices, slip_terms, strict=True)):
            touching, sticking = self._mode_flag(i, "touching", k), self._mode_flag(i, "sticking", k)
            column = delassus[:, slice_.start]
            if slice_.stop - slice_.start > 1 and i in self.persistent:
                slip_direction = _slip_direction(slips, normal, k[self.parameter_indices[i]["direction"]])
                friction_components = (
                    (1 - sticking) * self._mode_flag(i, "friction", k) * (tangent_basis.T @ slip_direction)
                )
                column = column - delassus[:, slice_.start + 1 : slice_.stop] @ friction_components
            columns += [column, *(delassus[:, j] for j in range(slice_.start + 1, slice_.stop))]
            active_flags += [touching, *[touching * sticking] * (slice_.stop - slice_.start - 1)]
        active = ca.vertcat(*active_flags)
        # Tikhonov term: where contact forces are not unique, the solution of least norm
        tikhonov = _RANK_RTOL * ca.trace(delassus) / self.size
        matrix = ca.diag(active) @ (ca.horzcat(*columns) + tikhonov * ca.SX.eye(self.size)) + ca.diag(1 - active)
        return ca.solve(ca.densify(matrix), -active * free_accelerations)

    def _slip_guard_expression(self, i: int, slips: Expr, normal: Expr, k: Expr) -> Expr:
        """Return the slip guard: positive while the slip keeps its direction."""
        if not self.contacts[i].friction or i not in self.persistent:
            return ca.SX(1)
        forward_slip = ca.dot(slips, k[self.parameter_indices[i]["direction"]])
        return forward_slip - ca.sqrt(ca.dot(slips, slips) + SLIP_TOLERANCE**2 / 4) / 2 + SLIP_TOLERANCE

    # -- guards: each event is a zero crossing with decreasing value --------------------------------------------------
    def gap_guard(self, i: int, q: Expr, v: Expr, t: Expr, k: Expr) -> Expr:
        touching = self._mode_flag(i, "touching", k)
        return (1 - touching) * self._guard_function(q, v, t, k)[0][i] + touching

    def force_guard(self, i: int, q: Expr, v: Expr, t: Expr, k: Expr) -> Expr:
        touching = self._mode_flag(i, "touching", k)
        return touching * self._guard_function(q, v, t, k)[1][self.normal_rows[i]] + 1 - touching

    def stick_guard(self, i: int, q: Expr, v: Expr, t: Expr, k: Expr) -> Expr:
        sticking, forces = self._mode_flag(i, "sticking", k), self._guard_function(q, v, t, k)[1][self.slices[i]]
        friction_margin = self._mode_flag(i, "friction", k) * forces[0] - ca.sqrt(
            ca.dot(forces[1:], forces[1:]) + 1e-300
        )
        return sticking * friction_margin + 1 - sticking

    def slip_guard(self, i: int, q: Expr, v: Expr, t: Expr, k: Expr) -> Expr:
        sliding = self._mode_flag(i, "touching", k) * (1 - self._mode_flag(i, "sticking", k))
        return sliding * self._guard_function(q, v, t, k)[2][i] + 1 - sliding

    def all_open(self, k: np.ndarray) -> np.ndarray:
        """Return the parameters with all contacts open."""
        k_open = k.copy()
        for i in self.persistent:
            k_open[[self.parameter_indices[i][flag][0] for flag in ("touching", "sticking")]] = 0.0
        return k_open

    # -- reset maps ---------------------------------------------------------------------------------------------------
    def state(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray) -> ContactState:
        """Return kinematics and dynamics of all contacts; reactions of joints are eliminated."""
        gaps, relative_velocities, accelerations, G, response, J, joint_response, joint_accelerations, twist, basis = (
            np.array(part) for part in self._state_function(q, v, t, k)
        )
        free_diagonal = np.einsum("ij,ji->i", G, response)
        if len(J):
            eliminated = np.linalg.lstsq(
                J @ joint_response, np.hstack([J @ response, joint_accelerations]), rcond=_RANK_RTOL
            )[0]
            response = response - joint_response @ eliminated[:, :-1]
            accelerations = accelerations - G @ joint_response @ eliminated[:, -1:]
        return ContactState(
            gaps.ravel(),
            relative_velocities.ravel(),
            accelerations.ravel(),
            G @ response,
            response,
            twist.ravel(),
            free_diagonal,
            basis,
        )

    def resolve(
        self,
        q: np.ndarray,
        v: np.ndarray,
        t: float,
        k: np.ndarray,
        h: float,
        impacting: Collection[int] = (),
        separating: int | None = None,
        slipping: int | None = None,
        reversing: int | None = None,
        before: StateAndParameters | None = None,
    ) -> Mapping[str, Any]:
        """Solve the impacts at the given contacts, then determine the contact modes consistent with the accelerations.

        Contacts `impacting` have just closed; contact `separating` opens, contact `slipping` starts to slide, and the
        slip of contact `reversing` has stopped or reversed. If an action of another event changed the state, `before`
        is the state before it: velocities that the action sets at closed contacts are not numerical drift.
        """
        s, k_before = self.state(q, v, t, k), k if before is None else before[2]
        closed_before = still_closed = [
            i for i in self.persistent if k_before[self.parameter_indices[i]["touching"][0]] > 0
        ]
        within_tolerance = np.flatnonzero(s.gaps <= GAP_TOLERANCE).tolist()  # just closed, or about to separate
        velocity_drift = s.relative_velocities
        if before is not None:
            still_closed = [i for i in closed_before if i in within_tolerance]
            velocity_drift = self.state(before[0], before[1], t, k_before).relative_velocities
        active = sorted({*still_closed, *impacting, *within_tolerance} - {separating})
        impulses = self._solve_impacts(
            s, self._velocity_drift_correction(s, still_closed, k_before, velocity_drift), active, k, h
        )
        relative_velocities = s.relative_velocities + s.delassus @ impulses
        velocity_tolerance = _VELOCITY_RTOL * max(float(np.abs(s.relative_velocities).max(initial=0.0)), 1e-3)
        closing_accelerations = {i: self._closing_acceleration(s, i, active) for i in active}
        not_separating = [
            i
            for i in active
            if i in self.persistent
            and relative_velocities[self.normal_rows[i]]
            <= max(10 * velocity_tolerance, min_rebound_velocity(closing_accelerations[i], h))
        ]
        closed = [
            i
            for i, force in zip(
                not_separating, _solve_normal_lcp(*self._normal_problem(s, not_separating)), strict=True
            )
            if force > 0
        ]
        closed, slip_directions = self._find_modes(s, relative_velocities, closed, slipping, reversing, k, h)
        constrained_rows = [j for i in closed for j in self._constrained_rows(i, slip_directions)]
        if constrained_rows:
            impulses[constrained_rows] += np.linalg.lstsq(
                s.delassus[np.ix_(constrained_rows, constrained_rows)],
                -relative_velocities[constrained_rows],
                rcond=_RANK_RTOL,
            )[0]
        changes: dict[str, Any] = {}
        independent = self._independent_rows(s, [i for i in closed if i in self.persistent], slip_directions)
        for i in {*active, *closed_before} & {*self.persistent}:
            name, is_closed = self.contacts[i].name, i in closed
            rows = range(self.slices[i].start, self.slices[i].stop)
            changes[f"{name}.independent"] = np.array([float(not is_closed or j in independent) for j in rows])
            changes[f"{name}.touching"] = float(is_closed)
            changes[f"{name}.sticking"] = float(
                is_closed and i not in slip_directions and bool(self.contacts[i].friction)
            )
            if i in slip_directions:
                changes[f"{name}.direction"] = self._tangents_of(s, i) @ slip_directions[i]
        v_after = np.array(self._lifted(q, s.twist + s.velocity_response @ impulses)).ravel()
        return {
            "q": self._project_positions(q, s, active),
            "v": v_after if impulses.any() else v,
            "parameters": changes,
        }

    def _project_positions(self, q: np.ndarray, s: ContactState, active: Sequence[int]) -> np.ndarray:
        """Project positions onto closed gaps up to round-off.

        A remaining gap would be larger than the height of the shortest flights.
        """
        normal_rows = [self.normal_rows[i] for i in active]
        if not normal_rows or not np.abs(s.gaps[list(active)]).max() > 1e-15:
            return q
        impulses = np.linalg.lstsq(
            s.delassus[np.ix_(normal_rows, normal_rows)], -s.gaps[list(active)], rcond=_RANK_RTOL
        )[0]
        return q + np.array(self._lifted(q, s.velocity_response[:, normal_rows] @ impulses)).ravel()

    def _tangents_of(self, s: ContactState, i: int) -> np.ndarray:
        """Return the tangent unit vectors of a contact in world axes, as columns."""
        count = self.contacts[i].contact_point.body_a.dimension - 1
        return s.tangent_basis[:, i * count : (i + 1) * count]

    def _constrained_rows(self, i: int, slipping: Collection[int]) -> list[int]:
        """Return the rows of the relative velocities that a closed contact constrains to zero."""
        slice_ = self.slices[i]
        return [slice_.start] if i in slipping else list(range(slice_.start, slice_.stop))

    def _independent_rows(self, s: ContactState, closed: Sequence[int], slipping: Collection[int]) -> set[int]:
        """Return the constrained rows that are independent of each other and of the joints, normal rows first.

        A dependent row is implied by the others; as a constraint it would make the equations of a step singular.
        Rows of sliding components are inactive and count as independent.
        """
        constrained = [self._constrained_rows(i, slipping) for i in closed]
        rows = [first for first, *_ in constrained] + [j for _, *others in constrained for j in others]
        independent = {j for i in closed for j in range(self.slices[i].start, self.slices[i].stop)} - set(rows)
        chosen: list[int] = []
        for j in rows:
            trial = [*chosen, j]
            scale = np.sqrt(s.free_delassus_diagonal[trial])
            matrix = s.delassus[np.ix_(trial, trial)] / np.outer(scale, scale)
            if np.linalg.eigvalsh((matrix + matrix.T) / 2)[0] > _DEPENDENCE_TOL:
                chosen = trial
        return independent | set(chosen)

    def _normal_problem(self, s: ContactState, contacts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the normal Delassus block of some contacts, and their free normal accelerations."""
        normal_rows = [self.normal_rows[i] for i in contacts]
        return s.delassus[np.ix_(normal_rows, normal_rows)], s.free_accelerations[normal_rows]

    def _closing_acceleration(self, s: ContactState, i: int, active: Sequence[int]) -> float:
        """Return the normal approach acceleration of contact i, with the other active contacts kept closed."""
        others = [j for j in active if j != i]
        forces = _solve_normal_lcp(*self._normal_problem(s, others))
        normal_rows = [self.normal_rows[j] for j in others]
        return -float(s.free_accelerations[self.normal_rows[i]] + s.delassus[self.normal_rows[i], normal_rows] @ forces)

    def _velocity_drift_correction(
        self, s: ContactState, closed: Sequence[int], k: np.ndarray, drift: np.ndarray
    ) -> np.ndarray:
        """Return impulses that remove the numerical velocity drift of closed contacts (no impacts, no restitution)."""
        slipping = [i for i in closed if not k[self.parameter_indices[i]["sticking"][0]] > 0]
        constrained_rows = [j for i in closed for j in self._constrained_rows(i, slipping)]
        impulses = np.zeros(self.size)
        impulses[constrained_rows] = np.linalg.lstsq(
            s.delassus[np.ix_(constrained_rows, constrained_rows)], -drift[constrained_rows], rcond=_RANK_RTOL
        )[0]
        return impulses

    def _solve_impacts(
        self, s: ContactState, impulses: np.ndarray, active: Sequence[int], k: np.ndarray, h: float
    ) -> np.ndarray:
        """Add the impulses of sequential impacts, fastest first, until no contact approaches."""
        relative_velocities = s.relative_velocities + s.delassus @ impulses
        tolerance = _VELOCITY_RTOL * float(np.abs(relative_velocities).max(initial=0.0))
        for _ in range(_MAX_IMPACTS):
            i = min(active, key=lambda j: float(relative_velocities[self.normal_rows[j]]), default=None)
            if i is None or relative_velocities[self.normal_rows[i]] >= -tolerance:
                return impulses
            slice_ = self.slices[i]
            rebound_velocity = -self.contacts[i].restitution * relative_velocities[slice_.start]
            closes = i in self.persistent and rebound_velocity < min_rebound_velocity(
                self._closing_acceleration(s, i, active), h
            )
            mu = self.friction_coefficient(i, k)
            impact = dissipative_impulse(
                s.delassus[slice_, slice_],
                relative_velocities[slice_],
                0.0 if closes else self.contacts[i].restitution,
                mu,
            )
            impulses[slice_] += impact
            relative_velocities += s.delassus[:, slice_] @ impact
        names = ", ".join(self.contacts[i].name for i in active)
        raise InputError(
            f"impacts at {names} did not terminate after 10000 iterations; use a compliant contact (mb.contact)"
        )

    def _find_modes(
        self,
        s: ContactState,
        relative_velocities: np.ndarray,
        closed: list[int],
        slipping: int | None,
        reversing: int | None,
        k: np.ndarray,
        h: float,
    ) -> tuple[list[int], dict[int, np.ndarray]]:
        """Return the closed contacts and the slip directions of the sliding ones; the others with friction stick."""
        slip_directions: dict[int, np.ndarray] = {}
        for i in closed:
            slip = relative_velocities[self.slices[i]][1:]
            slip_speed = float(np.linalg.norm(slip))
            if slip_speed > _STICK_VELOCITY:
                slip_directions[i] = slip / slip_speed
        for i in list(slip_directions):
            direction = self._tangents_of(s, i) @ slip_directions[i]
            # states within a step are not exact: a slip that has reversed has passed zero
            is_reversed = i == reversing and direction @ k[self.parameter_indices[i]["direction"]] <= 0
            velocity_loss = self._slip_deceleration(s, i, closed, slip_directions, k) * _STOP_HORIZON * h
            if is_reversed or velocity_loss > relative_velocities[self.slices[i]][1:] @ slip_directions[i]:
                del slip_directions[i]
        max_passes = 3 * len(closed) + 2
        for _ in range(max_passes):
            forces = self._mode_forces(s, closed, slip_directions, k)
            # a sticking contact outside of its friction cone slides before it opens
            tensile = [
                i
                for i in closed
                if forces[self.normal_rows[i]] <= 0 and (i in slip_directions or not forces[self.slices[i]][1:].any())
            ]
            if tensile:
                closed = [i for i in closed if i not in tensile]
                continue
            new_slip = None
            for i in closed:
                force = forces[self.slices[i]]
                if i in slip_directions or len(force) == 1:
                    continue
                friction_needed = float(np.linalg.norm(force[1:]))
                if friction_needed > 0 and (
                    i == slipping or friction_needed > self.friction_coefficient(i, k) * force[0]
                ):
                    new_slip = i, -force[1:] / friction_needed
                    break
            if new_slip is None:
                break
            slip_directions[new_slip[0]] = new_slip[1]
        return closed, {i: slip_direction for i, slip_direction in slip_directions.items() if i in closed}

    def _slip_deceleration(
        self, s: ContactState, i: int, closed: Sequence[int], slip_directions: Mapping[int, np.ndarray], k: np.ndarray
    ) -> float:
        """Return the deceleration of a slip by friction."""
        slice_, forces = self.slices[i], self._mode_forces(s, closed, slip_directions, k)
        for j in slip_directions:
            forces[self.slices[j]][1:] = (
                -self.friction_coefficient(j, k) * forces[self.normal_rows[j]] * slip_directions[j]
            )
        return -float((s.free_accelerations + s.delassus @ forces)[slice_][1:] @ slip_directions[i])

    def _mode_forces(
        self, s: ContactState, closed: Sequence[int], slip_directions: Mapping[int, np.ndarray], k: np.ndarray
    ) -> np.ndarray:
        """Return the contact forces of the closed contacts, some of which slide."""
        constrained_rows = [j for i in closed for j in self._constrained_rows(i, slip_directions)]
        friction_basis = np.eye(self.size)
        for i in closed:
            if i in slip_directions and len(slip_directions[i]):
                slice_ = self.slices[i]
                friction_basis[slice_.start + 1 : slice_.stop, slice_.start] = (
                    -self.friction_coefficient(i, k) * slip_directions[i]
                )
        forces = np.zeros(self.size)
        if not constrained_rows:
            return forces
        matrix = (s.delassus @ friction_basis)[np.ix_(constrained_rows, constrained_rows)]
        if np.linalg.cond(matrix) > 1 / _RANK_RTOL:
            self._report_indeterminate(closed)
        if any(
            matrix[constrained_rows.index(self.normal_rows[i]), constrained_rows.index(self.normal_rows[i])] <= 0
            for i in closed
        ):
            names = ", ".join(self.contacts[i].name for i in closed)
            raise InputError(
                f"{names}: Painleve paradox, no contact force satisfies the friction law; use a compliant contact "
                "(mb.contact)"
            )
        forces[constrained_rows] = np.linalg.lstsq(matrix, -s.free_accelerations[constrained_rows], rcond=_RANK_RTOL)[0]
        return forces

    def _report_indeterminate(self, closed: Sequence[int]) -> None:
        """Warn once that contact forces are not unique, or raise an error if a contact requires unique forces."""
        names = ", ".join(self.contacts[i].name for i in closed)
        message = (
            f"contact forces at {names} are statically indeterminate (condition number of the Delassus matrix > 1e12)"
        )
        if any(self.contacts[i].unique for i in closed):
            raise InputError(
                f"{message}; use a compliant contact (mb.contact), or unique=False if only the motion matters"
            )
        if names not in self._indeterminate:
            self._indeterminate.add(names)
            warnings.warn(
                f"{message}; the motion is unique, dependent constraints carry no force", LivensWarning, stacklevel=2
            )


def _least_norm_solution(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Return the solution of least norm; joints may prevent motion in a contact direction."""
    return np.asarray(np.linalg.lstsq(matrix, rhs, rcond=_RANK_RTOL)[0])


def impact_impulse(delassus: np.ndarray, velocity: np.ndarray, e: float, mu: float) -> np.ndarray:
    """Return the impulse of one impact (Newton restitution, Coulomb friction), normal component first."""
    approach_velocity, normal = float(velocity[0]), np.eye(len(velocity))[0]
    sticking_impulse = _least_norm_solution(delassus, -velocity - e * approach_velocity * normal)
    if len(velocity) == 1 or np.linalg.norm(sticking_impulse[1:]) <= mu * sticking_impulse[0]:
        return sticking_impulse
    tangential_velocity = velocity - approach_velocity * normal
    slip_speed = float(np.linalg.norm(tangential_velocity))
    impulse_direction = normal if not slip_speed else normal - mu * tangential_velocity / slip_speed
    return np.asarray(-(1 + e) * approach_velocity / (normal @ delassus @ impulse_direction) * impulse_direction)


def dissipative_impulse(delassus: np.ndarray, velocity: np.ndarray, e: float, mu: float) -> np.ndarray:
    """Return the impulse of one impact with the largest restitution up to e that does not increase kinetic energy.

    Newton restitution with friction may supply energy in eccentric impacts (Kane and Levinson 1985).
    """
    impulse = impact_impulse(delassus, velocity, e, mu)
    scale = float(np.abs(impulse) @ np.abs(velocity))
    if not e or _energy_change(delassus, velocity, impulse) <= _VELOCITY_RTOL * scale:
        return impulse
    low, high = 0.0, e
    for _ in range(60):
        middle = (low + high) / 2
        impulse = impact_impulse(delassus, velocity, middle, mu)
        low, high = (low, middle) if _energy_change(delassus, velocity, impulse) > 0 else (middle, high)
    return impact_impulse(delassus, velocity, low, mu)


def _energy_change(delassus: np.ndarray, velocity: np.ndarray, impulse: np.ndarray) -> float:
    """Return the change of kinetic energy by an impulse: ``P.(v + W P/2)``."""
    return float(impulse @ (velocity + delassus @ impulse / 2))


def _solve_normal_lcp(delassus: np.ndarray, free_accelerations: np.ndarray) -> np.ndarray:
    """Solve the normal contact problem ``0 <= f, W f + a >= 0`` by dropping tensile contacts one at a time."""
    active, forces = list(range(len(free_accelerations))), np.zeros(len(free_accelerations))
    while active:
        trial_forces = np.linalg.lstsq(delassus[np.ix_(active, active)], -free_accelerations[active], rcond=_RANK_RTOL)[
            0
        ]
        if trial_forces.min() > 0:
            forces[active] = trial_forces
            break
        active.pop(int(np.argmin(trial_forces)))
    return forces


def _joint_rows(system: System, contact_elements: Sequence[int]) -> list[int]:
    """Return the indices of the constraints between bodies, without those of rigid contacts."""
    excluded = {i for frame in system.frames for i in frame.constraints}
    for number in contact_elements:
        rows = system.element_constraints[number]
        excluded |= set(range(rows.start, rows.stop))
    return [i for i in range(system.m) if i not in excluded]


def _eliminate_joints(
    delassus: Expr, accelerations: Expr, coupling: Expr, joint_delassus: Expr, joint_accelerations: Expr
) -> tuple[Expr, Expr]:
    """Return Delassus matrix and free accelerations of the contacts with the joint reactions eliminated.

    This is ``W - C S^-1 C^T`` with ``S = J A J^T`` and ``C = G A J^T``. S is regularised, since constraints may be
    redundant: the expressions are those of guards, which decide when a contact opens or slides.
    """
    size = joint_delassus.shape[0]
    regularised = joint_delassus + 1e-14 * ca.trace(joint_delassus) / size * ca.SX.eye(size)
    D, LT, permutation = ca.ldl(regularised)
    solution = ca.ldl_solve(ca.horzcat(coupling.T, joint_accelerations), D, LT, permutation)
    return delassus - coupling @ solution[:, :-1], accelerations - coupling @ solution[:, -1]


def _indices(system: System, element_number: int | None, contact: RigidContact) -> dict[str, list[int]]:
    """Return the indices of the coordinates and parameters of a contact in those of the system."""
    coordinate_index = {name: i for i, name in enumerate(system.coordinates)}
    coordinates = [coordinate_index[name] for name in contact.coordinates]
    if contact.element is None or element_number is None:
        return {"coordinates": coordinates, "parameters": []}
    parameter_indices = list(system.element_parameters[element_number])
    element_parameters, indices, offset = parameter_indices[system.model_parameters.size :], dict[str, list[int]](), 0
    for name, value in contact.element.parameters.values.items():
        size = int(np.size(value))
        indices[name] = element_parameters[offset : offset + size]
        offset += size
    return indices | {"coordinates": coordinates, "parameters": parameter_indices}


def _contact_kinematics(contact: RigidContact, system: System) -> ca.Function:
    """Return a function for gap, relative velocities, tangent basis, slip velocity and normal of a contact."""
    contact_point, element = contact.contact_point, contact.element
    n, size = len(contact.coordinates), system.model_parameters.size
    q, v, k = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX(0, 1)
    named: dict[str, Any] = {**contact_point.parameters, **contact_point.constants}
    if element is not None:
        k = ca.SX.sym("k", size + element.parameters.size)
        named = (
            system.model_parameters.unpack_symbols(k[:size])
            | element.parameters.unpack_symbols(k[size:])
            | element.constants
        )
    a, b = contact_point.body_a.parametrisation, contact_point.body_b.parametrisation
    coordinates, velocities = m.from_casadi(q), m.from_casadi(v)
    gap, normal, point = contact_point.geometry.contact_frame(a, b, coordinates, ParameterNamespace(named))
    slips, axes = slip_velocity(a, b, coordinates, velocities, normal, point), tangents(normal)
    gap_rate = ca.jtimes(m.to_casadi(gap), q, v)
    slip_rates = [m.to_casadi(m.array([m.dot(axis, slips)])) for axis in axes]
    tangent_basis = ca.horzcat(*(m.to_casadi(m.array(axis)) for axis in axes))
    outputs = [
        m.to_casadi(gap),
        ca.vertcat(gap_rate, *slip_rates),
        tangent_basis,
        *(m.to_casadi(m.array(x)) for x in (slips, normal)),
    ]
    return ca.Function("touch", [q, v, k], outputs)


def _slip_direction(slips: Any, normal: Any, direction: Any) -> Expr:
    return m.to_casadi(
        m.array(regularised_slip_direction(m.from_casadi(slips), m.from_casadi(normal), m.from_casadi(direction)))
    )
