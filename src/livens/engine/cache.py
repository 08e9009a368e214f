"""A folder for compiled code that nobody else can write to, and that does not grow for ever.

Code from the folder is run, so whoever can write there can do anything: the folder must belong to the user and to
nobody else. Where there is no such folder (no home, a disk that cannot be written, a folder of somebody else) a
temporary one serves until the program ends, and a warning says so once.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import stat
import tempfile
import warnings
from pathlib import Path

#: The files together have at most this many bytes; those used longest ago go first, until this share is left.
LIMIT, _KEEP = 512_000_000, 0.8
#: How often the size is looked at: with the first file a program writes, and then after this many.
_EVERY = 64
_written = 0


def wanted() -> Path | None:
    """Where the user wants compiled code: $LIVENS_CACHE_DIR, else the user's cache folder, if there is a home."""
    own = os.environ.get("LIVENS_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "livens"
    try:
        return Path.home() / ".cache" / "livens"
    except (RuntimeError, KeyError, OSError):  # no HOME, and no entry in the list of users
        return None


def folder() -> Path | None:
    """Where compiled code is kept; nowhere, if not even a temporary folder can be made."""
    return _usable(wanted())


@functools.lru_cache(maxsize=16)
def _usable(path: Path | None) -> Path | None:
    why = "there is no home folder" if path is None else _objection(path)
    if not why:
        return path
    place = "" if path is None else f" in '{path}'"
    instead = _temporary()
    until = "is compiled anew in every run" if instead is None else "is kept in a temporary folder for this time only"
    warnings.warn(f"compiled code cannot be kept{place}: {why}. It {until}", RuntimeWarning, stacklevel=2)
    return instead


def _objection(path: Path) -> str:
    """Why code must not, or cannot, be kept there; nothing if it can."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            return "the folder belongs to another user"
        if os.name == "posix" and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return "others may write there (change that with: chmod 700)"
        if os.name == "posix" and stat.S_IMODE(found.st_mode) != 0o700:
            path.chmod(0o700)
        handle, name = tempfile.mkstemp(dir=path)
        os.close(handle)
        Path(name).unlink()
    except (OSError, ValueError) as error:
        return (getattr(error, "strerror", None) or str(error)).lower()
    return ""


@functools.cache
def _temporary() -> Path | None:
    try:
        made = tempfile.mkdtemp(prefix="livens-")  # for this user alone
    except OSError:
        return None
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # and not a child that came into being by a fork
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return Path(made)


# -- files ------------------------------------------------------------------------------------------------------------
def _path(key: str) -> Path | None:
    inside = folder()
    return None if inside is None else inside / key[:2] / f"{key}.o"


def _seal(key: str, content: bytes) -> bytes:
    """What stands before the content: it must be whole, and what was kept under this key."""
    return hashlib.sha256(key.encode() + content).digest()


def read(key: str) -> bytes | None:
    """What is kept under a key, if it is there and is what was written."""
    path = _path(key)
    if path is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            stored = file.read()
    except OSError:
        return None  # not there yet, or it cannot be read
    content = stored[32:]
    if _seal(key, content) != stored[:32]:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used just now
    return content


def write(key: str, content: bytes) -> None:
    """Keep something under a key, whole or not at all. A full disk must not stop a run."""
    global _written
    path = _path(key)
    if path is None:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_seal(key, content) + content)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink()
    except OSError:
        return
    if _written % _EVERY == 0:
        tidy(path.parent.parent)
    _written += 1


def tidy(inside: Path, limit: int | None = None) -> None:
    """Remove what was used longest ago if there is too much; other programs may do the same at the same time."""
    most = LIMIT if limit is None else limit
    files: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for path in inside.glob("??/*"):
            with contextlib.suppress(OSError):
                found = path.lstat()
                if stat.S_ISREG(found.st_mode):
                    files.append((found.st_mtime, found.st_size, path))
    total = sum(size for _, size, _ in files)
    if total <= most:
        return
    for _, size, path in sorted(files):
        if total <= _KEEP * most:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size
