"""The lab behind its pages: who is let in, what is refused, and what a run asked for comes to."""

import base64
import http.client
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens.lab.jobs import JobQueue
from livens.lab.request import MAX_COUNT, RunRequest, describe_problem, list_files, resolve_in_folder, slider
from livens.lab.worker import Worker
from livens.multibody.imports.mesh_files import MeshFiles
from livens.run.simulate import execute
from livens.validation import readable_files_within

pytest.importorskip("starlette")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "outside.yaml").write_text("problem: simple-pendulum\n")
    (tmp_path / "secret.txt").write_text("secret")
    here = tmp_path / "here"
    here.mkdir()
    (here / "own.yaml").write_text("problem: simple-pendulum\nh: 0.01\nt_end: 1\n")
    (here / "notes.txt").write_text("not for the lab")
    (here / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    return here


# -- who is let in ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    from livens.lab.server import Lab

    found = Lab(tmp_path_factory.mktemp("lab"), timeout=3600.0)
    thread = threading.Thread(target=found.serve, daemon=True)
    thread.start()
    yield found
    found.stop()
    thread.join()


def request(lab, path, method="GET", body=None, token=True, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", lab.port, timeout=900)
    cookie = {"Cookie": f"livens-lab-{lab.port}={lab.token}"} if token else {}
    connection.request(method, path, body, cookie | headers)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.headers
    connection.close()
    return found


def test_the_link_opens_it_and_leaves_a_cookie(lab):
    status, text, headers = request(lab, f"/?token={lab.token}", token=False)
    assert status == 200 and "livens lab" in text
    assert headers["Set-Cookie"] == f"livens-lab-{lab.port}={lab.token}; HttpOnly; SameSite=Strict; Path=/"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert request(lab, "/api/files")[0] == 200


@pytest.mark.parametrize("path", ["/", "/gallery", "/assets/lab.js", "/api/problems", "/api/runs/1"])
def test_without_the_token_nothing_is_shown(lab, path):
    for wrong in ("", "?token=", "?token=guess"):
        status, text, _ = request(lab, path + wrong, token=False)
        assert status == 403 and lab.token not in text
    assert request(lab, path, token=False, Cookie=f"livens-lab-{lab.port}=guess")[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1:1", "localhost.evil.example", ""])
def test_a_foreign_host_is_refused(lab, host):
    """As of a name that a hostile name server points at this machine."""
    status, text, _ = request(lab, f"/?token={lab.token}", Host=host)
    assert status in (400, 403) and lab.token not in text


def test_a_foreign_page_is_refused(lab):
    asked = json.dumps({"problem": "simple-pendulum", "t_end": 0.1})
    assert request(lab, "/api/runs", "POST", asked, Origin="http://evil.example")[0] == 403
    assert request(lab, "/api/runs", "POST", asked, Origin="null")[0] == 403
    assert request(lab, "/api/runs", "POST", asked, Origin=lab.address)[0] == 200


def test_it_listens_to_this_machine_alone():
    from livens.lab.server import Lab

    found = Lab(Path())
    assert found._socket.getsockname()[0] == "127.0.0.1"
    with pytest.raises(lv.InputError, match="cannot listen on port"):
        Lab(Path(), port=found.port)
    found.close()


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../lab.py",
        "/assets/%2e%2e%2fserver.py",
        "/api/runs/1/files/../../../../etc/passwd",
        "/api/runs/1/files/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/api/runs/999",
        "/nothing",
    ],
)
def test_no_other_file_is_given_out(lab, path):
    assert request(lab, path)[0] == 404


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{", "in JSON"),
        ("[]", "an object"),
        ('{"problem": "simple-pendulm"}', "simple-pendulum"),
        ('{"problem": "simple-pendulum", "h": 0}', "h must be"),
        ('{"problem": "simple-pendulum", "h": "small"}', "h must be"),
        ('{"problem": "simple-pendulum", "t_end": NaN}', "t_end"),
        ('{"problem": "simple-pendulum", "scheme": "livens-me"}', "livens-em"),
        ('{"problem": "simple-pendulum", "options": {"m": "heavy"}}', "option 'm' must be a number"),
        ('{"problem": "simple-pendulum", "options": {"m": 1' + "0" * 400 + "}}", "it has 401 digits"),
        ('{"problem": "simple-pendulum", "options": {"n": 1}}', "no option 'n'"),
        ('{"problem": "simple-pendulum", "colour": 1}', "unknown field 'colour'"),
        ('{"problem": "simple-pendulum", "h": 1e-9}', "the limit of 5000000"),
        ('{"problem": "n-four-bar", "options": {"N": 100000}}', f"N is limited to {MAX_COUNT}"),
        ('{"file": "../outside.yaml"}', "in the folder of the lab"),
        ('{"file": "/etc/passwd"}', "in the folder of the lab"),
        ("{}", "needs a problem"),
    ],
)
def test_what_is_wrong_gets_a_sentence(lab, body, words):
    status, text, _ = request(lab, "/api/runs", "POST", body)
    assert status == 400 and words in json.loads(text)["error"]


def test_a_long_request_is_refused(lab):
    body = '{"problem": "' + "x" * 50_000 + '"}'
    assert request(lab, "/api/runs", "POST", body)[0] == 413


# -- files ------------------------------------------------------------------------------------------------------------
def test_only_scenarios_and_results_of_the_folder(folder):
    assert resolve_in_folder(folder, "own.yaml") == folder / "own.yaml"
    assert "own.yaml" in list_files(folder) and "notes.txt" not in list_files(folder)
    outside = folder.parent / "outside.yaml"
    for name in ("../outside.yaml", str(outside), "link.yaml", "notes.txt", "missing.yaml", ".", "", "own.yaml\0"):
        with pytest.raises(lv.InputError, match="in the folder of the lab"):
            resolve_in_folder(folder, name)


# -- the same in other words ------------------------------------------------------------------------------------------
def test_python_and_scenario_make_the_same_run(folder, monkeypatch):
    given = dict(
        problem="mass-spring-damper", options={"k": [1.0, 2.0, 1.0]}, scheme="livens-midpoint", h=0.02, t_end=1
    )
    asked = RunRequest.parse(given, folder)
    (plan,) = asked.plans(folder)
    expected = execute(plan).q
    monkeypatch.setattr(lv.Result, "view", lambda *runs: None, raising=False)
    names = {}
    exec(asked.as_python(), names)
    assert np.array_equal(names["run"].q, expected)
    assert np.array_equal(lv.scenario.parse(asked.as_scenario(folder)).run().q, expected)


def test_two_schemes_are_two_plans(folder):
    asked = RunRequest.parse(dict(problem="kepler", scheme="livens-em", other="stormer-verlet", t_end=1.0), folder)
    assert [plan.scheme.name for plan in asked.plans(folder)] == ["livens-em", "stormer-verlet"]
    assert "run.view(other)" in asked.as_python()


def test_long_runs_keep_some_of_their_rows(folder):
    (plan,) = RunRequest.parse(dict(problem="simple-pendulum", h=1e-5, t_end=10.0), folder).plans(folder)
    assert plan.every == 50


@pytest.mark.parametrize("entry", lv.problems.all(), ids=lambda entry: entry.name)
def test_every_problem_is_described(entry):
    """A slider for every number, within which its usual value lies, and schemes that fit."""
    found = describe_problem(entry.name)
    json.dumps(found)
    numbers = [name for name, value in entry.options.items() if not isinstance(value, str)]  # words have no slider
    assert [option["name"] for option in found["options"]] == numbers
    for option in found["options"]:
        for value, (low, high) in zip(option["default"], option["ranges"], strict=True):
            assert low <= value <= high and low < high
    assert found["schemes"] and all(found["schemes"].values())


def test_sliders_of_what_is_zero_or_negative():
    assert slider("d", 0.0)["ranges"] == [[0.0, 1.0]] and slider("x", -2.0)["ranges"] == [[-4.0, 4.0]]


# -- jobs -------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "own.yaml").write_text("problem: simple-pendulum\nh: 0.01\nt_end: 1\n")
    found = JobQueue(folder, 3600.0)  # nothing is to be stopped because the machine is busy
    yield found
    found.close()


def until(jobs, condition):
    """Wait for what another process does: it says so itself, sooner or later."""
    pause = threading.Event()
    while not condition():
        assert jobs._thread.is_alive()
        pause.wait(0.02)


LONG = dict(problem="double-four-bar", h=1e-5, t_end=49.0)


def test_a_run_is_seen_while_it_is_computed_and_can_be_stopped(jobs):
    job = jobs.submit(RunRequest.parse(LONG, jobs.folder))
    until(jobs, lambda: job.version)
    first = json.loads(job.animation)
    assert job.status == "running" and first["running"] and first["t_end"] == 49.0
    jobs.stop(job)
    until(jobs, lambda: job.status == "done")
    assert not json.loads(job.animation)["running"] and job.files == ["double-four-bar.h5"]
    kept = lv.load(job.folder / "double-four-bar.h5")
    assert kept.status == "interrupted" and 0 < kept.t[-1] < 49.0
    # the next one takes the place of one that is under way, and a process that is lost is replaced
    slow, quick = (
        jobs.submit(RunRequest.parse(asked, jobs.folder))
        for asked in (LONG, dict(problem="simple-pendulum", t_end=1.0))
    )
    until(jobs, lambda: quick.status == "done")
    assert slow.status == "done" and len(quick.reports) == 1 and not quick.error
    jobs._process.kill()
    jobs._process.join()
    again = jobs.submit(RunRequest.parse(dict(file="own.yaml"), jobs.folder))
    until(jobs, lambda: again.status == "done")
    if again.error:  # it was handed to the process that was no more
        again = jobs.submit(RunRequest.parse(dict(file="own.yaml"), jobs.folder))
        until(jobs, lambda: again.status == "done")
    assert again.files == ["simple-pendulum.h5"]


def test_a_run_that_fails_says_why_and_shows_how_far_it_got(jobs):
    given = dict(problem="mass-spring-damper", scheme="explicit-euler", h=1.0, t_end=2000.0)
    job = jobs.submit(RunRequest.parse(given, jobs.folder))
    until(jobs, lambda: job.status == "done")
    assert "the run blew up" in job.error and job.version


def test_a_run_that_takes_too_long_is_stopped(folder, tmp_path):
    """A run in this process whose time limit has passed is stopped."""
    told, kept = [], tmp_path / "kept"
    kept.mkdir()
    here, there = multiprocessing.Pipe()
    with here, there:
        worker = Worker(there, lambda what, content: told.append((what, content)), folder, -1.0)
        worker.execute(RunRequest.parse(LONG, folder), kept)
    said = dict(told)
    assert "time limit of" in said["error"] and said["files"] == ["double-four-bar.h5"]
    assert "stopped by the user" in said["report"] and not json.loads(said["animation"])["running"]


def test_thumbnails_are_of_problems_that_there_are():
    """``python -m livens.lab.gallery`` makes them; the server makes those that are not in the file."""
    from livens.lab.gallery import FILE

    films = json.loads(FILE.read_text())
    assert set(films) <= {entry.name for entry in lv.problems.all()} and len(films) > 30
    for film in films.values():
        assert len(base64.b64decode(film["points"])) == film["frames"] * film["size"]


def test_a_thumbnail_is_made_when_it_is_missing(lab):
    status, text, _ = request(lab, "/api/thumbnails/simple-pendulum")
    assert status == 200 and json.loads(text)["frames"] == 60
    assert request(lab, "/api/thumbnails/nothing")[0] == 400


def test_a_thumbnail_is_the_run():
    from livens.lab.gallery import thumbnail

    run = lv.simulate(lv.problems.load("simple-pendulum"), h=0.01, t_end=1.0)
    found = thumbnail(run)
    points = np.frombuffer(base64.b64decode(found["points"]), dtype=np.uint8).reshape(found["frames"], -1, 2)
    assert [line[0] for line in found["lines"]] == ["ground", "rod", "sphere"]
    ball, ground = points[:, -1].astype(float), points[:, 0].astype(float)
    rows = np.linspace(0, 100, found["frames"]).round().astype(int)
    arm = (ball - ground) / np.linalg.norm(ball - ground, axis=1).mean()
    assert np.allclose(arm, run.q[rows], atol=0.02)


def test_a_thumbnail_in_space_has_a_floor_and_balls_are_round():
    from livens.lab.gallery import thumbnail

    found = thumbnail(lv.simulate(lv.problems.load("bouncing-ball"), t_end=0.2))
    points = np.frombuffer(base64.b64decode(found["points"]), dtype=np.uint8).reshape(found["frames"], -1, 2)
    kinds = [line[0] for line in found["lines"]]
    assert sorted(kinds) == ["path", "sphere", "sphere"] and found["lines"][kinds.index("path")][1] == 5
    ends = np.cumsum([0] + [line[1] for line in found["lines"]])
    place = kinds.index("sphere")
    ball = points[:, ends[place] : ends[place + 1]].astype(float)
    sizes = np.ptp(ball, axis=1)
    assert np.abs(sizes[:, 0] - sizes[:, 1]).max() <= 3 and sizes.min() > 10
    floor = points[:, ends[kinds.index("path")] : ends[kinds.index("path") + 1]]
    assert (floor == floor[0]).all() and np.ptp(floor[0], axis=0).min() > 10


ROBOT = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""


def test_robots_and_meshes_outside_of_the_folder_are_not_read(folder):
    """Neither by a relative nor by an absolute path."""
    outside = folder.parent / "secret.urdf"
    outside.write_text(ROBOT)
    text = "robot: {robot}\nh: 0.01\nt_end: 0.1\n"
    for name, robot in (("a", "../secret.urdf"), ("b", str(outside))):
        (folder / f"{name}.yaml").write_text(text.format(robot=robot))
        with pytest.raises(lv.InputError, match="outside of the folder"):
            RunRequest.parse({"file": f"{name}.yaml"}, folder).plans(folder)
    (folder / "inside.urdf").write_text(ROBOT)
    (folder / "c.yaml").write_text(text.format(robot="inside.urdf"))
    assert len(RunRequest.parse({"file": "c.yaml"}, folder).plans(folder)) == 1
    with readable_files_within(folder), pytest.raises(lv.InputError, match="outside of the folder"):
        MeshFiles(folder).mesh("file:///etc/hostname")


def test_deep_json_and_lone_surrogates_are_bad_requests(lab):
    for body in ("[" * 5000 + "]" * 5000, '{"problem": "\\ud800"}'):
        assert request(lab, "/api/runs", "POST", body)[0] == 400


def test_models_of_scenario_files_are_built_in_the_worker_process(folder, monkeypatch):
    """The worker can be killed, a thread of the server cannot."""
    monkeypatch.setattr(RunRequest, "plans", lambda self, folder: pytest.fail("the server builds a model"))
    assert RunRequest.parse({"file": "own.yaml"}, folder).file == "own.yaml"


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP on this platform")
def test_a_closed_terminal_leaves_no_files(folder, tmp_path):
    """SIGHUP ends the lab as Ctrl-C does: its temporary folder is removed."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    code = "from pathlib import Path; from livens.lab.server import Lab; Lab(Path.cwd()).serve()"
    environment = {**os.environ, "TMPDIR": str(temporary)}
    lab = subprocess.Popen([sys.executable, "-c", code], cwd=folder, env=environment)
    try:
        while not list(temporary.glob("livens-lab-*")):
            assert lab.poll() is None
            time.sleep(0.05)
        time.sleep(0.5)  # uvicorn serves after the start of the job queue
        lab.send_signal(signal.SIGHUP)
        lab.wait(timeout=120)
    finally:
        lab.kill()
    assert not list(temporary.glob("livens-lab-*"))
