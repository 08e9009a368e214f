"""The command line in this process: what it prints, and how it ends. Starting Python for every call takes longer."""

import contextlib
import io
import os
import pty
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

#: The command as a process of its own, for tests that are about processes.
PROGRAM = [sys.executable, "-c", "from livens.cli import main; main()"]


class Done(NamedTuple):
    """As of a finished process."""

    returncode: int
    stdout: str
    stderr: str


def livens(*arguments, cwd):
    """Call the command in a folder; what it does not catch is a traceback on its standard error, as in a process."""
    from livens.cli import main

    out, errors, code = io.StringIO(), io.StringIO(), 0
    before = sys.argv
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")  # a warning is said, and ends no command
        sys.argv = ["livens", *arguments]
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        finally:
            sys.argv = before
    return Done(code, out.getvalue(), errors.getvalue())


def process(*arguments, cwd, env=None):
    """Run the command in a process; its duration is not tested."""
    environment = {**os.environ, "PYTHONPATH": str(Path(sys.modules["livens"].__file__).parents[1]), **(env or {})}
    return subprocess.run([*PROGRAM, *arguments], cwd=cwd, env=environment, capture_output=True, text=True)


def on_a_terminal(*arguments, cwd, patience=2.0, env=None):
    """Run the command in a pseudo-terminal, which shows progress after `patience` seconds; return its output."""
    program = f"import livens.run.progress as p; p._DELAY = {patience}; from livens.cli import main; main()"
    import livens

    source = str(Path(livens.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "TERM": "xterm", "COLUMNS": "160", **(env or {})}
    ours, its = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], cwd=cwd, env=environment, stdin=its, stdout=its, stderr=its
    ) as child:
        os.close(its)
        written = b""
        with contextlib.suppress(OSError):  # how the end of a terminal is told
            while part := os.read(ours, 65536):
                written += part
    os.close(ours)
    return child.returncode, written.decode(errors="replace")
