"""Unit quaternions: identities of Kinon and Betsch 2024 (3, C), and conversions against an independent code."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import livens as lv
from livens import math as m
from livens import rotations as rot

numbers = st.floats(-2.0, 2.0, allow_subnormal=False)
quaternions = st.lists(numbers, min_size=4, max_size=4).map(np.array)
vectors = st.lists(numbers, min_size=3, max_size=3).map(np.array)
units = quaternions.filter(lambda q: np.linalg.norm(q) > 0.1).map(rot.normalized)
angles = st.floats(-np.pi, np.pi)


def close(a, b, tolerance=1e-14):
    """Equal up to rounding of numbers of the size of the operands (at most 2^3 * 4 here)."""
    return np.allclose(np.asarray(a, dtype=float), np.asarray(b, dtype=float), rtol=tolerance, atol=32 * tolerance)


@given(quaternions, quaternions, quaternions)
def test_product(a, b, c):
    """(28), (32): associative, conjugation turns the order round, lengths multiply."""
    assert close(rot.product(rot.product(a, b), c), rot.product(a, rot.product(b, c)))
    assert close(rot.conjugate(rot.product(a, b)), rot.product(rot.conjugate(b), rot.conjugate(a)))
    assert close(rot.Q_l(a) @ b, rot.product(a, b))
    assert close(rot.Q_r(b) @ a, rot.product(a, b))
    assert close(np.linalg.norm(rot.product(a, b)), np.linalg.norm(a) * np.linalg.norm(b))


@given(quaternions)
def test_inverses_of_the_multiplication_matrices(a):
    """(134), with the square of the length."""
    for Q in (rot.Q_l, rot.Q_r):
        assert close(Q(a) @ Q(a).T, (a @ a) * np.eye(4))
        assert close(Q(a).T, Q(rot.conjugate(a)))


@given(quaternions)
def test_products_of_E_and_G(a):
    """(33), (135)."""
    for matrix in (rot.E(a), rot.G(a)):
        assert close(matrix @ a, np.zeros(3))
        assert close(matrix @ matrix.T, (a @ a) * np.eye(3))
        assert close(matrix.T @ matrix, (a @ a) * np.eye(4) - np.outer(a, a))
    assert close(rot.Q_l(a)[:, 1:], rot.G(a).T)
    assert close(rot.Q_r(a)[:, 1:], rot.E(a).T)


@given(quaternions, quaternions)
def test_E_and_G_are_alternating(a, b):
    """(136)."""
    assert close(rot.E(a) @ b, -(rot.E(b) @ a))
    assert close(rot.G(a) @ b, -(rot.G(b) @ a))
    assert close(rot.E(a) @ rot.G(b).T, rot.E(b) @ rot.G(a).T)


@given(quaternions, vectors)
def test_transposed_G(a, x):
    """(137), and R(q) x = q o x o conj(q) (49)."""
    bar = np.block([[np.zeros((1, 1)), -x[None, :]], [x[:, None], -rot.skew(x)]])
    assert close(rot.G(a).T @ x, bar @ a)
    turned = rot.product(rot.product(a, [0, *x]), rot.conjugate(a))
    assert close(turned, [0, *rot.rotate(a, x)])


@given(vectors, vectors)
def test_skew(a, b):
    assert close(rot.skew(a) @ b, np.cross(a, b))
    assert close(m.cross(a, b), np.cross(a, b))


@given(units, vectors)
def test_angular_velocities(q, Omega):
    """(43), (44): omega = R Omega, and both have the same rate of q, which is tangential."""
    v = rot.rate_from_convective(q, Omega)
    omega = rot.spatial_velocity(q, v)
    assert close(rot.convective_velocity(q, v), Omega)
    assert close(omega, rot.rotate(q, Omega))
    assert close(rot.rate_from_spatial(q, omega), v)
    assert close(q @ v, 0.0)


@given(units, units, vectors)
def test_angular_velocity_is_invariant(x, q, Omega):
    """Corollary 3.2: superposed rotations leave the convective angular velocity as it is."""
    v = rot.rate_from_convective(q, Omega)
    assert close(rot.convective_velocity(rot.product(x, q), rot.product(x, v)), Omega)


@given(units, units)
def test_matrix(a, b):
    """(50), (51): proper orthogonal, a representation of the product, the same for q and -q; and of another code."""
    R = rot.to_matrix(a)
    assert close(R, rot.E(a) @ rot.G(a).T)
    assert close(R @ R.T, np.eye(3))
    assert close(np.linalg.det(R), 1.0)
    assert close(rot.to_matrix(rot.product(a, b)), R @ rot.to_matrix(b))
    assert close(rot.to_matrix(-a), R)
    assert close(R, Rotation.from_quat([*a[1:], a[0]]).as_matrix())
    assert close(np.column_stack(rot.directors(a)), R)


@given(units)
def test_from_matrix(q):
    found = rot.from_matrix(rot.to_matrix(q))
    assert close(found, q) or close(found, -q)
    assert found[0] >= 0
    assert close(rot.from_directors(*rot.directors(q)), found)


@pytest.mark.parametrize("largest", range(4))
def test_from_matrix_in_every_branch(largest):
    """Each component in turn is the largest, and the only one."""
    for rest in (0.0, 1e-9, 0.3):
        q = np.full(4, rest)
        q[largest] = 1.0
        q /= np.linalg.norm(q)
        assert np.allclose(rot.from_matrix(rot.to_matrix(q)), q, rtol=0, atol=1e-15)


def test_from_matrix_refuses_what_is_no_rotation():
    for bad in (np.eye(2), 2 * np.eye(3), np.diag([1.0, 1.0, -1.0])):
        with pytest.raises(lv.InputError, match="not a rotation matrix"):
            rot.from_matrix(bad)


@given(vectors)
def test_exponential_and_logarithm(x):
    """(40), (52): against Rodrigues' formula of another code; the logarithm takes it back below half a turn."""
    q = rot.exponential(x)
    assert close(q @ q, 1.0)
    assert close(rot.to_matrix(q), Rotation.from_rotvec(x).as_matrix())
    length = np.linalg.norm(x)
    if length < np.pi - 1e-6:
        assert close(rot.logarithm(q), x, 1e-13)
        assert close(rot.logarithm(-q), x, 1e-13)
    axis, angle = rot.to_axis_angle(q)
    assert close(rot.to_matrix(rot.from_axis_angle(axis, angle)), rot.to_matrix(q))
    assert 0 <= angle <= np.pi


@pytest.mark.parametrize("length", [0.0, 1e-300, 1e-12, 1e-4, 1.9e-4, 2.1e-4, 1e-2])
def test_exponential_is_safe_at_zero(length):
    """Value and derivative, on both sides of the border between series and sine."""
    direction = np.array([0.6, 0.0, -0.8])
    q = rot.exponential(length * direction)
    assert np.allclose(q, [np.cos(length / 2), *(np.sin(length / 2) * direction)], rtol=1e-15, atol=0)
    assert np.allclose(rot.logarithm(q), length * direction, rtol=1e-12, atol=0)
    symbol = ca.SX.sym("x", 3)
    expression = m.to_casadi(rot.exponential(m.from_casadi(symbol)))
    slope = np.array(ca.Function("f", [symbol], [ca.jacobian(expression, symbol)])(length * direction))
    # d exp/dx along the axis is that of cosine and sine, across it sin(l/2)/l
    assert np.allclose(slope @ direction, [-np.sin(length / 2) / 2, *(np.cos(length / 2) / 2 * direction)], atol=1e-15)
    assert np.allclose(slope @ [0, 1, 0], [0, 0, np.sinc(length / 2 / np.pi) / 2, 0], atol=1e-15)
    back = m.to_casadi(rot.logarithm(m.from_casadi(ca.SX.sym("q", 4))))
    assert back.numel() == 3


def test_half_a_turn():
    """Both quaternions of a half turn have a logarithm of length pi."""
    assert np.linalg.norm(rot.logarithm([0, 1, 0, 0])) == pytest.approx(np.pi)
    assert np.linalg.norm(rot.logarithm([-1e-17, 1, 0, 0])) == pytest.approx(np.pi)


ALL_AXES = [a + b + c for a in "xyz" for b in "xyz" for c in "xyz" if a != b != c]


@pytest.mark.parametrize("axes", ALL_AXES)
@given(data=st.data())
def test_euler_angles(axes, data):
    """All twelve conventions, against another code; there and back."""
    given_angles = [data.draw(angles), data.draw(st.floats(0.01, np.pi - 0.01)), data.draw(angles)]
    if axes[0] != axes[2]:
        given_angles[1] -= np.pi / 2
    q = rot.from_euler_angles(given_angles, axes)
    other = Rotation.from_euler(axes.upper(), given_angles)  # capital letters: intrinsic
    assert np.allclose(rot.to_matrix(q), other.as_matrix(), atol=1e-14)
    found = rot.to_euler_angles(q, axes)
    assert not found.singular
    turns = (np.array(found[:3]) - given_angles) / (2 * np.pi)
    assert np.allclose(turns, np.round(turns), atol=1e-12)
    assert found.second == pytest.approx(given_angles[1], abs=1e-12)


@pytest.mark.parametrize("axes", ALL_AXES)
@given(first=angles, third=angles)
def test_singular_euler_angles(axes, first, third):
    """They are reported, and still describe the same rotation."""
    singular = (0.0, np.pi) if axes[0] == axes[2] else (-np.pi / 2, np.pi / 2)
    for second in singular:
        q = rot.from_euler_angles([first, second, third], axes)
        found = rot.to_euler_angles(q, axes)
        assert found.singular and found.third == 0.0
        assert np.allclose(rot.to_matrix(rot.from_euler_angles(found[:3], axes)), rot.to_matrix(q), atol=1e-7)


def test_bad_input():
    for call, words in (
        (lambda: rot.product([1, 2, 3], [1, 0, 0, 0]), "4 components"),
        (lambda: rot.rotate([1, 0, 0, 0], [1, 2]), "3 components"),
        (lambda: rot.from_axis_angle([0, 0, 0], 1.0), "must not be zero"),
        (lambda: rot.from_euler_angles([1, 2, 3], "zzx"), "different neighbours"),
        (lambda: rot.from_euler_angles([1, 2], "zxz"), "three"),
        (lambda: rot.to_axis_angle(m.from_casadi(ca.SX.sym("q", 4))), "needs numbers"),
    ):
        with pytest.raises(lv.InputError, match=words):
            call()


def test_symbols():
    """Everything that is an expression takes symbols, and gives what it gives for numbers."""
    q, v, x = ca.SX.sym("q", 4), ca.SX.sym("v", 4), ca.SX.sym("x", 3)
    a, b, c = m.from_casadi(q), m.from_casadi(v), m.from_casadi(x)
    random = np.random.default_rng(0)
    values = [random.standard_normal(4), random.standard_normal(4), random.standard_normal(3)]
    for function, symbolic, numeric in (
        (rot.product, (a, b), values[:2]), (rot.conjugate, (a,), values[:1]), (rot.normalized, (a,), values[:1]),
        (rot.Q_l, (a,), values[:1]), (rot.Q_r, (a,), values[:1]), (rot.to_matrix, (a,), values[:1]),
        (rot.rotate, (a, c), values[::2]), (rot.convective_velocity, (a, b), values[:2]),
        (rot.spatial_velocity, (a, b), values[:2]), (rot.rate_from_spatial, (a, c), values[::2]),
        (rot.rate_from_convective, (a, c), values[::2]), (rot.skew, (c,), values[2:]),
        (rot.exponential, (c,), values[2:]), (rot.logarithm, (a,), values[:1]),
    ):  # fmt: skip
        evaluate = ca.Function("f", [q, v, x], [ca.densify(m.to_casadi(function(*symbolic)))])
        wanted = function(*numeric)
        assert np.allclose(np.array(evaluate(*values)).reshape(wanted.shape), wanted, atol=1e-14), function.__name__
