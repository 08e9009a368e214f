"""Structural properties of mechanical systems: mass matrix, constraints and dependencies; SymPy in and out.

`livens.schemes.core.scheme.Requirement` names these properties.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import casadi as ca

from livens.errors import InputError, MissingExtraError
from livens.models.director_bodies import has_regular_inertia
from livens.models.element import ElementType
from livens.models.mass import is_pure_quadratic, left_invariant_mass, mass_rank

if TYPE_CHECKING:
    from livens.models.director_bodies import DirectorBodyDofs
    from livens.models.sympy_models import SympySystem
    from livens.models.system import System


class SystemProperties:
    """Structural properties of a system, derived from its element types and cached."""

    n: int
    element_types: tuple[ElementType, ...]
    quaternions: tuple[tuple[int, ...], ...]
    frames: tuple[DirectorBodyDofs, ...]

    @property
    def _system(self) -> System:
        """This object, typed as a System."""
        return cast("System", self)

    @functools.cached_property
    def quadratic_kinetic_energy(self) -> bool:
        """True if the kinetic energy is at most quadratic in the velocities."""
        return all(not ca.depends_on(model.mass, model.v) for model in self.distinct_types)

    @functools.cached_property
    def homogeneous_kinetic_energy(self) -> bool:
        """True if the kinetic energy is a homogeneous quadratic form of the velocities, ``v.M(q) v / 2``."""
        return self.quadratic_kinetic_energy and all(is_pure_quadratic(model) for model in self.distinct_types)

    @functools.cached_property
    def constant_mass(self) -> bool:
        """True if the mass matrix is constant (and the kinetic energy quadratic in v)."""
        return all(not ca.depends_on(model.mass, ca.vertcat(model.q, model.v)) for model in self.distinct_types)

    @property
    def has_quaternions(self) -> bool:
        """True if coordinates are unit quaternions."""
        return bool(self.quaternions)

    @property
    def has_frames(self) -> bool:
        """True if bodies with directors are treated as rigid frames."""
        return bool(self.frames)

    @property
    def has_rotors(self) -> bool:
        """True if a rigid frame is a rotor."""
        return any(frame.rotor for frame in self.frames)

    @property
    def without_rotors(self) -> bool:
        """True if no rigid frame is a rotor."""
        return not self.has_rotors

    @functools.cached_property
    def has_regular_inertia(self) -> bool:
        """True if all principal moments of inertia of every frame are positive."""
        return has_regular_inertia(self._system)

    @functools.cached_property
    def quadratic_constraints(self) -> bool:
        """True if all constraints are at most quadratic in the coordinates."""
        return not any(
            ca.depends_on(ca.jacobian(ca.jacobian(model.g, model.q), model.q), model.q) for model in self.distinct_types
        )

    @functools.cached_property
    def regular_mass(self) -> bool:
        """True if the mass matrix has full rank at generic configurations."""
        return mass_rank(self._system, augmented=False) == self.n

    @functools.cached_property
    def mass_regular_on_nullspace(self) -> bool:
        """True if the mass matrix is positive definite on ker G at generic configurations."""
        return self.regular_mass or mass_rank(self._system, augmented=False, constrained=True) == self.n

    @functools.cached_property
    def mass_or_damping_regular_on_nullspace(self) -> bool:
        """True if mass plus damping matrix is positive definite on ker G at generic configurations."""
        return self.mass_regular_on_nullspace or mass_rank(self._system, False, constrained=True, damped=True) == self.n

    @property
    def velocities_from_state(self) -> bool:
        """True if momenta determine the velocities: M is regular, or p = M v with constant M."""
        return self.regular_mass or (self.constant_mass and self.separable)

    @functools.cached_property
    def regular_augmented_mass(self) -> bool:
        """True if the mass matrix plus ``q q^T`` of every unit quaternion has full rank.

        See Kinon and Betsch 2024, eq. 140.
        """
        return mass_rank(self._system, augmented=True) == self.n

    @functools.cached_property
    def left_invariant_mass(self) -> bool:
        """True if M depends on unit quaternions only, as ``Q_l M Q_l^T``, with disjoint masses of elements."""
        return left_invariant_mass(self._system)

    @functools.cached_property
    def separable(self) -> bool:
        """True if the kinetic energy depends on v only, so that the energy is T(v) + V(q)."""
        return all(not ca.depends_on(model.T, model.q) for model in self.distinct_types)

    @functools.cached_property
    def autonomous(self) -> bool:
        """True if the equations do not depend on time explicitly."""
        return not any(
            ca.depends_on(ca.vertcat(model.V, model.R, model.F, model.g), model.t)
            or (model.velocity_constraints is not None and ca.depends_on(model.velocity_constraints.a, model.t))
            for model in self.distinct_types
        )

    @functools.cached_property
    def has_velocity_constraints(self) -> bool:
        """True if there are velocity-level (nonholonomic) constraints, such as rolling."""
        return any(model.velocity_constraints is not None for model in self.element_types)

    @functools.cached_property
    def scleronomic(self) -> bool:
        """True if no constraint depends on time."""
        return not any(ca.depends_on(model.g, model.t) for model in self.distinct_types)

    @functools.cached_property
    def conservative(self) -> bool:
        """True if there are no dissipation, no applied forces and no time dependence."""
        return not self._nonconservative_terms

    @functools.cached_property
    def distinct_types(self) -> tuple[ElementType, ...]:
        """Distinct element types."""
        return tuple(dict.fromkeys(self.element_types))

    @functools.cached_property
    def _nonconservative_terms(self) -> tuple[str, ...]:
        """Names of the terms that change the total energy; empty for a conservative system."""
        types = self.distinct_types
        terms = {
            "dissipation": any(not model.R.is_zero() for model in types),
            "applied forces": any(model.F.nnz() > 0 for model in types),
            "external force": self._system.external_force is not None,
            "prescribed motion": any(model.is_driven for model in types),
            "friction of constraints": any(model.has_constraint_friction for model in types),
            "time-dependent": not self.autonomous,
        }
        return tuple(name for name, is_present in terms.items() if is_present)

    def _conservative_text(self) -> str:
        terms = self._nonconservative_terms
        return f"no ({', '.join(terms)})" if terms else "yes"

    # -- SymPy ---------------------------------------------------------------------------------------------------------
    @classmethod
    def from_sympy(cls, source: Any, coordinates: Sequence[Any] | None = None, **options: Any) -> System:
        """Return a system of a Lagrangian or of energies in SymPy; see `livens.from_sympy`.

        Parameters
        ----------
        source : sympy.Expr, tuple of sympy.Expr or LagrangesMethod
            A Lagrangian L, energies (T, V), or a `LagrangesMethod`.
        coordinates : sequence of sympy.Expr, optional
            Generalized coordinates, functions of time.
        **options
            Further arguments of `livens.from_sympy`.

        Returns
        -------
        System
            System whose parameters have the names of the symbols.

        Raises
        ------
        InputError
            If `source` is a model of first order, such as a `KanesMethod`.
        """
        from livens.models.sympy_models import from_sympy

        model = from_sympy(source, coordinates, **options)
        if not isinstance(model, SystemProperties):
            raise InputError(f"a {type(source).__name__} is a model of first order: use livens.from_sympy")
        return model._system

    def to_sympy(self) -> SympySystem:
        """Return the energies, constraints and forces as SymPy expressions.

        Returns
        -------
        SympySystem
            Expressions, with `lagrangian` and `equations` of motion; LaTeX in notebooks.

        Raises
        ------
        InputError
            If the system has velocity-level constraints.

        Examples
        --------
        >>> import livens as lv
        >>> ball = lv.System("z", kinetic=lambda v, k: 0.5 * k.m * v[0] ** 2, potential=lambda q, k: 9.81 * k.m * q[0],
        ...                  parameters=dict(m=1.0))
        >>> ball.to_sympy().potential
        981*m*z(t)/100
        """
        from livens.models.sympy_models import to_sympy

        return to_sympy(self._system)

    def _repr_latex_(self) -> str | None:
        """Return the equations of motion of a small system in LaTeX; None for others, or without SymPy."""
        from livens.models.sympy_models import MAX_SHOWN_COORDINATES

        if self._system.n > MAX_SHOWN_COORDINATES or self.has_velocity_constraints:
            return None
        try:
            return self.to_sympy()._repr_latex_()
        except MissingExtraError:
            return None
