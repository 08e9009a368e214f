"""Step of a model and a scheme as LLVM IR, tables in C and variables of an FMU."""

from __future__ import annotations

import functools
import hashlib
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
from livens.engine.lowering.translate import module_ir
from livens.engine.newton import time_loop
from livens.engine.newton.convergence import CONVERGED, REPIVOT_AFTER
from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.workspace_layout import newton_offsets
from livens.engine.steppers.fused import FusedStepper
from livens.errors import InputError, suggestion
from livens.models.base import Model
from livens.models.input_entry import input_entry
from livens.models.observable import output_expression
from livens.run.bridges.fmu.description import FmuVariable
from livens.run.bridges.fmu.start_equations import StartEquations, c_table, check_start
from livens.run.plan import Plan
from livens.run.startup import compile_and_start, start_integration
from livens.schemes.core.step_equations import StepGraph

#: Functions of the machine that the exported time loop does not call.
_UNUSED_DECLARATIONS = ("declare i32 @sched_yield()\n", "declare void @llvm.x86.sse2.pause()\n")


class ExportedStep:
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
        self.start = StartEquations.of(plan, compiled, initial)
        for name in (*names, *tunable):
            causality = "input" if name in names else "parameter"
            self._add_variables(plan.model, name, names.get(name, name), causality)
            if causality == "parameter" and self.start is None:
                check_start(plan, compiled, initial, name)
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
            c_table("INITIAL_STATE", self.z),
            c_table("INITIAL_UNKNOWNS", self.x),
            c_table("PARAMETERS", self.k),
            c_table("GROUP_SIZES", e.block_sizes, "int64_t"),
            c_table("JAC_ROWS", e.jac_rows, "int"),
            c_table("JAC_COLUMNS", e.jac_cols, "int"),
            c_table("UPDATE_ROWS", () if update is None else update[1], "int"),
            c_table("UPDATE_COLUMNS", () if update is None else update[2], "int"),
            c_table("VARIABLE_OF", (self.variable_of.get(i, -1) for i in range(self.k.size)), "int"),
            c_table("IS_ANGLE", self.is_angle, "char"),
            c_table("SETS_START", (i in self._start_entries for i in range(self.k.size)), "char"),
        ]
        if self.start is not None:
            sizes |= self.start.sizes
            tables += self.start.tables
        return "\n".join([*(f"#define {name} {value}" for name, value in sizes.items()), *tables, ""])


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
