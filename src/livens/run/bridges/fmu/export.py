"""Export of a model and a scheme as an FMU: LLVM IR of the step, linked with a C file by `ziglang`."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

from livens.errors import InputError, MissingExtraError, explain_call_errors, suggestion
from livens.models.base import Model
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.run.bridges.fmu.archive import PLATFORMS, SOURCES, write_fmu
from livens.run.bridges.fmu.exported_step import ExportedStep
from livens.run.plan import Plan
from livens.schemes.core.scheme import Scheme
from livens.validation import check_choice


@explain_call_errors
def fmu(
    model: Multibody | Model | Problem,
    path: str | Path,
    *,
    inputs: Mapping[str, str] | Sequence[str] = (),
    outputs: Sequence[str] = (),
    tunable: Sequence[str] = (),
    scheme: str | Scheme | None = None,
    h: float | None = None,
    start: Mapping[str, object] | None = None,
    parameters: Mapping[str, object] | None = None,
    platforms: Sequence[str] = ("x86_64-linux",),
    version: str = "3.0",
) -> Path:
    """Export a model and a scheme as a Functional Mock-up Unit (FMI 3.0 or 2.0, co-simulation).

    The FMU contains the compiled step of livens and no Python. Its states can be saved, restored and serialised.

    Parameters
    ----------
    model : Multibody, Model or Problem
        Mechanism or model to export. A `Multibody` has initial values, a `Problem` also a scheme and a step size.
    path : str or Path
        File to write, such as ``crank.fmu``. An existing file is replaced.
    inputs : sequence of str or dict of str to str, default ()
        Names of parameters that are inputs, or names of inputs by the name of the parameter. A parameter of several
        numbers is one input for each, such as ``"hinge.X[0]"``.
    outputs : sequence of str, default ()
        Coordinates, outputs of a mechanism (``"hinge.angle"``) and observables. Angles are followed over revolutions.
    tunable : sequence of str, default ()
        Names of parameters that may be changed before and between steps. The FMU computes its initial state for
        the values before the first step: for other masses and lengths, the nearest consistent state. Later changes
        leave positions and momenta as they are.
    scheme : str or Scheme, optional
        Scheme with fixed steps. Default: that of the problem or the model.
    h : float, optional
        Step size in seconds. Communication steps that are not multiples of `h` are divided into shorter, equal steps.
    start : dict of str to array_like, optional
        Initial values ``q0 v0 p0 x0 y0``.
    parameters : dict of str to array_like, optional
        Parameter values that differ from the defaults.
    platforms : sequence of str, default ("x86_64-linux",)
        Platforms: "x86_64-linux", "x86_64-windows", "x86_64-darwin", "aarch64-darwin", "aarch64-linux".
    version : {"3.0", "2.0"}, default "3.0"
        Version of FMI. FMI 2.0 has the platforms of x86_64 only.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If an input, output or platform is unknown, or the scheme cannot be exported.
    MissingExtraError
        If `ziglang` is not installed: ``pip install 'livens[fmu]'``.
    """
    for platform in platforms:
        if not isinstance(platform, str) or platform not in PLATFORMS:
            raise InputError(f"unknown platform '{platform}'{suggestion(str(platform), PLATFORMS)}")
    check_choice("version", version, tuple(SOURCES))
    if version == "2.0" and (missing := [platform for platform in platforms if not PLATFORMS[platform].fmi2_name]):
        raise InputError(f"FMI 2.0 has no platform '{missing[0]}': use version='3.0'")
    if isinstance(model, Multibody):
        model = model.problem()
    plan = Plan.from_arguments(
        model, start, scheme=scheme, h=h, t_end=_end_time(model), parameters=parameters, redundant="remove"
    )
    step = ExportedStep(plan, inputs, outputs, tunable)
    if importlib.util.find_spec("ziglang") is None:
        raise MissingExtraError("an FMU", "fmu")
    path = Path(path)
    write_fmu(path, step, platforms, version)
    return path


def _end_time(model: Model | Problem) -> float:
    return (model.t0 if isinstance(model, Problem) else 0.0) + 1e9
