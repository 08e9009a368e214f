"""Equations of rigid contacts: gaps, relative velocities, free accelerations, Delassus matrix, forces and guards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace
from livens.models.equations_of_motion import equations_of_motion
from livens.models.system import System
from livens.multibody.contacts.impact_law import RANK_RTOL, joint_reactions
from livens.multibody.contacts.rigid_contact import (
    SLIP_TOLERANCE,
    UnilateralContact,
    regularised_slip_direction,
    tangents,
)
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.types import Expr


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


class ContactEquations:
    """Equations of the unilateral contacts of a system: kinematics, Delassus matrix, forces and guards."""

    def __init__(self, system: System, contacts: Sequence[UnilateralContact]) -> None:
        self.system, self.contacts = system, list(contacts)
        element_index = {id(element): i for i, element in enumerate(system.elements)}
        offset, self.slices, self.parameter_indices = 0, list[slice](), list[dict[str, list[int]]]()
        for contact in self.contacts:
            self.slices.append(slice(offset, offset + contact.n_directions))
            offset += contact.n_directions
            number = None if contact.element is None else element_index[id(contact.element)]
            self.parameter_indices.append(_indices(system, number, contact))
        self.size = offset
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
        tikhonov = RANK_RTOL * ca.trace(delassus) / self.size
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
            eliminated = joint_reactions(J @ joint_response, np.hstack([J @ response, joint_accelerations]))
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
    # the expressions may be symmetric in value, but not in their structural zeros
    regularised = (joint_delassus + joint_delassus.T) / 2 + 1e-14 * ca.trace(joint_delassus) / size * ca.SX.eye(size)
    D, LT, permutation = ca.ldl(regularised)
    solution = ca.ldl_solve(ca.horzcat(coupling.T, joint_accelerations), D, LT, permutation)
    return delassus - coupling @ solution[:, :-1], accelerations - coupling @ solution[:, -1]


def _indices(system: System, element_number: int | None, contact: UnilateralContact) -> dict[str, list[int]]:
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


def _contact_kinematics(contact: UnilateralContact, system: System) -> ca.Function:
    """Return a function for gap, relative velocities, tangent basis, slip velocity and normal of a contact."""
    element = contact.element
    n, size = len(contact.coordinates), system.model_parameters.size
    q, v, k = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX(0, 1)
    named: dict[str, Any] = {**contact.gap_parameters, **contact.gap_constants}
    if element is not None:
        k = ca.SX.sym("k", size + element.parameters.size)
        named = (
            system.model_parameters.unpack_symbols(k[:size])
            | element.parameters.unpack_symbols(k[size:])
            | element.constants
        )
    gap, slips, normal = contact.kinematics(m.from_casadi(q), m.from_casadi(v), ParameterNamespace(named))
    axes, gap = tangents(normal), m.to_casadi(m.array([gap]))
    slip_rates = [m.to_casadi(m.array([m.dot(axis, slips)])) for axis in axes]
    tangent_basis = ca.horzcat(*(m.to_casadi(m.array(axis)) for axis in axes))
    outputs = [
        gap,
        ca.vertcat(ca.jtimes(gap, q, v), *slip_rates),
        tangent_basis,
        *(m.to_casadi(m.array(x)) for x in (slips, normal)),
    ]
    return ca.Function("touch", [q, v, k], outputs)


def _slip_direction(slips: Any, normal: Any, direction: Any) -> Expr:
    return m.to_casadi(
        m.array(regularised_slip_direction(m.from_casadi(slips), m.from_casadi(normal), m.from_casadi(direction)))
    )
