"""Scenarios for tests, random expressions, and what is said about those that are wrong."""

import pytest
from hypothesis import strategies as st

import livens as lv
from livens.errors import InputError
from livens.scenario import evaluate, grammar

PENDULUM = """\
system:
  coordinates: x y
  parameters: {m: 1.0, l: 1.0, g: 9.81}
  let: {r2: x**2 + y**2}
  kinetic: 0.5*m*(v_x**2 + v_y**2)
  potential: m*g*y
  constraints: {length of the rod: 0.5*(r2 - l**2)}
initial: {x: -l, y: 0, v_x: 0, v_y: 0}
h: 1e-3
t_end: 1
"""


EVERYTHING = """\
system:
  coordinates: [r, phi, s]
  parameters:
    mass: 2
    twice: 2*mass
    c: 30
    d: 0.25
  let:
    rate: r*v_phi
    kick: where(t < 0.5, sin(pi*t), 0)
    push: kick*exp(-s**2)
  kinetic: mass/2*(v_r**2 + rate**2) + twice/2*v_s**2
  potential: c/2*(r - 1)**2 + maximum(s, 0)**2 - cos(phi)*e
  dissipation: d/2*(rate**2 + v_s**2)
  constraints:
    - s - 0.1*sin(t) - r + 1
  forces:
    phi: push
    r: -0.1*v_r*abs(v_r)
initial: {r: 1, phi: pi/6, v_r: 0, v_phi: 1/2, s: 0, v_s: 0.1}
scheme: livens-midpoint
t0: 0
h: 0.01
t_end: 2
every: 4
"""


NUMBERS = st.sampled_from(["0", "1", "2", "3", "0.5", "2.5e-1", "7."])


EXPRESSIONS = st.recursive(
    NUMBERS | st.sampled_from(["x", "y", "pi"]),
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from("+ - * / **".split()), inner),
        st.builds("({})".format, inner),
        st.builds("-{}".format, inner),
        st.builds("({}) {} ({})".format, inner, st.sampled_from("< <= > >= == !=".split()), inner).map("({})".format),
        st.builds("{}({})".format, st.sampled_from(["sin", "cos", "exp", "atan", "abs"]), inner),
    ),
    max_leaves=12,
)


def complaint(text):
    """Return the message for an invalid scenario."""
    with pytest.raises(InputError) as caught:
        lv.scenario.parse(text, "a.yaml").problem()
    return str(caught.value)


def value(text, **names):
    return evaluate.evaluate(grammar.parse(text), names, text)


def guarded(job):
    """Do a job that may end in an InputError; how long it may take is measured by `make torture`."""
    try:
        result = job()
    except InputError as error:
        result = error
        assert str(error).isascii() or str(error).encode("utf-8")
    return result


def changed(old, new):
    assert PENDULUM.count(old) == 1
    return PENDULUM.replace(old, new)
