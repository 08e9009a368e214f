"""The lab in a real browser, by clicks only. Skipped where there is no chromium."""

import threading

import numpy as np
import pytest

import livens as lv
from browsing import browser as chromium
from browsing import needs_browser, wait, watched

pytest.importorskip("starlette")
pytestmark = needs_browser


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    from livens.lab.server import Lab

    folder = tmp_path_factory.mktemp("lab")
    (folder / "own.yaml").write_text("problem: simple-pendulum\noptions: {l: 2.0}\nh: 0.01\nt_end: 1\n")
    found = Lab(folder, timeout=3600.0)  # nothing is to be stopped because the machine is busy
    thread = threading.Thread(target=found.serve, daemon=True)
    thread.start()
    yield found
    found.stop()
    thread.join()


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser, lab):
    context = browser.new_context(viewport=dict(width=900, height=640), accept_downloads=True)
    found = watched(context.new_page())
    found.goto(lab.link)
    wait(found, lab="ready")
    yield found
    assert [trouble for trouble in found.troubles if "400 (Bad Request)" not in trouble] == []
    context.close()


def choose(page, name):
    page.select_option("#problem", name)
    wait(page, problem=name)


def run(page):
    page.click("#run")
    wait(page, done="true")


def test_a_run_by_clicks(page, tmp_path):
    choose(page, "simple-pendulum")
    page.select_option("#scheme", "livens-midpoint")
    page.fill('[aria-label="l"]', "2")
    page.fill('[aria-label="t_end"]', "1")
    run(page)
    assert int(page.get_attribute("html", "data-first")) > 0  # milliseconds from the click to the first picture
    problem = lv.problems.load("simple-pendulum", l=2.0)
    expected = lv.simulate(problem, scheme="livens-midpoint", t_end=1.0)
    page.evaluate("livens.play(false)")
    page.evaluate("livens.seek(0.7)")
    drawn = page.evaluate("livens.positions()")[-1]
    assert np.allclose(drawn[:2], expected.at(0.7).q, atol=1e-3)
    assert "accuracy: q to" in page.inner_text("#reports") and "constraints g(q)" in page.inner_text("#reports")
    page.click("text=as Python")
    code = page.inner_text("#python")
    assert "lv.problems.load('simple-pendulum', l=2" in code and "scheme='livens-midpoint'" in code
    with page.expect_download() as waiting:
        page.click("text=simple-pendulum.h5")
    waiting.value.save_as(tmp_path / "found.h5")
    assert np.array_equal(lv.load(tmp_path / "found.h5").q, expected.q)


def test_a_wrong_value_gets_its_sentence(page):
    choose(page, "double-four-bar")
    page.fill('[aria-label="h"]', "-1")
    page.click("#run")
    wait(page, done="refused")
    assert "h must be" in page.inner_text("#sentence")
    page.fill('[aria-label="h"]', "0.001")
    page.fill('[aria-label="m"]', "heavy")
    page.click("#run")
    page.locator("#sentence", has_text="option 'm' must be a number").wait_for()


def test_what_is_written_while_a_problem_comes_is_not_lost(page):
    """Boxes cannot be filled in before they are there, and an answer that comes late does not replace a later one."""
    held = []

    def late(route):
        if "simple-pendulum" in route.request.url:
            held.append(route)
        else:
            route.continue_()

    page.route("**/api/problems/*", late)
    page.select_option("#problem", "simple-pendulum")
    page.wait_for_function("document.getElementById('numbers').inert && document.getElementById('run').disabled")
    choose(page, "kepler")
    assert not page.evaluate("document.getElementById('numbers').inert || document.getElementById('run').disabled")
    page.fill('[aria-label="h"]', "0.125")
    with page.expect_response("**/api/problems/simple-pendulum"):
        held[0].continue_()
    page.evaluate("new Promise(requestAnimationFrame)")
    assert page.input_value('[aria-label="h"]') == "0.125"
    assert page.get_attribute("html", "data-problem") == "kepler"


def test_two_schemes_side_by_side(page):
    """Explicit Euler gains energy; livens-em does not."""
    choose(page, "nonlinear-pendulum")
    page.select_option("#scheme", "livens-em")
    page.select_option("#other", "explicit-euler")
    run(page)
    assert page.evaluate("livens.runs.map(run => run.subtitle.split(',')[0])") == ["livens-em", "explicit-euler"]
    energies = page.evaluate(
        "livens.runs.map(run => Array.from(run.curves.filter(c => c.panel === 'energy').pop().values))"
    )
    assert np.ptp(energies[0]) < 1e-6 < 0.5 < np.ptp(energies[1])
    page.select_option("#layout", "side")
    assert page.evaluate("livens.group(1)")[0] > 0
    assert page.locator(".livens-report").count() == 2


def test_run_requests_are_sent_one_after_another(page):
    """The server executes the last request it receives: a request that is delayed must not replace a later one."""
    choose(page, "simple-pendulum")
    run(page)
    held, sent = [], []

    def delay_first(route):
        if route.request.method != "POST":
            route.continue_()
            return
        sent.append(route.request.post_data_json["h"])
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/runs", delay_first)
    page.fill('[aria-label="h"]', "0.02")
    page.click("#run")
    for h in ("0.03", "0.04", "0.05"):
        page.fill('[aria-label="h"]', h)
        page.click("#run")
    assert sent == [0.02] and page.get_attribute("html", "data-done") == "false"
    held[0].continue_()
    wait(page, done="true")
    assert sent == [0.02, 0.05] and "h=0.05" in page.text_content("#python")


def test_a_slider_runs_at_once(page):
    choose(page, "simple-pendulum")
    page.fill('[aria-label="t_end"]', "0.5")
    run(page)
    page.locator('[aria-label="g (slider)"]').focus()
    page.keyboard.press("ArrowRight")
    page.locator('[aria-label="g (slider)"]').dispatch_event("change")
    page.locator("#python", has_text="g=").wait_for(state="attached")
    wait(page, done="true")
    assert "g=" in page.text_content("#python")


def test_a_file_of_the_folder(page):
    choose(page, "file:own.yaml")
    run(page)
    assert page.evaluate("livens.times().at(-1)") == pytest.approx(1.0)
    assert "l: 2.0" in page.text_content("#scenario")


def test_models_without_geometry_show_their_curves(page):
    choose(page, "rlc-circuit")
    run(page)
    assert "states" in [name for name, _ in page.evaluate("livens.panels()")]


def test_the_gallery_moves(page, lab):
    page.goto(f"{lab.address}/gallery")
    wait(page, ready="true", complete="true")
    assert page.locator(".card").count() == len(lv.problems.all())
    pictures = page.evaluate(
        "gallery.moving.map(f => [0, 0.3].map(part => { f.draw(part); return f.canvas.toDataURL(); }))"
    )
    names = [entry.name for entry in lv.problems.all()]
    still = {name for name, (one, other) in zip(names, pictures, strict=True) if one == other}
    assert still <= {"joint-shafts", "joint-curve", "joint-helix"}  # round, or a ball in the middle of its picture
    page.click('[data-problem="kepler"]')
    wait(page, problem="kepler")


def test_the_lab_opens_with_a_run_and_problems_by_section(page):
    wait(page, done="true")  # nothing was clicked
    labels = page.eval_on_selector_all("#problem optgroup", "groups => groups.map((group) => group.label)")
    assert labels[:2] == ["Start here", "Mechanisms"]
    choose(page, "kepler")  # runs at once
    wait(page, done="true")
    assert page.input_value("#problem") == "kepler"
