"""The equations of the GGL schemes, written down once more in plain numbers and held against steps that were taken."""

import numpy as np
import pytest

import livens as lv

M, G_ACC = np.diag([2.0, 1.0, 0.5]), 9.81
H = 0.05


def g(q):
    """A length, and a surface that is curved."""
    return np.array([(q @ q - 1.49) / 2, q[2] - 0.5 * q[0] * q[1] - 0.35])


def slopes(q):
    return np.array([q, [-0.5 * q[1], -0.5 * q[0], 1.0]])


def system():
    return lv.System(
        "x y z",
        mass=lambda: M,
        potential=lambda q: G_ACC * q[2] + q[0] ** 4 / 4,
        constraints=lambda q: [(q @ q - 1.49) / 2, q[2] - q[0] * q[1] / 2 - 0.35],
    )


def force(q):
    return -np.array([q[0] ** 3, 0.0, G_ACC])


def steps(scheme, count=6):
    run = lv.simulate(system(), [0.9, 0.6, 0.5], [1.0, -1.0, 0.5], scheme=scheme, h=H, t_end=count * H, project=True)
    return zip(run.q, run.p, run.q[1:], run.p[1:], strict=False)


def left_over(vector, rows):
    """What of a vector is no combination of these rows, relative."""
    weights = np.linalg.lstsq(rows.T, vector, rcond=None)[0]
    return np.abs(vector - rows.T @ weights).max() / np.abs(vector).max()


def test_ggl_classic():
    """S001 (21): positions are corrected along G(qb), momenta along G(q0), and qb is not q0."""
    for q0, p0, q1, p1 in steps("ggl-classic"):
        v1 = np.linalg.solve(M, p1)
        qb = q0 + H * v1
        correction = (q1 - q0) / H - v1
        assert left_over(correction, slopes(qb)) < 1e-10 and left_over(correction, slopes(q0)) > 1e-4
        impulse = (p1 - p0) / H - force(q0)
        assert left_over(impulse, slopes(q0)) < 1e-10 and left_over(impulse, slopes(qb)) > 1e-4
        assert np.abs(g(q1)).max() < 1e-14 and np.abs(slopes(qb) @ v1).max() < 1e-12
        assert np.abs(slopes(q0) @ v1).max() > 1e-4, "the hidden constraints hold at qb and nowhere else"


def test_ggl_em():
    """docs/ggl-em.md: both levels of constraints at the end, positions corrected along the mean of both slopes."""
    for q0, p0, q1, p1 in steps("ggl-em"):
        u_m = np.linalg.solve(M, (p0 + p1) / 2)
        correction = M @ ((q1 - q0) / H - u_m)
        mean = (slopes(q0) + slopes(q1)) / 2
        assert left_over(correction, mean) < 1e-8 and left_over(correction, slopes(q1)) > 1e-4
        assert np.abs(g(q1)).max() < 1e-14 and np.abs(slopes(q1) @ np.linalg.solve(M, p1)).max() < 1e-12


def test_ggl_variational():
    """S001 (18): the same G(qb) on both sides makes it symplectic; constraints hold at the end."""
    for q0, _, q1, _ in steps("ggl-variational"):
        assert np.abs(g(q1)).max() < 1e-14 and np.abs(q1 - q0).max() > 1e-3


@pytest.mark.parametrize("scheme", ["ggl-classic", "ggl-em", "ggl-variational"])
def test_forces_and_friction_do_the_work_they_are_booked_with(scheme):
    """A force and a damper on a bead: what the accounts say is the integral of power, to the order of the scheme."""

    def bead(h):
        model = lv.System(
            "x y",
            kinetic=lambda v: v @ v / 2,
            forces=lambda t: [3.0 * lv.math.cos(t), 0.0],
            dissipation=lambda v: 0.2 * (v @ v),
            constraints=lambda q: [(q @ q - 1) / 2],
        )
        run = lv.simulate(model, [0.0, -1.0], [1.0, 0.0], scheme=scheme, h=h, t_end=2.0)
        power = 3.0 * np.cos(run.t) * run.v[:, 0]
        lost = 0.4 * (run.v**2).sum(axis=1)
        supplied = np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * h)])
        dissipated = np.concatenate([[0], np.cumsum((lost[1:] + lost[:-1]) / 2 * h)])
        return (
            abs(run.supplied_energy[-1] - supplied[-1]) + abs(run.dissipated_energy[-1] - dissipated[-1]),
            supplied[-1],
        )  # fmt: skip

    for h in (0.01, 0.005):
        gap, size = bead(h)
        assert gap < 3 * h * max(abs(size), 1.0)
    assert bead(0.005)[0] < 0.75 * bead(0.02)[0]
