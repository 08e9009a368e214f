"""Step of a scheme as a `casadi.Function`, for optimal control and other CasADi programs."""

from __future__ import annotations

import casadi as ca

from livens.engine.compiled_step import compiled_step
from livens.errors import InputError
from livens.models.base import Model
from livens.schemes.core.scheme import Scheme

#: Absolute tolerance of the residual, and largest number of Newton iterations.
_TOLERANCE, _MAX_ITERATIONS = 1e-13, 50


def casadi_step(model: Model, scheme: Scheme) -> ca.Function:
    """Return one step as a CasADi function; see `Prepared.casadi_function`."""
    compiled = compiled_step(model, scheme)
    if scheme.fictive or compiled.uses_taylor_series:
        raise InputError(
            f"scheme '{scheme.name}' has no step equations of a given step size: use another scheme, such as 'gauss-2'"
        )
    e = compiled.flat_equations
    if e.external_force is not None:
        raise InputError("an external force is not a CasADi expression: it cannot be part of a casadi.Function")
    sizes = {name: size for name, size in e.layout.sizes.items() if size}
    names, parts = list(sizes), [ca.MX.sym(name, size) for name, size in sizes.items()]
    t, h, k = ca.MX.sym("t"), ca.MX.sym("h"), ca.MX.sym("k", model.parameter_count)
    z, c = ca.vertcat(*parts), ca.vertcat(h, t, k)
    x = ca.MX(0, 1)
    if e.size:
        equations = {"x": e.x, "p": ca.vertcat(e.z, e.c), "g": e.residual}
        options = {"abstol": _TOLERANCE, "max_iter": _MAX_ITERATIONS}
        solve = ca.rootfinder("solve_step", "newton", equations, options)
        x = solve(x0=e.initial_guess_function(z, c), p=ca.vertcat(z, c))["x"]
    final = e.final_state_function(x, z, c)
    outputs = [final[e.layout[name]] for name in names]
    return ca.Function("step", [*parts, t, h, k], outputs, [*names, "t", "h", "k"], [f"{name}_next" for name in names])
