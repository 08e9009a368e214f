"""Index of DAEs: time-dependent pencils, and indices above three."""

import pytest

import livens as lv
from livens import math as m


def test_a_singular_pencil_has_no_index_and_is_refused():
    """Kunkel and Mehrmann's equations have index 2 and one solution; their pencil is singular at every time."""
    model = lv.FirstOrder(
        "x y", mass=lambda t: [[0, 0], [1, -t]], rhs=lambda x, t: [-x[0] + t * x[1] + m.sin(t), 0]
    )  # y = -cos t
    assert model.index is None and model.pencil.is_singular
    for scheme in ("gauss-2", "radau-iia-3"):
        with pytest.raises(lv.LivensError, match="index is not known"):
            lv.simulate(model, x0=[0.0, -1.0], scheme=scheme, h=0.01, t_end=2.0)


def test_a_moving_kernel_is_stated_in_the_report():
    """A rotation by t of ``x' = -x, y = 0``: the pencil is regular, but ker E turns."""

    def rotated(t):
        return [[m.cos(t), m.sin(t)], [0, 0]]

    model = lv.FirstOrder(
        "x y",
        mass=rotated,
        rhs=lambda x, t: [-m.cos(t) * x[0] - m.sin(t) * x[1], -m.sin(t) * x[0] + m.cos(t) * x[1]],
    )
    assert model.index is None and not model.pencil.is_singular
    run = lv.simulate(model, x0=[1.0, 0.0], scheme="radau-iia-3", h=0.01, t_end=0.1)
    assert any("index of the equations is not known" in line for line in run.report(accuracy=False).lines)


def test_index_four():
    """``d = sin t, c = d', b = c', a = b'``."""
    shift = [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    model = lv.FirstOrder("a b c d", mass=shift, rhs=lambda x, t: [x[0], x[1], x[2], x[3] - m.sin(t)])
    assert model.pencil.indices == (4, 3, 2, 1) and model.index == 4


def test_time_dependent_coefficients_alone_leave_the_index_known():
    model = lv.FirstOrder(
        "x", algebraic="y", rhs=lambda x, y, t: [-t * y[0]], constraints=lambda x, y, t: [y[0] - (1 + t) * x[0]]
    )
    assert model.index == 1
