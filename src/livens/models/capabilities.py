"""What a mechanical system is like, as schemes may ask of it: its mass, its constraints, and what depends on what.

`livens.schemes.base.Requirement` names these properties.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

import casadi as ca

from livens.models.element import ElementModel
from livens.models.frames import turn_regularly
from livens.models.mass import left_invariant_mass, mass_rank, no_linear_part

if TYPE_CHECKING:
    from livens.models.frames import Frame
    from livens.models.system import System


class Capabilities:
    """Properties of a system that follow from the types of its elements; each is found out when it is first asked."""

    n: int
    models: tuple[ElementModel, ...]
    quaternions: tuple[tuple[int, ...], ...]
    frames: tuple[Frame, ...]

    @property
    def _system(self) -> System:
        """The same, with all that a system has."""
        return cast("System", self)

    @functools.cached_property
    def quadratic_kinetic_energy(self) -> bool:
        """The kinetic energy is at most quadratic in the velocities."""
        return all(not ca.depends_on(model.mass, model.v) for model in self._distinct)

    @functools.cached_property
    def kinetic_form(self) -> bool:
        """The kinetic energy is a quadratic form of the velocities: ``v.M(q) v / 2`` and nothing else."""
        return self.quadratic_kinetic_energy and all(no_linear_part(model) for model in self._distinct)

    @functools.cached_property
    def constant_mass(self) -> bool:
        """The mass matrix depends on no coordinate (and the kinetic energy is quadratic in v)."""
        return all(not ca.depends_on(model.mass, ca.vertcat(model.q, model.v)) for model in self._distinct)

    @property
    def has_quaternions(self) -> bool:
        return bool(self.quaternions)

    @property
    def has_frames(self) -> bool:
        return bool(self.frames)

    @property
    def has_rotors(self) -> bool:
        return any(frame.rotor for frame in self.frames)

    @property
    def without_rotors(self) -> bool:
        return not self.has_rotors

    @functools.cached_property
    def regular_rotation(self) -> bool:
        """The rotation of every frame follows from its angular momentum: no principal moment of inertia is zero."""
        return turn_regularly(self._system)

    @functools.cached_property
    def quadratic_constraints(self) -> bool:
        """All constraints are at most quadratic in the coordinates."""
        return not any(
            ca.depends_on(ca.jacobian(ca.jacobian(model.g, model.q), model.q), model.q) for model in self._distinct
        )

    @functools.cached_property
    def regular_mass(self) -> bool:
        """The mass matrix has full rank at generic configurations."""
        return mass_rank(self._system, augmented=False) == self.n

    @functools.cached_property
    def mass_where_it_moves(self) -> bool:
        """The mass matrix is positive on all velocities that the constraints allow, at generic configurations."""
        return self.regular_mass or mass_rank(self._system, augmented=False, constrained=True) == self.n

    @functools.cached_property
    def mass_or_damping_where_it_moves(self) -> bool:
        """The same of the mass matrix with the derivatives of forces by velocities added."""
        return self.mass_where_it_moves or mass_rank(self._system, False, constrained=True, damped=True) == self.n

    @property
    def known_velocities(self) -> bool:
        """Velocities follow from momenta: the mass matrix is regular, or p = M v with the same M everywhere."""
        return self.regular_mass or (self.constant_mass and self.separable)

    @functools.cached_property
    def regular_augmented_mass(self) -> bool:
        """The mass matrix has full rank, with ``q q^T`` added for every unit quaternion (S004 eq. 140)."""
        return mass_rank(self._system, augmented=True) == self.n

    @functools.cached_property
    def left_invariant_mass(self) -> bool:
        """M depends on unit quaternions only, as ``Q_l M Q_l^T``, and no two elements have mass on one coordinate."""
        return left_invariant_mass(self._system)

    @functools.cached_property
    def separable(self) -> bool:
        """The kinetic energy depends on v alone, so energy is a sum of a part in v and a part in q."""
        return all(not ca.depends_on(model.T, model.q) for model in self._distinct)

    @functools.cached_property
    def autonomous(self) -> bool:
        """Nothing depends on time."""
        return not any(
            ca.depends_on(ca.vertcat(model.V, model.R, model.F, model.g), model.t)
            or (model.rates is not None and ca.depends_on(model.rates.a, model.t))
            for model in self._distinct
        )

    @functools.cached_property
    def rolls(self) -> bool:
        """There are constraints on velocity level, such as those of rolling."""
        return any(model.rates is not None for model in self.models)

    @functools.cached_property
    def scleronomic(self) -> bool:
        """No constraint depends on time."""
        return not any(ca.depends_on(model.g, model.t) for model in self._distinct)

    @functools.cached_property
    def conservative(self) -> bool:
        """No dissipation, no applied forces, nothing depends on time."""
        return self.autonomous and not any(
            not model.R.is_zero() or model.F.nnz() > 0 or model.driven or model.rubs for model in self._distinct
        )

    @functools.cached_property
    def _distinct(self) -> tuple[ElementModel, ...]:
        """The types of elements there are."""
        return tuple(dict.fromkeys(self.models))

    def _why_not_conservative(self) -> str:
        reasons = [
            word
            for word, holds in {
                "dissipation": any(not model.R.is_zero() for model in self._distinct),
                "applied forces": any(model.F.nnz() > 0 for model in self._distinct),
                "time-dependent": not self.autonomous,
            }.items()
            if holds
        ]
        return f"no ({', '.join(reasons)})" if reasons else "yes"
