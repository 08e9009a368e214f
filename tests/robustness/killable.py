"""Runs that can be killed, cheaply: children of one process that has imported and compiled everything already.

Reads one JSON object per line from standard input and answers each with the exit code of the child that did it.
"""

import errno
import functools
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

import livens as lv
from livens.results import recorder
from livens.results.storage import journal as atomic
from livens.run import startup


class FaultyDisk:
    """Stands in for `os`: the operation on files of number `kill_at`, or all from `fail_at` on, go wrong halfway.

    Counted are those after the file has appeared under its name; with negative numbers, those before.
    """

    def __init__(self, path, kill_at, fail_at, sync):
        self.path, self.kill_at, self.fail_at = path, kill_at or math.inf, fail_at or math.inf
        self.sync, self.count = sync, 0
        self.before = min(self.kill_at, self.fail_at) < 0
        if self.before:
            self.kill_at, self.fail_at = abs(self.kill_at), abs(self.fail_at)

    def __getattr__(self, name):
        return getattr(os, name)

    def _fault(self, halfway=lambda: None):
        self.count += self.before or self.path.exists()
        if self.count == self.kill_at:
            halfway()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.count >= self.fail_at:
            if self.count == self.fail_at:
                halfway()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def pwrite(self, descriptor, data, offset):
        self._fault(lambda: os.pwrite(descriptor, data[: len(data) // 2], offset))
        return os.pwrite(descriptor, data, offset)

    def ftruncate(self, descriptor, size):
        self._fault()
        os.ftruncate(descriptor, size)

    def fsync(self, descriptor):
        self._fault()
        if self.sync:
            os.fsync(descriptor)


@functools.cache
def loaded(name):
    return lv.problems.load(name)


def do(job):
    """Begin a run, or go on with it if its file is there."""
    atomic.os = FaultyDisk(Path(job["path"]), job.get("kill_at"), job.get("fail_at"), job.get("sync", False))
    recorder.COMMIT_INTERVAL, recorder.MAX_IO_SHARE, recorder.FLUSH_BYTES = job.get("seconds", 0.0), math.inf, 1
    startup._CHUNK_STEPS = job.get("chunk", 16)
    if "limit" in job:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"], resource.RLIM_INFINITY))
    problem, path = loaded(job["problem"]), Path(job["path"])
    if path.exists():
        lv.resume(path, system=problem.model)
    else:
        options = {name: job[name] for name in ("h", "t_end", "every")}
        lv.simulate(problem, out=path, compress=job.get("compress", False), **options)


def child(job):
    try:
        do(job)
        code = 0
    except lv.WriteError:
        code = 3
    except lv.InputError as error:
        print(f"{job}: {error}", file=sys.stderr)
        code = 2
    except BaseException:
        traceback.print_exc()
        code = 1
    os._exit(code)


def main():
    for name in sys.argv[1:]:
        lv.simulate(loaded(name), t_end=0.01)
    print("ready", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if not pid:
            child(job)
        if "kill_after" in job:
            time.sleep(job["kill_after"])
            os.kill(pid, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
