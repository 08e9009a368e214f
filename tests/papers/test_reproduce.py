"""The figures of the sources: what is claimed holds, and the command says so, or says what does not."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from livens import reproduce
from livens.cli import app
from livens.errors import InputError, IntegrationError
from livens.plot.style import new_figure
from livens.reproduce import core
from livens.reproduce.measure import (
    claim_above,
    claim_below,
    claim_between,
    claim_no_trend,
    claim_order,
    claim_ranked,
    convergence_order,
)

ALL = [(entry.source, entry.number) for source in reproduce.SOURCES for entry in reproduce.figures(source)]
QUICK = [(s, n) for s, n in ALL if reproduce.figures(s, n)[0].quick]

PAGES = Path(__file__).resolve().parents[2] / "docs" / "theory" / "papers"

EXPECTED = {
    "kinon-betsch-2023": [*range(2, 9)],
    "kinon-betsch-schneider-2023": [*range(3, 11), *range(12, 24)],
    "symank-2025": [*range(4, 15), "times"],
    "kinon-betsch-2024": [*range(1, 17)],
}


def drawn(source, number):
    (entry,) = reproduce.figures(source, number)
    picture, claims = entry.draw()
    assert isinstance(picture, Figure) and picture.axes
    assert claims
    # times are shown and never judged: they belong to a machine
    return [f"{claim.text} {claim.measured}" for claim in claims if claim.holds is False]


@pytest.mark.parametrize(("source", "number"), QUICK)
def test_quick_figures(source, number):
    """Claims hold and are those of the documentation (docs/figures/papers.py updates its tables)."""
    (entry,) = reproduce.figures(source, number)
    picture, claims = entry.draw()
    assert isinstance(picture, Figure) and picture.axes and claims
    assert [f"{claim.text} {claim.measured}" for claim in claims if claim.holds is False] == []
    page = (PAGES / f"{source}.md").read_text(encoding="utf-8")
    for claim in claims:
        row = "| {} | {} |".format(number, claim.text.replace("|", chr(92) + "|"))
        assert claim.holds is None or row in page, row


@pytest.mark.slow
@pytest.mark.parametrize(("source", "number"), ALL)
def test_every_claim_holds(source, number):
    assert drawn(source, number) == []


@pytest.mark.parametrize("source", EXPECTED)
def test_every_figure_with_data_is_there(source):
    assert [entry.number for entry in reproduce.figures(source)] == list(map(str, EXPECTED[source]))
    assert all(entry.title for entry in reproduce.figures(source))


def test_figures_by_number():
    assert [entry.number for entry in reproduce.figures("Kinon-Betsch-2023", "fig. 8, 3")] == ["8", "3"]
    with pytest.raises(InputError, match="unknown source 'modin'; did you mean 'modin-2009"):
        reproduce.figures("modin")
    with pytest.raises(InputError, match="kinon-betsch-2024 has no figure '166' with data; did you mean '16'"):
        reproduce.figures("kinon-betsch-2024", "166")
    with pytest.raises(InputError, match="kinon-betsch-2023 has no figure 'x' with data; known: 2, 3"):
        reproduce.figures("kinon-betsch-2023", "x")


def test_claims_are_judged_by_their_limits():
    assert claim_below("", 1.0, 1.0).holds and not claim_below("", 1.1, 1.0).holds
    assert claim_above("", 1.0, 1.0).holds and not claim_above("", 0.9, 1.0).holds
    assert claim_between("", 1.5, 1, 2).holds and not claim_between("", 2.5, 1, 2).holds
    assert not claim_below("", float("nan"), 1.0).holds and not claim_above("", float("nan"), 1.0).holds
    assert claim_ranked("", {"a": 1.0, "b": 2.0}).holds and not claim_ranked("", {"a": 1.0, "b": 1.0}).holds
    steps = [0.1, 0.05, 0.025, 0.0125]
    assert claim_order("", 2, steps, [h**2 for h in steps]).holds
    assert not claim_order("", 2, steps, [h**1.8 for h in steps]).holds
    assert not claim_order("", 2, steps, [0.1, 0.1, float("nan"), 0.1]).holds
    with pytest.raises(ValueError, match="at least four"):
        convergence_order(steps[:3], steps[:3])


def test_drift_is_told_from_swing():
    t = np.linspace(0, 10, 1001)
    assert claim_no_trend("", t, np.sin(5 * t), "J").holds
    assert not claim_no_trend("", t, np.sin(5 * t) + t, "J").holds
    assert not claim_no_trend("", t, np.full_like(t, np.nan), "J").holds


@pytest.fixture
def fake(monkeypatch):
    """A source with one figure whose claims are given."""

    def make(*claims, failure=None):
        def draw():
            if failure:
                raise IntegrationError(failure)
            picture = new_figure(3, 2)
            picture.add_subplot().plot([0, 1], [0, 1])
            return picture, list(claims)

        monkeypatch.setitem(core.SOURCES, "nobody", core.Source("nobody", "A & B: On <nothing>", (), "All is well."))
        entry = core.FigureEntry("nobody", "1", "A | line", draw, "Theirs is bent.")
        monkeypatch.setitem(core._entries, ("nobody", "1"), entry)

    return make


def test_report(fake, tmp_path):
    fake(core.Claim("It is a line.", "|x| < 1", True), core.Claim("It is level.", "slope 1", False))
    report = reproduce.reproduce("nobody", tmp_path / "deep" / "er")
    assert not report.holds and [claim.holds for claim in report.claims] == [True, False]
    folder = tmp_path / "deep" / "er"
    names = ["nobody-figure-01.pdf", "nobody-figure-01.png", "report.html", "report.md"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert all((folder / name).stat().st_size > 100 for name in names)
    markdown = (folder / "report.md").read_text()
    assert "| 1 | It is a line. | \\|x\\| < 1 | holds |" in markdown
    assert "DOES NOT HOLD" in markdown and "1 of 2 claims hold" in markdown
    assert "Theirs is bent." in markdown and "All is well." in markdown and "(nobody-figure-01.png)" in markdown
    page = (folder / "report.html").read_text()
    assert "A &amp; B: On &lt;nothing&gt;" in page and "|x| &lt; 1" in page and 'src="nobody-figure-01.png"' in page
    assert page.count("DOES NOT HOLD") == 2  # in the table of all claims, and beside the figure


def test_command_line(fake, tmp_path):
    command = ["reproduce", "nobody", "--out", str(tmp_path)]
    fake(core.Claim("It is a line [sic].", "straight", True))
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0 and "It is a line [sic]." in found.stdout and "Theirs is bent." in found.stdout
    assert CliRunner().invoke(app, [*command, "--quiet"]).stdout == ""
    fake(core.Claim("It is level.", "slope 1", False))
    assert CliRunner().invoke(app, [*command, "--quiet"]).exit_code == 1
    found = CliRunner().invoke(app, [*command, "--json"])
    facts = json.loads(found.stdout)
    assert found.exit_code == 1 and facts["holds"] is False
    assert facts["figures"][0]["claims"] == [{"text": "It is level.", "measured": "slope 1", "holds": False}]
    assert facts["figures"][0]["files"] == ["nobody-figure-01.png", "nobody-figure-01.pdf"]


def test_a_run_that_fails_is_a_claim_that_fails(fake, tmp_path):
    fake(failure="the step from t = 1 to 2 failed")
    report = reproduce.reproduce("nobody", tmp_path)
    assert not report.holds and report.results[0].files == ()
    assert "the step from t = 1 to 2 failed" in (tmp_path / "report.md").read_text()
    assert "Not drawn" in (tmp_path / "report.html").read_text()
    assert CliRunner().invoke(app, ["reproduce", "nobody", "--out", str(tmp_path)]).exit_code == 1


@pytest.mark.parametrize(
    "words", [["kinon-2005"], ["kinon-betsch-2023", "--only", "99"], ["kinon-betsch-2023", "--out", "FILE"]]
)
def test_bad_input(words, tmp_path, monkeypatch, capsys):
    from livens.cli import main

    (tmp_path / "FILE").write_text("in the way")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["livens", "reproduce", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("livens: ")
    assert [path.name for path in tmp_path.iterdir()] == ["FILE"]


def test_one_figure_from_the_command_line(tmp_path):
    found = CliRunner().invoke(app, ["reproduce", "kinon-betsch-2023", "--only", "8", "--out", str(tmp_path), "--json"])
    assert found.exit_code == 0
    facts = json.loads(found.stdout)
    assert facts["holds"] and [figure["figure"] for figure in facts["figures"]] == ["8"]


@pytest.mark.slow
def test_all_sources_in_one_report(tmp_path):
    """Every claim of every source, with the figures, on one page."""
    from livens.reproduce import SOURCES, reproduce_all

    reports = reproduce_all(tmp_path, progress=False)
    assert [report.source.name for report in reports] == list(SOURCES)
    assert all(report.holds for report in reports)
    for name in ("report.md", "report.html"):
        page = (tmp_path / name).read_text(encoding="utf-8")
        for report in reports:
            assert report.source.citation.split(":")[0].split(",")[0] in page
            assert all(file in page for drawn in report.results for file in drawn.files if file.endswith(".png"))


def test_only_needs_one_source(tmp_path, monkeypatch):
    """Figures of different sources have the same numbers."""
    from typer.testing import CliRunner

    from livens.cli import app
    from livens.errors import InputError

    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", "--only", "3"])
    assert isinstance(done.exception, InputError) and "--only needs a single source" in str(done.exception)
