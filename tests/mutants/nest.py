"""A process that has imported what the tests need of others, and runs tests in children: that saves most of the time.

Reads one JSON object per line from standard input: the arguments of pytest, the folder of the copy, and after how many
seconds to give up. Answers with one that has the exit code, or none, and the lines that name what failed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

#: What is imported once. Nothing of the package itself, as in every child another place of it is wrong, and no plugins
#: of pytest, which have to be rewritten.
_OTHERS = (
    "numpy", "numpy.testing", "casadi", "scipy.integrate", "scipy.optimize", "scipy.sparse.linalg", "h5py", "yaml",
    "llvmlite.binding", "_pytest.config", "typer.testing", "rich.progress", "xarray", "pandas",
)  # fmt: skip


def child(job: dict[str, Any], log: int) -> int:
    """Run tests in a copy of the project, as a process that was started there would."""
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the next jobs are not for the tests
    for stream in (1, 2):
        os.dup2(log, stream)
    folder = Path(job["folder"])
    os.chdir(folder)
    sys.path[:0] = [str(folder), str(folder / "src")]
    os.environ["PYTHONPATH"] = str(folder / "src")
    if not job["keep"]:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
    import pytest

    return int(pytest.main(job["arguments"]))


def answer(job: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as log:
        pid = os.fork()
        if not pid:
            code = 4
            try:
                code = child(job, log.fileno())
            except BaseException:
                traceback.print_exc()
            finally:
                for stream in (sys.stdout, sys.stderr):
                    with contextlib.suppress(Exception):
                        stream.flush()
                os._exit(code)
        code, deadline = None, time.monotonic() + job["seconds"]
        while code is None and time.monotonic() < deadline:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.02)
        if code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        log.seek(0)
        text = log.read().decode(errors="replace")
    lines = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return {"code": code, "lines": lines[:3], "text": "" if lines else text[-1000:]}


def main() -> None:
    for name in _OTHERS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
