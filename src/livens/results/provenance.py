"""Where a run comes from: who made it, with what, and how to make it again."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

import livens
from livens.models.model import Model
from livens.models.system import System

if TYPE_CHECKING:
    from livens.run.plan import Task


def made(task: Task, **options: Any) -> dict[str, Any]:
    """What a file says about how it came to be; `options` are further arguments of `simulate`, with their values."""
    scheme = task.scheme
    return {
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "livens_version": livens.__version__,
        "numpy_version": np.__version__,
        "casadi_version": importlib.metadata.version("casadi"),
        "python_version": platform.python_version(),
        "scheme_order": scheme.order,
        "scheme_symplectic": "yes" if scheme.symplectic else "no",
        "scheme_symmetric": "yes" if scheme.symmetric else "no",
        "scheme_conserves": ", ".join(scheme.conserves),
        "again_in_python": python_call(task, options),
        "again_on_the_command_line": command(task, options),
    }


def bodies(system: Model) -> dict[str, list[str]]:
    """Named elements with kinetic energy, and their coordinates."""
    if not isinstance(system, System):
        return {}
    return {
        element.name: [system.coordinates[i] for i in index]
        for element, model, index in zip(system.elements, system.models, system.indices, strict=True)
        if element.name and not model.T.is_zero()
    }


def python_call(task: Task, options: dict[str, Any]) -> str:
    """The call of `simulate` that makes the run again; a system of the user's own is called `system`."""
    problem = task.problem
    model = "system"
    arguments: dict[str, Any] = {}
    if problem is not None:
        chosen = "".join(f", {name}={_plain(value)!r}" for name, value in problem.options.items())
        model = f"lv.problems.load({problem.name!r}{chosen})"
    if not task.usual_start or (problem is not None and problem.name == "scenario"):
        arguments |= {name: _plain(value) for name, value in task.given.items() if value is not None}
    arguments |= {"scheme": task.scheme.name, "h": task.h, "t0": task.t0, "t_end": task.t_end}
    own = task.system.parameters
    changed = {name: _plain(value) for name, value in task.parameters.items() if _plain(value) != _plain(own[name])}
    if changed:
        arguments["parameters"] = changed
    arguments |= {"every": task.every, "tier": task.tier, **options}
    arguments |= {"control": task.control} if task.control else {}
    return f"lv.simulate({model}, {', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def command(task: Task, options: dict[str, Any]) -> str:
    """The command that makes the run again, or nothing if there is none: not everything can be said there."""
    problem = task.problem
    if problem is None or not task.usual_start or task.control or task.t0 != problem.t0:
        return ""
    known = {"store", "compress"}
    if any(np.asarray(value).dtype.kind not in "if" for value in problem.options.values()):
        return ""
    if task.parameters != task.system.parameters or any(v for name, v in options.items() if name not in known):
        return ""
    words = ["livens", "run", problem.name, "--scheme", task.scheme.name, "--h", repr(task.h)]
    words += ["--t-end", repr(task.t_end), "--every", str(task.every), "--tier", task.tier]
    for name, value in problem.options.items():
        words += ["--set", f"{name}={','.join(map(repr, np.atleast_1d(value).tolist()))}"]
    if options.get("store"):
        words += ["--store", ",".join(options["store"])]
    if options.get("compress"):
        words.append("--compress")
    return shlex.join(words)


def _plain(value: Any) -> Any:
    """Arrays and NumPy's numbers as Python writes them."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
