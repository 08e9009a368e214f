"""Stepper for free bodies without joints: each body is a separate small system; contact forces are explicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.found_contacts import ContactTables, contacts
from livens.engine.found_contacts import Tables as ContactNumbers
from livens.engine.kernels import end_kernel
from livens.engine.loop import Policy
from livens.engine.lowering.function import lowered, together
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import call
from livens.engine.native import Code
from livens.engine.steps import Buffers, Carry, Cost, Steps, finite, steps_of
from livens.errors import InputError
from livens.models.found_contacts import FoundContacts
from livens.schemes.recipes.loose_parts import DISSIPATED, LOST, MOVING, SUPPLIED, LooseParts

if TYPE_CHECKING:
    from livens.engine.compiled import CompiledStep


@dataclass(frozen=True, eq=False)
class Tables(Record):
    """Kernels, state indices and parameters of all bodies."""

    count: int
    function: Integers
    sizes: Integers  # state size of each body
    first: Integers  # offsets in `state_indices`
    places: Integers
    constants_first: Integers
    constants: Doubles  # step inputs h, t and parameters of each body
    sums: Doubles
    old: Doubles
    new: Doubles
    # offsets of sums and contacts in the system state
    entries: int
    supplied: int
    dissipated: int
    moving: int
    asked: int
    coordinates: int
    box: int
    groups: int
    accounts: int


@lowered
def _part(t: Tables, p: int, z: Doubles, new: Doubles, h: float, time: float) -> None:
    """Take one step of one body."""
    size, places, c = t.sizes[p], t.places + t.first[p], t.constants + t.constants_first[p]
    c[0], c[1] = h, time
    for e in range(size):
        g = places[e]
        if g >= 0:
            t.old[e] = z[g]
        else:
            t.old[e] = 0.0
    call(t.function[p], t.old, t.old, c, t.new, t.new)
    for e in range(size):
        g = places[e]
        if g >= 0:
            new[g] = t.new[e]
        else:
            t.sums[-g] += t.new[e]


@lowered
def advance_parts(
    t: Tables, touching: ContactNumbers, Z: Doubles, done: int, steps: int, h: float, origin: float, first: int
) -> None:
    """Take fixed steps from ``Z[0]``."""
    for s in range(done, steps):
        z, new = Z + s * t.entries, Z + (s + 1) * t.entries
        for i in range(5):
            t.sums[i] = 0.0
        time = origin + (first + s) * h
        for p in range(t.count):
            _part(t, p, z, new, h, time)
        lost = z[t.moving + 1]
        for group in range(t.groups):
            for account in range(1, t.accounts):
                lost += z[t.box + t.coordinates + group * t.accounts + account]
        new[t.supplied] = z[t.supplied] + t.sums[1] + h * (z[t.moving] + lost)
        new[t.dissipated] = z[t.dissipated] + t.sums[2] + h * lost
        new[t.moving], new[t.moving + 1] = t.sums[3], t.sums[4]
        asked = new + t.asked
        contacts(asked, asked + t.coordinates, asked + 2 * t.coordinates, touching, new + t.box)


together(advance_parts)


def tables(equations: LooseParts, k: np.ndarray) -> tuple[Tables, list[Code]]:
    """Return the arrays of the compiled loop for the parameters of one run."""
    assert (SUPPLIED, DISSIPATED, MOVING, LOST) == (-1, -2, -3, -4)
    layout, system, box = equations.layout, equations.system, equations.system.box
    assert isinstance(box, FoundContacts)
    codes = [end_kernel(step) for step in equations.steps]
    functions, sizes, places, constants = [], [], [], []
    for kind, code, own in zip(equations.kinds, codes, equations.places, strict=True):
        for row, parameters in zip(own, kind.parameters(system), strict=True):
            functions.append(code.address)
            sizes.append(len(row))
            places.append(row)
            constants.append(np.concatenate([np.zeros(2), k[parameters]]))
    room = max(sizes)
    made = Tables(
        count=len(functions),
        function=np.array(functions, dtype=np.int64),
        sizes=np.array(sizes, dtype=np.int64),
        first=_firsts(places),
        places=np.concatenate(places),
        constants_first=_firsts(constants),
        constants=np.concatenate(constants),
        sums=np.zeros(5),
        old=np.zeros(room),
        new=np.zeros(room),
        entries=layout.size,
        supplied=layout["supplied_energy"].start,
        dissipated=layout["dissipated_energy"].start,
        moving=layout["A"].stop - 2,
        asked=layout["asked"].start,
        coordinates=system.n,
        box=layout["box"].start,
        groups=len(box.groups),
        accounts=box.accounts // len(box.groups),
    )
    return made, codes


def _firsts(rows: list[np.ndarray]) -> np.ndarray:
    return np.cumsum([0, *(len(row) for row in rows[:-1])], dtype=np.int64)


class PartsStepper:
    """Stepper of free bodies coupled by contact only."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        equations: Any = compiled.equations
        self.cost, self._compiled = Cost(), compiled
        self._tables, self._codes = tables(equations, k)
        self._contacts = ContactTables(equations.system.box, k)
        self._buffers = Buffers(k, np.zeros(0, dtype=np.int64), spare=compiled.spare)

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        if policy.controlled or policy.entry >= 0:
            raise InputError(
                "free bodies with detected contacts require fixed steps: "
                "adaptive steps and fictive time are not supported"
            )
        w = self._buffers.filled(carry, steps)
        advance_parts(self._tables, self._contacts.tables, w.Z, 0, steps, policy.h, policy.origin, policy.first)
        return finite(steps_of(w, carry, steps, policy), w, self._compiled.layout)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: dict[str, Any]) -> None:
        """Do nothing: the integrator state is complete."""

    def release(self) -> None:
        self._buffers.release()
