"""The folder of compiled code: private, bounded, and not needed."""

import errno
import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from livens.engine.codegen import code_cache

SCRIPT = """
import livens as lv
ball = lv.System("z", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 9.75 * q[0])
print(len(lv.simulate(ball, q0=[1.0], v0=[0.0], h=0.01, t_end=0.1, tier="{tier}")))
"""
#: Nobody knows the user.
NOBODY = """
import pwd
def unknown(uid):
    raise KeyError(uid)
pwd.getpwuid = unknown
"""
#: Nothing in the folder of the package can be opened to be written, made, renamed or removed.
READ_ONLY_PACKAGE = """
import errno, os, pathlib, sys
home = str(pathlib.Path(sys.argv[1]).resolve())
def hook(event, arguments):
    changes = event in ("os.mkdir", "os.rename", "os.remove", "os.chmod", "os.truncate", "shutil.move")
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if (changes or writes) and any(str(part).startswith(home) for part in arguments[:2]):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(arguments[0]))
sys.addaudithook(hook)
"""
KEY = "ab" + "0" * 62


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("LIVENS_CACHE_DIR", str(tmp_path / "kernels"))
    code_cache._checked_directory.cache_clear()
    yield tmp_path / "kernels"
    code_cache._checked_directory.cache_clear()


def test_the_folder_is_private(kernels):
    code_cache.write(KEY, b"code")
    assert code_cache.read(KEY) == b"code" and stat.S_IMODE(kernels.stat().st_mode) == 0o700
    kernels.chmod(0o755)
    code_cache._checked_directory.cache_clear()
    assert code_cache.read(KEY) == b"code" and stat.S_IMODE(kernels.stat().st_mode) == 0o700


def test_a_folder_that_others_can_write_to_is_refused(kernels):
    code_cache.write(KEY, b"code")
    kernels.chmod(0o777)
    code_cache._checked_directory.cache_clear()
    with pytest.warns(RuntimeWarning, match="others may write there"):
        assert code_cache.directory() != kernels
    assert stat.S_IMODE(code_cache.directory().stat().st_mode) == 0o700


def test_a_folder_of_somebody_else_is_refused(kernels, monkeypatch):
    kernels.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: kernels.stat().st_uid + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert code_cache.directory() != kernels


def test_no_home_and_no_room(kernels, monkeypatch):
    monkeypatch.setattr(code_cache, "configured_directory", lambda: None)
    with pytest.warns(RuntimeWarning, match="there is no home folder"):
        code_cache.directory()
    code_cache._checked_directory.cache_clear()
    monkeypatch.setattr(code_cache, "_temporary", lambda: None)
    with pytest.warns(RuntimeWarning, match="compiled anew in every run"):
        assert code_cache.directory() is None
    code_cache.write(KEY, b"code")
    assert code_cache.read(KEY) is None


def test_garbage_is_not_code(kernels):
    code_cache.write(KEY, b"code")
    file = kernels / KEY[:2] / f"{KEY}.o"
    other = "ab" + "1" * 62
    file.with_name(f"{other}.o").write_bytes(file.read_bytes())
    assert code_cache.read(other) is None, "what is kept under another key is not what is asked for"
    file.write_bytes(b"garbage")
    assert code_cache.read(KEY) is None
    file.unlink()
    os.mkfifo(file)
    assert code_cache.read(KEY) is None
    file.unlink()
    file.symlink_to("/dev/zero")
    assert code_cache.read(KEY) is None
    code_cache.write(KEY, b"code")
    assert code_cache.read(KEY) == b"code" and not file.is_symlink()


def test_files_are_written_whole_or_not_at_all(kernels, monkeypatch):
    """The disk is full, or the process ends, before the file has its name: what was there stays, and nothing else."""
    code_cache.write(KEY, b"code")
    replace = Path.replace

    def full(path, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    code_cache.write(KEY, b"other code")
    assert code_cache.read(KEY) == b"code" and len([path for path in kernels.rglob("*") if path.is_file()]) == 1

    def interrupted(path, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        code_cache.write(KEY, b"other code")
    assert code_cache.read(KEY) == b"code"
    monkeypatch.setattr(Path, "replace", replace)
    code_cache.write(KEY, b"other code")
    assert code_cache.read(KEY) == b"other code"


def test_what_was_used_longest_ago_goes(kernels):
    for i in range(10):
        code_cache.write(f"{i}{i}{KEY}", bytes(1000))
        os.utime(kernels / f"{i}{i}" / f"{i}{i}{KEY}.o", (i, i))
    code_cache.read(f"00{KEY}")
    code_cache.evict(kernels, max_bytes=5000)
    left = {path.name[:2] for path in kernels.rglob("*.o")}
    assert left == {"00", "99", "88"}


@pytest.mark.parametrize(("who", "tier"), [("nobody", "reference"), ("nobody", "fused"), ("read-only", "fused")])
def test_a_run_needs_no_folder(tmp_path, who, tier):
    """No HOME, no entry in the list of users, nothing that can be written: a word, no traceback, and the result."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "PATH"))}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(tmp_path)}
    if who == "read-only":
        environment |= {"HOME": "/proc", "XDG_CACHE_HOME": "/proc"}
    done = subprocess.run(
        [sys.executable, "-c", NOBODY + SCRIPT.format(tier=tier)],
        env=environment,
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.returncode == 0 and done.stdout == "11\n", done.stderr
    assert "Traceback" not in done.stderr and "compiled code cannot be kept" in done.stderr


def test_a_package_that_cannot_be_written(tmp_path):
    """Neither bytecode nor compiled code nor anything else is kept beside the source."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "PATH"))}
    environment |= {"LIVENS_CACHE_DIR": str(tmp_path / "kernels"), "HOME": str(tmp_path)}
    script = READ_ONLY_PACKAGE + SCRIPT.format(tier="fused")
    package = str(Path(code_cache.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", script, package], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "11\n" and not done.stderr, done.stderr
    refused = "open(sys.argv[1] + '/new', 'w')"
    done = subprocess.run([sys.executable, "-c", READ_ONLY_PACKAGE + refused, package], capture_output=True, text=True)
    assert "Read-only file system" in done.stderr


def test_a_good_folder_says_nothing(kernels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert code_cache.directory() == Path(kernels)
