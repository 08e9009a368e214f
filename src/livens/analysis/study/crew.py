"""Process pool of a sweep with guaranteed termination of its workers.

Every worker has its own pipe and shares nothing with the others: no threads, queues or locks. SIGINT is blocked before
workers are started, so that they never receive Ctrl-C. On exit the pipes of the workers are closed, then the workers
are terminated, then killed, each within a time limit.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any

#: Polling interval in seconds while no worker sends results.
_LOOK_UP = 0.2
#: Time limit in seconds for a worker to end, after each termination request.
_PATIENCE = 2.0


class LostWorkerError(Exception):
    """Raised when the worker process of a task was killed."""


@contextlib.contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Defer SIGINT within the context, and block it in processes started within the context.

    The blocked signal mask is inherited by child processes. In this process, other threads (such as those of numerical
    libraries) may still receive the signal, so it is recorded by a handler and raised at the end of the context.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual if usual is not None else signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if seen:
            signal.raise_signal(signal.SIGINT)


def _work(pipe: Connection, job: Callable[..., Any]) -> None:
    """Execute tasks in a worker process until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        while True:
            arguments = pipe.recv()
            try:
                answer = True, job(*arguments)
            except Exception as error:
                answer = False, f"{type(error).__name__}: {error}"
            try:
                pipe.send(answer)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                pipe.send((False, f"{type(error).__name__}: {error}"))


class Crew:
    """Pool of worker processes for one function, used as a context manager."""

    def __init__(self, count: int, job: Callable[..., Any]) -> None:
        self._job, self._count = job, count
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[Connection, Any] = {}

    def __enter__(self) -> Crew:
        return self

    def _hire(self) -> Connection:
        with ctrl_c_waits():
            ours, theirs = self._context.Pipe()
            worker = self._context.Process(target=_work, args=(theirs, self._job), daemon=True)
            self._workers[ours] = worker  # registered before the start, so that it is always cleaned up
            worker.start()
            theirs.close()
        return ours

    def do(self, tasks: Sequence[tuple[Any, ...]]) -> Iterator[list[tuple[int, Any]]]:
        """Execute all tasks; iterate over lists of task indices and results (or exceptions) as tasks complete."""
        if hasattr(signal, "pthread_sigmask"):
            # otherwise started with the first worker, with SIGINT unblocked in the meantime
            resource_tracker.ensure_running()
        left, busy = list(reversed(range(len(tasks)))), dict[Connection, int]()
        free: list[Connection] = []
        while left or busy:
            done: list[tuple[int, Any]] = []
            while left and len(busy) < self._count:
                number = left.pop()
                pipe = free.pop() if free else self._hire()
                try:
                    pipe.send(tasks[number])
                    busy[pipe] = number
                except OSError:
                    done.append((number, self._lost(pipe)))
                except Exception as error:  # arguments that cannot be pickled
                    done.append((number, error))
                    free.append(pipe)
            for ready in wait(list(busy), timeout=0 if done else _LOOK_UP):
                assert isinstance(ready, Connection)
                pipe = ready
                number = busy.pop(pipe)
                try:
                    good, answer = pipe.recv()
                    done.append((number, answer if good else RuntimeError(answer)))
                    free.append(pipe)
                except (EOFError, OSError):
                    done.append((number, self._lost(pipe)))
            yield done

    def _lost(self, pipe: Connection) -> LostWorkerError:
        worker = self._workers.pop(pipe)
        pipe.close()
        worker.kill()
        worker.join(_PATIENCE)
        return LostWorkerError()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ctrl_c_waits():  # cleanup takes bounded time and must not be interrupted
            for pipe in self._workers:
                pipe.close()  # ends a worker that waits for a task
            started = [worker for worker in self._workers.values() if worker.pid is not None]
            ways: list[Callable[[Any], None]] = [lambda worker: worker.terminate(), lambda worker: worker.kill()]
            for way in ways:
                for worker in started:
                    if worker.is_alive():
                        way(worker)
                for worker in started:
                    worker.join(_PATIENCE)
            self._workers.clear()
