"""Ctrl-C at any moment: no traceback, nobody left behind."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import livens as lv
from livens.results.storage import hdf5_writer

SWEEP = """
import livens as lv
if __name__ == "__main__":
    lv.study.sweep  # what it imports may start processes of its own
    print("begun", flush=True)
    speeds = [float(i) for i in range(1, 40)]
    study = lv.study.sweep("double-four-bar", dict(speed=speeds), dict(h=1e-4, t_end=1e4), workers=2)
    print("interrupted" if study.interrupted else "finished", flush=True)
"""
#: Far beyond what a busy machine needs: only what hangs takes longer.
BOUND = 900.0


def children(pid):
    """Processes whose parent this is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if parent == str(pid):
                found.append(int(entry.name))
    return found


def alive(pid):
    """Return True if a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="processes cannot be listed")
@pytest.mark.parametrize("workers", [1, 3])
def test_a_sweep_ends_after_ctrl_c(tmp_path, workers):
    """Sent to all processes of the group, as a terminal does, as soon as so many of them are there."""
    script = tmp_path / "study.py"
    script.write_text(SWEEP)
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout.readline() == "begun\n"
        end = time.monotonic() + BOUND
        while len(children(process.pid)) < workers and time.monotonic() < end:
            time.sleep(0.01)
        started = children(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=BOUND)
    finally:
        process.kill()
        process.wait()
    assert out == "interrupted\n" and "Traceback" not in err, err
    end = time.monotonic() + BOUND
    while any(map(alive, started)) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(map(alive, started)), "somebody is left behind"


#: Whether Ctrl-C is held back at each start of a process, those that look after others included.
CREW = """
import multiprocessing.util, signal
start, held_back = multiprocessing.util.spawnv_passfds, []
def noted(*arguments):
    held_back.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))
    return start(*arguments)
multiprocessing.util.spawnv_passfds = noted
if __name__ == "__main__":
    from livens.analysis.study.process_pool import ProcessPool
    with ProcessPool(2, abs) as pool:
        rows = sorted(row for done in pool.map_unordered([(-1,), (-2,), (3,)]) for row in done)
    print(rows, held_back)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held back")
def test_no_worker_is_started_while_ctrl_c_gets_through(tmp_path):
    """It would be answered with a traceback by a worker that does not know yet what to do with it."""
    script = tmp_path / "crew.py"
    script.write_text(CREW)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "[(0, 1), (1, 2), (2, 3)] [True, True, True]\n"


#: The command, which sends Ctrl-C to itself when it imports a module: the moments are the same on every machine.
COMMAND = """
import os, signal, sys
where = sys.argv.pop(1)
def hook(event, arguments):
    if event == "import" and arguments[0] == where:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
from livens.cli import main
main()
"""
MOMENTS = [
    "typer",
    "livens.cli.run",
    "livens.errors",
    "casadi",
    "llvmlite",
    "livens.run.plan",
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_in_the_first_moments(tmp_path, moment):
    script = tmp_path / "livens"
    script.write_text(COMMAND)
    command = [
        sys.executable,
        str(script),
        moment,
        "run",
        "simple-pendulum",
        "--t-end",
        "1e6",
        "--json",
        "--every",
        "1000",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, cwd=tmp_path)
    assert done.returncode == 130 and done.stderr.startswith("livens: stopped by the user"), done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_the_handler_is_installed(monkeypatch):
    """The handler restores the one before it, also if the signal arrives before `signal.signal` has returned."""
    from livens.run.interrupt import Interrupt

    before, install = signal.getsignal(signal.SIGINT), signal.signal

    def interrupted(number, handler):
        previous = install(number, handler)
        if handler is not before:
            os.kill(os.getpid(), signal.SIGINT)
        return previous

    monkeypatch.setattr(signal, "signal", interrupted)
    with Interrupt() as interrupt:
        interrupt.install()
        assert interrupt.requested and signal.getsignal(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is before


def test_handlers_of_c_libraries_are_left_alone(monkeypatch):
    from livens.run.interrupt import Interrupt

    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    installed = []
    monkeypatch.setattr(signal, "signal", lambda *arguments: installed.append(arguments))
    with Interrupt() as interrupt:
        interrupt.install()
    assert not installed


@pytest.mark.parametrize("kernel", ["residual_kernel", "initial_guess_kernel", "predictor_kernel"])
def test_a_compilation_that_ctrl_c_has_ended_begins_anew(monkeypatch, kernel):
    """Kernels of an interrupted compilation have no address: a later run must not call them."""
    import livens as lv
    from livens.engine import compiled_step

    frequency = 1.0 + len(kernel)
    model = lv.System("x", kinetic=lambda v: v @ v / 2, potential=lambda q: frequency * q @ q / 2)
    options = dict(q0=[1.0], v0=[0.0], h=0.1, t_end=1.0)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(compiled_step, kernel, interrupted)
        with pytest.raises(KeyboardInterrupt):
            lv.simulate(model, **options)
    run = lv.simulate(model, **options)
    assert run.status == "complete" and abs(run.summary.max_energy_drift) < 1e-13


@pytest.mark.parametrize("operation", ["create", "resume"])
def test_ctrl_c_while_a_result_file_is_opened_leaves_it_unlocked(tmp_path, monkeypatch, operation):
    """The traceback of an interactive session keeps all variables alive; the file can be written nevertheless."""
    problem, path = lv.problems.load("simple-pendulum"), tmp_path / "run.h5"
    if operation == "resume":
        lv.simulate(problem, t_end=0.1, out=path)
    owner, name = (
        (hdf5_writer.RunFile, "_create_datasets") if operation == "create" else (hdf5_writer.checksums, "rebuild")
    )

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, interrupt)
        with pytest.raises(KeyboardInterrupt) as kept:
            lv.simulate(problem, t_end=0.2, out=path) if operation == "create" else lv.resume(path, t_end=0.2)
    run = lv.simulate(problem, t_end=0.2, out=path) if operation == "create" else lv.resume(path, t_end=0.2)
    assert np.array_equal(run.q, lv.simulate(problem, t_end=0.2).q) and kept.value
    del kept
    gc.collect()  # HDF5 closes the file of the interrupted call, without effect
    assert np.array_equal(lv.load(path).q, run.q)


def test_imports_and_runs_leave_the_handlers_of_the_host_program():
    """A program with any name, such as ``livens``, keeps KeyboardInterrupt, ``finally`` and atexit."""
    program = (
        "import signal, sys; sys.argv[0] = '/somewhere/livens'\n"
        "numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)\n"
        "before = [signal.getsignal(number) for number in numbers]\n"
        "import livens\n"
        "livens.simulate(livens.problems.load('simple-pendulum'), t_end=0.01)\n"
        "assert [signal.getsignal(number) for number in numbers] == before\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
