"""SIMD vectorisation of explicit steps: isomorphic operations, such as the forces of all pairs, become vectors."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np

from livens.engine.native import Code, find_or_compile
from livens.engine.series.recurrences import Recurrences
from livens.engine.series.vectors import widest
from livens.errors import ModelError
from livens.expressions.graph import alike
from livens.expressions.graph.constants import values_of
from livens.expressions.graph.elementary import decompose
from livens.schemes.step import FlatEquations

#: Range of instruction counts of the vectorised graphs. Shorter steps take less time than packing numbers into lanes;
#: the analysis of longer ones takes too long.
_SHORTEST, _LONGEST = 100, 20_000
#: Largest number of vector instructions per scalar instruction at which vectorisation is used.
_WORTH = 0.6
_ATTRIBUTES = 'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'


@dataclass(frozen=True, eq=False)
class LaneMap:
    """Native code for ``end(x, z, c, r, out)``, the vectorised version of `state_update_kernel`.

    After h, t and the parameters, c contains values that depend on h and the parameters only: `constants` returns them.
    """

    code: Code
    constants: ca.Function
    instructions: int  # of the vectorised code
    replaced: int  # of the scalar graph

    def numbers(self, h: float, k: np.ndarray) -> np.ndarray:
        """Return the run-invariant values after the parameters in c."""
        return np.array(self.constants(np.concatenate([[h], k]))).ravel()


class _Writer:
    """Writer of a map with all variables and operations in SIMD lanes, as Taylor series of order zero."""

    def __init__(self, function: ca.Function) -> None:
        self.lanes = Recurrences(decompose(function), 1)
        self.text, self.field = self.lanes.text, self.lanes.field

    def write(self) -> str:
        t, lanes = self.text, self.lanes
        used = {*self.field.rates, *(a for node in lanes.nodes for a in node.arguments)}
        for g, members in enumerate(lanes.groups):
            op = lanes.nodes[members[0]].op
            if not used.intersection(members):  # the cosine of a sine, needed by series only
                lanes.series[g].append(None)
            elif op == "var":
                lanes.series[g].append(self._loaded(g))
            elif op == "time":
                lanes.series[g].append([t.load(1, "%c", 1)])
            else:
                lanes.series[g].append(lanes.coefficient(g, 0))
        self._store()
        return "\n".join(t.lines)

    def _loaded(self, g: int) -> list[str]:
        """Load the variables of a group: contiguous loads of the state, then shuffles into lanes."""
        t, (w, chunks), size = self.text, self.lanes.widths[g], len(self.field.rates)
        lanes: list[tuple[str, int, int]] = []
        for n in self.lanes.groups[g]:
            entry = self.lanes.nodes[n].data[0]
            first = entry - entry % widest()
            count = min(widest(), size - first)
            lanes.append((t.load(count, "%z", first), count, entry - first))
        lanes += [lanes[0]] * (w * chunks - len(lanes))
        return [t.picked(lanes[i : i + w]) for i in range(0, len(lanes), w)]

    def _store(self) -> None:
        """Store the state at the end of the step with full vector width."""
        t, rates = self.text, self.field.rates
        for first in range(0, len(rates), widest()):
            ends = [self._lane(n) for n in rates[first : first + widest()]]
            t.store(len(ends), t.picked(ends), "%out", first)

    def _lane(self, n: int) -> tuple[str, int, int]:
        """Return the location of the value of an operation: vector, its width, and lane."""
        g, lane = self.lanes.place[n]
        found, width = self.lanes.series[g][0], self.lanes.widths[g][0]
        return (self.text.zero(1), 1, 0) if found is None else (found[lane // width], width, lane % width)


def lane_map(equations: FlatEquations) -> LaneMap | None:
    """Return the vectorised step; None if it is not faster or contains an unsupported operation."""
    e = equations
    graph = e.end_function
    if e.size or e.box is not None or not _SHORTEST <= graph.n_instructions() <= _LONGEST:
        return None
    z, t, known = ca.SX.sym("z", e.layout.size), ca.SX.sym("t"), ca.SX.sym("known", int(e.c.numel()) - 1)
    parameters = known[1:] if known.numel() > 1 else ca.SX(0, 1)
    end = graph(ca.SX(0, 1), z, ca.vertcat(known[0], t, parameters))
    function = ca.Function("map", [z, t, known], [end])
    try:
        writer = _Writer(function)
    except ModelError:
        return None
    body = writer.write()
    count = len(writer.text.lines)
    if count > _WORTH * graph.n_instructions():
        return None
    declared = "\n".join(sorted(writer.text.declared))
    arguments = ", ".join(f"ptr noalias %{name}" for name in ("x", "z", "c", "r", "out"))
    head = f"entry:\n%K = getelementptr double, ptr %c, i64 {int(e.c.numel())}\n"
    text = f"{declared}\ndefine void @end({arguments}) #0 {{\n{head}{body}\nret void\n}}\n{_ATTRIBUTES}"
    code = find_or_compile(f"{_written_by()} {widest()} {function.serialize()}", lambda: text, "end")
    return LaneMap(code, values_of(writer.lanes.constants, writer.field.k), count, graph.n_instructions())


@functools.cache
def _written_by() -> str:
    """Return the fingerprint of the code generator."""
    here, graphs = Path(__file__).parent, Path(alike.__file__).parent
    files = [Path(__file__), *sorted((here / "series").glob("*.py")), here / "emit.py"]
    files += [graphs / f"{name}.py" for name in ("alike", "constants", "elementary")]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
