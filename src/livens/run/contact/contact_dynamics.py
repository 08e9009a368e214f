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
from typing import Any

import numpy as np

from livens.errors import InputError, LivensWarning
from livens.models.guarded_event import min_rebound_velocity
from livens.models.system import System
from livens.multibody.contacts.impact_law import RANK_RTOL, VELOCITY_RTOL, dissipative_impulse, solve_normal_lcp
from livens.multibody.contacts.rigid_contact import SLIP_TOLERANCE, UnilateralContact
from livens.run.contact.contact_equations import ContactEquations, ContactState
from livens.run.events.event import GAP_TOLERANCE, StateAndParameters

#: Slip velocity below which a contact sticks (m/s); events are localised slightly beyond zero.
_STICK_VELOCITY = 10 * SLIP_TOLERANCE
#: A slip that friction stops within this fraction of a step has stopped: states within a step are not more accurate.
_STOP_HORIZON = 0.02
#: Largest number of sequential impacts.
_MAX_IMPACTS = 10_000
#: Smallest eigenvalue of the Delassus matrix of independent rows, scaled to a unit diagonal.
_DEPENDENCE_TOL = 1e-8


class ContactDynamics(ContactEquations):
    """Unilateral contacts of a system and their resolution."""

    def __init__(self, system: System, contacts: Sequence[UnilateralContact]) -> None:
        super().__init__(system, contacts)
        self._indeterminate: set[str] = set()

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
        velocity_tolerance = VELOCITY_RTOL * max(float(np.abs(s.relative_velocities).max(initial=0.0)), 1e-3)
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
            for i, force in zip(not_separating, solve_normal_lcp(*self._normal_problem(s, not_separating)), strict=True)
            if force > 0
        ]
        closed, slip_directions = self._find_modes(s, relative_velocities, closed, slipping, reversing, k, h)
        constrained_rows = [j for i in closed for j in self._constrained_rows(i, slip_directions)]
        if constrained_rows:
            impulses[constrained_rows] += np.linalg.lstsq(
                s.delassus[np.ix_(constrained_rows, constrained_rows)],
                -relative_velocities[constrained_rows],
                rcond=RANK_RTOL,
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
            s.delassus[np.ix_(normal_rows, normal_rows)], -s.gaps[list(active)], rcond=RANK_RTOL
        )[0]
        return q + np.array(self._lifted(q, s.velocity_response[:, normal_rows] @ impulses)).ravel()

    def _tangents_of(self, s: ContactState, i: int) -> np.ndarray:
        """Return the tangent unit vectors of a contact in world axes, as columns."""
        count = self.contacts[i].dimension - 1
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
        diagonal = np.diag(s.delassus)
        for j in rows:
            if diagonal[j] <= RANK_RTOL * s.free_delassus_diagonal[j]:  # the joints prevent this motion
                continue
            trial = [*chosen, j]
            scale = np.sqrt(diagonal[trial])
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
        forces = solve_normal_lcp(*self._normal_problem(s, others))
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
            s.delassus[np.ix_(constrained_rows, constrained_rows)], -drift[constrained_rows], rcond=RANK_RTOL
        )[0]
        return impulses

    def _solve_impacts(
        self, s: ContactState, impulses: np.ndarray, active: Sequence[int], k: np.ndarray, h: float
    ) -> np.ndarray:
        """Add the impulses of sequential impacts, fastest first, until no contact approaches."""
        relative_velocities = s.relative_velocities + s.delassus @ impulses
        tolerance = VELOCITY_RTOL * float(np.abs(relative_velocities).max(initial=0.0))
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
        while True:  # ends: a contact slides once, and opens once
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
        """Return the contact forces of the closed contacts, some of which slide.

        A slip that the joints prevent needs no friction force.
        """
        normal_rows = {self.normal_rows[i] for i in closed}
        movable = np.diag(s.delassus) > RANK_RTOL * s.free_delassus_diagonal
        constrained_rows = [
            j for i in closed for j in self._constrained_rows(i, slip_directions) if j in normal_rows or movable[j]
        ]
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
        if np.linalg.cond(matrix) > 1 / RANK_RTOL:
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
        forces[constrained_rows] = np.linalg.lstsq(matrix, -s.free_accelerations[constrained_rows], rcond=RANK_RTOL)[0]
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
