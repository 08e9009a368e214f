"""Schemes by name: single ones, families, aliases, those of the user, and names that are none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens.schemes.core.name_template import NameTemplate
from livens.schemes.core.scheme import Scheme
from livens.schemes.discretization.phase_space_map import MapResult, MapScheme
from livens.schemes.energy_momentum.livens_em import LivensEM
from livens.schemes.energy_momentum.livens_midpoint import LivensMidpoint
from livens.schemes.symplectic.variational import Variational

#: The papers' short names.
ALIASES = {
    "drift-kick-drift": "position-verlet",
    "logarithmic-hamiltonian": "sundman-drift",
    "EML": "livens-em",
    "REML": "livens-em-reduced",
    "Null-EML": "livens-em-nullspace",
    "EMH": "hamilton-em",
    "MPL": "livens-midpoint",
    "MPH": "hamilton-midpoint",
    "J-PRK": "lobatto-iiia-iiib-3",
    "J-PRK-2": "lobatto-iiia-iiib-2",
    "J-PRK-5": "lobatto-iiia-iiib-5",
    "M-PRK": "murua-3",
    "M-PRK-GGL": "murua-ggl-3",
    "GLC": "gauss-3",
    "LIIIC": "lobatto-iiic-3",
    "M-PRK-1": "murua-1",
    "M-PRK-GGL-3": "murua-ggl-3",
    "met1": "adaptive-variational:0.5,0.5",
    "met2": "adaptive-variational:0,0",
    "SYMP": "sundman",
    "SYMM": "step-density",
}


@pytest.fixture
def own():
    """Schemes that a test defines are removed after it."""
    before = dict(Scheme._registry), dict(Scheme._families)
    yield
    for registry, kept in zip((Scheme._registry, Scheme._families), before, strict=True):
        registry.clear()
        registry.update(kept)


def oscillator():
    return lv.Hamiltonian("x", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)


# -- names ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", lv.schemes.all(), ids=lambda scheme: scheme.name)
def test_every_scheme_comes_back_by_its_names(scheme):
    """As an equal one; what its record says of its family and its other names leads there too."""
    again = lv.schemes.get(scheme.name)
    assert again == scheme and hash(again) == hash(scheme) and again.name == scheme.name
    assert again.traits == scheme.traits
    assert lv.schemes.get(scheme) is scheme
    assert [lv.schemes.get(alias) for alias in scheme.traits.aliases] == [scheme] * len(scheme.traits.aliases)
    if scheme.traits.family:
        assert NameTemplate(scheme.traits.family).match(scheme.name)


def test_names_are_unique_and_patterns_have_examples():
    names = [scheme.name for scheme in lv.schemes.all()]
    assert len(set(names)) == len(names) and names == sorted(names)
    assert all(kind.examples for kind in Scheme._families.values())
    assert not set(lv.schemes.aliases()) & {*names, *lv.schemes.names()}


def test_one_of_a_family_with_a_name_of_its_own_is_no_member():
    """implicit-midpoint is derived from variational:<alpha>, but is not found by that pattern."""
    assert lv.schemes.get("implicit-midpoint").traits.family is None
    assert lv.schemes.get("variational:0.5").traits.family == "variational:<alpha>"


@pytest.mark.parametrize(
    "name, canonical",
    [("theta:0.50", "theta:0.5"), ("variational:5e-1", "variational:0.5"), ("gauss-03", "gauss-3")],
)
def test_canonical_names(name, canonical):
    assert lv.schemes.get(name).name == canonical and lv.schemes.get(name) == lv.schemes.get(canonical)


@pytest.mark.parametrize(
    "name",
    [
        *["gauss-0", "gauss-", "gauss", "gauss-2.5", "gauss--1", "gauss-9999999", "gauss-" + "9" * 5000, "gauss-٣"],
        *["lobatto-iiia-1", "murua-0", "theta:nan", "theta:", "theta:inf", "theta:1e9999999999", "variational:0.5,0.5"],
        *["yoshida-5:stormer-verlet", "yoshida-4:", "yoshida-4:nothing", "yoshida-4:explicit-euler"],
        *["yoshida-4:" * 400 + "stormer-verlet", "adaptive-variational:0.5", "semi-explicit:a,b"],
        *["", " ", "livens-em ", "Livens-EM", "eml", "EML ", "J-PRK-", "J-PRK-1", "J-PRK-<s>", "met3", "gauss-<s>"],
    ],
    ids=lambda name: name[:24],
)
def test_names_that_are_none(name):
    with pytest.raises(lv.InputError):
        lv.schemes.get(name)


def test_unknown_names_get_the_closest():
    for name, close in {"livens-me": "livens-em", "EMLL": "EML", "gaus-2": "gauss-2", "rattel": "rattle"}.items():
        with pytest.raises(lv.InputError, match=f"unknown scheme '{name}'; did you mean '{close}'"):
            lv.schemes.get(name)
    with pytest.raises(lv.InputError, match="unknown scheme 'zzz'; `livens list schemes` lists all schemes"):
        lv.schemes.get("zzz")
    with pytest.raises(lv.InputError, match="scheme must be a name, got 3"):
        lv.schemes.get(3)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="abgiklmnorstuvEJKLMPR-:<>,.0123456789 ", max_size=24))
def test_any_text_is_a_scheme_or_refused(text):
    try:
        assert isinstance(lv.schemes.get(text), Scheme)
    except lv.InputError as error:
        assert len(str(error)) > 10


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted({*lv.schemes.names(), *lv.schemes.aliases()})), st.data())
def test_any_filling_of_a_pattern_is_a_scheme_or_refused(pattern, data):
    parts = NameTemplate(pattern).fields
    few = st.sampled_from(["1", "2", "3", "0.5", "1e3", "-1", "", "a", "gauss-2", "EML", "mean-value", "1e400", "60"])
    name = NameTemplate(pattern).format([data.draw(few) for _ in parts])
    try:
        scheme = lv.schemes.get(name)
        assert scheme.traits.order >= 1 and lv.schemes.get(scheme.name) == scheme
    except lv.InputError as error:
        assert parts and len(str(error)) > 10


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 9), st.floats(-2, 2), st.floats(-2, 2))
def test_patterns_read_what_they_write(s, alpha, beta):
    for text, arguments in {"a-<s>": (s,), "<x>:b:<y>": (alpha, beta), "c-<order>:<scheme>": (s, "gauss-2")}.items():
        pattern = NameTemplate(text)
        name = pattern.format([str(argument) for argument in arguments])
        assert pattern.parse(name) == arguments
        assert pattern.parse(f"!{name}") is None


# -- aliases ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("alias", ALIASES)
def test_aliases(alias):
    """The scheme has its own name, whatever it was called by."""
    scheme = lv.schemes.get(alias)
    assert scheme.name == ALIASES[alias] and scheme == lv.schemes.get(ALIASES[alias])
    assert alias in scheme.traits.aliases


def test_a_run_holds_the_name_itself():
    run = lv.simulate(lv.problems.load("simple-pendulum"), scheme="MPL", t_end=0.01)
    assert run.info.scheme == "livens-midpoint"
    assert lv.schemes.compose("EML", 4).name == "yoshida-4:livens-em"


def test_the_list_of_aliases():
    found = lv.schemes.aliases()
    assert {alias: name for alias, name in found.items() if "<" not in alias}.items() <= ALIASES.items()
    assert found["J-PRK-<s>"] == "lobatto-iiia-iiib-<s>" and found["M-PRK-GGL-<s>"] == "murua-ggl-<s>"


# -- schemes of the user ----------------------------------------------------------------------------------------------
def test_a_scheme_defined_after_the_first_lookup_is_found(own):
    assert lv.schemes.get("livens-em") in lv.schemes.all()

    class Own(LivensMidpoint):
        name, summary, source = "own-midpoint", "the midpoint rule once more", "this test"

    assert type(lv.schemes.get("own-midpoint")) is Own
    assert "own-midpoint" in lv.schemes.names() and Own() in lv.schemes.all()
    problem = lv.problems.load("simple-pendulum")
    run, known = (lv.simulate(problem, scheme=name, t_end=0.1) for name in ("own-midpoint", "livens-midpoint"))
    assert np.array_equal(run.q, known.q) and run.info.scheme == "own-midpoint"
    assert "own-midpoint" in lv.schemes.compatible(problem.model)


def test_little_has_to_be_declared(own):
    """A name and an order are enough: what is not said is not promised."""

    class Bare(MapScheme):
        name, order = "bare", 1

        def step(self, phase, old, x, h, t):
            p = old.p - h * phase.V_q(old.q, t)
            return MapResult({"q": old.q + h * phase.T_p(p), "p": p})

    traits = lv.schemes.get("bare").traits
    assert (traits.symplectic, traits.symmetric, traits.conserves, traits.requires) == (False, False, (), ())
    run = lv.simulate(oscillator(), q0=[1.0], p0=[0.0], scheme="bare", h=0.1, t_end=1.0)
    known = lv.simulate(oscillator(), q0=[1.0], p0=[0.0], scheme="symplectic-euler", h=0.1, t_end=1.0)
    assert np.abs(run.q - known.q).max() < 1e-14

    class Orderless(MapScheme):
        name = "orderless"

    with pytest.raises(lv.InputError, match=r"scheme Orderless does not define its attribute .order."):
        _ = lv.schemes.get("orderless").traits


def test_a_family_of_the_user(own):
    class Own(Variational):
        family = "own:<alpha>"
        aliases = ("mine:<alpha>",)
        member_aliases = {"middle": (0.5,)}  # noqa: RUF012
        examples = ((0.5,), (0.75,))

        def __init__(self, alpha):
            super().__init__(alpha)
            self.name = f"own:{alpha:g}"

    assert lv.schemes.get("own:0.3").alpha == 0.3 and lv.schemes.get("own:0.3").name == "own:0.3"
    assert lv.schemes.get("mine:.3") == lv.schemes.get("own:0.3")
    assert lv.schemes.get("middle").traits.aliases == ("mine:0.5", "middle")
    assert "own:<alpha>" in lv.schemes.names() and {"own:0.5", "own:0.75"} <= {s.name for s in lv.schemes.all()}
    assert lv.schemes.get("variational:0.3").traits.family == "variational:<alpha>"
    run = lv.simulate(oscillator(), q0=[1.0], p0=[0.0], scheme="own:0.5", h=0.1, t_end=1.0)
    assert run.summary.max_energy_drift < 1e-14


def test_a_family_needs_examples(own):
    with pytest.raises(lv.InputError, match="the family 'a-<s>' of schemes needs examples"):

        class Own(MapScheme):
            family = "a-<s>"

    assert "a-<s>" not in lv.schemes.names()


def test_a_redefinition_takes_the_place(own):
    """As when a cell of a notebook is carried out again."""

    def define(text):
        class Own(LivensEM):
            name, summary = "own-em", text

        return Own

    first, second = define("first"), define("second")
    assert type(lv.schemes.get("own-em")) is second is not first
    assert [scheme.summary for scheme in lv.schemes.all() if scheme.name == "own-em"] == ["second"]
    assert lv.schemes.names().count("own-em") == 1
    assert lv.schemes.get("EML").name == "livens-em", "other names of a scheme are not inherited"


def test_a_name_of_its_own_goes_before_a_member(own):
    class Own(LivensEM):
        name = "gauss-2"

    assert type(lv.schemes.get("gauss-2")) is Own
    assert sum(scheme.name == "gauss-2" for scheme in lv.schemes.all()) == 1


# -- what fits --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("problem", ["mass-spring-redundant", "simple-pendulum", "kepler", "magnetic-pendulum"])
def test_errors_name_a_few_that_fit(problem):
    """The usual one of the model first, and at most six."""

    class Never(LivensMidpoint):
        def unmet_requirements(self, model):
            return ["something that no model has"]

    model = lv.problems.load(problem).model
    with pytest.raises(lv.InputError, match="needs something that no model has; compatible schemes: ") as caught:
        lv.schemes.check_compatible(Never(), model)
    listed = str(caught.value).partition("compatible schemes: ")[2]
    assert listed.endswith(" and others")
    few = listed.removesuffix(" and others").split(", ")
    assert few[0] == model.default_scheme and len(few) == 6 and set(few) <= set(lv.schemes.compatible(model))


def test_no_scheme_may_fit():
    class Nowhere(lv.Hamiltonian):
        formulations = ("a form that nothing takes",)

    model = Nowhere("x", kinetic=lambda p: p[0] ** 2 / 2)
    words = r"needs a mechanical system made of elements \(System\), not a Hamiltonian; there is no compatible scheme"
    with pytest.raises(lv.InputError, match=words):
        lv.schemes.check_compatible(lv.schemes.get("livens-em"), model)
