"""DEM stepper: spheres in a box with Hertz or linear contact and Coulomb friction; cell lists make the cost O(n)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.loop import Policy
from livens.engine.lowering.function import lowered, together
from livens.engine.lowering.kinds import Doubles, Integers, Record
from livens.engine.lowering.words import square_root
from livens.engine.steps import Buffers, Carry, Cost, Steps, finite, steps_of
from livens.errors import InputError
from livens.models.crowd import CrowdNumbers

if TYPE_CHECKING:
    from livens.engine.compiled import CompiledStep

#: Maximum number of cells per sphere; in a large box cells are larger than necessary.
_CELLS_PER_BALL = 2


@dataclass(frozen=True, eq=False)
class Tables(Record):
    """Parameters of the spheres and workspace of one evaluation of their contacts."""

    count: int
    radii: Doubles
    masses: Doubles  # mass or moment of inertia of each coordinate
    inverse: Doubles
    weight: Doubles  # acceleration by gravity of each coordinate
    lower: Doubles
    upper: Doubles
    per_length: Doubles  # cells per length, by axis
    cells: Integers  # number of cells, by axis
    head: Integers  # first sphere of each cell
    next: Integers  # next sphere in the cell of a sphere
    cell: Integers  # cell of each sphere
    laws: Doubles  # stiffness, exponent, damping, friction, slip regularisation
    x: Doubles  # coordinates of the evaluation
    u: Doubles
    sums: Doubles  # dissipated power, stored energy
    # offsets in the state
    q: int
    v: int
    p: int
    supplied: int
    dissipated: int
    A: int
    entries: int
    alpha: float
    extrapolated: int


@lowered
def _push(
    t: Tables, f: Doubles, i: int, j: int, a: float, b: float, c: float, depth: float, arm_i: float, arm_j: float
) -> None:
    """Add the forces of a contact with normal (a, b, c) from sphere i to sphere j, or into a wall if j is negative."""
    u, o = t.u, 6 * i
    # relative velocity of i and j at the contact point: v_i + w_i x arm n
    x = u[o] + arm_i * (u[o + 4] * c - u[o + 5] * b)
    y = u[o + 1] + arm_i * (u[o + 5] * a - u[o + 3] * c)
    z = u[o + 2] + arm_i * (u[o + 3] * b - u[o + 4] * a)
    if j >= 0:
        o = 6 * j
        x += arm_j * (u[o + 4] * c - u[o + 5] * b) - u[o]
        y += arm_j * (u[o + 5] * a - u[o + 3] * c) - u[o + 1]
        z += arm_j * (u[o + 3] * b - u[o + 4] * a) - u[o + 2]
    rate = x * a + y * b + z * c
    elastic = t.laws[0] * depth
    if t.laws[1] != 1.0:
        elastic *= square_root(depth)
    whole = elastic * max(0.0, 1.0 + t.laws[2] * rate)
    x -= rate * a
    y -= rate * b
    z -= rate * c
    square = x * x + y * y + z * z
    rub = t.laws[3] * elastic / square_root(square + t.laws[4] * t.laws[4])
    fx, fy, fz = -rub * x, -rub * y, -rub * z
    # friction torques on both bodies: arm n x friction
    tx, ty, tz = b * fz - c * fy, c * fx - a * fz, a * fy - b * fx
    o = 6 * i
    f[o] += fx - whole * a
    f[o + 1] += fy - whole * b
    f[o + 2] += fz - whole * c
    f[o + 3] += arm_i * tx
    f[o + 4] += arm_i * ty
    f[o + 5] += arm_i * tz
    if j >= 0:
        o = 6 * j
        f[o] -= fx - whole * a
        f[o + 1] -= fy - whole * b
        f[o + 2] -= fz - whole * c
        f[o + 3] += arm_j * tx
        f[o + 4] += arm_j * ty
        f[o + 5] += arm_j * tz
    t.sums[0] += (whole - elastic) * rate + rub * square
    t.sums[1] += elastic * depth / (t.laws[1] + 1.0)


@lowered
def _pair(t: Tables, f: Doubles, i: int, j: int) -> None:
    """Evaluate the contact of two spheres of neighbouring cells, if they overlap."""
    x, o, p = t.x, 6 * i, 6 * j
    a, b, c = x[p] - x[o], x[p + 1] - x[o + 1], x[p + 2] - x[o + 2]
    reach = t.radii[i] + t.radii[j]
    square = a * a + b * b + c * c
    if square < reach * reach and square > 0.0:
        far = square_root(square)
        depth = reach - far
        _push(t, f, i, j, a / far, b / far, c / far, depth, t.radii[i] - depth / 2, t.radii[j] - depth / 2)


@lowered
def _walls(t: Tables, f: Doubles, i: int) -> None:
    r, o = t.radii[i], 6 * i
    for axis in range(3):
        a, b, c = 0.0, 0.0, 0.0
        if axis == 0:
            a = 1.0
        elif axis == 1:
            b = 1.0
        else:
            c = 1.0
        below, above = t.lower[axis] + r - t.x[o + axis], t.x[o + axis] + r - t.upper[axis]
        if below > 0.0:
            _push(t, f, i, -1, -a, -b, -c, below, r - below / 2, 0.0)
        if above > 0.0:
            _push(t, f, i, -1, a, b, c, above, r - above / 2, 0.0)


@lowered
def _place(t: Tables, axis: int, x: float) -> int:
    """Return the cell index along an axis; positions beyond a wall, and NaN, belong to the outermost cell."""
    s, last = (x - t.lower[axis]) * t.per_length[axis], t.cells[axis] - 1
    if not s > 0.0:
        return 0
    if s >= float(last):
        return last
    return int(s)


@lowered
def _sort(t: Tables) -> None:
    """Build the linked cell list."""
    nx, ny, nz = t.cells[0], t.cells[1], t.cells[2]
    for c in range(nx * ny * nz):
        t.head[c] = -1
    for i in range(t.count):
        o = 6 * i
        c = (_place(t, 0, t.x[o]) * ny + _place(t, 1, t.x[o + 1])) * nz + _place(t, 2, t.x[o + 2])
        t.cell[i], t.next[i] = c, t.head[c]
        t.head[c] = i


@lowered
def _contacts(t: Tables, f: Doubles) -> None:
    """Evaluate the forces of all contacts at (x, u). Each sphere is paired with the following spheres of its cell, and
    with those of the forward half of the neighbouring cells."""
    nx, ny, nz = t.cells[0], t.cells[1], t.cells[2]
    t.sums[0], t.sums[1] = 0.0, 0.0
    for i in range(6 * t.count):
        f[i] = 0.0
    _sort(t)
    for i in range(t.count):
        _walls(t, f, i)
        c = t.cell[i]
        cz = c % nz
        cy = (c // nz) % ny
        cx = c // (nz * ny)
        j = t.next[i]
        while j >= 0:
            _pair(t, f, i, j)
            j = t.next[j]
        for dx in range(2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    ahead = dx > 0 or dy > 0 or (dy == 0 and dz > 0)
                    x, y, z = cx + dx, cy + dy, cz + dz
                    if ahead and x < nx and y >= 0 and y < ny and z >= 0 and z < nz:
                        j = t.head[(x * ny + y) * nz + z]
                        while j >= 0:
                            _pair(t, f, i, j)
                            j = t.next[j]


@lowered
def _advance(t: Tables, Z: Doubles, steps: int, h: float) -> None:
    """Take fixed steps from ``Z[0]``."""
    n = 6 * t.count
    for s in range(steps):
        z, new = Z + s * t.entries, Z + (s + 1) * t.entries
        work, lost = 0.0, z[t.A + n]
        for i in range(n):
            a, old = z[t.A + i] + t.weight[i], z[t.v + i]
            mean = old + h / 2 * a
            q, v = z[t.q + i] + h * mean, old + h * a
            new[t.q + i], new[t.v + i], new[t.p + i] = q, v, t.masses[i] * v
            work += t.masses[i] * z[t.A + i] * mean
            t.x[i] = q + t.alpha * h * v
            t.u[i] = v + t.alpha * (v - old) if t.extrapolated else v
        new[t.supplied] = z[t.supplied] + h * (work + lost)
        new[t.dissipated] = z[t.dissipated] + h * lost
        f = new + t.A
        _contacts(t, f)
        for i in range(n):
            f[i] *= t.inverse[i]
        f[n] = t.sums[0]


together(_advance, _contacts)


def tables(numbers: CrowdNumbers, layout: Any, alpha: float, extrapolated: bool) -> Tables:
    """Return the arrays of the compiled loops for the parameters of a run."""
    count, box = len(numbers.radii), numbers.upper - numbers.lower
    size = 2 * float(numbers.radii.max())
    while True:
        cells = np.maximum(np.floor(box / size), 1).astype(np.int64)
        if cells.prod() <= _CELLS_PER_BALL * count + 8:
            break
        size *= 1.1
    laws = [numbers.stiffness, numbers.exponent, numbers.damping, numbers.friction, numbers.smooth]
    starts = {name: layout[name].start for name in ("q", "v", "p", "A")}
    return Tables(
        count=count,
        radii=np.ascontiguousarray(numbers.radii, dtype=float),
        masses=np.ascontiguousarray(numbers.masses, dtype=float),
        inverse=1 / np.ascontiguousarray(numbers.masses, dtype=float),
        weight=np.tile(np.append(numbers.gravity, np.zeros(3)), count),
        lower=np.array(numbers.lower, dtype=float),
        upper=np.array(numbers.upper, dtype=float),
        per_length=cells / box,
        cells=cells,
        head=np.empty(int(cells.prod()), dtype=np.int64),
        next=np.empty(count, dtype=np.int64),
        cell=np.empty(count, dtype=np.int64),
        laws=np.array(laws, dtype=float),
        x=np.empty(6 * count),
        u=np.empty(6 * count),
        sums=np.zeros(2),
        **starts,
        supplied=layout["supplied_energy"].start,
        dissipated=layout["dissipated_energy"].start,
        entries=layout.size,
        alpha=alpha,
        extrapolated=int(extrapolated),
    )


def contacts(t: Tables, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the forces of all contacts in a state, their dissipated power, and their stored energy."""
    t.x[:], t.u[:] = q, v
    found = np.zeros(q.size)
    _contacts(t, found)
    return found, float(t.sums[0]), float(t.sums[1])


class CrowdStepper:
    """Stepper of spheres with contact (discrete element method)."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        equations: Any = compiled.equations
        self.cost = Cost()
        self._compiled = compiled
        self._tables = tables(equations.crowd.numbers(k), compiled.layout, equations.alpha, equations.extrapolated)
        self._buffers = Buffers(k, np.zeros(0, dtype=np.int64), spare=compiled.spare)

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        if policy.controlled or policy.entry >= 0:
            raise InputError("a GranularBox requires fixed steps: adaptive steps and fictive time are not supported")
        w = self._buffers.filled(carry, steps)
        _advance(self._tables, w.Z, steps, policy.h)
        return finite(steps_of(w, carry, steps, policy), w, self._compiled.layout)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: dict[str, Any]) -> None:
        """Do nothing: the integrator state is complete."""

    def release(self) -> None:
        self._buffers.release()
