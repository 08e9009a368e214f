"""Progress messages before the first step, and when they are shown."""

import sys

import pytest

import livens as lv
from livens import progress as stages
from livens.engine.codegen import jit
from livens.run import progress


class Heard:
    def __init__(self):
        self.words, self.counts = [], {}

    def message(self, text):
        self.words.append(text)

    def item(self, operation, noun):
        self.counts[operation, noun] = self.counts.get((operation, noun), 0) + 1


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LIVENS_CACHE_DIR", str(tmp_path))
    jit.clear_memory_cache()
    yield
    jit.clear_memory_cache()


def pendulum(stiffness):
    """A model that no other test has compiled."""
    return lv.System(
        "x y",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: stiffness * q[1] ** 4 + 0.125 * q[0] ** 6,
        constraints=lambda q: [0.5 * (q @ q - 1)],
    )


def test_everything_long_is_said(empty_cache):
    heard, model = Heard(), pendulum(3.25)
    with stages.listen(heard):
        before = jit.compilations
        lv.simulate(model, [-1, 0], [0, 0], h=1e-2, t_end=0.1)
        compiled = jit.compilations - before
        assert "deriving 3 equations" in heard.words and "choosing pivots of 3 equations" in heard.words
        assert heard.counts == {("compiling", "kernel"): compiled} and compiled > 3
        heard.words.clear()
        lv.simulate(model, [-1, 0], [0, 0], h=1e-2, t_end=0.1)
        assert not heard.words and heard.counts == {("compiling", "kernel"): compiled}  # all of it is known now


def test_large_systems_say_what_they_check():
    heard = Heard()
    with stages.listen(heard):
        problem = lv.problems.load("n-four-bar", N=30)
        problem.model.initial_state(problem.start_values, problem.model.parameter_vector(), 0.0, False, "error")
    assert heard.words == ["building n-four-bar", f"checking {problem.model.m} constraints"]


def test_the_line():
    shown = progress.PreparationStatus("n-four-bar (livens-em)")
    try:
        shown.message("deriving 210 equations")
        for _ in range(34):
            shown.item("compiling", "kernel")
        line = "n-four-bar (livens-em): deriving 210 equations ... compiling 34 kernels ... "
        assert shown.status_line().startswith(line) and shown.status_line().endswith(" s")
        shown.message("choosing pivots")
        shown.message("drawing the scene")
        line = "n-four-bar (livens-em): compiling 34 kernels ... choosing pivots ... drawing"
        assert shown.status_line().startswith(line)
    finally:
        shown.end()


@pytest.mark.parametrize(
    ("terminal", "asked", "seen"), [(True, None, True), (False, None, False), (True, False, False)]
)
def test_only_where_somebody_looks(monkeypatch, terminal, asked, seen):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    with progress.show_preparation("title", asked):
        assert stages.is_silent() != seen
    assert stages.is_silent()


def test_the_first_one_shows_what_the_others_do():
    heard = Heard()
    with stages.listen(heard), progress.show_preparation("title", True):
        stages.report_progress("deriving")
    assert heard.words == ["deriving"]


def test_the_line_appears_when_it_takes_long(monkeypatch):
    """With no patience at all; the thread is gone afterwards."""
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    shown = progress.PreparationStatus("title")
    opened = []

    class Console:
        def __init__(self, stderr):
            assert stderr

        def status(self, line):
            opened.append(line)
            shown._finished.set()
            return self

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr("rich.console.Console", Console)
    shown.message("deriving 3 equations")
    shown._thread.join()  # it ends by itself, see above
    shown.end()
    assert len(opened) == 1 and opened[0].startswith("title: deriving 3 equations ... ")
