"""Runs that are killed, and disks that are full: what the file holds is a part of the run, and the rest can follow."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

import livens as lv
from livens.results import recorder
from livens.results.storage import journal as atomic

CASES = {
    "simple-pendulum": dict(h=1e-3, t_end=0.4001),
    "double-four-bar": dict(h=1e-3, t_end=0.4),
    "spring-pendulum-spherical": dict(h=5e-3, t_end=2.0),
}
KILLED, DONE, NOT_WRITTEN = -signal.SIGKILL, 0, 3


class Workshop:
    """One process that does jobs in children of its own; see killable.py."""

    def __init__(self):
        helper = Path(__file__).with_name("killable.py")
        self._process = subprocess.Popen(
            [sys.executable, str(helper), *CASES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout.readline() == "ready\n"

    def do(self, path, name, every, **job):
        """The exit code of a run, begun or gone on with."""
        job |= dict(path=str(path), problem=name, every=every, **CASES[name])
        if path.exists() and lv.load(path).status == "complete":
            return DONE
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def workshop():
    made = Workshop()
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole():
    """Runs that nothing happened to, in memory."""
    made = {}

    def run(name, every):
        if (name, every) not in made:
            made[name, every] = lv.simulate(lv.problems.load(name, **CASES[name]), every=every)
        return made[name, every]

    return run


def assert_begins(part, run):
    """Every variable of `part` is, byte for byte, the beginning of that of `run`."""
    assert 1 <= len(part) <= len(run)
    for name in run.stored:
        assert getattr(part, name).tobytes() == getattr(run, name)[: len(part)].tobytes(), name


def assert_same(file, run):
    assert len(file) == len(run) and file.status == "complete" and file.message == run.message
    assert_begins(file, run)
    assert file.summary == run.summary
    assert file.statistics.newton_iterations == run.statistics.newton_iterations


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("name", CASES)
def test_killed_at_any_time(workshop, whole, tmp_path, name, every):
    """Killed at random moments, again and again, with a commit every few steps: at least 36 kills over all cases."""
    chance, kills, files = random.Random(f"{name} {every}"), 0, 0
    while kills < 6:
        files += 1
        path = tmp_path / f"{files}.h5"
        job = dict(chunk=chance.choice([1, 3, 16]), sync=chance.random() < 0.3, compress=files % 3 == 0)
        for _ in range(4):
            code = workshop.do(path, name, every, kill_after=chance.uniform(0.005, 0.12), **job)
            assert code in (KILLED, DONE)
            kills += code == KILLED
            if path.exists():
                part = lv.load(path)
                assert_begins(part, whole(name, every))
            if code == DONE:
                break
        else:
            assert workshop.do(path, name, every) == DONE
        assert_same(lv.load(path), whole(name, every))


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "compressed"])
def test_killed_in_any_operation(workshop, whole, tmp_path, compress):
    """Killed halfway through the n-th operation on the file, for all sorts of n in the first commits and later ones."""
    name, every = "spring-pendulum-spherical", 1
    places = {"before": 0, "plain": 0, "journal": 0}
    for n in [*range(-60, -1, 15), *range(1 + compress, 80, 5), *range(80, 300, 55)]:
        path = tmp_path / f"{n}.h5"
        code = workshop.do(path, name, every, kill_at=n, chunk=40, compress=compress)
        assert code in (KILLED, DONE)
        if not path.exists():
            places["before"] += 1
            continue
        with path.open("rb") as file:
            journal = atomic.pending(file.fileno()) is not None
        places["journal" if journal else "plain"] += 1
        if not journal:  # then any reader of HDF5 can read the file, without livens
            with h5py.File(path, "r") as file:
                assert np.array_equal(file["q"][:], whole(name, every).q[: len(file["q"])])
        assert_begins(lv.load(path), whole(name, every))
        if journal:  # livens has finished the change
            with h5py.File(path, "r") as file:
                assert np.array_equal(file["q"][:], whole(name, every).q[: len(file["q"])])
        if n % 5 == 0:
            workshop.do(path, name, every, kill_at=1 + abs(n) // 2, chunk=40)
            lv.load(path)
            with xarray.open_dataset(path, engine="h5netcdf") as data:
                assert data["q"].dims == ("t", "coordinate")
            assert workshop.do(path, name, every) == DONE
            assert_same(lv.load(path), whole(name, every))
    assert all(places.values()), places


def test_a_change_is_finished_in_a_file_that_may_not_be_written(workshop, whole, tmp_path, monkeypatch):
    """Read with the journal laid over it."""
    name, found = "spring-pendulum-spherical", 0
    for n in range(1, 50, 4):
        path = tmp_path / f"{n}.h5"
        assert workshop.do(path, name, 1, kill_at=n, chunk=40) == KILLED
        content = path.read_bytes() if path.exists() else b""
        with monkeypatch.context() as patch:
            patch.setattr("livens.results.storage.hdf5_reader._finish_journal", lambda path: False)
            if content:
                found += content[:8] != atomic.SIGNATURE
                assert_begins(lv.load(path), whole(name, 1))
                assert path.read_bytes() == content
    assert found


@pytest.mark.parametrize("every", [1, 7])
def test_disk_full_at_any_time(workshop, whole, tmp_path, every):
    """No room from the n-th operation on: what is in the file stays, and the run goes on when there is room again."""
    name, codes = "spring-pendulum-spherical", set()
    for n in [*range(-60, -1, 19), *range(1 + every, 60, 8), *range(80, 300, 73)]:
        path = tmp_path / f"{n}.h5"
        code = workshop.do(path, name, every, fail_at=n, chunk=40)
        codes.add(code)
        if code == 2:  # nothing was there yet: nothing is left
            assert list(tmp_path.glob(f"*{n}.h5*")) == []
            continue
        assert_begins(lv.load(path), whole(name, every))
        assert workshop.do(path, name, every) == DONE
        assert_same(lv.load(path), whole(name, every))
        path.unlink()
    assert {2, NOT_WRITTEN} <= codes


def test_a_limit_for_the_size_of_files(workshop, whole, tmp_path):
    """A full disk by a limit of the operating system."""
    name, every = "double-four-bar", 1
    size = workshop.do(path := tmp_path / "all.h5", name, every) or path.stat().st_size
    for i, share in enumerate([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99]):
        path = tmp_path / f"{i}.h5"
        code = workshop.do(path, name, every, limit=int(share * size))
        assert code in (2, NOT_WRITTEN)
        if code == NOT_WRITTEN:
            part = lv.load(path)
            assert part.status == "running"
            assert_begins(part, whole(name, every))
            assert workshop.do(path, name, every) == DONE
            assert_same(lv.load(path), whole(name, every))


def test_what_is_said_about_a_full_disk(tmp_path, monkeypatch):
    """In Python: an error with the part of the run that is in the file. Before anything is there: bad input."""
    problem = lv.problems.load("simple-pendulum")
    monkeypatch.setattr(recorder, "FLUSH_BYTES", 1)
    monkeypatch.setattr(recorder, "COMMIT_INTERVAL", 0.0)
    monkeypatch.setattr(recorder, "MAX_IO_SHARE", np.inf)
    real, left = os.pwrite, [3_000_000]

    def pwrite(descriptor, data, offset):
        left[0] -= len(data)
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data, offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        with pytest.raises(lv.WriteError, match=r"no space left on device.*are safe.*--resume") as caught:
            lv.simulate(problem, t_end=60.0, out=tmp_path / "run.h5")
        with pytest.raises(lv.InputError, match=r"cannot write the result file .*: no space left on device"):
            lv.simulate(problem, t_end=60.0, out=tmp_path / "other.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]
    run = lv.simulate(problem, t_end=60.0)
    assert len(caught.value.result) > 1
    assert_begins(caught.value.result, run)
    assert_same(lv.resume(tmp_path / "run.h5"), run)


def test_the_command_on_a_full_disk(tmp_path):
    """Exit code 3 and one sentence."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, resource.RLIM_INFINITY))\n"
        "from livens.results import recorder; recorder.COMMIT_INTERVAL, recorder.MAX_IO_SHARE = 0, 1e9\n"
        "from livens.cli import main; main()"
    )
    arguments = [sys.executable, "-c", code, "run", "simple-pendulum", "--t-end", "100"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "could not be written any further: file too large" in done.stderr and "Traceback" not in done.stderr
    assert 1 < len(lv.load(tmp_path / "simple-pendulum.h5")) < 100_001


class Disk:
    """Stands in for `os` and notes every change of the file, to play it again as a power failure would leave it."""

    def __init__(self):
        self.changes = []

    def __getattr__(self, name):
        return getattr(os, name)

    def pwrite(self, descriptor, data, offset):
        self.changes.append(("write", bytes(data), offset))
        return os.pwrite(descriptor, data, offset)

    def ftruncate(self, descriptor, size):
        self.changes.append(("size", b"", size))
        os.ftruncate(descriptor, size)

    def fsync(self, descriptor):
        self.changes.append(("sync", b"", 0))

    def after(self, count, chance):
        """The file after so many changes, if of those since the last sync some pages are lost."""
        content = bytearray()
        synced = max((i for i in range(count) if self.changes[i][0] == "sync"), default=0)
        share = chance.choice([0.1, 0.5, 0.9])
        for i, (kind, data, place) in enumerate(self.changes[:count]):
            if kind == "size" and (i < synced or chance.random() < share):
                content[place:] = bytes(max(0, place - len(content)))
            for first in range(0, len(data), 4096) if kind == "write" else ():
                if i < synced or chance.random() < share:
                    page = data[first : first + 4096]
                    content.extend(bytes(max(0, place + first - len(content))))
                    content[place + first : place + first + len(page)] = page
        return bytes(content)


def test_power_failure(whole, tmp_path, monkeypatch):
    """Whatever the disk has kept of what was written after the last sync."""
    name, chance, disk = "spring-pendulum-spherical", random.Random(1), Disk()
    with monkeypatch.context() as patch:
        patch.setattr(recorder, "COMMIT_INTERVAL", 0.0)
        patch.setattr(recorder, "MAX_IO_SHARE", np.inf)
        patch.setattr("livens.run.startup._CHUNK_STEPS", 40)
        patch.setattr(atomic, "os", disk)
        lv.simulate(lv.problems.load(name, **CASES[name]), out=tmp_path / "run.h5")
    syncs = [i for i, change in enumerate(disk.changes) if change[0] == "sync"]
    for i in range(100):
        path = tmp_path / f"{i}.h5"
        path.write_bytes(disk.after(chance.randrange(syncs[1] + 1, len(disk.changes) + 1), chance))
        assert_begins(lv.load(path), whole(name, 1))
        if i % 20 == 0 and lv.load(path).status != "complete":
            assert_same(lv.resume(path), whole(name, 1))


@pytest.mark.parametrize("n", [None, 5, 15, 30, 35, 40])
def test_cut_off(workshop, whole, tmp_path, n):
    """The end of a file is missing, of a whole run or of a killed one: a clear error or the beginning of the run."""
    name, chance = "spring-pendulum-spherical", random.Random(n)
    path = tmp_path / "run.h5"
    assert workshop.do(path, name, 1, kill_at=n, chunk=40) == (KILLED if n else DONE)
    content, refused = path.read_bytes(), 0
    for i in range(25):
        part = tmp_path / f"{i}.h5"
        near = chance.random() < 0.5
        part.write_bytes(content[: chance.randrange(len(content) - 4000 if near else 0, len(content))])
        try:
            assert_begins(lv.load(part), whole(name, 1))
        except lv.InputError as error:
            assert str(part) in str(error)
            refused += 1
            with pytest.raises(lv.InputError):
                lv.resume(part)
    assert refused


def test_a_run_under_way(workshop, whole, tmp_path, monkeypatch):
    """Its file can be read, but not changed by another run."""
    path, seen, run = tmp_path / "run.h5", [], whole("double-four-bar", 1)
    original = recorder.Recorder.flush_if_due

    def look(self, record):
        original(self, record)
        if path.exists():
            seen.append(len(lv.load(path)))
            assert_begins(lv.load(path), run)
            with pytest.raises(lv.InputError, match="in use by another run"):
                lv.resume(path)
            with pytest.raises(lv.InputError, match="in use by another run"):
                run.save(path, force=True)
            with pytest.raises(OSError, match="lock"):
                h5py.File(path, "r")

    with monkeypatch.context() as patch:
        patch.setattr(recorder, "COMMIT_INTERVAL", 0.0)
        patch.setattr(recorder, "MAX_IO_SHARE", np.inf)
        patch.setattr("livens.run.startup._CHUNK_STEPS", 100)
        patch.setattr(recorder.Recorder, "flush_if_due", look)
        lv.simulate(lv.problems.load("double-four-bar", **CASES["double-four-bar"]), out=path)
    assert seen == [1, 101, 201, 301, 401]
    assert shutil.copy(path, tmp_path / "copy.h5") and len(lv.load(tmp_path / "copy.h5")) == 401
    with h5py.File(path, "r"), pytest.raises(lv.InputError, match="open in another program"):
        lv.resume(path, t_end=1.0)
