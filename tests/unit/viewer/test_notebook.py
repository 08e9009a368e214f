"""Rich display in notebooks: tables, small pictures, animations as widgets or frames."""

import re
import sys
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import livens as lv
from livens.run.progress import is_interactive
from livens.scene.sketch import braille, projected_lines, svg


@pytest.fixture(scope="module")
def run():
    return lv.simulate(lv.problems.load("double-four-bar"), h=1e-2, t_end=2.0)


def words(html):
    return re.sub(r"<[^>]*>", " ", html)


def shown(thing):
    """As IPython asks for it, if it is there."""
    formatter = pytest.importorskip("IPython.core.formatters").HTMLFormatter()
    html = formatter(thing)
    # every tag is closed, apart from those that need not be
    ET.fromstring(f"<div>{re.sub(r'<(img[^>]*|br)>', '', html)}</div>")
    return words(html)


def test_a_run(run):
    assert "double-four-bar" in shown(run) and "livens-em" in shown(run)
    pictures = re.findall(r'<img alt="(\w+)" src="data:image/png;base64,iVBOR', run._repr_html_())
    assert pictures == ["snapshots", "trajectory"]


def test_a_run_without_its_model(tmp_path):
    system = lv.System("a", kinetic=lambda v: v[0] ** 2, potential=lambda q: q[0] ** 2)
    lv.simulate(system, q0=[1], v0=[0], h=0.1, t_end=1).save(tmp_path / "own.h5")
    assert "1 coordinates" in shown(lv.load(tmp_path / "own.h5"))


def test_models_and_problems():
    problem = lv.problems.load("heavy-top", a=0.2)
    assert "a=0.2" in shown(problem) and "<svg" in problem._repr_html_()
    assert "gravity" in shown(lv.problems.load("bricard").model) or "parameters" in shown(problem.model)
    for entry in lv.problems.all():
        found = lv.problems.load(entry.name)
        assert entry.name in shown(found) and shown(found.model)


def test_report_and_studies(run):
    report = run.report(accuracy=False)
    assert "conserved to round-off as guaranteed" in shown(report) and "generalized energy" in str(report)
    problem = lv.problems.load("simple-pendulum")
    comparison = lv.study.compare(problem, "livens-em,livens-midpoint", h=0.01, t_end=0.5)
    assert "livens-midpoint" in shown(comparison)
    study = lv.study.converge(problem, "livens-em", t_end=0.5)
    assert "h = " in shown(study) and "error" in shown(study)
    sweep = lv.study.sweep("simple-pendulum", {"l": [1.0, 2.0], "t_end": [0.1]}, workers=1)
    assert "2 of 2 runs" in shown(sweep) and list(sweep.to_pandas()["l"]) == [1.0, 2.0]
    assert "accuracy" in shown(run.accuracy())
    many = lv.ensemble(
        problem.model, q0=problem.q0, v0=problem.v0, parameters={"g": np.array([9.0, 10.0])}, h=0.01, t_end=0.1
    )
    assert "g from 9 to 10" in shown(many)


def test_names_of_strangers_stay_names():
    system = lv.System("x", kinetic=lambda v: v @ v, potential=lambda q, k: k.a * q[0], parameters={"a": 1.0})
    system.constraint_names = ("<script>alert(1)</script>",)
    assert "<script>" not in system._repr_html_()


def test_tables_of_pandas(run):
    table = run.to_pandas(["upper0.x", "kinetic_energy"])
    assert list(table.columns) == ["upper0.x", "kinetic_energy"] and table.index.name == "t"
    assert np.array_equal(table["upper0.x"], run["upper0.x"]) and np.array_equal(table.index, run.t)
    assert run.to_pandas().shape == (len(run.t), 30) and run.to_pandas("upper0.*").shape[1] == 6
    constraints = run.to_pandas("constraint")
    assert constraints.shape[1] == 29 and "constraint[0]" in constraints
    with pytest.raises(lv.InputError, match=r"did you mean 'upper0\.x'"):
        run.to_pandas(["upper0.xx"])
    with pytest.raises(lv.InputError, match="a name or a list of names of quantities"):
        run.to_pandas(3)


def test_a_sketch_is_the_pose():
    problem = lv.problems.load("double-four-bar")
    lines = [line for line in projected_lines(problem.model.scene, problem.q0) if line.shape_type == "rod"]
    assert len(lines) == 5 and np.allclose(lines[0].points, [[0, 0], [0, 1]])
    picture = svg(problem.model.scene, problem.q0)
    assert len(ET.fromstring(picture)) == 8
    text = braille(problem.model.scene, problem.q0, columns=40, rows=14)
    assert max(map(len, text.splitlines())) <= 40 and len(text.splitlines()) <= 14
    assert text.splitlines()[0].count("\u28c0") > 30  # the upper bars are one long line
    bare = lv.FirstOrder("x", rhs=lambda x: [-x[0]])
    assert svg(bare.scene, np.zeros(1)) == "" and svg(lv.problems.load("rlc-circuit").model.scene, np.zeros(3))


def test_progress_bars_are_for_terminals_and_notebooks(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert not is_interactive()
    monkeypatch.setitem(sys.modules, "ipykernel", matplotlib)
    assert is_interactive()


# -- axes of the user's own -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["energy", "constraints", "coordinates", "snapshots", "trajectory", "newton", "multipliers"]
)
@pytest.mark.parametrize("problem", ["double-four-bar", "heavy-top"])
def test_pictures_in_axes_of_ones_own(problem, name):
    run = lv.simulate(lv.problems.load(problem), t_end=0.05)
    if name == "multipliers" and problem == "heavy-top":
        pytest.skip("there are none")
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert getattr(run.plot, name)(ax=right) is figure
    figure.draw_without_rendering()
    assert not left.lines and not left.child_axes
    drawn = [axes for axes in (right, *right.child_axes) if axes.lines or axes.collections]
    assert drawn and problem in right.get_title(loc="left")


def test_axes_must_be_axes():
    run = lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.1)
    with pytest.raises(lv.InputError, match="ax must be axes"):
        run.plot.energy(ax=3)


# -- films ------------------------------------------------------------------------------------------------------------
def test_a_film_in_a_frame_or_as_a_widget(run, monkeypatch):
    monkeypatch.setattr("livens.viewer.display._has_browser", lambda: False)
    film = run.view(frames=10)
    assert "<iframe srcdoc=" in film._repr_html_()  # without a kernel and without a network
    pytest.importorskip("anywidget")
    monkeypatch.setattr("livens.viewer.display._in_notebook", lambda: True)
    bundle = film.widget._repr_mimebundle_()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert film.widget.page.startswith("<!doctype html>") and film.widget.time is None
    film.widget.time = 0.5
    film.widget.close()
