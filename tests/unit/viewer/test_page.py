"""The page in a real browser: it draws what the run holds. Skipped where there is no chromium."""

import numpy as np
import pytest

import livens as lv
from browsing import browser as chromium
from browsing import needs_browser, wait, watched
from livens.analysis.reaction_forces import joint_forces
from livens.viewer import display
from livens.viewer.frame_selection import select_rows, with_rows

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def shown(browser, tmp_path):
    """Opens the page of some runs from its file; nothing may complain on the console, and nothing be asked of a net."""
    pages = []

    def show(*runs, width=480, height=420, **options):
        first, *others = runs
        path = first.animate(tmp_path / f"page{len(pages)}.html", *others, **dict(play=False) | options)
        page = watched(browser.new_page(viewport=dict(width=width, height=height)))
        page.on("request", lambda r: page.troubles.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
        page.goto(path.as_uri())
        wait(page, ready="true")
        pages.append(page)
        return page

    yield show
    for page in pages:
        assert page.troubles == []
        page.close()


@pytest.fixture(scope="module")
def linkage():
    return lv.simulate(lv.problems.load("double-four-bar"), h=1e-2, t_end=2.0)


@pytest.fixture(scope="module")
def ring():
    return lv.simulate(lv.problems.load("closed-loop-bars"), t_end=3.0)


def pixels(page):
    return page.locator("#view").screenshot()


@pytest.mark.parametrize("name", ["double-four-bar", "closed-loop-bars", "andrews-squeezer", "heavy-top", "billiard"])
def test_what_is_drawn_is_where_the_result_says(shown, name):
    problem = lv.problems.load(name)
    run = lv.simulate(problem, t_end=problem.t0 + 200 * problem.h)
    page = shown(run, frames=100)
    rows, scene = select_rows(run.t, 1, 100), run.scene
    assert np.array_equal(page.evaluate("livens.times()"), run.t[rows])
    pose = scene.evaluate(run.q, run.t)
    size = np.ptp(np.concatenate([pose.points(shape).reshape(-1, 3) for shape in scene.shapes]), axis=0).max()
    for row in rows[[0, 17, 50, 99]]:
        page.evaluate("t => livens.seek(t)", run.t[row])
        for shape, drawn in zip(scene.shapes, page.evaluate("livens.positions()"), strict=True):
            points = pose.points(shape)[row]
            middle = shape.shape_type in ("rod", "cone", "cylinder", "spring")
            expected = points.mean(axis=0) if middle else points[0]
            if shape.shape_type != "damper":
                assert np.allclose(drawn, expected, atol=2e-4 * size), (shape.name, shape.shape_type)


def test_between_frames_it_is_in_between(shown, linkage):
    page = shown(linkage, frames=201)
    page.evaluate("t => livens.seek(t)", (linkage.t[10] + linkage.t[11]) / 2)
    x = linkage.info.coordinates.index("upper0.x")
    assert page.evaluate("livens.position('upper0')")[0] == pytest.approx(linkage.q[10:12, x].mean(), abs=1e-4)


def test_play_pause_and_scrub(shown, linkage):
    page = shown(linkage)
    assert page.evaluate("livens.time()") == 0 and not page.evaluate("livens.playing()")
    page.click("#play")
    page.wait_for_function("livens.time() > 0")
    page.keyboard.press("Space")
    assert not page.evaluate("livens.playing()")
    page.evaluate("const s = document.getElementById('scrub'); s.value = 500; s.dispatchEvent(new Event('input'))")
    assert page.evaluate("livens.time()") == pytest.approx(1.0, abs=1e-3)
    assert page.inner_text("#clock").startswith("1.0")
    page.locator("#view").focus()
    page.keyboard.press("End")
    assert page.evaluate("livens.time()") == pytest.approx(2.0)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("livens.time()") == pytest.approx(0.01)
    sheet = page.locator("#plots canvas").first
    sheet.click(position=dict(x=52 + (sheet.bounding_box()["width"] - 58) / 2, y=40))
    assert page.evaluate("livens.time()") == pytest.approx(1.0, abs=0.02)


def test_without_loop_it_stops_at_the_end(shown, linkage):
    page = shown(linkage)
    page.click("#loop")
    page.evaluate("livens.seek(1.999)")
    page.click("#play")
    page.wait_for_function("!livens.playing()")
    assert page.evaluate("livens.time()") == pytest.approx(2.0)


def test_camera(shown, ring):
    page = shown(ring)
    before, seen = page.evaluate("livens.camera.position.toArray()"), pixels(page)
    box = page.locator("#view").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 120, y + 30, steps=4)
    page.mouse.up()
    after = page.evaluate("livens.camera.position.toArray()")
    assert np.linalg.norm(np.subtract(after, before)) > 0.1 and pixels(page) != seen
    page.click("#home")
    assert np.allclose(page.evaluate("livens.camera.position.toArray()"), before)


def test_following_a_body_keeps_it_in_place(shown, ring):
    page = shown(ring)
    page.select_option("#follow", label="follow bar2")
    target = "const p = livens.position('bar2'); livens.controls.target.toArray().map((x, i) => x - p[i])"
    gap = page.evaluate(target)
    page.evaluate("livens.seek(3.0)")
    assert np.allclose(page.evaluate(target), gap, atol=1e-9)


def test_traces_grow_and_can_be_switched_off(shown, linkage):
    page = shown(linkage)
    page.evaluate("livens.seek(0.5)")
    assert page.evaluate("livens.trace()") == [[True, 51]] * 5
    seen = pixels(page)
    page.click("#traces")
    assert not any(visible for visible, _ in page.evaluate("livens.trace()")) and pixels(page) != seen


def test_velocities_and_names(shown, linkage):
    page = shown(linkage)
    page.evaluate("livens.seek(0.4)")
    seen = pixels(page)
    page.keyboard.press("v")
    assert pixels(page) != seen
    hit = page.evaluate(
        """() => { const box = document.getElementById('view').getBoundingClientRect();
        const p = livens.camera.position.clone().set(...livens.position('upper0')).project(livens.camera);
        return [box.left + (p.x + 1) / 2 * box.width, box.top + (1 - p.y) / 2 * box.height]; }"""
    )
    page.keyboard.press("v")
    page.mouse.move(*hit)
    page.wait_for_selector("#label:not([hidden])")
    assert page.inner_text("#label").startswith("upper0")


def test_joint_forces_are_drawn_where_they_act(shown, linkage):
    page = shown(linkage, frames=40)
    few = with_rows(linkage, select_rows(linkage.t, 1, 40))
    forces = joint_forces(few)
    largest = max(np.abs(force.force).max() for force in forces)
    page.keyboard.press("j")
    assert page.evaluate("livens.shown.forces")
    for row in (3, 20):
        page.evaluate("t => livens.seek(t)", few.t[row])
        for force, (name, at, vector) in zip(forces, page.evaluate("livens.arrows('forces')"), strict=True):
            assert name == force.name
            assert np.allclose(at, force.point[row], atol=1e-3) and np.allclose(
                vector, force.force[row], atol=1e-4 * largest
            )
    seen = pixels(page)
    page.click("#forces")
    assert pixels(page) != seen


def test_forces_of_contacts_are_drawn_where_bodies_touch(shown):
    run = lv.simulate(lv.problems.load("bouncing-ball"), t_end=0.4)
    page = shown(run, frames=2001)
    page.keyboard.press("j")
    hardest = int(np.argmax(np.abs(run["floor.normal_force"])))
    page.evaluate("t => livens.seek(t)", run.t[hardest])
    ((name, at, vector),) = page.evaluate("livens.arrows('forces')")
    assert name == "floor"
    # below the centre, halfway into the floor, which pushes the ball up: the sensor has the force on the floor
    assert np.allclose(at, [run["ball.x"][hardest], 0.0, -run["floor.depth"][hardest] / 2], atol=1e-5)
    assert np.allclose(at, run["floor.point"][hardest], atol=1e-5)
    assert vector[2] == pytest.approx(run["floor.normal_force"][hardest], rel=1e-3)
    assert np.allclose(vector, -np.asarray(run["floor.force"][hardest]), atol=1e-3 * vector[2])


def test_anything_can_be_plotted(shown, linkage):
    page = shown(linkage, curves="upper0.x")
    assert page.evaluate("livens.panels()")[0] == ["upper0.x", False]
    page.select_option("#more", "force of lower0-upper0")
    assert page.evaluate("livens.panels()")[-1] == ["force of lower0-upper0", False]
    page.locator("#plots figure").last.locator("button", has_text="lin").click()
    assert page.evaluate("livens.panels()")[-1] == ["force of lower0-upper0", True]
    page.locator("#plots figure").last.locator("button", has_text="\u00d7").click()
    assert "force of lower0-upper0" not in [name for name, _ in page.evaluate("livens.panels()")]


def test_two_runs(shown, linkage):
    other = lv.simulate(lv.problems.load("double-four-bar"), h=4e-2, t_end=2.0, scheme="livens-midpoint")
    page = shown(linkage, other)
    assert page.evaluate("livens.group(1)") == [0, 0, 0]
    page.select_option("#layout", "side")
    assert page.evaluate("livens.group(1)")[0] > 2
    page.evaluate("livens.seek(1.0)")
    assert page.evaluate("livens.position('upper0', 1)")[0] == pytest.approx(
        other.at(1.0).q[other.info.coordinates.index("upper0.x")], abs=1e-3
    )


def test_dark_and_light(shown, linkage):
    page = shown(linkage, theme="light")
    seen = pixels(page)
    page.click("#dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark" and pixels(page) != seen


def test_on_a_phone_everything_fits(shown, linkage):
    page = shown(linkage, width=390, height=780)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#view").bounding_box()["height"] > 200
    assert page.evaluate("document.getElementById('play').getBoundingClientRect().height") >= 30


def test_many_bodies_are_instances(shown):
    problem = lv.problems.load("n-four-bar", N=20)
    page = shown(lv.simulate(problem, t_end=0.05), frames=10)
    assert page.evaluate("livens.runs[0].shapes.length") == 21 + 20 + 21
    assert page.evaluate("livens.renderer.info.render.calls") < 20


def test_the_widget_and_the_film_share_their_time(shown, linkage, browser, monkeypatch):
    """With a model as notebooks have one."""
    monkeypatch.setattr("livens.viewer.display._has_browser", lambda: False)
    film = linkage.view(frames=20)
    page = watched(browser.new_page())
    page.goto("about:blank")
    page.evaluate(
        """async ([code, film]) => {
            const values = { page: film, time: 0.5 }, told = [];
            window.model = { get: (n) => values[n], set: (n, v) => { values[n] = v; }, save_changes: () => {},
              on: (what, act) => told.push(act), off: () => {},
              change: (t) => { values.time = t; told.forEach((act) => act()); } };
            const module = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
            module.render({ model: window.model, el: document.body });
        }""",
        [display._WIDGET, film.path.read_text()],
    )
    inside = "document.querySelector('iframe').contentWindow.livens"
    page.wait_for_function(f"{inside} && {inside}.time() === 0.5")
    page.evaluate("model.change(1.25)")
    assert page.evaluate(f"{inside}.time()") == 1.25
    frame = page.frames[1]
    frame.evaluate("const s = document.getElementById('scrub'); s.value = 500; s.dispatchEvent(new Event('input'))")
    assert page.evaluate("model.get('time')") == pytest.approx(1.0, abs=1e-3)
    assert page.troubles == []
    page.close()
