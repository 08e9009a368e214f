"""Disk cache of machine code with ownership checks and a size limit.

Code from the cache directory is executed, so the directory must be writable by its owner, the current user, only.
Without such a directory (no home, read-only disk, directory of another user) a temporary directory is used until the
program ends, with one warning.
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

#: Largest total size of the files in bytes, and the fraction kept when the least recently used files are evicted.
MAX_BYTES, _KEEP_FRACTION = 512_000_000, 0.8
#: Number of written files between checks of the total size; the first write of a program also checks.
_CHECK_INTERVAL = 64
_written = 0


def configured_directory() -> Path | None:
    """Return the configured directory: $LIVENS_CACHE_DIR, else the user's cache folder, or None without a home."""
    configured = os.environ.get("LIVENS_CACHE_DIR")
    if configured:
        return Path(configured)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "livens"
    try:
        return Path.home() / ".cache" / "livens"
    except (RuntimeError, KeyError, OSError):  # no HOME, and no entry in the list of users
        return None


def directory() -> Path | None:
    """Return the directory in use, or None if not even a temporary directory can be created."""
    return _checked_directory(configured_directory())


@functools.lru_cache(maxsize=16)
def _checked_directory(path: Path | None) -> Path | None:
    reason = "there is no home folder" if path is None else _why_unusable(path)
    if not reason:
        return path
    location = "" if path is None else f" in '{path}'"
    fallback = _temporary()
    consequence = (
        "is compiled anew in every run" if fallback is None else "is kept in a temporary folder for this time only"
    )
    warnings.warn(f"compiled code cannot be kept{location}: {reason}. It {consequence}", RuntimeWarning, stacklevel=2)
    return fallback


def _why_unusable(path: Path) -> str:
    """Return the reason why code must not, or cannot, be stored there; an empty string if it can."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            return "the folder belongs to another user"
        if os.name == "posix" and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return "others may write there (change that with: chmod 700)"
        if os.name == "posix" and stat.S_IMODE(status.st_mode) != 0o700:
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
        path = tempfile.mkdtemp(prefix="livens-")  # accessible by this user only
    except OSError:
        return None
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not in a forked child
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return Path(path)


# -- files ------------------------------------------------------------------------------------------------------------
def _path(key: str) -> Path | None:
    root = directory()
    return None if root is None else root / key[:2] / f"{key}.o"


def _digest(key: str, content: bytes) -> bytes:
    """Return the digest stored in front of the content; it detects truncation and files under a wrong key."""
    return hashlib.sha256(key.encode() + content).digest()


def read(key: str) -> bytes | None:
    """Return the content stored under a key, or None if it is missing or damaged."""
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
        return None  # missing or unreadable
    content = stored[32:]
    if _digest(key, content) != stored[:32]:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # time of last use
    return content


def write(key: str, content: bytes) -> None:
    """Store content under a key atomically. Errors such as a full disk are ignored: they must not stop a run."""
    global _written
    path = _path(key)
    if path is None:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(key, content) + content)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink()
    except OSError:
        return
    if _written % _CHECK_INTERVAL == 0:
        evict(path.parent.parent)
    _written += 1


def evict(root: Path, max_bytes: int | None = None) -> None:
    """Evict the least recently used files above the size limit; concurrent evictions are harmless."""
    size_limit = MAX_BYTES if max_bytes is None else max_bytes
    files: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for path in root.glob("??/*"):
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    if total <= size_limit:
        return
    for _, size, path in sorted(files):
        if total <= _KEEP_FRACTION * size_limit:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size
