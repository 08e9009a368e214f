"""Figures of Modin 2009: all are there, and what their claims are measured with measures rightly."""

import numpy as np
import pytest

from livens import problems, reproduce
from livens.reproduce.modin_2009 import extensions
from livens.reproduce.modin_2009 import runs as shared
from livens.reproduce.modin_2009.pendulum import _local_errors
from livens.reproduce.modin_2009.runs import (
    bdf,
    claim_drift,
    claim_no_drift,
    largest_step_ratio,
    linear_change,
    until_failure,
)
from livens.reproduce.modin_2009.semi_explicit import exact_two_oscillators
from livens.reproduce.modin_2009.stability import is_in_stability_region, step_eigenvalues
from livens.reproduce.modin_2009.walls import position

CHAPTERS = ["1.1", "2.1", "2.7", "2.8", "2.9", "2.10", "4.1", "4.2"]
PAPERS = ["I.1", *(f"II.{i}" for i in range(2, 8)), *(f"III.{i}" for i in range(1, 5)), "IV.1", "IV.2"]
PAPERS += [f"V.{i}" for i in range(2, 7)]


def test_every_figure_is_there_in_order():
    assert [entry.number for entry in reproduce.figures("modin-2009")] == CHAPTERS + PAPERS
    assert [entry.number for entry in reproduce.figures("modin-2009", "fig. iii.2, 2.10")] == ["III.2", "2.10"]


def test_drift_and_none_are_opposites():
    t = np.linspace(0, 100, 1001)
    swing = np.sin(7 * t)
    assert claim_no_drift("", t, swing).holds and not claim_drift("", t, swing).holds
    assert claim_drift("", t, swing + 0.02 * t).holds and not claim_no_drift("", t, swing + 0.02 * t).holds
    lost = np.full_like(t, np.nan)
    assert not claim_drift("", t, lost).holds and not claim_no_drift("", t, lost).holds
    assert linear_change(t, 3 - t / 50) == pytest.approx(-2)


def test_largest_ratio_leaves_out_the_step_that_is_cut():
    assert largest_step_ratio(np.array([1.0, 2.0, 1.0, 3.0, 1e-9])) == pytest.approx(3)


def test_exact_motions_are_those_of_the_problems():
    t = np.linspace(0, 20, 113)
    walls, pair = (problems.load(name).reference for name in ("two-walls", "two-oscillators"))
    assert position(t) == pytest.approx(np.array([walls(s)["q"][0] for s in t]), abs=1e-12)
    found = np.array([np.concatenate([pair(s)["q"], pair(s)["v"]]) for s in t])
    assert exact_two_oscillators(t) == pytest.approx(found, abs=1e-11)


def test_bdf_converges_and_keeps_to_its_order():
    """An oscillator in the soft wall alone: a quarter of its period."""
    errors, counts = [], []
    for tolerance in (1e-4, 1e-6, 1e-8):
        found = bdf("two-walls", tolerance, 1.5)
        errors.append(np.abs(found.q[:, 0] - np.cos(found.t)).max())
        counts.append(len(found.t))
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    # with order 2 the local error is O(h^3): a hundredth of the tolerance takes 4.6 times as many steps
    assert 3 < counts[2] / counts[1] < 6
    energy = found.v[:, 0] ** 2 / 2 + found.q[:, 0] ** 2 / 2
    assert found.energy == pytest.approx(energy, abs=1e-12)
    assert len(bdf("two-walls", 1e-8, 1.5, 5).t) < counts[2] / 3


def test_what_there_is_of_a_run_that_breaks_down():
    result = until_failure("two-walls", "adaptive-variational:0,0", 0.3, 200.0, (("smooth", 0.012),))
    assert result.status == "failed" and 0 < result.t[-1] < 200


def test_local_errors_are_those_of_one_step():
    """Implicit Euler from (pi/2, 0): the first error is h^2/2 in p and in q of O(h^2)."""
    for scheme in ("implicit-euler", "symplectic-euler"):
        assert _local_errors(scheme)[0] == pytest.approx(0.1**2 / 2, rel=0.01)


def test_growth_is_that_of_the_characteristic_equation():
    """Modin 2009 paper V, eq. 9; and with cheap forces alone and beta = 1/2, the implicit midpoint rule."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-1, 3, 40), rng.uniform(-1, 5, 40)
    for alpha in (0.0, 0.3, 0.5, 1.0):
        found = step_eigenvalues(alpha, 0.5, c_A=x, k_A=y)
        assert found.sum(axis=1) == pytest.approx(2 - x - y * (1 + 2 * alpha) / 2, abs=1e-12)
        assert found.prod(axis=1) == pytest.approx(1 - x + y * (1 - 2 * alpha) / 2, abs=1e-12)
    assert np.abs(step_eigenvalues(0.5, 0.5, k_B=np.geomspace(1e-2, 1e6, 9))) == pytest.approx(1, abs=1e-7)


def test_corners_of_the_region():
    for alpha in (0.25, 0.5, 0.75):
        corners = np.array([(0, 0), (2, 0), (2 - 4 * alpha, 4)])
        middle = corners.mean(axis=0)
        within, beyond = middle + 0.99 * (corners - middle), middle + 1.01 * (corners - middle)
        assert is_in_stability_region(alpha, *within.T).all() and not is_in_stability_region(alpha, *beyond.T).any()


@pytest.mark.slow
def test_the_report_in_one_go(tmp_path):
    report = reproduce.reproduce("modin-2009", tmp_path, progress=False)
    assert [claim.text for claim in report.claims if not claim.holds] == []
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "modin-2009-figure-III.2.png" in page and "DOES NOT HOLD" not in page
    assert len(list(tmp_path.glob("*.pdf"))) == len(CHAPTERS + PAPERS)


def test_runs_are_shared():
    first = shared.adaptive("kepler", "sundman", 0.02, 1.0)
    assert shared.adaptive("kepler", "sundman", 0.02, 1.0) is first


@pytest.mark.parametrize(
    "claims", [extensions.higher_order_claims, extensions.splitting_claims, extensions.imex_claims]
)
def test_schemes_that_the_papers_lead_to(claims):
    """The claims of papers III and V hold for them, too."""
    found = claims()
    assert len(found) >= 2 and all(claim.holds for claim in found), [claim.measured for claim in found]
