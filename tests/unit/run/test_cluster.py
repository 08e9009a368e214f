"""Ensembles and sweeps on a cluster of processes, one of which is killed; and ensembles that are killed themselves."""

import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens.run.ensemble import execution

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed (livens[cluster])")
dask = pytest.importorskip("dask")

PENDULUM = lv.problems.load("simple-pendulum")
MANY = dict(parameters={"g": np.linspace(8.0, 11.0, 80)}, h=1e-3, t_end=0.5, every=100, reduce={"y": lambda q: q[1]})


@pytest.fixture(scope="module")
def client():
    patience = {f"distributed.comm.timeouts.{what}": "900s" for what in ("connect", "tcp")}
    with (
        dask.config.set(patience | {"distributed.scheduler.worker-ttl": "900s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sockets that dask leaves to the collector are no concern of later tests
        gc.collect()


def equal(one, other):
    for name in one.arrays:
        np.testing.assert_array_equal(one.arrays[name], other.arrays[name])
    assert one.summary == other.summary and one.reasons == other.reasons
    for name, reduced in one.reduced.items():
        np.testing.assert_array_equal(reduced.mean, other.reduced[name].mean)


@pytest.mark.filterwarnings("default")  # those of the cluster's own threads
def test_a_cluster_changes_no_bit(client, monkeypatch):
    monkeypatch.setattr(execution, "_BLOCK_STEPS", 16 * 500)
    here = lv.ensemble(PENDULUM, **MANY)
    equal(here, lv.ensemble(PENDULUM, **MANY, client=client))
    # another kind of step: with stages, and a member that fails
    kepler = lv.problems.load("kepler")
    speeds = np.asarray(kepler.v0) * np.linspace(0.8, 1.1, 20)[:, None]
    options = dict(v0=speeds, scheme="gauss-2", h=0.01, t_end=0.5, every=10)
    equal(lv.ensemble(kepler, **options), lv.ensemble(kepler, **options, client=client))


@pytest.mark.filterwarnings("default")
def test_a_sweep_on_a_cluster(client):
    vary = dict(l=[0.5, 1.0, 1.5, 2.0], h=[1e-2, 5e-3])
    here = lv.study.sweep("simple-pendulum", vary, dict(t_end=0.2), workers=1)
    there = lv.study.sweep("simple-pendulum", vary, dict(t_end=0.2), client=client)
    assert [(row["l"], row["h"], row["status"]) for row in there.rows] == [
        (row["l"], row["h"], row["status"]) for row in here.rows
    ]
    assert there.column("max_energy_drift") == pytest.approx(here.column("max_energy_drift"), abs=1e-13)


@pytest.mark.filterwarnings("default")
def test_the_command_takes_an_address(client):
    from typer.testing import CliRunner

    from livens.cli import app

    address = client.scheduler.address
    arguments = ["sweep", "simple-pendulum", "--vary", "l=0.5,1.0", "--t-end", "0.1", "--cluster", address, "--json"]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 0, answer.output
    rows = json.loads(answer.stdout)["rows"]
    assert [row["status"] for row in rows] == ["complete", "complete"]


def slow_down(seconds):
    """Make the blocks of this worker take a while."""
    from livens.engine.ensemble import serialized_step

    fast = serialized_step.SerializedStep.deserialize
    if fast.__name__ == "slow":
        return

    def slow(self):
        time.sleep(seconds)
        return fast(self)

    serialized_step.SerializedStep.deserialize = slow


@pytest.mark.filterwarnings("default")
def test_a_worker_that_is_killed_loses_nothing(client, monkeypatch):
    """It is killed while it has a block at hand; the others take that over."""
    monkeypatch.setattr(execution, "_BLOCK_STEPS", 16 * 500)
    here = lv.ensemble(PENDULUM, **MANY)
    client.run(slow_down, 0.3)
    victim, killed = next(iter(client.run(os.getpid).values())), []

    def told(self, done):
        if not killed:
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

    monkeypatch.setattr("livens.run.progress.Progress.update", told)
    equal(here, lv.ensemble(PENDULUM, **MANY, client=client))
    assert killed


def test_no_client_is_said():
    with pytest.raises(lv.InputError, match="must be a dask"):
        lv.ensemble(PENDULUM, **MANY, client="tcp://nowhere")
    with pytest.raises(lv.InputError, match="must be a dask"):
        lv.study.sweep("simple-pendulum", dict(l=[1.0, 2.0]), client=3)


SCRIPT = """
import os, signal, sys
import numpy as np
import livens as lv
from livens.run.ensemble import execution, partial_results
execution._BLOCK_STEPS = 16 * 500
saved, save = [], partial_results.BlockStore.save
def counted(self, number, outcome):
    save(self, number, outcome)
    saved.append(number)
    print("saved", number, flush=True)
    if len(saved) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
partial_results.BlockStore.save = counted
lv.ensemble(
    lv.problems.load("simple-pendulum"), parameters={"g": np.linspace(8.0, 11.0, 80)}, h=1e-3, t_end=0.5, every=100,
    out=sys.argv[1],
)
"""


def test_an_ensemble_that_is_killed_goes_on(tmp_path, monkeypatch):
    """After two of five blocks; what is there is not computed again, and the whole is the same bit for bit."""
    monkeypatch.setattr(execution, "_BLOCK_STEPS", 16 * 500)
    out = tmp_path / "many.h5"
    options = {name: value for name, value in MANY.items() if name != "reduce"}
    environment = {**os.environ, "PYTHONPATH": str(Path(lv.__file__).parents[1])}
    killed = subprocess.run([sys.executable, "-c", SCRIPT, str(out), "2"], env=environment, capture_output=True)
    assert killed.returncode == -signal.SIGKILL and killed.stdout.count(b"saved") == 2
    assert not out.exists() and len(list((tmp_path / "many.h5.parts").glob("0*.npz"))) == 2
    (tmp_path / "many.h5.parts" / "000001.npz").write_bytes(b"damaged")
    with pytest.raises(lv.InputError, match="another unfinished ensemble"):
        lv.ensemble(PENDULUM, **{**options, "t_end": 0.4}, out=out)
    again = lv.ensemble(PENDULUM, **options, out=out)
    equal(lv.ensemble(PENDULUM, **options), again)
    equal(again, lv.Ensemble.load(out))
    assert not (tmp_path / "many.h5.parts").exists()
    with pytest.raises(lv.InputError, match="exists already"):
        lv.ensemble(PENDULUM, **options, out=out)
    lv.ensemble(PENDULUM, **options, out=out, force=True)


KILLED_CLIENT = """
import sys
import numpy as np
import distributed
import livens as lv
from livens.run.ensemble import execution
execution._BLOCK_STEPS = 16 * 500
client = distributed.Client(sys.argv[2])
print("connected", flush=True)
lv.ensemble(
    lv.problems.load("simple-pendulum"), parameters={"g": np.linspace(8.0, 11.0, 160)}, h=1e-3, t_end=0.5, every=100,
    out=sys.argv[1], client=client,
)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("suffix", [".zarr", ".h5"])
def test_clients_and_workers_killed_at_random_times(client, tmp_path, monkeypatch, suffix):
    """The client is killed ten times, at every other time with a worker; the result is the same bit for bit."""
    monkeypatch.setattr(execution, "_BLOCK_STEPS", 16 * 500)
    options = dict(parameters={"g": np.linspace(8.0, 11.0, 160)}, h=1e-3, t_end=0.5, every=100)
    lv.ensemble(PENDULUM, **options, out=tmp_path / f"whole{suffix}")
    environment, chance = {**os.environ, "PYTHONPATH": str(Path(lv.__file__).parents[1])}, random.Random(suffix)
    kills = files = 0
    while kills < 10:
        files += 1
        assert files < 40
        out = tmp_path / f"{files}{suffix}"
        while not out.exists():
            client.run(slow_down, 0.1, on_error="ignore")
            command = [sys.executable, "-c", KILLED_CLIENT, str(out), client.scheduler.address]
            with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                assert process.stdout.readline() == b"connected\n"
                if kills < 10:
                    time.sleep(chance.uniform(0.0, 1.2))
                    workers = [pid for pid in client.run(os.getpid, on_error="ignore").values() if pid]
                    if kills % 2 and workers:
                        os.kill(chance.choice(workers), signal.SIGKILL)
                    process.kill()
                _, errors = process.communicate(timeout=120)
                assert process.returncode in (0, -signal.SIGKILL), errors.decode()
                kills += process.returncode == -signal.SIGKILL
        equal(lv.Ensemble.load(tmp_path / f"whole{suffix}"), lv.Ensemble.load(out))
