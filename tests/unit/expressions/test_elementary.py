"""Equations as elementary operations: what is one node, what is alike, and their coefficients as expressions."""

import casadi as ca
import numpy as np
import pytest

from livens.errors import ModelError
from livens.expressions.graph.simd_groups import simd_groups
from livens.expressions.graph.taylor_coefficients import taylor_coefficients
from livens.expressions.graph.taylor_graph import decompose

X, T, K = ca.SX.sym("x", 4), ca.SX.sym("t"), ca.SX.sym("k", 2)


def field(*rates):
    rates = [*rates, *[0] * (4 - len(rates))]
    return decompose(ca.Function("f", [X, T, K], [ca.densify(ca.vertcat(*rates))]))


def operations(found):
    return sorted(node.op for node in found.nodes if node.op not in ("var", "lin", "time"))


def test_powers_of_one_base_are_one():
    """The gradient of 1/r is a chain of roots and quotients; what is left is one power of r^2."""
    r = ca.norm_2(X[:2])
    found = field(*ca.vertsplit(ca.gradient(K[0] / r, X[:2])))
    assert operations(found) == ["dot", "mul", "mul", "pow"]
    assert [node.data for node in found.nodes if node.op == "pow"] == [(-1.5,)]


def test_multiples_are_one_node():
    d = X[0] - X[1]
    found = field(ca.sin(d), ca.sin(2 * d) * d, -d * ca.cos(d))
    differences = [node for node in found.nodes if node.op == "lin" and len(node.arguments) == 2]
    assert len(differences) == 1


def test_what_follows_from_parameters_is_a_constant():
    """No operation is spent on it in a step, not even where a function is taken of it."""
    found = field(K[0] * K[1] / (1 + K[0]) * X[0], ca.exp(-K[0]) * X[1], ca.fabs(K[1]) * X[2])
    assert operations(found) == []


def test_what_has_no_series_is_named():
    for expression, word in (
        (ca.fabs(X[0]), "abs"),
        (ca.fmin(X[0], X[1]), "minimum"),
        (ca.if_else(X[0] > 0, X[1], 0), "condition|comparison"),
    ):
        with pytest.raises(ModelError, match=word):
            field(expression)


def test_equal_bodies_are_alike():
    """Five bodies in space: 10 pairs, and everything comes in groups of 5, 10 or 15."""
    n = 5
    q, p = ca.SX.sym("q", 3 * n), ca.SX.sym("p", 3 * n)
    H = ca.dot(p, p) / 2
    for i in range(n):
        for j in range(i):
            d = q[3 * i : 3 * i + 3] - q[3 * j : 3 * j + 3]
            H -= (1 + i) * (1 + j) / ca.norm_2(d)
    rates = ca.vertcat(ca.gradient(H, p), -ca.gradient(H, q))
    found = decompose(ca.Function("f", [ca.vertcat(q, p), T, K], [rates]))
    sizes = [len(group) for group in simd_groups(found)]
    assert sum(sizes) == len(found.nodes) and set(sizes) <= {5, 10, 15} and len(sizes) <= 20
    place = {n: g for g, group in enumerate(simd_groups(found)) for n in group}
    for n, node in enumerate(found.nodes):  # operands are computed before they are needed
        assert all(place[a] < place[n] for a in node.arguments)


def test_coefficients_are_those_of_known_functions():
    """exp, tan and a logistic curve at t = 0."""
    found = field(X[0], 1 + X[1] ** 2, X[2] * (1 - X[2]))
    values = np.array(taylor_coefficients(found, 7)([1.0, 0.0, 0.5, 0.0], 0.0, [0.0, 0.0]))
    factorials = np.cumprod([1, 1, 2, 3, 4, 5, 6, 7])
    assert np.allclose(values[0], 1 / factorials, rtol=1e-15)
    assert np.allclose(values[1], [0, 1, 0, 1 / 3, 0, 2 / 15, 0, 17 / 315], atol=1e-16)
    assert np.allclose(values[2], [1 / 2, 1 / 4, 0, -1 / 48, 0, 1 / 480, 0, -17 / 80640], atol=1e-17)
