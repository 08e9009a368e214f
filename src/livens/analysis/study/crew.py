"""Processes that do jobs for one owner, and are gone for certain when the owner leaves.

Every worker has a pipe of its own and nothing else in common with the others: no threads, no queues, no locks that a
worker could take to its grave. Workers never see Ctrl-C: it is blocked before they are started, so from their first
instruction on. When the owner leaves they are asked to end, then told to, then killed, each within bounded time.
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

#: The owner looks up this often, in seconds, also if no worker has anything to say.
_LOOK_UP = 0.2
#: Workers have this many seconds to end, once each time they are asked more firmly.
_PATIENCE = 2.0


class LostWorkerError(Exception):
    """The process that did a job was killed."""


@contextlib.contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Ctrl-C is held back meanwhile, and for good in processes that are started meanwhile.

    It is blocked for these processes, which inherit that. Here it may come by another thread, such as those of
    numerical libraries, where it is not blocked, so that it also has to be noted instead of acted upon.
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
    """What a worker does: one task after the other, until its owner is gone or has no more."""
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
    """A number of workers for one job; use it as a context manager, and leave it when the job is done."""

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
            self._workers[ours] = worker  # before it is started: whatever happens, somebody looks after it
            worker.start()
            theirs.close()
        return ours

    def do(self, tasks: Sequence[tuple[Any, ...]]) -> Iterator[list[tuple[int, Any]]]:
        """Do all tasks, and give what is done as it comes: the number of the task, and what came of it or an error."""
        if hasattr(signal, "pthread_sigmask"):
            # it is started with the first worker otherwise, and lets Ctrl-C through while that one is on its way
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
                except Exception as error:  # what cannot be sent to another process
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
        with ctrl_c_waits():  # it is bounded, and must not be left halfway
            for pipe in self._workers:
                pipe.close()  # a worker that waits for its next task ends
            started = [worker for worker in self._workers.values() if worker.pid is not None]
            ways: list[Callable[[Any], None]] = [lambda worker: worker.terminate(), lambda worker: worker.kill()]
            for way in ways:
                for worker in started:
                    if worker.is_alive():
                        way(worker)
                for worker in started:
                    worker.join(_PATIENCE)
            self._workers.clear()
