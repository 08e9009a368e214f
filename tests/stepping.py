"""One step of a scheme as a map of coordinates and momenta, and what derivatives of it show."""

import functools

import casadi as ca
import numpy as np

import livens as lv
from livens.engine.steppers.reference import ReferenceSolver


@functools.cache
def step_of(model, scheme):
    equations = lv.schemes.get(scheme).equations(model).to_single_graph()
    return equations, ReferenceSolver(equations)


def estimated_error(e, x, z, c):
    """The errors that the equations e of a step estimate, filtered where they are to be, times their powers of h."""
    error = e.error_estimate
    parts = [error.errors] + ([] if error.matrix is None else [error.matrix])
    errors, *matrix = (np.array(part) for part in ca.Function("error", e.arguments, parts).call([x, z, c]))
    errors = errors.ravel() if not matrix else np.linalg.solve(matrix[0], errors.ravel())
    return errors * c[0] ** np.array(error.h_powers or [0] * error.count)


class OneStep:
    """``(q, p) -> (q1, p1)`` of a model without constraints, solved to round-off."""

    def __init__(self, model, scheme, h, t=0.0):
        self.model, self.scheme, self.h, self.t = model, lv.schemes.get(scheme), h, t
        self.k = model.parameter_vector()
        self.equations, self.stepper = step_of(model, scheme)
        self.phase = lv.Hamiltonian.from_system(model) if isinstance(model, lv.System) else model
        self.velocity = self.phase.function(self.phase.velocity)

    def __call__(self, state):
        n, e = self.phase.n, self.equations
        q, p = state[:n], state[n:]
        values = {"q": q, "v": np.array(self.velocity(q, p, self.t, self.k)).ravel(), "p": p}
        z = e.layout.pack({**values, **self.scheme.initial_scheme_state(self.model, values, self.k, self.t, self.h)})
        c = np.concatenate([[self.h, self.t], self.k])
        x, _, trouble, _, _ = self.stepper.solve(e.initial_guess_function(z, c).full().ravel(), z, c)
        assert trouble is None, trouble
        end = e.final_state_function(x, z, c).full().ravel()
        return np.concatenate([end[e.layout["q"]], end[e.layout["p"]]])


def derivative(function, x, size=4e-3):
    """By differences of order eight: errors of about 1e-11 for functions that vary over lengths of one."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    columns = []
    for unit in np.eye(x.size):
        moves = [w * (function(x + i * size * unit) - function(x - i * size * unit)) for i, w in weights.items()]
        columns.append(functools.reduce(np.add, moves) / size)
    return np.array(columns).T


def symplecticity_defect(model, scheme, q, p, h, t=0.0):
    """``|D^T J D - J|`` of one step."""
    n = len(q)
    D = derivative(OneStep(model, scheme, h, t), np.concatenate([q, p]))
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    return np.abs(D.T @ J @ D - J).max()


def symmetry_defect(model, scheme, q, p, h, back=None):
    """Return the distance from the start after a step of size h and one of `back` of size -h."""
    start = np.concatenate([q, p])
    there = OneStep(model, scheme, h)(start)
    return np.abs(OneStep(model, back or scheme, -h, t=h)(there) - start).max()


def reversibility_defect(model, scheme, q, p, h):
    """Return the distance from the start after a step, a reversal, a step, and a reversal."""
    n, start, step = len(q), np.concatenate([q, p]), OneStep(model, scheme, h)
    turn = np.concatenate([np.ones(n), -np.ones(n)])
    return np.abs(turn * step(turn * step(start)) - start).max()
