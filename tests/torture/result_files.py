"""Result files with bits flipped, parts cut off, exchanged or wiped out: refused, or read as they were written."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import livens as lv
from torture.findings import Findings

#: One in this number of damaged files is resumed.
_RESUME_ONE_IN = 25
_LONGER = 0.04


def oscillator() -> lv.System:
    return lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2 + q[0] ** 4 / 4)


def _pendulum(**options: object) -> Callable[..., lv.Result]:
    return lambda path: lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.03, out=path, **options)


def _controlled(path: Path) -> lv.Result:
    control = lv.StepControl(tolerance=1e-9, largest=0.01)
    event = lv.Event(lambda q: q[0] - 0.9999, name="crossing")
    return lv.simulate(
        oscillator(), [1.0], [0.0], scheme="gauss-2", h=1e-3, t_end=0.03, control=control, events=[event], out=path
    )


FILES = {
    "plain": _pendulum(),
    "compressed": _pendulum(compress=True),
    "some rows": _pendulum(every=7),
    "own": _controlled,
}


def contents(run: lv.Result, names: list[str]) -> dict[str, bytes]:
    """Return all data that livens reads from a file."""
    about = [run.status, run.message, run.summary, run.info.h, run.info.t_end, run.info.scheme, run.info.parameters]
    return {"about": repr((*about, run.events)).encode()} | {
        name: np.ascontiguousarray(getattr(run, name)).tobytes() for name in names
    }


def damage(chance: random.Random, whole: bytes) -> bytes:
    data = bytearray(whole)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        at, length = chance.randrange(len(data)), chance.choice((1, 8, 64, 4096))
        match chance.randrange(8):
            case 0 | 1 | 2 | 3:
                data[at] ^= 1 << chance.randrange(8)
            case 4:
                data[at : at + length] = bytes(len(data[at : at + length]))
            case 5:
                other = chance.randrange(len(data))
                one, two = bytes(data[at : at + length]), bytes(data[other : other + length])
                data[at : at + len(two)], data[other : other + len(one)] = two, one
            case 6:
                data[at : at + length] = chance.randbytes(len(data[at : at + length]))
            case 7:
                del data[max(1, at) :]
    return bytes(data)


def run(seed: int, first: int, count: int) -> Findings:
    findings = Findings()
    with tempfile.TemporaryDirectory() as folder:
        wholes, runs, longer = {}, {}, {}
        for name, make in FILES.items():
            path = Path(folder) / f"{name}.h5"
            make(path)
            wholes[name], runs[name] = path.read_bytes(), lv.load(path)
            runs[name] = contents(runs[name], list(runs[name].stored))
            shutil.copyfile(path, other := Path(folder) / "longer.h5")
            longer[name] = contents(_resumed(name, other), [part for part in runs[name] if part != "about"])
        path = Path(folder) / "damaged.h5"
        for number in range(first, first + count):
            chance = random.Random(f"file {seed} {number}")
            name = chance.choice(list(FILES))
            while (data := damage(chance, wholes[name])) == wholes[name]:
                pass
            path.write_bytes(data)
            findings.counts["damaged files"] += 1
            with findings.case(number, f"damaged file '{name}'"):
                if chance.randrange(_RESUME_ONE_IN) == 0:
                    found, wanted = contents(_resumed(name, path), [*longer[name]][1:]), longer[name]
                    findings.counts["resumed"] += 1
                else:
                    read = lv.load(path)
                    some = chance.sample(list(read.stored), 2)
                    found, wanted = contents(read, some), runs[name]
                    findings.counts["read"] += 1
                changed = [part for part in found if found[part] != wanted[part]]
                if changed:
                    findings.fault(number, f"{name}: {', '.join(changed)} changed without a word")
    return findings


def _resumed(name: str, path: Path) -> lv.Result:
    event = [lv.Event(lambda q: q[0] - 0.9999, name="crossing")]
    if name == "own":
        return lv.resume(path, t_end=_LONGER, system=oscillator(), events=event)
    return lv.resume(path, t_end=_LONGER)
