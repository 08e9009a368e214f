"""Export of a model and a scheme as an FMU: LLVM IR of the step, linked with a C file by `ziglang`."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from livens.engine.codegen.ir_emitter import inline_tables
from livens.engine.codegen.jit import recorded_ir
from livens.engine.codegen.newton_kernels import first_correction_kernel
from livens.engine.codegen.predictor_kernel import predictor_kernel
from livens.engine.codegen.step_kernels import (
    compile_function_kernel,
    initial_guess_kernel,
    inv_roundoff_kernel,
    newton_kernel,
    residual_kernel,
    state_update_kernel,
)
from livens.engine.compiled_step import CompiledStep
from livens.engine.lowering.translate import module_ir
from livens.engine.newton import time_loop
from livens.engine.newton.convergence import CONVERGED, REPIVOT_AFTER
from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.workspace_layout import newton_offsets
from livens.engine.steppers.fused import FusedStepper
from livens.errors import InputError, MissingExtraError, explain_call_errors, suggestion
from livens.expressions.state_layout import Layout
from livens.models.base import InitialState, Model
from livens.models.equations_of_motion import equations_of_motion
from livens.models.initialization.dense import NEGLIGIBLE_MASS
from livens.models.initialization.derivative_array import TOLERANCE
from livens.models.input_entry import input_entry
from livens.models.observable import output_expression
from livens.models.problem import Problem
from livens.models.system import System
from livens.progress import report_progress
from livens.run.bridges.fmu.description import FmuVariable, ModelDescription
from livens.run.plan import Plan
from livens.run.startup import compile_and_start, start_integration
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepGraph
from livens.validation import check_choice


class _Platform(NamedTuple):
    target: str  # of the compiler
    suffix: str  # of shared libraries
    cpu: str
    fmi2_name: str = ""  # folder in FMI 2.0


#: Platforms by their FMI names.
PLATFORMS = {
    "x86_64-linux": _Platform("x86_64-linux-gnu.2.17", ".so", "x86_64_v3", "linux64"),
    "x86_64-windows": _Platform("x86_64-windows-gnu", ".dll", "x86_64_v3", "win64"),
    "x86_64-darwin": _Platform("x86_64-macos", ".dylib", "x86_64_v3", "darwin64"),
    "aarch64-darwin": _Platform("aarch64-macos", ".dylib", "apple_m1"),
    "aarch64-linux": _Platform("aarch64-linux-gnu.2.17", ".so", "generic"),
}
#: C files of the versions of FMI, the main one first.
_SOURCES = {"3.0": ("fmi3.c",), "2.0": ("fmi2.c", "fmi3.c")}
#: Functions of the machine that the exported time loop does not call.
_UNUSED_DECLARATIONS = ("declare i32 @sched_yield()\n", "declare void @llvm.x86.sse2.pause()\n")


@explain_call_errors
def fmu(
    model: Model | Problem,
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
    model : Model or Problem
        Model to export. A `Problem` provides initial values, scheme and step size.
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
    check_choice("version", version, tuple(_SOURCES))
    if version == "2.0" and (missing := [platform for platform in platforms if not PLATFORMS[platform].fmi2_name]):
        raise InputError(f"FMI 2.0 has no platform '{missing[0]}': use version='3.0'")
    plan = Plan.from_arguments(
        model, start, scheme=scheme, h=h, t_end=_end_time(model), parameters=parameters, redundant="remove"
    )
    step = _ExportedStep(plan, inputs, outputs, tunable)
    if importlib.util.find_spec("ziglang") is None:
        raise MissingExtraError("an FMU", "fmu")
    path = Path(path)
    _write(path, step, platforms, version)
    return path


def _end_time(model: Model | Problem) -> float:
    return (model.t0 if isinstance(model, Problem) else 0.0) + 1e9


class _ExportedStep:
    """Kernels, tables and variables of a step."""

    def __init__(
        self, plan: Plan, inputs: Mapping[str, str] | Sequence[str], outputs: Sequence[str], tunable: Sequence[str]
    ) -> None:
        self.plan = plan
        _check_exportable(plan)
        compiled, initial = compile_and_start(plan)
        state, stepper = start_integration(plan, compiled, initial)
        if not isinstance(stepper, FusedStepper) or compiled.flat_equations.external_force is not None:
            raise InputError(
                f"scheme '{plan.scheme.name}' cannot be exported for this model: its step is not one graph"
            )
        self.equations, self.k, self.t0 = compiled.flat_equations, plan.k, float(initial.t)
        self.z, self.x, self.order = state.z, state.unknown_history[-1], stepper.order
        stepper.close()
        names = dict(inputs) if isinstance(inputs, Mapping) else {name: name for name in inputs}
        #: First entry in the parameter vector of the variable that sets an entry, by entry.
        self.variable_of = dict[int, int]()
        self.variables = list[FmuVariable]()
        self.start = _StartEquations.of(plan, compiled, initial)
        for name in (*names, *tunable):
            causality = "input" if name in names else "parameter"
            self._add_variables(plan.model, name, names.get(name, name), causality)
            if causality == "parameter" and self.start is None:
                _check_start(plan, compiled, initial, name)
        self._add_outputs(compiled.layout, outputs)
        self.texts = self._record_texts()

    def _add_variables(self, model: Model, name: str, label: str, causality: str) -> None:
        """Add the variables of a parameter: one for each of its numbers."""
        known = (*model.inputs, *model.parameter_table.entries)
        if name not in known:
            raise InputError(f"unknown input '{name}'{suggestion(str(name), known)}")
        entry = input_entry(model, name).value
        for number, index in enumerate(np.ndindex(entry.shape)):
            entries = [slice_.start + number for slice_ in entry.slices]
            if not self.variable_of.keys().isdisjoint(entries):
                raise InputError(f"'{name}' is given twice: as an input, and as another input or a tunable parameter")
            self.variable_of |= dict.fromkeys(entries, entries[0])
            text = label + (f"[{','.join(map(str, index))}]" if index else "")
            self.variables.append(FmuVariable(text, 1 + entries[0], causality, float(self.k[entries[0]])))

    def _add_outputs(self, layout: Any, outputs: Sequence[str]) -> None:
        e, model, view = self.equations, self.plan.model, self.plan.model.view
        multipliers = ca.SX.sym("lam", len(model.constraint_names))
        columns, self.is_angle = [], list[bool]()
        for name in outputs:
            column = ca.reshape(ca.densify(output_expression(model, name, multipliers)), -1, 1)
            if multipliers.numel() and ca.depends_on(column, multipliers):
                raise InputError(f"the output '{name}' depends on constraint forces: it is not a function of the state")
            quantity = getattr(model, "quantities", {}).get(name)
            for i in range(column.numel()):
                label = name if column.numel() == 1 else f"{name}[{i}]"
                reference = 1 + self.k.size + len(self.is_angle)
                self.variables.append(FmuVariable(label, reference, "output"))
                self.is_angle.append(quantity is not None and quantity.is_angle)
            columns.append(column)
        symbols = [*view.symbols.values(), view.t, view.k]
        parts = [e.z[layout[name]] for name in view.symbols]
        column = ca.densify(ca.vertcat(*columns)) if columns else ca.SX(0, 1)
        function = ca.Function("f", symbols, [column])
        self.outputs = ca.Function("outputs", e.arguments, [ca.densify(function(*parts, e.c[1], e.c[2:]))])

    def _record_texts(self) -> dict[str, str]:
        """Return the LLVM IR of the kernels by their name in C, and of the time loop."""
        e, texts = self.equations, dict[str, str]()
        update = [] if e.update_matrix is None else [e.update_matrix[0]]
        jacobian = ca.Function("jacobian", e.arguments, [ca.densify(ca.vertcat(e.jac_values, *update))])
        makers: dict[str, Callable[[], object]] = {
            "newton": lambda: newton_kernel(e, self.order),
            "first_correction": lambda: first_correction_kernel(e, self.order),
            "residual": lambda: residual_kernel(e),
            "inv_roundoff": lambda: inv_roundoff_kernel(e),
            "update_state": lambda: state_update_kernel(e),
            "initial_guess": lambda: initial_guess_kernel(e),
            "predict": lambda: predictor_kernel(e),
            "jacobian": lambda: compile_function_kernel(jacobian, "jacobian"),
            "outputs": lambda: compile_function_kernel(self.outputs, "outputs"),
        }
        functions = self._tangents() | ({} if self.start is None else {"start": self.start.function})
        for name, function in functions.items():
            makers[name] = functools.partial(compile_function_kernel, function, name)
        for name, make in makers.items():
            with recorded_ir() as recorded:
                make()
            ((original, recorded_text),) = recorded.items()
            text = inline_tables(recorded_text)
            texts[name] = re.sub(rf"define ([\w ]+) @{re.escape(original)}\(", rf"define \1 @livens_{name}(", text)
        loop = module_ir((time_loop.advance_fixed,))  # type: ignore[arg-type]
        for declaration in _UNUSED_DECLARATIONS:
            loop = loop.replace(declaration, "")
        loop_name = re.escape(time_loop.advance_fixed.name)  # type: ignore[attr-defined]
        texts["advance_fixed"] = re.sub(rf'@"?{loop_name}"?\(', "@livens_advance_fixed(", loop)
        return texts

    @property
    def _start_entries(self) -> set[int]:
        """Entries of tunable parameters, for which the FMU computes its start."""
        tunable = {variable.reference - 1 for variable in self.variables if variable.causality == "parameter"}
        return set() if self.start is None else {i for i, first in self.variable_of.items() if first in tunable}

    def _tangents(self) -> dict[str, ca.Function]:
        """Return the tangents of residual, final state and outputs in the direction (unknowns, state, parameters)."""
        e = self.equations
        sizes = e.x.numel(), e.z.numel(), e.c.numel() - 2
        direction = ca.SX.sym("direction", sum(sizes))
        dx, dz, dk = ca.vertsplit(direction, np.cumsum([0, *sizes]).tolist())
        dc = ca.vertcat(ca.SX(2, 1), dk)

        def tangent(name: str, expression: Any, with_unknowns: bool) -> ca.Function:
            change = ca.jtimes(expression, e.z, dz) + ca.jtimes(expression, e.c, dc)
            if with_unknowns and e.x.numel():
                change += ca.jtimes(expression, e.x, dx)
            return ca.Function(name, [*e.arguments, direction], [ca.densify(change)])

        return {
            "residual_tangent": tangent("residual_tangent", e.residual, False),
            "state_tangent": tangent("state_tangent", e.final_state, True),
            "output_tangent": tangent("output_tangent", self.outputs(*e.arguments), False),
        }

    @property
    def token(self) -> str:
        """Instantiation token: a UUID of the equations and the initial state."""
        content = "".join(self.texts.values()).encode() + self.z.tobytes() + self.k.tobytes()
        return str(uuid.uuid5(uuid.NAMESPACE_URL, hashlib.sha256(content).hexdigest()))

    def header(self) -> str:
        """Return the generated file ``model.h``."""
        e: StepGraph = self.equations
        offsets, update = newton_offsets(e.size), e.update_matrix
        sizes = {
            "N": e.size, "NZ": e.z.numel(), "NK": self.k.size, "NOUT": len(self.is_angle), "NNZ": len(e.jac_rows),
            "N_UPDATE": 0 if update is None else len(update[1]), "N_GROUPS": len(e.block_sizes), "HISTORY": HISTORY,
            "N_WORK": offsets.n_rows, "UPDATE_OFFSET": offsets.update, "INV_ROUNDOFF_OFFSET": offsets.inv_roundoff,
            "N_ANGLES": sum(self.is_angle), "HAS_FIRST_CORRECTION": 1, "REPIVOT_AFTER": REPIVOT_AFTER,
            "STATUS_CONVERGED": CONVERGED, "STEP_SIZE": float(self.plan.h).hex(), "T0": self.t0.hex(),
            "TOKEN": f'"{self.token}"', "HAS_START": int(self.start is not None),
        }  # fmt: skip
        tables = [
            _table("INITIAL_STATE", self.z),
            _table("INITIAL_UNKNOWNS", self.x),
            _table("PARAMETERS", self.k),
            _table("GROUP_SIZES", e.block_sizes, "int64_t"),
            _table("JAC_ROWS", e.jac_rows, "int"),
            _table("JAC_COLUMNS", e.jac_cols, "int"),
            _table("UPDATE_ROWS", () if update is None else update[1], "int"),
            _table("UPDATE_COLUMNS", () if update is None else update[2], "int"),
            _table("VARIABLE_OF", (self.variable_of.get(i, -1) for i in range(self.k.size)), "int"),
            _table("IS_ANGLE", self.is_angle, "char"),
            _table("SETS_START", (i in self._start_entries for i in range(self.k.size)), "char"),
        ]
        if self.start is not None:
            sizes |= self.start.sizes
            tables += self.start.tables
        return "\n".join([*(f"#define {name} {value}" for name, value in sizes.items()), *tables, ""])


class _StartEquations:
    """Equations of the initial state of a mechanical system: constraints, momenta, KKT system and scheme state."""

    def __init__(
        self, system: System, layout: Layout, e: StepGraph, removed: Sequence[int], scheme_state: Mapping[str, Any]
    ) -> None:
        d = equations_of_motion(system)
        matrix, rhs = d.kkt_system
        rows, columns = matrix.sparsity().get_triplet()
        terms: list[Any] = [d.g, d.velocity_constraint, d.fibre_derivative, rhs, *matrix.nonzeros()]
        column = ca.vertcat(*terms, *scheme_state.values())
        at_state = ca.Function("start", [d.q, d.v, d.t, d.k], [ca.densify(column)])
        values = at_state(e.z[layout["q"]], e.z[layout["v"]], e.c[1], e.c[2:])
        self.function = ca.Function("start", e.arguments, [values])
        is_position = np.zeros(system.m, dtype=bool)
        is_position[list(d.G_position.sparsity().get_triplet()[0])] = True
        starts = {name: layout[name].start if name in layout else -1 for name in ("q", "v", "p", "multipliers")}
        self.sizes = {
            "NQ": system.n, "NM": system.m, "N_KKT": len(rows), "START_TOLERANCE": TOLERANCE,
            "Q_OFFSET": starts["q"], "V_OFFSET": starts["v"], "P_OFFSET": starts["p"],
            "LAMBDA_OFFSET": starts["multipliers"], "N_SCHEME": sum(int(v.numel()) for v in scheme_state.values()),
        }  # fmt: skip
        self.tables = [
            _table("KKT_ROWS", rows, "int"),
            _table("KKT_COLUMNS", columns, "int"),
            _table("IS_REMOVED", (i in removed for i in range(system.m)), "char"),
            _table("IS_POSITION", is_position, "char"),
            _table(
                "SCHEME_ENTRIES", (i for name in scheme_state for i in range(*layout[name].indices(e.z.numel()))), "int"
            ),
        ]

    @classmethod
    def of(cls, plan: Plan, compiled: CompiledStep, initial: InitialState) -> _StartEquations | None:
        """Return the equations, or None if the start of the model or the scheme is not determined by them alone."""
        system, layout = plan.model, compiled.layout
        if not isinstance(system, System) or system.uses_sparse_path or not {"q", "v", "p"} <= set(layout.sizes):
            return None
        d = equations_of_motion(system)
        known = plan.scheme.initial_scheme_state(compiled.model, initial.values, plan.k, initial.t, plan.h)
        scheme_state = plan.scheme.symbolic_scheme_state(system, d.q, d.fibre_derivative, d.k, initial.t, plan.h)
        (matrix,) = d.evaluator(d.augmented_mass)(initial["q"], initial["v"], initial.t, plan.k)
        has_inertia = bool(np.linalg.eigvalsh(matrix).min() > NEGLIGIBLE_MASS * np.abs(matrix).max())
        if known.keys() != scheme_state.keys() or system.control_indices or not has_inertia:
            return None
        return cls(system, layout, compiled.flat_equations, initial.removed_constraints, scheme_state)


def _check_start(plan: Plan, compiled: CompiledStep, initial: InitialState, name: str) -> None:
    """Raise `InputError` if the initial state, which the FMU does not compute, depends on a parameter."""

    def packed(state: InitialState, k: np.ndarray) -> np.ndarray:
        extra = plan.scheme.initial_scheme_state(compiled.model, state.values, k, state.t, plan.h)
        return compiled.layout.pack({**state.values, **extra})

    k = plan.k.copy()
    for slice_ in input_entry(plan.model, name).value.slices:
        k[slice_] = 1.001 * k[slice_] + 1e-6
    changed = compiled.model.initial_state(plan.start, k, plan.t0, True, plan.redundant)
    if not np.array_equal(packed(changed, k), packed(initial, plan.k)):
        raise InputError(
            f"'{name}' cannot be tunable: the initial state depends on it, and an FMU of scheme "
            f"'{plan.scheme.name}' for this model does not compute its initial state"
        )


def _check_exportable(plan: Plan) -> None:
    scheme, model = plan.scheme, plan.model
    if plan.estimate_h0:
        raise InputError("h is missing: an FMU takes fixed steps; give the step size")
    if scheme.fictive or scheme.selects_step_size or not scheme.implicit or plan.control is not None:
        raise InputError(f"scheme '{scheme.name}' cannot be exported: an FMU needs an implicit scheme with fixed steps")
    if plan.tier != "fused":
        raise InputError("the model is too large for an FMU: its step is not compiled as one function")
    if model.angle_branches is not None:
        raise InputError(
            f"a force depends on the angle of joint '{model.angle_branches.joints[0]}' over revolutions: such models "
            "cannot be exported"
        )
    for name, text in (
        ("controllers", "sampled controllers"),
        ("model_events", "joint stops with restitution or rigid contacts"),
    ):
        if getattr(model, name, ()):
            raise InputError(f"a model with {text} cannot be exported: they act between steps")


def _table(name: str, values: Iterable[Any], c_type: str = "double") -> str:
    items = list(values) or [0]
    text = ", ".join(float(value).hex() if c_type == "double" else str(int(value)) for value in items)
    return f"static const {c_type} {name}[] = {{{text}}};"


def _write(path: Path, step: _ExportedStep, platforms: Sequence[str], version: str) -> None:
    """Compile the libraries of all platforms and write the archive."""
    identifier = re.sub(r"\W", "_", path.stem)
    text, h = f"{step.plan.scheme.name}, h = {step.plan.h:g} s", float(step.plan.h)
    description = ModelDescription(path.stem, identifier, step.token, text, h, step.t0, step.variables)
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        (build / "model.h").write_text(step.header(), encoding="utf-8")
        for name in _SOURCES[version]:
            (build / name).write_text(files(__package__).joinpath(name).read_text(encoding="utf-8"), "utf-8")
        for name, ir in step.texts.items():
            (build / f"{name}.ll").write_text(ir, encoding="utf-8")
        sources = [_SOURCES[version][0], *(f"{name}.ll" for name in step.texts)]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("modelDescription.xml", description.to_xml(version))
            for platform in platforms:
                report_progress(f"linking the FMU for {platform}")
                library = f"{identifier}{PLATFORMS[platform].suffix}"
                _link(build, sources, library, PLATFORMS[platform])
                name = PLATFORMS[platform].fmi2_name if version == "2.0" else platform
                archive.write(build / library, f"binaries/{name}/{library}")


def _link(build: Path, sources: Sequence[str], library: str, platform: _Platform) -> None:
    command = [
        sys.executable, "-m", "ziglang", "cc", "-target", platform.target, f"-mcpu={platform.cpu}", "-O2", "-shared",
        "-fPIC", "-w", "-s", "-o", library, *sources, *([] if "windows" in platform.target else ["-lm"]),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"the FMU cannot be linked for {platform.target}: {done.stderr.strip()[-500:]}")
