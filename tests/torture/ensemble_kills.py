"""SIGKILL of ensembles that write Zarr stores and HDF5 files, at random times and at single operations on files.

Ensembles are child processes of a process that has compiled their steps. Each is started and killed several times,
then completed and compared with an undisturbed ensemble: every file of a Zarr store, and every array of an HDF5 file.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import livens as lv
from livens.results.storage.ensemble_zarr import PRIVATE_FOLDER
from livens.run.ensemble import execution
from torture.findings import Findings
from torture.kills import DONE, KILLED, in_a_child, problem

STEPS, BLOCK_MEMBERS = 200, 16
#: Audit events of operations that change files.
_OPERATIONS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir")


def start(out: Path, members: int, sync: bool = False, kill_at: int = 0) -> lv.Ensemble:
    """Start or continue an ensemble; the process is killed before operation `kill_at` on files in the folder of `out`.

    Global settings of the process are changed.
    """
    if not sync:
        os.fsync = lambda descriptor: None  # type: ignore[assignment]
    execution._BLOCK_STEPS = BLOCK_MEMBERS * STEPS
    if kill_at:
        _kill_at_operation(out.parent, kill_at)
    return lv.ensemble(
        problem("simple-pendulum"),
        parameters={"g": np.linspace(11.0, 8.0, members)},
        h=0.01,
        t_end=0.01 * STEPS,
        every=20,
        reduce={"y": lambda q: q[1]},
        histograms={"y": (-1.0, 0.0, 4)},
        threads=1,
        out=out,
    )


def _kill_at_operation(folder: Path, number: int) -> None:
    """Kill this process before an operation on files of a folder, by its number."""
    count = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        path = str(arguments[0])  # relative to a descriptor, if a folder is removed with its files
        if event in _OPERATIONS and (path.startswith(str(folder)) or not path.startswith("/")):
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def contents(out: Path) -> dict[str, bytes]:
    """Return the files of a Zarr store, or the arrays of an HDF5 file, by name."""
    if out.is_dir():
        return {
            str(path.relative_to(out)): path.read_bytes()
            for path in out.rglob("*")
            if path.is_file() and PRIVATE_FOLDER not in path.parts
        }
    many = lv.Ensemble.load(out)
    arrays = {**many.arrays, "t": many.t, "steps": many.steps, "iterations": many.newton_iterations}
    arrays |= {f"mean {name}": reduced.mean for name, reduced in many.reduced.items()}
    return {name: np.ascontiguousarray(values).tobytes() for name, values in arrays.items()} | {
        "summary": repr(list(many.summary)).encode()
    }


def differing(out: Path, expected: dict[str, bytes]) -> list[str]:
    """Return the names of what differs in a file."""
    found = contents(out)
    lv.Ensemble.load(out)  # verifies checksums
    return [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]


def run(seed: int, first: int, count: int) -> Findings:
    """Kill ensembles `count` times, at random times or before a random operation on files."""
    findings, chance = Findings(), random.Random(f"ensemble kills {seed} {first}")
    kills = files = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start(folder / "compiled.zarr", BLOCK_MEMBERS)  # compiled in this process, for all children
        while kills < count and files <= count:
            suffix, members = chance.choice((".zarr", ".zarr", ".h5")), chance.choice((16, 41, 80))
            whole, out, sync = folder / f"whole{suffix}", folder / f"{files}{suffix}", chance.random() < 0.2
            job = functools.partial(start, members=members, sync=sync)
            files += 1
            begin = time.monotonic()
            if in_a_child(functools.partial(job, whole), None) != DONE:
                findings.fault(files, f"an ensemble of {members} in {suffix} does not run")
                break
            length, expected = time.monotonic() - begin, contents(whole)
            parts = out.with_name(f"{out.name}.parts")
            for _ in range(chance.randint(1, 8)):
                if out.exists() or kills >= count:
                    break
                if chance.random() < 0.5:
                    code = in_a_child(functools.partial(job, out), chance.uniform(0.0, 1.2 * length))
                else:
                    code = in_a_child(functools.partial(job, out, kill_at=chance.randint(1, 60)), None)
                kills += code == KILLED
                findings.counts["kills with blocks to continue"] += code == KILLED and parts.exists()
                if code not in (KILLED, DONE):
                    findings.fault(files, f"an ensemble of {members} in {suffix}: exit code {code}")
            if not out.exists() and (in_a_child(functools.partial(job, out), None) != DONE or parts.exists()):
                findings.fault(files, f"an ensemble of {members} in {suffix} cannot be continued")
            elif wrong := differing(out, expected):
                findings.fault(files, f"an ensemble of {members} in {suffix}: {', '.join(wrong)} differ")
            findings.counts[f"files {suffix}"] += 1
            for path in (whole, out, parts):  # blocks remain if the process is killed while it removes them
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    findings.counts["kills of ensembles"] = kills
    return findings
