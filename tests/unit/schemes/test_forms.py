"""A new kind of model runs with every scheme that takes the form it offers, and no list has to know it."""

import casadi as ca
import numpy as np
import pytest

import livens as lv
from livens.expressions.parameters import Parameters
from livens.models.base import InitialState
from livens.models.descriptor import Descriptor, DescriptorModel
from livens.schemes.core.scheme import FORMULATION_DESCRIPTIONS


class Swing(DescriptorModel):
    """A damped pendulum, as somebody might write a kind of model of their own."""

    type_label = "Swing"

    def __init__(self, damping=0.1):
        self.coordinates, self.model_parameters = ("angle", "rate"), Parameters(dict(damping=damping))
        x, rate, t, k = ca.SX.sym("x", 2), ca.SX.sym("r", 2), ca.SX.sym("t"), ca.SX.sym("k", 1)
        residual = ca.vertcat(rate[0] - x[1], rate[1] + ca.sin(x[0]) + k[0] * x[1])
        self._descriptor = Descriptor(x, rate, t, k, residual)

    @property
    def descriptor(self):
        return self._descriptor

    def initial_state(self, initial_values, k, t0, project, redundant):
        return InitialState(t0, {"x": np.array(initial_values["x0"], dtype=float)})


def known():
    return lv.FirstOrder(
        "angle rate",
        rhs=lambda x, k: [x[1], -lv.math.sin(x[0]) - k.damping * x[1]],
        parameters=dict(damping=0.1),
    )


def takes(form):
    return [scheme.name for scheme in lv.schemes.all() if form in scheme.formulations]


@pytest.mark.parametrize("scheme", takes("descriptor"))
def test_a_new_kind_of_model_in_descriptor_form(scheme):
    options = dict(scaling=lv.scaling.speed(1.0)) if lv.schemes.get(scheme).fictive else {}
    options |= dict(x0=[1.0, 0.5], scheme=scheme, h=0.1, t_end=1.0)
    runs = [lv.simulate(model, **options) for model in (Swing(), known())]
    assert np.abs(runs[0].x - runs[1].x).max() < 1e-14
    assert runs[0].x[-1, 1] < -0.3  # it swings back


def test_every_runge_kutta_and_comparison_method_is_among_them():
    names = takes("descriptor")
    for family in ("gauss", "radau-ia", "radau-iia", "lobatto-iiia", "lobatto-iiib", "lobatto-iiic"):
        assert f"{family}-2" in names
    assert {"explicit-euler", "heun", "trapezoidal", "theta:0.6", "implicit-euler"} <= set(names)
    assert set(lv.schemes.compatible(Swing())) == set(names)


@pytest.mark.parametrize(
    ("scheme", "model", "words"),
    [
        (
            "livens-em",
            Swing(),
            "needs a mechanical system made of elements (System), not a Swing; compatible schemes: ",
        ),
        ("nambu-t", Swing(), "needs a Nambu system (Nambu), not a Swing; compatible schemes: gauss-2, radau-iia-3"),
        ("stormer-verlet", Swing(), "needs a model in coordinates and momenta (Hamiltonian, or a System without"),
        (
            "radau",
            lv.Hamiltonian("x", kinetic=lambda p: p[0] ** 2 / 2),
            "needs a model in descriptor form (FirstOrder, PortHamiltonian, ...), not a Hamiltonian; "
            "compatible schemes: implicit-midpoint, stormer-verlet",
        ),
        ("heun", lv.problems.load("simple-pendulum").model, "needs a system without constraints, with a regular mass"),
    ],
)
def test_what_is_missing_in_plain_words(scheme, model, words):
    with pytest.raises(lv.InputError) as caught:
        lv.schemes.check_compatible(lv.schemes.get(scheme), model)
    assert words in str(caught.value)


def test_forms_of_models_and_of_schemes_are_the_same_words():
    models = [lv.problems.load(entry.name).model for entry in lv.problems.all()]
    models.append(lv.FirstOrder("a b", rhs=lambda x: [x[1], -x[0]], partition="b"))
    models.append(lv.ConstrainedHamiltonian("x", hamiltonian=lambda p: p @ p, constraints=lambda q: [q[0]]))
    offered = {form for model in models for form in model.formulations}
    taken = {form for scheme in lv.schemes.all() for form in scheme.formulations}
    assert offered == taken == set(FORMULATION_DESCRIPTIONS)
