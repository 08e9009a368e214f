"""Round-off of energies beyond that of the rounded state: work of rounded stiff forces, and mechanisms at rest."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.types import Expr, FloatArray

if TYPE_CHECKING:
    from livens.models.base import Model

_EPS = float(np.finfo(float).eps)
#: Relative displacement, and velocity relative to |q|/h, of a motion at round-off level.
AT_REST = 64 * _EPS
#: Relative round-off of the forces of elements with many operations, summed over some hundred steps.
_FORCE_ROUND_OFF = 512 * _EPS
#: Sign vectors whose products with the stiffness matrix estimate the product of the absolute values.
_SIGN_VECTORS = 3


def energy_round_off_terms(T: Expr, V: Expr, q: Expr, v: Expr) -> Expr:
    """Return the power of stiffness forces, strain energy, inertia of the positions and mobility of stiffness forces.

    With the stiffness matrix K of V, the mass matrix M of T and ``f = |K||q|`` they are ``|v|.f``, ``|q|.f``,
    ``|q|.|M q|`` and ``f.D f`` with the inverse D of the diagonal of M, without massless coordinates.
    """
    gradient = ca.gradient(V, q)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (_SIGN_VECTORS, q.numel()))
    signs[0] = 1.0
    forces = [ca.fabs(ca.jtimes(gradient, q, q * ca.DM(sign))) for sign in signs]
    stiffness_force = functools.reduce(ca.fmax, forces)
    inertia = ca.fabs(ca.jtimes(ca.gradient(T, v), v, q))
    mass = ca.fabs(ca.diag(ca.hessian(T, v)[0]))
    acceleration = ca.if_else(mass > 0, stiffness_force / mass, 0.0)
    pairs = (v, stiffness_force), (q, stiffness_force), (q, inertia), (acceleration, stiffness_force)
    return ca.vertcat(*(ca.dot(ca.fabs(a), b) for a, b in pairs))


def terms_function(model: Model) -> ca.Function | None:
    """Return `energy_round_off_terms` of a model as a function of its state.

    The result is None for a model without positions and velocities, and for one that is too large for one graph.
    """
    view = model.view
    required = {"kinetic_energy", "potential_energy"}
    if not {"q", "v"} <= set(view.symbols) or not required <= set(view.observable_names) or model.uses_sparse_path:
        return None
    q, v = view.symbols["q"], view.symbols["v"]
    if q.numel() != v.numel():
        return None
    T, V = view.observable("kinetic_energy"), view.observable("potential_energy")
    return view.function(energy_round_off_terms(T, V, q, v))


def work_of_rounded_forces(terms: FloatArray, h: float) -> FloatArray:
    """Return the work of the round-off of stiff forces in a step h, from `energy_round_off_terms` in the last axis."""
    work: FloatArray = _EPS * h * terms[..., 0]
    return work


def energy_at_rest(terms: FloatArray, h: float) -> FloatArray:
    """Return the energy of a motion at round-off level, in steps h, from `energy_round_off_terms` in the last axis.

    Positions are rounded relative to their values, and constraints set velocities to these errors divided by the step.
    Rounded forces act for a step.
    """
    with np.errstate(all="ignore"):  # of steps as short as 1e-300
        inertia = terms[..., 2] / np.square(h)
        energy: FloatArray = (AT_REST**2 * (terms[..., 1] + inertia) + (_FORCE_ROUND_OFF * h) ** 2 * terms[..., 3]) / 2
    return energy
