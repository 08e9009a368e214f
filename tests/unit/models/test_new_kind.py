"""A kind of model that nothing in livens knows: it says which form its equations have, and the rest works."""

import functools

import casadi as ca
import numpy as np
import pytest

import livens as lv
from livens.analysis.conservation import AS_GUARANTEED, conservation_rows
from livens.analysis.report import print_report
from livens.expressions.name_parsing import parse_names
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.expressions.tracing import FunctionTracer
from livens.models.descriptor import Descriptor, DescriptorModel


class Poisson(DescriptorModel):
    """``x' = B(x) grad H(x)`` with a skew matrix B of functions of the state, and its Casimirs."""

    type_label = "Poisson system"

    def __init__(self, states, *, B, H, casimirs=None, parameters=None):
        self.coordinates, self.model_parameters = parse_names("states", states, "x"), Parameters(parameters)
        self.n = len(self.coordinates)
        self.x, self.k = ca.SX.sym("x", self.n), ca.SX.sym("k", self.model_parameters.size)
        read = FunctionTracer({"x": self.x, "k": ParameterNamespace(self.model_parameters.unpack_symbols(self.k))})
        self.H, self.B = read("H", H, ()), read("B", B, (self.n, self.n))
        self.symmetries = {name: read(name, C, ()) for name, C in (casimirs or {}).items()}

    @functools.cached_property
    def descriptor(self):
        rate = ca.SX.sym("xdot", self.n)
        residual = ca.densify(rate - self.B @ ca.gradient(self.H, self.x))
        return Descriptor(self.x, rate, ca.SX.sym("t"), self.k, residual, self.H)

    @property
    def observables(self):
        return self.symmetries

    @property
    def conservative(self):
        return True


def rigid_body(**changes):
    description = dict(
        B=lambda x: [[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]],
        H=lambda x, k: sum(x**2 / k.I) / 2,
        casimirs=dict(spin=lambda x: x @ x / 2),
        parameters=dict(I=[1.0, 2.0, 3.0]),
    )
    return Poisson("m1 m2 m3", **(description | changes))


def lotka_volterra():
    return Poisson(
        "prey hunters",
        B=lambda x: [[0, x[0] * x[1]], [-x[0] * x[1], 0]],
        H=lambda x, k: k.a * x[0] - k.b * lv.math.log(x[0]) + x[1] - lv.math.log(x[1]),
        parameters=dict(a=1.0, b=1.0),
    )


START, H, END = [1.0, 1.0, 0.1], 0.05, 2.0


def runge_kutta():
    """Every scheme of the lists that says it is a Runge-Kutta method."""
    from livens.schemes.runge_kutta.families import RungeKutta

    return [scheme.name for scheme in lv.schemes.all() if isinstance(scheme, RungeKutta)]


@pytest.mark.parametrize("scheme", runge_kutta())
def test_every_runge_kutta_scheme_runs_it(scheme):
    """As it runs the same equations written as a system of first order."""
    field = lambda x, k: lv.math.cross(x, x / k.I)  # noqa: E731
    known = lv.FirstOrder("m1 m2 m3", rhs=field, parameters=dict(I=[1.0, 2.0, 3.0]))
    run = lv.simulate(rigid_body(), x0=START, scheme=scheme, h=H, t_end=END)
    assert run.x == pytest.approx(lv.simulate(known, x0=START, scheme=scheme, h=H, t_end=END).x, abs=1e-12)


def test_it_fits_schemes_and_they_fit_it():
    assert rigid_body().formulations == ("descriptor",)
    fitting = lv.schemes.compatible(rigid_body())
    assert {"gauss-2", "radau-iia-2"} <= set(fitting) and "livens-em" not in fitting
    with pytest.raises(lv.InputError, match="needs"):
        lv.simulate(rigid_body(), x0=START, scheme="livens-em", h=H, t_end=END)


def test_the_report_knows_what_is_promised(capsys):
    """Energy and Casimir are quadratic here: Gauss' methods promise both. Lotka's energy is not, so nothing is."""
    table = conservation_rows(lv.simulate(rigid_body(), x0=START, scheme="gauss-2", h=H, t_end=END))
    assert {row.name for row in table} == {"hamiltonian", "spin"} and all(row.verdict == AS_GUARANTEED for row in table)
    run = lv.simulate(lotka_volterra(), x0=[2.0, 1.0], scheme="gauss-2", h=H, t_end=END)
    assert [row.guaranteed for row in conservation_rows(run)] == [False, False]
    print_report(run)
    assert "hamiltonian" in capsys.readouterr().out


def test_promises_are_only_for_what_the_model_conserves():
    broken = rigid_body(casimirs=dict(first=lambda x: x[0] ** 2))
    scheme = lv.schemes.get("gauss-2")
    assert broken.is_guaranteed_by(scheme, "hamiltonian") and not broken.is_guaranteed_by(scheme, "first")
    assert not broken.is_guaranteed_by(None, "hamiltonian") and not broken.is_guaranteed_by(scheme, "no such thing")


def test_it_is_saved_loaded_and_resumed(tmp_path):
    whole = lv.simulate(rigid_body(), x0=START, scheme="gauss-2", h=H, t_end=END)
    lv.simulate(rigid_body(), x0=START, scheme="gauss-2", h=H, t_end=END / 2, out=tmp_path / "run.h5")
    loaded = lv.load(tmp_path / "run.h5", system=rigid_body())
    assert loaded.info.coordinates == ("m1", "m2", "m3") and np.array_equal(loaded.x, whole.x[: len(loaded.x)])
    resumed = lv.resume(tmp_path / "run.h5", t_end=END, system=rigid_body())
    assert np.array_equal(resumed.x, whole.x)
    with pytest.raises(lv.InputError, match="other equations"):
        other = rigid_body(parameters=dict(I=[1.0, 2.0, 3.0], unused=1.0))
        lv.resume(tmp_path / "run.h5", t_end=2 * END, system=other)


def test_parameters_and_bad_starts():
    run = lv.simulate(rigid_body(), x0=START, h=H, t_end=END, parameters={"I": [3.0, 2.0, 1.0]})
    built = lv.simulate(rigid_body(parameters=dict(I=[3.0, 2.0, 1.0])), x0=START, h=H, t_end=END)
    assert np.array_equal(run.x, built.x)
    for start, words in (
        (dict(x0=[1.0]), "x0 must be 3 numbers"),
        (dict(q0=START), "a Poisson system starts from x0, not from q0"),
        ({}, "x0 is missing: give one number per state"),
    ):
        with pytest.raises(lv.InputError, match=words):
            lv.simulate(rigid_body(), h=H, t_end=END, **start)
    with pytest.raises(lv.InputError, match="cannot be evaluated at the initial values"):
        lv.simulate(lotka_volterra(), x0=[-1.0, 0.0], h=H, t_end=END)


def test_digest():
    assert rigid_body().fingerprint == rigid_body(parameters=dict(I=[5.0, 6.0, 7.0])).fingerprint
    assert rigid_body().fingerprint != rigid_body(casimirs={}).fingerprint != lotka_volterra().fingerprint
