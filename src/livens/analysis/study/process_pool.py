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

from livens.types import ModelFunction

#: Polling interval in seconds while no worker sends results.
_POLL_INTERVAL = 0.2
#: Time limit in seconds for a worker to end, after each termination request.
_JOIN_TIMEOUT = 2.0


class WorkerLostError(Exception):
    """Raised when the worker process of a task was killed."""


@contextlib.contextmanager
def defer_interrupt() -> Iterator[None]:
    """Defer SIGINT within the context, and block it in processes started within the context.

    The blocked signal mask is inherited by child processes. In this process, other threads (such as those of numerical
    libraries) may still receive the signal, so it is recorded by a handler and raised at the end of the context.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    previous_handler = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler if previous_handler is not None else signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        if received:
            signal.raise_signal(signal.SIGINT)


def _run_worker(pipe: Connection, job: ModelFunction) -> None:
    """Execute tasks in a worker process until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        while True:
            arguments = pipe.recv()
            try:
                reply = True, job(*arguments)
            except Exception as error:
                reply = False, f"{type(error).__name__}: {error}"
            try:
                pipe.send(reply)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                pipe.send((False, f"{type(error).__name__}: {error}"))


class ProcessPool:
    """Pool of worker processes for one function, used as a context manager."""

    def __init__(self, count: int, job: ModelFunction) -> None:
        self._job, self._count = job, count
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[Connection, Any] = {}

    def __enter__(self) -> ProcessPool:
        return self

    def _start_worker(self) -> Connection:
        with defer_interrupt():
            parent_end, child_end = self._context.Pipe()
            worker = self._context.Process(target=_run_worker, args=(child_end, self._job), daemon=True)
            self._workers[parent_end] = worker  # registered before the start, so that it is always cleaned up
            worker.start()
            child_end.close()
        return parent_end

    def map_unordered(self, tasks: Sequence[tuple[object, ...]]) -> Iterator[list[tuple[int, Any]]]:
        """Execute all tasks; iterate over lists of task indices and results (or exceptions) as tasks complete."""
        if hasattr(signal, "pthread_sigmask"):
            # otherwise started with the first worker, with SIGINT unblocked in the meantime
            resource_tracker.ensure_running()
        pending, busy = list(reversed(range(len(tasks)))), dict[Connection, int]()
        free: list[Connection] = []
        while pending or busy:
            done: list[tuple[int, Any]] = []
            while pending and len(busy) < self._count:
                index = pending.pop()
                pipe = free.pop() if free else self._start_worker()
                try:
                    pipe.send(tasks[index])
                    busy[pipe] = index
                except OSError:
                    done.append((index, self._discard_worker(pipe)))
                except Exception as error:  # arguments that cannot be pickled
                    done.append((index, error))
                    free.append(pipe)
            for ready in wait(list(busy), timeout=0 if done else _POLL_INTERVAL):
                assert isinstance(ready, Connection)
                pipe = ready
                index = busy.pop(pipe)
                try:
                    succeeded, reply = pipe.recv()
                    done.append((index, reply if succeeded else RuntimeError(reply)))
                    free.append(pipe)
                except (EOFError, OSError):
                    done.append((index, self._discard_worker(pipe)))
            yield done

    def _discard_worker(self, pipe: Connection) -> WorkerLostError:
        worker = self._workers.pop(pipe)
        pipe.close()
        worker.kill()
        worker.join(_JOIN_TIMEOUT)
        return WorkerLostError()

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with defer_interrupt():  # cleanup takes bounded time and must not be interrupted
            for pipe in self._workers:
                pipe.close()  # ends a worker that waits for a task
            started = [worker for worker in self._workers.values() if worker.pid is not None]
            terminations: list[Callable[[Any], None]] = [
                lambda worker: worker.terminate(),
                lambda worker: worker.kill(),
            ]
            for terminate in terminations:
                for worker in started:
                    if worker.is_alive():
                        terminate(worker)
                for worker in started:
                    worker.join(_JOIN_TIMEOUT)
            self._workers.clear()
