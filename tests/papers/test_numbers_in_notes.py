"""Numbers in the notes of figures and on the pages of the papers: published, chosen, or computed by a claim or a test.

A measured number in prose has to be the measured value of a claim of the same work, rounded to its digits, or a literal
in a test that computes it.
"""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

import livens as lv
from livens.reproduce import core

ROOT = Path(__file__).parents[2]
PAGES = {source: (ROOT / "docs/theory/papers" / f"{source}.md").read_text(encoding="utf-8") for source in core.SOURCES}

#: Text whose numbers are names: code, formulas, links, figures, equations, versions, years, orders, sections, symbols.
_NAMES = (
    r"```.*?```",
    r"`[^`]*`",
    r"\$\$.*?\$\$|\$[^$]*\$",
    r"\]\([^)]*\)",
    r"\{width=\d+px\}",
    r"\bs = \d",
    r"(?<=\| )(?:[IVX\d.]+(?:, | to )?)+(?= \|)",
    r"\([^()]* to [^()]*, about \d+ s\)",
    r"(?i:figures?|tables?|theorems?|lemma|chapters?|sections?|remarks?|thm\.|def\.|rem\.|ex\.|alg\.|cor\.|corollary|"
    r"examples?|papers?|case) [IVX]*\.?\d[\w.]*(?:(?:, | and | to | or )[IVX]*\.?\d[\w.]*)*",
    r"\([IVX\d.]+[a-z]?\)",
    r"\(\d+[a-z]?\) to \(\d+\)",
    r"metis \d\.\d\.\d(?: (?:and|to) \d\.\d\.\d)?|version \d\.\d\.\d",
    r"\d+ September \d+|(?:19|20)\d\d",
    r"\border (?:at least )?\d|\borders \d.*?(?= |$)",
    r"(?<![\d.])[A-Za-z_']+_?\d+\w*",
    r"\^\(?-?[\d/]+\)?",
    r"(?<=\| )\d\.\d(?:\.\d)?(?: \([\d.]+\))?(?:, \(\d\.\d+\))*(?= \|)",
    r"\b\d\.\d\.\d\b",
    r"\b\d+ [a-zA-Z]_\d?",
)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e-?\d+)?(?:/\d+)?")


def prose(source):
    """Return the notes of all figures of a work, and its page without tables of claims."""
    notes = dict.fromkeys(entry.note for entry in core.figures(source) if entry.note)
    return "\n".join([*notes, PAGES[source].split("## Claims")[0]])


def measured_values(source):
    """Return the measured values of the claims on the page of a work."""
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \| \w+ \|$", PAGES[source], re.M)
    return [abs(float(number)) for row in rows for number in re.findall(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?", row)]


def is_rounded(number, values):
    """Return whether a number is one of the values, rounded to its digits."""
    mantissa, _, exponent = number.lstrip("+-").partition("e")
    digits = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - digits)
    return "/" not in number and any(abs(value - abs(float(number))) <= 0.5001 * unit for value in values)


def numbers_of(text):
    for name in _NAMES:
        text = re.sub(name, "@", text, flags=re.S if name.startswith(("```", r"\$\$")) else 0)
    return _NUMBER.findall(text)


#: Numbers that a work prints, and steps, horizons and ranges that a figure or a table of data has.
GIVEN = {
    "kinon-betsch-2023": "1e-9 4",
    "kinon-betsch-schneider-2023": "12 20 23",
    "kinon-betsch-2024": "0.0125 1/2 15 16",
    "symank-2025": "1.25 1e-20 240 3.55e4 5 5e-4 7.2",
    "modin-2009": "-1/2 1/2 1.6e4 1588 600 2.1 3600 40 5e4 6.1 6205 73",
}

#: Measured numbers that no claim has, and the tests that compute them.
COMPUTED = {
    "kinon-betsch-schneider-2023": {
        "11/12": (
            "test_published_forms.py",
            "test_the_first_step_from_the_published_velocities_is_the_projected_start",
        ),
        "1.342": ("test_numbers_in_notes.py", "test_gap_of_the_damped_linkage"),
    },
    "kinon-betsch-2024": {
        "135.6": ("test_problems_rigid.py", "test_reference_solutions_of_the_top"),
        "5.5e-5": ("test_published_forms.py", "test_momenta_of_cyclic_coordinates_need_the_restricted_correction"),
        "1.5": ("test_numbers_in_notes.py", "test_rotation_of_the_free_body_in_a_step"),
    },
    "symank-2025": {
        **dict.fromkeys(
            ("4.275e4", "5e-5", "-200", "-0.887"), ("test_numbers_in_notes.py", "test_layer_of_a_vanishing_mass")
        ),
        **dict.fromkeys(("6e3", "4e3"), ("test_numbers_in_notes.py", "test_rates_of_a_light_mass_between_rods")),
        "2e7": ("test_numbers_in_notes.py", "test_end_velocities_of_the_lobatto_pair"),
        **dict.fromkeys(("1700", "2400"), ("test_numbers_in_notes.py", "test_steps_at_the_published_cost")),
    },
    "modin-2009": {
        **dict.fromkeys(("17", "8"), ("test_numbers_in_notes.py", "test_frequencies_of_the_rotor")),
        "628": ("test_numbers_in_notes.py", "test_frequencies_of_the_rotor"),
        **dict.fromkeys(("11", "189", "0.11"), ("test_numbers_in_notes.py", "test_modes_of_two_oscillators")),
        **dict.fromkeys(("-0.95", "1/8"), ("test_numbers_in_notes.py", "test_potential_of_the_magnetic_pendulum")),
        "8.7e3": ("test_numbers_in_notes.py", "test_frequency_of_a_penalty"),
    },
}


@pytest.mark.parametrize("source", core.SOURCES)
def test_every_number_is_given_claimed_or_computed(source):
    values, computed = measured_values(source), COMPUTED.get(source, {})
    assert values
    unknown = {
        number
        for number in numbers_of(prose(source))
        if number not in GIVEN[source].split() and number not in computed and not is_rounded(number, values)
    }
    assert not unknown, f"numbers without a claim or a test: {sorted(unknown)}"
    for number, (file, test) in computed.items():
        tree = ast.parse((Path(__file__).parent / file).read_text(encoding="utf-8"))
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == test)
        nodes = [node for node in ast.walk(function) if not isinstance(node, ast.Expr)]
        literals = {
            abs(node.value) for node in nodes if isinstance(node, ast.Constant) and type(node.value) in (int, float)
        }
        quotients = {
            node.left.value / node.right.value
            for node in nodes
            if isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Div)
            and isinstance(node.left, ast.Constant)
            and isinstance(node.right, ast.Constant)
        }
        top, _, bottom = number.lstrip("-").partition("/")
        assert float(top) / float(bottom or 1) in literals | quotients, f"{test} does not compute {number}"


def test_a_number_without_a_source_is_found():
    text = "Figure 3 of order 2 (metis 1.0.7): the motion differs by 3.21e-7 m, see (26) and `h=0.1`."
    assert numbers_of(text) == ["3.21e-7"]
    assert is_rounded("3.21e-7", [3.214e-7]) and not is_rounded("3.21e-7", [3.22e-7])
    assert is_rounded("2e-14", [1.8e-14]) and not is_rounded("2e-14", [2.6e-14])


# -- numbers that are no claims ----------------------------------------------------------------------------------------
def test_gap_of_the_damped_linkage():
    """Kinon et al. 2023, figure 22: from the consistent start a step of 1e-3 s has no solution at t = 1.342 s."""
    problem = lv.problems.load("double-four-bar-damped")
    with pytest.raises(lv.IntegrationError) as error:
        lv.simulate(problem, scheme="ggl-variational", h=1e-3, t_end=2.0)
    assert error.value.result.t[-1] == pytest.approx(1.342, abs=2e-3)


def test_rotation_of_the_free_body_in_a_step():
    """Kinon and Betsch 2024, 5.3: 1.5 rad in the published step of 0.05 s."""
    problem = lv.problems.load("free-rigid-body")
    omega = lv.rotations.convective_velocity(problem.q0, problem.v0)
    assert 0.05 * np.linalg.norm(omega) == pytest.approx(1.5, rel=1e-12)


def test_layer_of_a_vanishing_mass():
    """Symank 2025, figure 8: the consistent velocity, the time of the layer, and the factor of Gauss per step."""
    problem = lv.problems.load("vanishing-mass")
    k = problem.model.parameters
    assert problem.v0[1] == pytest.approx(4.275e4, rel=1e-12)
    layer = k["d"][1] / (k["k"][1] + k["k"][2])
    assert layer == pytest.approx(5e-5, rel=1e-12)
    z = -0.01 / layer
    assert z == pytest.approx(-200, rel=1e-12)
    even, odd = 1 + z**2 / 10, z / 2 + z**3 / 120
    assert (even + odd) / (even - odd) == pytest.approx(-0.887, abs=5e-4)


def test_rates_of_a_light_mass_between_rods():
    """Symank 2025, 7.3.3: sqrt(2 S/(m l)) with 20 N and 1e-6 kg, and 2 S/(l kappa) without mass."""
    tension, length, kappa = 20.0, 1.0, 0.01
    assert np.sqrt(2 * tension / (1e-6 * length)) == pytest.approx(6e3, rel=0.1)
    rate = 2 * tension / (length * kappa)
    assert rate == pytest.approx(4e3, rel=1e-12)


def test_end_velocities_of_the_lobatto_pair():
    """Symank 2025, figures 13 and 14: 1e-2 m/s beside M-PRK at 1e-8 kg, 2e7 m/s at 1e-16 kg; stable at 5e-4 s."""
    light = dict(h=5e-4, t_end=10.0)
    problem = lv.problems.load("double-pendulum", m2=1e-8, m1=1.0, kappa=0.01)
    pair, murua = (lv.simulate(problem, scheme=name, **light) for name in ("J-PRK", "M-PRK"))
    assert np.log10(np.abs(pair.v[:, 2:] - murua.v[:, 2:]).max()) == pytest.approx(np.log10(1e-2), abs=0.7)
    lightest = lv.problems.load("double-pendulum", m2=1e-16, m1=1.0, kappa=0.01)
    assert np.abs(lv.simulate(lightest, scheme="J-PRK", **light).v).max() == pytest.approx(2e7, rel=0.5)
    first = lv.problems.load("double-pendulum", m1=1e-8, m2=1.0, kappa=0.01)
    assert np.abs(lv.simulate(first, scheme="J-PRK", **light).q).max() < 2.1
    with pytest.raises(lv.IntegrationError):
        lv.simulate(first, scheme="J-PRK", h=1e-3, t_end=10.0)


def test_steps_at_the_published_cost():
    """Symank 2025, computation times: the last row at the cost per step of the third, 1700 to 2400 steps of 0.01 s."""
    from livens.reproduce.symank_2025.times import TABLE

    steps = np.array(TABLE[3].published) / np.array(TABLE[2].published) * 24000
    assert round(steps.min(), -2) == 1700 and round(steps.max(), -2) == 2400


def test_frequencies_of_the_rotor():
    """Modin 2009, figure 2.1: the beat, 0.02 from resonance, changes by 17 and 8 per cent at h = 0.2 s."""
    h = 0.2
    midpoint = brentq(lambda w: np.tan(w * h / 2) - h / 2, 0.9, 1.1)
    verlet = brentq(lambda w: np.sin(w * h / 2) - h / 2, 0.9, 1.1)
    assert 100 * (1 - midpoint) / 0.02 == pytest.approx(17, abs=0.5)
    assert 100 * (verlet - 1) / 0.02 == pytest.approx(8, abs=0.5)
    assert 200 * np.pi == pytest.approx(628, abs=0.5), "a hundred periods"


def test_modes_of_two_oscillators():
    """Modin 2009, figure V.3: rates of 11 and 189 1/s, and 0.11 Hz."""
    k, stiffness, damping = 1.0, 1000.0, 100.0
    pair, zero, one = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.zeros((2, 2)), np.eye(2)
    rates = np.linalg.eigvals(np.block([[zero, one], [-stiffness * pair - k * np.diag([1.0, 0.0]), -damping * pair]]))
    real = np.sort(-rates[np.abs(rates.imag) < 1e-9].real)
    assert real[0] == pytest.approx(11, abs=0.5) and real[1] == pytest.approx(189, abs=0.5)
    assert np.abs(rates.imag).max() / (2 * np.pi) == pytest.approx(0.11, abs=0.005)


def test_potential_of_the_magnetic_pendulum():
    """Modin 2009, figure III.4: V as printed is -0.95 at the bottom; an excess of 1/8 carries it past the magnet."""
    problem = lv.problems.load("magnetic-pendulum")
    k, p0 = problem.model.parameters, problem.initial_values["p0"][0]
    assert -k["g"] + k["mu"] / (1 + (1 + k["delta"]) ** 2) == pytest.approx(-0.95, abs=5e-3)
    assert p0**2 / 2 == 1 / 8, "the kinetic energy beside the magnet, where the potential is largest"


def test_frequency_of_a_penalty():
    """Modin 2009, paper V, 2.2: sqrt(1e8 9e-4/3e-5) rad/s is 8.7e3 Hz."""
    assert np.sqrt(1e8 * 9e-4 / 3e-5) / (2 * np.pi) == pytest.approx(8.7e3, rel=0.01)
