"""Load the robot files of other packages: how many of those that Pinocchio and MuJoCo simulate does livens load?

    python benchmarks/robots/corpus.py [--only PATTERN] [--out FILE]

Files are read from the installed packages `example-robot-data`, `gymnasium`, `dm_control`, `robosuite`, `brax`,
`pybullet` and `rtb-data`, as far as they are there. A URDF counts if Pinocchio reads it and its mass matrix is regular;
an MJCF counts if MuJoCo compiles it and it has degrees of freedom. A file loads if livens reads it with all that
changes the motion; `inertia="balance"` is used for inertia tensors that no body can have. "lenient" counts files that
load with `strict=False` as well, which ignores some content and lists it in `import_warnings`.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.util
import json
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import livens as lv

#: Packages, and folders of their files relative to the folder of site-packages.
PACKAGES = {
    "example-robot-data": "cmeel.prefix/share/example-robot-data/robots",
    "gymnasium": "gymnasium/envs/mujoco/assets",
    "dm_control": "dm_control",
    "robosuite": "robosuite/models/assets",
    "brax": "brax",
    "pybullet": "pybullet_data",
    "rtb-data": "rtbdata",
}
#: Processor seconds after which a file counts as not loaded.
TIME_LIMIT = 60


def site_packages() -> Path:
    """Return the folder of installed packages."""
    spec = importlib.util.find_spec("numpy")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parents[1]


def files() -> Iterator[tuple[str, Path]]:
    """Iterate over the URDF and XML files of all packages."""
    for package, folder in PACKAGES.items():
        for path in sorted((site_packages() / folder).rglob("*")):
            if path.suffix in (".urdf", ".xml") and path.is_file():
                yield package, path


def reference_moves(path: Path) -> bool:
    """Return True if Pinocchio or MuJoCo can simulate a file."""
    if path.suffix == ".urdf":
        import pinocchio

        model = pinocchio.buildModelFromUrdf(str(path))
        if not model.nv:
            return False
        M = pinocchio.crba(model, model.createData(), pinocchio.neutral(model))
        M = np.triu(M) + np.triu(M, 1).T
        return bool(np.linalg.eigvalsh(M)[0] > 1e-10 * np.linalg.eigvalsh(M)[-1])
    import mujoco

    if "<mujoco" not in path.read_text(errors="replace"):
        return False
    return bool(mujoco.MjModel.from_xml_path(str(path)).nv)


def load(path: Path, strict: bool = True) -> lv.Multibody:
    """Read a file with livens."""
    read = lv.Multibody.from_urdf if path.suffix == ".urdf" else lv.Multibody.from_mjcf
    return read(path, inertia="balance", strict=strict)


def _expired(*_: Any) -> None:
    raise TimeoutError(f"more than {TIME_LIMIT} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="regular expression of paths")
    parser.add_argument("--out", default="", help="file for one JSON line per model")
    options = parser.parse_args()
    counts: dict[tuple[str, str], list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    reasons: collections.Counter[str] = collections.Counter()
    examples: dict[str, str] = {}
    signal.signal(signal.SIGVTALRM, _expired)
    lines = []
    for package, path in files():
        if not re.search(options.only, str(path)):
            continue
        try:
            if not reference_moves(path):
                continue
        except Exception:  # the reference cannot simulate the file: it does not count
            continue
        count = counts[package, path.suffix[1:]]
        count[0] += 1
        signal.setitimer(signal.ITIMER_VIRTUAL, TIME_LIMIT)
        started, error = time.process_time(), ""
        try:
            load(path)
            count[1] += 1
            count[2] += 1
        except (lv.LivensError, TimeoutError) as problem:
            error = str(problem)
            with contextlib.suppress(lv.LivensError, TimeoutError):
                load(path, strict=False)
                count[2] += 1
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        lines.append(
            json.dumps(dict(package=package, path=str(path), error=error, seconds=time.process_time() - started))
        )
        if error:
            reason = re.sub(r"'[^']*'", "'..'", re.sub(r"[-+0-9.e]+", "#", error.partition(": ")[2]))[:110]
            reasons[f"{path.suffix[1:]} {reason}"] += 1
            examples.setdefault(f"{path.suffix[1:]} {reason}", str(path.relative_to(site_packages())))
    if options.out:
        Path(options.out).write_text("\n".join(lines) + "\n")
    for (package, kind), (movable, loaded, lenient) in sorted(counts.items()):
        print(f"{package:20} {kind:5} {loaded:4} of {movable:4}, lenient {lenient}")
    for kind in ("urdf", "xml"):
        movable, loaded, lenient = np.sum(
            [[0, 0, 0], *(c for (_, suffix), c in counts.items() if suffix == kind)], axis=0
        )
        print(
            f"{'all':20} {kind:5} {loaded:4} of {movable:4} ({100 * loaded / max(movable, 1):.0f} %), lenient {lenient}"
        )
    for reason, number in reasons.most_common():
        print(f"{number:4} {reason} | {examples[reason]}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
