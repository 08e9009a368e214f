"""Runs on disk: what is written is read, a run goes on bit for bit, and strange files are refused."""

import itertools
import json
import os
import types

import h5py
import numpy as np
import pytest
import xarray

import livens as lv
from livens import math as m
from livens.expressions.state_layout import Layout
from livens.results import recorder
from livens.results.storage.checksums import GROUP, BlockChecksums, add_checksum, read_verified, rebuild, strip_checksum
from livens.run import driver as run_module
from livens.run import startup
from livens.run.interrupt import Interrupt


def same(a, b):
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in a.stored)


def test_save_and_load(tmp_path):
    run = lv.simulate(lv.problems.load("double-four-bar"), t_end=0.1)
    path = run.save(tmp_path / "run.h5")
    again = lv.load(path)
    assert same(run, again)
    assert again.info == run.info and again.summary == run.summary and again.status == "complete"
    # a ready problem is built anew, so observables work
    assert np.array_equal(again.observe("total_energy"), run.observe("total_energy"))


def test_xarray_reads_it(tmp_path):
    run = lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.1, out=tmp_path / "run.h5")
    with xarray.open_dataset(tmp_path / "run.h5", engine="h5netcdf") as data:
        assert set(run.stored) <= set(data.variables)
        assert data["q"].dims == ("t", "coordinate") and list(data["coordinate"].values) == ["x", "y"]
        assert np.array_equal(data["q"].values, run.q)
        assert data["t"].attrs["units"] == "s"
    table = run.to_xarray()
    assert np.array_equal(table["v"].sel(coordinate="y"), run.v[:, 1])
    assert table["multipliers"].dims == ("t", "constraint")


def test_a_system_of_ones_own(tmp_path):
    system = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: q[0] ** 4)
    run = lv.simulate(system, [1.0], [0.0], h=0.01, t_end=1.0, out=tmp_path / "own.h5")
    bare = lv.load(tmp_path / "own.h5")
    assert same(bare, run) and np.array_equal(bare.observe("step_size"), run.step_size)
    with pytest.raises(lv.InputError, match="pass the system or mechanism it was made with"):
        bare.observe("total_energy")
    assert np.ptp(lv.load(tmp_path / "own.h5", system=system).observe("generalized_energy")) < 1e-13
    with pytest.raises(lv.InputError, match="made with another system"):
        lv.load(tmp_path / "own.h5", system=lv.System("y", kinetic=lambda v: v[0] ** 2))


def test_file_and_memory_hold_the_same(tmp_path):
    problem = lv.problems.load("simple-pendulum", h=1e-3)
    for every in (1, 7):
        in_memory = lv.simulate(problem, t_end=5.0005, every=every)
        in_file = lv.simulate(problem, t_end=5.0005, every=every, out=tmp_path / f"{every}.h5")
        assert same(in_memory, in_file)
        # the step is honoured exactly, the last one is shorter, and the result says so
        assert in_file.t[-1] == 5.0005 and "the last step was shortened to 0.0005" in in_file.message
        assert in_file.step_size[-1] == pytest.approx(5e-4) and set(in_file.step_size[1:-1]) == {1e-3}
        assert len(in_file) == 5000 // every + 2 and np.all(np.diff(in_file.t[:-1]) == pytest.approx(every * 1e-3))


def test_rows_begin_where_the_run_does(tmp_path):
    """At a time that is not zero, with every second step."""
    options = dict(t0=2.0, h=1e-3, t_end=2.0101, every=2)
    start = lv.problems.load("simple-pendulum").start_values
    for out in ({}, {"out": tmp_path / "run.h5"}):
        run = lv.simulate(lv.problems.load("simple-pendulum").model, **start, **options, **out)
        assert run.t == pytest.approx([2.0, 2.002, 2.004, 2.006, 2.008, 2.01, 2.0101], abs=1e-14)
        assert run.t[0] == 2.0 and np.array_equal(run.q[0], start["q0"])


def interrupted(path, problem, t_end, chunks, **changes):
    """A run that Ctrl-C stops after this many chunks of steps, on its way to t_end."""

    class ControlC(Interrupt):
        looks = 0

        @property
        def requested(self):
            ControlC.looks += 1
            return ControlC.looks >= chunks

        @requested.setter
        def requested(self, value):
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "Interrupt", ControlC)
        patch.setattr(startup, "_CHUNK_STEPS", 41)
        with pytest.raises(lv.Interrupted) as caught:
            lv.simulate(problem, t_end=t_end, out=path, **changes)
    assert caught.value.result.t[-1] < t_end and lv.load(path).status == "interrupted"


@pytest.mark.parametrize("name", ["double-four-bar", "spring-pendulum-spherical", "simple-pendulum"])
@pytest.mark.parametrize("every", [1, 3])
def test_resume_is_bit_for_bit(tmp_path, name, every):
    problem = lv.problems.load(name, h=1e-3)
    whole = lv.simulate(problem, t_end=0.5, every=every)
    for i, chunks in enumerate([1, 4, 11]):
        path = tmp_path / f"{i}.h5"
        interrupted(path, problem, 0.5, chunks, every=every)
        resumed = lv.resume(path)
        assert same(resumed, whole)
        assert resumed.summary == whole.summary
        assert resumed.statistics.newton_iterations == whole.statistics.newton_iterations


def test_resume_refuses(tmp_path):
    problem = lv.problems.load("simple-pendulum")
    path = tmp_path / "run.h5"
    lv.simulate(problem, t_end=0.1, out=path)
    with pytest.raises(lv.InputError, match="already finished"):
        lv.resume(path)
    with pytest.raises(lv.InputError, match="lies before the end of the run"):
        lv.resume(path, t_end=0.05)
    assert len(lv.resume(path, t_end=0.2)) == 201  # longer is fine
    other = lv.System(
        "x y", kinetic=lambda v: v @ v, constraints=lambda q: [q @ q - 1], constraint_names=["length of the rod"]
    )
    with pytest.raises(lv.InputError, match=r"unknown parameter|made with other equations"):
        lv.resume(path, t_end=0.3, system=other)


def test_writing_refuses(tmp_path):
    problem = lv.problems.load("simple-pendulum")
    path = tmp_path / "run.h5"
    run = lv.simulate(problem, t_end=0.01, out=path)
    with pytest.raises(lv.InputError, match="exists already"):
        lv.simulate(problem, t_end=0.01, out=path)
    with pytest.raises(lv.InputError, match="exists already"):
        run.save(path)
    assert same(lv.load(run.save(path, force=True)), run)
    with pytest.raises(lv.InputError, match="does not exist"):
        run.save(tmp_path / "no" / "run.h5")
    with pytest.raises(lv.InputError, match="it is a folder"):
        run.save(tmp_path)


def test_a_failed_run_is_in_its_file(tmp_path):
    system = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, forces=lambda q: [-10 * m.sign(q[0])])
    with pytest.raises(lv.IntegrationError):
        lv.simulate(system, [1.0], [0.0], h=0.1, t_end=5, out=tmp_path / "failed.h5")
    kept = lv.load(tmp_path / "failed.h5")
    assert kept.status == "failed" and len(kept) > 2 and "Try a smaller step" in kept.message


def test_chosen_variables(tmp_path):
    """t always; what was not stored is not in the file, and is missed in words."""
    problem = lv.problems.load("simple-pendulum")
    whole = lv.simulate(problem, t_end=0.5)
    in_file = lv.simulate(problem, t_end=0.5, store=["v", "q"], out=tmp_path / "run.h5")
    for run in (in_file, lv.load(tmp_path / "run.h5"), lv.simulate(problem, t_end=0.5, store="q, v")):
        assert run.stored == ("t", "q", "v") and np.array_equal(run.q, whole.q) and np.array_equal(run.v, whole.v)
        assert np.array_equal(run.last("q"), whole.q[-1]) and run.summary == whole.summary
        with pytest.raises(lv.InputError, match="did not store 'p', only t, q, v"):
            run.p  # noqa: B018
        with pytest.raises(lv.InputError, match="did not store 'p'"):
            run.last("p")
        with pytest.raises(lv.InputError, match=r"'total_energy' cannot be computed: the run did not store 'p'"):
            run.observe("total_energy")
        with pytest.raises(lv.InputError, match="did not store 'step_size'"):
            run.observe("step_size")
        assert set(run.to_xarray().data_vars) == {"q", "v"}
    assert np.array_equal(lv.load(in_file.save(tmp_path / "again.h5")).v, whole.v)
    with xarray.open_dataset(tmp_path / "run.h5", engine="h5netcdf") as data:
        assert set(data.variables) == {"t", "q", "v", "coordinate", "constraint"}
    assert np.array_equal(lv.resume(tmp_path / "run.h5", t_end=1.0).q, lv.simulate(problem, t_end=1.0).q)
    with pytest.raises(
        lv.InputError, match="store names the unknown variable 'multiplier'; did you mean 'multipliers'"
    ):
        lv.simulate(problem, store=["multiplier"])


def test_compressed(tmp_path):
    problem = lv.problems.load("simple-pendulum")
    plain = lv.simulate(problem, t_end=10.0, out=tmp_path / "plain.h5")
    small = lv.simulate(problem, t_end=10.0, out=tmp_path / "small.h5", compress=True)
    assert same(plain, small)
    assert (tmp_path / "small.h5").stat().st_size < 0.8 * (tmp_path / "plain.h5").stat().st_size
    assert same(lv.resume(tmp_path / "small.h5", t_end=20.0), lv.simulate(problem, t_end=20.0))


def test_a_file_says_what_it_is(tmp_path):
    """Scheme, parameters, versions, names, units, and how to make it again, which gives the same run."""
    problem = lv.problems.load("double-four-bar", speed=3.0)
    run = lv.simulate(problem, t_end=0.1, h=2e-3, every=5, out=tmp_path / "run.h5", store=["q"])
    with xarray.open_dataset(tmp_path / "run.h5", engine="h5netcdf") as data:
        about = data.attrs
        assert data["q"].attrs["long_name"] == "coordinates" and data["t"].attrs["units"] == "s"
        assert tuple(data["coordinate"].values) == problem.model.coordinates
        assert tuple(data["constraint"].values) == problem.model.constraint_names
    assert about["scheme"] == "livens-em" and about["scheme_order"] == 2 and about["scheme_symplectic"] == "no"
    assert about["scheme_conserves"] == ", ".join(lv.schemes.get("livens-em").conserves)
    assert json.loads(about["parameters"]) == run.info.parameters
    assert about["livens_version"] == lv.__version__ and about["numpy_version"] == np.__version__
    assert {"casadi_version", "python_version", "created"} <= set(about) and about["status"] == "complete"
    bodies = json.loads(about["bodies"])
    assert set(itertools.chain(*bodies.values())) <= set(problem.model.coordinates)
    again = eval(about["again_in_python"], {"lv": lv})
    assert again.info.model == run.info.model and np.array_equal(again.q, run.q) and again.stored == run.stored
    command = about["again_on_the_command_line"]
    assert "--set speed=3.0" in command and "--store q" in command and "--every 5" in command


def test_how_to_make_a_run_of_ones_own_again(tmp_path):
    system = lv.System(
        "x y", kinetic=lambda v: 0.5 * v @ v, potential=lambda q, k: k.g * q[1], constraints=lambda q: [q @ q - 1],
        parameters=dict(g=9.81),
    )  # fmt: skip
    run = lv.simulate(system, [1.1, 0], [0, 0.1], h=0.01, t_end=1.0, parameters=dict(g=1.0), project=True)
    about = run.to_xarray().attrs
    assert about["again_on_the_command_line"] == "" and "project=True" in about["again_in_python"]
    again = eval(about["again_in_python"], {"lv": lv, "system": system})
    assert same(again, run)


def test_a_file_of_other_equations(tmp_path):
    path = tmp_path / "run.h5"
    lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.1, out=path)
    with h5py.File(path, "r+") as file:  # as if another version of livens had made it
        text = strip_checksum(file["checkpoint/record"][:].tobytes())
        model = json.loads(text)["facts"]["model"].encode()
        other = add_checksum(text.replace(model, b"0" * len(model)).decode())
        file["checkpoint/record"][: len(other)] = np.frombuffer(other, dtype=np.uint8)
    with pytest.raises(lv.InputError, match="made with other equations"):
        lv.resume(path, t_end=0.2)
    with h5py.File(path, "r+") as file:
        file["checkpoint/carry.z"][0] += 1e-9
    with pytest.raises(lv.InputError, match="does not match its checksum"):
        lv.load(path)


def test_a_folder_without_room_for_files(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # whoever runs the tests may be allowed everything
    with pytest.raises(lv.InputError, match="no permission to write"):
        lv.simulate(lv.problems.load("simple-pendulum"), out=tmp_path / "run.h5")


def test_rows_are_read_with_their_blocks(tmp_path):
    """Any rows, wherever blocks begin and end; a number that is wrong is missed by no rows of its block."""
    rows = np.arange(46.0).reshape(23, 2)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file.create_dataset("q", data=rows, chunks=(5, 2))
        blocks = BlockChecksums(5)
        for part in np.split(rows, [1, 4, 12, 20]):
            blocks.add(part)
            blocks.write(file.require_group(GROUP), "q")
        for first, last in itertools.combinations(range(24), 2):
            np.testing.assert_array_equal(read_verified(file, "q", first, last), rows[first:last])
        np.testing.assert_array_equal(read_verified(file, "q", 7, 99), rows[7:])
        rebuild(file, "q", 12).write(file.create_group("again"), "q")
        assert file["again/q"][:2].tolist() == file[GROUP]["q"][:2].tolist()
        file["q"][11, 1] = -1.0
        for first, last in itertools.combinations(range(24), 2):
            if first < 15 and last > 10:
                with pytest.raises(ValueError, match="the rows 10 to 14 of 'q' do not match their checksum"):
                    read_verified(file, "q", first, last)
            else:
                np.testing.assert_array_equal(read_verified(file, "q", first, last), rows[first:last])
        file[GROUP]["q"].resize((4,))
        with pytest.raises(ValueError, match="do not match the number of its rows"):
            read_verified(file, "q", 0, 3)


class _Disk:
    """Instead of a file: what was brought to it, and how long that takes by a clock that does not run by itself."""

    def __init__(self, seconds):
        self.now, self.seconds, self.commits, self.rows = 0.0, seconds, [], []

    def monotonic(self):
        return self.now

    def append(self, rows):
        self.rows.append(len(rows["t"]))

    def commit(self, record):
        self.commits.append(self.now)
        self.now += self.seconds


def recorded(monkeypatch, seconds, **facts):
    disk = _Disk(seconds)
    monkeypatch.setattr(recorder, "time", disk)
    facts = types.SimpleNamespace(**{"every": 1, "stored": ("t", "q"), **facts})
    return disk, recorder.Recorder(facts, Layout(q=2), disk)


@pytest.mark.parametrize(("seconds", "pause"), [(0.01, 1.0), (0.2, 4.0)])
def test_a_run_is_brought_to_disk_now_and_then(monkeypatch, seconds, pause):
    """Every second, and where that takes long, in a twentieth of the time."""
    disk, kept = recorded(monkeypatch, seconds)
    for _ in range(3000):
        disk.now += 0.01
        kept.flush_if_due(lambda: None)
    assert len(disk.commits) >= 5
    assert np.diff(disk.commits) == pytest.approx(seconds + pause, abs=0.011)


def test_rows_go_to_the_file_when_they_fill_a_room(monkeypatch):
    """Three numbers in a row, of eight bytes each."""
    monkeypatch.setattr(recorder, "FLUSH_BYTES", 10 * 3 * 8)
    disk, kept = recorded(monkeypatch, 0.0)
    kept.flush_if_due(lambda: None)  # the first one is due at once
    for i in range(25):
        steps = types.SimpleNamespace(
            n_steps=1,
            t_end=np.array([float(i)]),
            step_sizes=None,
            end_states=np.full((1, 2), i),
            newton_iterations=None,
            fictive_t=None,
        )
        kept.observe(steps)
        kept.flush_if_due(lambda: None)
    kept._background.result()
    assert disk.rows == [11, 11] and len(disk.commits) == 1
    np.testing.assert_array_equal(kept.rows_in_memory()["q"][:, 0], [22.0, 23.0, 24.0])


@pytest.mark.parametrize("stored", ["scalar", "single precision", "contiguous"])
def test_variables_of_another_shape_or_type_are_refused_with_a_message(tmp_path, stored):
    path = tmp_path / "run.h5"
    lv.simulate(lv.problems.load("simple-pendulum"), h=0.01, t_end=0.1, out=path)
    with h5py.File(path, "a") as file:
        q = file["q"][:]
        del file["q"]
        file["q"] = {"scalar": 1.0, "single precision": q.astype("f4"), "contiguous": q}[stored]
    for read in (lv.load, lambda file: lv.resume(file, t_end=0.2)):
        with pytest.raises(lv.LivensError, match="'q'"):
            read(path)


def test_every_final_step_has_a_row_of_its_own():
    """A pulse just before the end needs several final steps: times and states of each, at the times of the sizes."""
    pulse = lv.FirstOrder("x", rhs=lambda x, t: [1e-3 / ((t - 0.999) ** 2 + 1e-6)])
    run = lv.simulate(pulse, x0=[0.0], scheme="radau-iia-3", tolerance=1e-4, t_end=1.0)
    assert np.abs(run.t - np.cumsum(run.step_size)).max() < 1e-14 and run.t[-1] == 1.0
    exact = np.arctan((run.t - 0.999) / 1e-3) + np.arctan(999.0)
    assert np.abs(run.x[:, 0] - exact).max() < 1e-3
