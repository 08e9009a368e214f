"""SIMD vectorisation of explicit steps: isomorphic operations, such as the forces of all pairs, become vectors."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.jit import NativeCode, load_or_compile
from livens.engine.codegen.vector_emitter import native_width
from livens.engine.taylor.recurrences import Recurrences
from livens.errors import ModelError
from livens.expressions.graph.parameter_constants import coefficient_function
from livens.expressions.graph.taylor_graph import decompose
from livens.schemes.core.step_equations import StepGraph

#: Range of instruction counts of the vectorised graphs. Shorter steps take less time than packing numbers into lanes;
#: the analysis of longer ones takes too long.
_MIN_INSTRUCTIONS, _MAX_INSTRUCTIONS = 100, 20_000
#: Largest number of vector instructions per scalar instruction at which vectorisation is used.
_MAX_RELATIVE_LENGTH = 0.6
_ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'


@dataclass(frozen=True, eq=False)
class SimdStep:
    """Native code for ``end(x, z, c, r, out)``, the vectorised version of `state_update_kernel`.

    After h, t and the parameters, c contains values that depend on h and the parameters only: `constants` returns them.
    """

    code: NativeCode
    constants: ca.Function
    instructions: int  # of the vectorised code
    graph_instructions: int  # of the scalar graph

    def invariant_values(self, h: float, k: np.ndarray) -> np.ndarray:
        """Return the run-invariant values after the parameters in c."""
        return np.array(self.constants(np.concatenate([[h], k]))).ravel()


class _SimdStepWriter:
    """Writer of a map with all variables and operations in SIMD lanes, as Taylor series of order zero."""

    def __init__(self, function: ca.Function) -> None:
        self.lanes = Recurrences(decompose(function), 1)
        self.text, self.field = self.lanes.text, self.lanes.field

    def write(self) -> str:
        t, lanes = self.text, self.lanes
        used = {*self.field.derivatives, *(a for node in lanes.nodes for a in node.arguments)}
        for g, members in enumerate(lanes.groups):
            op = lanes.nodes[members[0]].op
            if not used.intersection(members):  # the cosine of a sine, needed by series only
                lanes.series[g].append(None)
            elif op == "var":
                lanes.series[g].append(self._load_group(g))
            elif op == "time":
                lanes.series[g].append([t.load(1, "%c", 1)])
            else:
                lanes.series[g].append(lanes.coefficient(g, 0))
        self._store()
        return "\n".join(t.lines)

    def _load_group(self, g: int) -> list[str]:
        """Load the variables of a group: contiguous loads of the state, then shuffles into lanes."""
        t, (w, chunks), size = self.text, self.lanes.widths[g], len(self.field.derivatives)
        lanes: list[tuple[str, int, int]] = []
        for n in self.lanes.groups[g]:
            entry = self.lanes.nodes[n].data[0]
            start = entry - entry % native_width()
            count = min(native_width(), size - start)
            lanes.append((t.load(count, "%z", start), count, entry - start))
        lanes += [lanes[0]] * (w * chunks - len(lanes))
        return [t.gather_lanes(lanes[i : i + w]) for i in range(0, len(lanes), w)]

    def _store(self) -> None:
        """Store the state at the end of the step with full vector width."""
        t, rates = self.text, self.field.derivatives
        for start in range(0, len(rates), native_width()):
            lanes = [self.lanes.lane_of(n, 0) for n in rates[start : start + native_width()]]
            t.store(len(lanes), t.gather_lanes(lanes), "%out", start)


def vectorize_step(equations: StepGraph) -> SimdStep | None:
    """Return the vectorised step; None if it is not faster or contains an unsupported operation."""
    e = equations
    graph = e.final_state_function
    if e.size or e.external_force is not None or not _MIN_INSTRUCTIONS <= graph.n_instructions() <= _MAX_INSTRUCTIONS:
        return None
    z, t, invariants = ca.SX.sym("z", e.layout.size), ca.SX.sym("t"), ca.SX.sym("known", int(e.c.numel()) - 1)
    parameters = invariants[1:] if invariants.numel() > 1 else ca.SX(0, 1)
    end = graph(ca.SX(0, 1), z, ca.vertcat(invariants[0], t, parameters))
    function = ca.Function("map", [z, t, invariants], [end])
    try:
        writer = _SimdStepWriter(function)
    except ModelError:
        return None
    body = writer.write()
    count = len(writer.text.lines)
    if count > _MAX_RELATIVE_LENGTH * graph.n_instructions():
        return None
    declared = "\n".join(sorted(writer.text.declared))
    arguments = ", ".join(f"ptr noalias %{name}" for name in ("x", "z", "c", "r", "out"))
    head = f"entry:\n%K = getelementptr double, ptr %c, i64 {int(e.c.numel())}\n"
    text = f"{declared}\ndefine void @end({arguments}) #0 {{\n{head}{body}\nret void\n}}\n{_ATTRIBUTES}"
    code = load_or_compile(f"{codegen_fingerprint()} {native_width()} {function.serialize()}", lambda: text, "end")
    return SimdStep(code, coefficient_function(writer.lanes.constants, writer.field.k), count, graph.n_instructions())
