"""Provenance of a result: versions of the software, and commands that reproduce the run."""

from __future__ import annotations

import datetime
import functools
import platform
import re
import shlex
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

import livens

if TYPE_CHECKING:
    from livens.run.plan import Plan

#: Options of a run that the command line supports.
_CLI_OPTIONS = ("store", "compress")
#: Pattern of the values of string options.
_OPTION_VALUE = re.compile("[a-z]+(-[a-z]+)*")


@functools.cache
def _versions() -> dict[str, str]:
    return {
        "livens_version": livens.__version__,
        "numpy_version": np.__version__,
        "casadi_version": str(vars(ca)["__version__"]),
        "python_version": platform.python_version(),
    }


def provenance(plan: Plan) -> dict[str, int | str]:
    """Return the provenance of a run as attributes of its file."""
    traits = plan.scheme.traits
    return {
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **_versions(),
        "scheme_order": traits.order,
        "scheme_symplectic": "yes" if traits.symplectic else "no",
        "scheme_symmetric": "yes" if traits.symmetric else "no",
        "scheme_conserves": ", ".join(traits.conserves),
        "again_in_python": python_call(plan),
        "again_on_the_command_line": command(plan),
    }


def _nondefault_options(plan: Plan) -> dict[str, Any]:
    """Return the options that differ from their defaults."""
    defaults = type(plan)
    names = ("project", "redundant", "store", "compress", "control")
    return {name: getattr(plan, name) for name in names if getattr(plan, name) != getattr(defaults, name)}


def _nondefault_parameters(plan: Plan) -> dict[str, Any]:
    """Return the parameters that differ from those of the model."""
    model_parameters = plan.model.parameters
    return {
        name: _to_python(value)
        for name, value in plan.parameters.items()
        if _to_python(value) != _to_python(model_parameters.get(name))
    }


def python_call(plan: Plan) -> str:
    """Return the call of `simulate` that reproduces the run; a user-defined model is called `system`."""
    problem, model = plan.problem, "system"
    arguments: dict[str, Any] = {}
    if problem is not None:
        options = "".join(f", {name}={_to_python(value)!r}" for name, value in problem.factory_options.items())
        model = f"lv.problems.load({problem.name!r}{options})"
    if not plan.has_default_start or (problem is not None and problem.name == "scenario"):
        arguments |= {name: _to_python(value) for name, value in plan.start.items()}
    arguments |= {"scheme": plan.scheme.name, "h": plan.h, "t0": plan.t0, "t_end": plan.t_end}
    arguments |= {"parameters": _nondefault_parameters(plan)} if _nondefault_parameters(plan) else {}
    arguments |= {"scaling": plan.scaling_text} if plan.scaling_text else {}
    arguments |= {"every": plan.every, "tier": plan.tier, **_nondefault_options(plan)}
    return f"lv.simulate({model}, {', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def command(plan: Plan) -> str:
    """Return the command that reproduces the run, or an empty string if the command line cannot express it."""
    problem, options = plan.problem, _nondefault_options(plan)
    option_values = [] if problem is None else list(problem.factory_options.values())
    if problem is None or not plan.has_default_start or plan.t0 != problem.t0 or _nondefault_parameters(plan):
        return ""
    if any(
        not _OPTION_VALUE.fullmatch(v) if isinstance(v, str) else np.asarray(v).dtype.kind not in "if"
        for v in option_values
    ):
        return ""
    if any(name not in _CLI_OPTIONS for name in options):
        return ""
    arguments = ["livens", "run", problem.name, "--scheme", plan.scheme.name, "--h", repr(plan.h)]
    arguments += ["--t-end", repr(plan.t_end), "--every", str(plan.every), "--tier", plan.tier]
    arguments += ["--scaling", plan.scaling_text] if plan.scaling_text else []
    for name, value in problem.factory_options.items():
        text = value if isinstance(value, str) else ",".join(map(repr, np.atleast_1d(value).tolist()))
        arguments += ["--set", f"{name}={text}"]
    if options.get("store"):
        arguments += ["--store", options["store"] if isinstance(options["store"], str) else ",".join(options["store"])]
    if options.get("compress"):
        arguments.append("--compress")
    return shlex.join(arguments)


def _to_python(value: object) -> Any:
    """Return arrays and NumPy scalars as Python objects."""
    if isinstance(value, (list, tuple)):
        return [_to_python(item) for item in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
