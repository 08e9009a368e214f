"""DEM stepper: spheres in a box with Hertz or linear contact and Coulomb friction; cell lists make the cost O(n)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import sqrt
from livens.engine.lowering.types import F64Array, I64Array, Struct
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import (
    IntegratorState,
    StepChunk,
    Stepper,
    WorkspaceManager,
    chunk_from_workspace,
    truncate_at_nonfinite,
)
from livens.errors import InputError
from livens.models.granular_box import GranularParameters
from livens.schemes.discretization.granular_step import GranularEquations

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep
    from livens.expressions.state_layout import Layout

#: Maximum number of cells per sphere; in a large box cells are larger than necessary.
_CELLS_PER_SPHERE = 2


@dataclass(frozen=True, eq=False)
class DemArrays(Struct):
    """Parameters of the spheres and workspace of one evaluation of their contacts."""

    n_spheres: int
    radii: F64Array
    masses: F64Array  # mass or moment of inertia of each coordinate
    inv_mass: F64Array
    gravity: F64Array  # acceleration by gravity of each coordinate
    lower: F64Array
    upper: F64Array
    inv_cell_size: F64Array  # cells per length, by axis
    cells: I64Array  # number of cells, by axis
    cell_head: I64Array  # first sphere of each cell
    cell_next: I64Array  # next sphere in the cell of a sphere
    cell_of: I64Array  # cell of each sphere
    contact_law: F64Array  # stiffness, exponent, damping, friction, slip regularisation
    x: F64Array  # coordinates of the evaluation
    u: F64Array
    power_and_energy: F64Array  # dissipated power, stored energy
    # offsets in the state
    q: int
    v: int
    p: int
    supplied_index: int
    dissipated_index: int
    A: int
    n_state: int
    alpha: float
    extrapolate_velocity: int


@lowered
def _add_contact_force(
    t: DemArrays,
    f: F64Array,
    i: int,
    j: int,
    a: float,
    b: float,
    c: float,
    depth: float,
    lever_i: float,
    lever_j: float,
) -> None:
    """Add the forces of a contact with normal (a, b, c) from sphere i to sphere j, or into a wall if j is negative."""
    u, o = t.u, 6 * i
    # relative velocity of i and j at the contact point: v_i + w_i x arm n
    x = u[o] + lever_i * (u[o + 4] * c - u[o + 5] * b)
    y = u[o + 1] + lever_i * (u[o + 5] * a - u[o + 3] * c)
    z = u[o + 2] + lever_i * (u[o + 3] * b - u[o + 4] * a)
    if j >= 0:
        o = 6 * j
        x += lever_j * (u[o + 4] * c - u[o + 5] * b) - u[o]
        y += lever_j * (u[o + 5] * a - u[o + 3] * c) - u[o + 1]
        z += lever_j * (u[o + 3] * b - u[o + 4] * a) - u[o + 2]
    gap_rate = x * a + y * b + z * c
    f_elastic = t.contact_law[0] * depth
    if t.contact_law[1] != 1.0:
        f_elastic *= sqrt(depth)
    f_normal = f_elastic * max(0.0, 1.0 + t.contact_law[2] * gap_rate)
    x -= gap_rate * a
    y -= gap_rate * b
    z -= gap_rate * c
    slip2 = x * x + y * y + z * z
    friction_coeff = t.contact_law[3] * f_elastic / sqrt(slip2 + t.contact_law[4] * t.contact_law[4])
    fx, fy, fz = -friction_coeff * x, -friction_coeff * y, -friction_coeff * z
    # friction torques on both bodies: arm n x friction
    tx, ty, tz = b * fz - c * fy, c * fx - a * fz, a * fy - b * fx
    o = 6 * i
    f[o] += fx - f_normal * a
    f[o + 1] += fy - f_normal * b
    f[o + 2] += fz - f_normal * c
    f[o + 3] += lever_i * tx
    f[o + 4] += lever_i * ty
    f[o + 5] += lever_i * tz
    if j >= 0:
        o = 6 * j
        f[o] -= fx - f_normal * a
        f[o + 1] -= fy - f_normal * b
        f[o + 2] -= fz - f_normal * c
        f[o + 3] += lever_j * tx
        f[o + 4] += lever_j * ty
        f[o + 5] += lever_j * tz
    t.power_and_energy[0] += (f_normal - f_elastic) * gap_rate + friction_coeff * slip2
    t.power_and_energy[1] += f_elastic * depth / (t.contact_law[1] + 1.0)


@lowered
def _pair_contact(t: DemArrays, f: F64Array, i: int, j: int) -> None:
    """Evaluate the contact of two spheres of neighbouring cells, if they overlap."""
    x, o, p = t.x, 6 * i, 6 * j
    a, b, c = x[p] - x[o], x[p + 1] - x[o + 1], x[p + 2] - x[o + 2]
    contact_distance = t.radii[i] + t.radii[j]
    distance2 = a * a + b * b + c * c
    if distance2 < contact_distance * contact_distance and distance2 > 0.0:
        distance = sqrt(distance2)
        depth = contact_distance - distance
        _add_contact_force(
            t, f, i, j, a / distance, b / distance, c / distance, depth, t.radii[i] - depth / 2, t.radii[j] - depth / 2
        )


@lowered
def _wall_contacts(t: DemArrays, f: F64Array, i: int) -> None:
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
            _add_contact_force(t, f, i, -1, -a, -b, -c, below, r - below / 2, 0.0)
        if above > 0.0:
            _add_contact_force(t, f, i, -1, a, b, c, above, r - above / 2, 0.0)


@lowered
def _cell_index(t: DemArrays, axis: int, x: float) -> int:
    """Return the cell index along an axis; positions beyond a wall, and NaN, belong to the outermost cell."""
    s, last = (x - t.lower[axis]) * t.inv_cell_size[axis], t.cells[axis] - 1
    if not s > 0.0:
        return 0
    if s >= float(last):
        return last
    return int(s)


@lowered
def _build_cell_list(t: DemArrays) -> None:
    """Build the linked cell list."""
    nx, ny, nz = t.cells[0], t.cells[1], t.cells[2]
    for c in range(nx * ny * nz):
        t.cell_head[c] = -1
    for i in range(t.n_spheres):
        o = 6 * i
        c = (_cell_index(t, 0, t.x[o]) * ny + _cell_index(t, 1, t.x[o + 1])) * nz + _cell_index(t, 2, t.x[o + 2])
        t.cell_of[i], t.cell_next[i] = c, t.cell_head[c]
        t.cell_head[c] = i


@lowered
def _contact_forces(t: DemArrays, f: F64Array) -> None:
    """Evaluate the forces of all contacts at (x, u). Each sphere is paired with the following spheres of its cell, and
    with those of the forward half of the neighbouring cells."""
    nx, ny, nz = t.cells[0], t.cells[1], t.cells[2]
    t.power_and_energy[0], t.power_and_energy[1] = 0.0, 0.0
    for i in range(6 * t.n_spheres):
        f[i] = 0.0
    _build_cell_list(t)
    for i in range(t.n_spheres):
        _wall_contacts(t, f, i)
        c = t.cell_of[i]
        cz = c % nz
        cy = (c // nz) % ny
        cx = c // (nz * ny)
        j = t.cell_next[i]
        while j >= 0:
            _pair_contact(t, f, i, j)
            j = t.cell_next[j]
        for dx in range(2):
            for dy in range(-1, 2):
                for dz in range(-1, 2):
                    is_forward = dx > 0 or dy > 0 or (dy == 0 and dz > 0)
                    x, y, z = cx + dx, cy + dy, cz + dz
                    if is_forward and x < nx and y >= 0 and y < ny and z >= 0 and z < nz:
                        j = t.cell_head[(x * ny + y) * nz + z]
                        while j >= 0:
                            _pair_contact(t, f, i, j)
                            j = t.cell_next[j]


@lowered
def _advance_fixed(t: DemArrays, Z: F64Array, n_steps: int, h: float) -> None:
    """Take fixed steps from ``Z[0]``."""
    n = 6 * t.n_spheres
    for s in range(n_steps):
        z, z_next = Z + s * t.n_state, Z + (s + 1) * t.n_state
        work, dissipated_power = 0.0, z[t.A + n]
        for i in range(n):
            a, v_old = z[t.A + i] + t.gravity[i], z[t.v + i]
            v_mean = v_old + h / 2 * a
            q, v = z[t.q + i] + h * v_mean, v_old + h * a
            z_next[t.q + i], z_next[t.v + i], z_next[t.p + i] = q, v, t.masses[i] * v
            work += t.masses[i] * z[t.A + i] * v_mean
            t.x[i] = q + t.alpha * h * v
            t.u[i] = v + t.alpha * (v - v_old) if t.extrapolate_velocity else v
        z_next[t.supplied_index] = z[t.supplied_index] + h * (work + dissipated_power)
        z_next[t.dissipated_index] = z[t.dissipated_index] + h * dissipated_power
        f = z_next + t.A
        _contact_forces(t, f)
        for i in range(n):
            f[i] *= t.inv_mass[i]
        f[n] = t.power_and_energy[0]


compile_unit(_advance_fixed, _contact_forces)


def dem_arrays(parameters: GranularParameters, layout: Layout, alpha: float, extrapolate_velocity: bool) -> DemArrays:
    """Return the arrays of the compiled loops for the parameters of a run."""
    count, box = len(parameters.radii), parameters.upper - parameters.lower
    size = 2 * float(parameters.radii.max())
    while True:
        cells = np.maximum(np.floor(box / size), 1).astype(np.int64)
        if cells.prod() <= _CELLS_PER_SPHERE * count + 8:
            break
        size *= 1.1
    contact_law = [
        parameters.stiffness,
        parameters.exponent,
        parameters.damping,
        parameters.friction,
        parameters.smooth,
    ]
    starts = {name: layout[name].start for name in ("q", "v", "p", "A")}
    return DemArrays(
        n_spheres=count,
        radii=np.ascontiguousarray(parameters.radii, dtype=float),
        masses=np.ascontiguousarray(parameters.masses, dtype=float),
        inv_mass=1 / np.ascontiguousarray(parameters.masses, dtype=float),
        gravity=np.tile(np.append(parameters.gravity, np.zeros(3)), count),
        lower=np.array(parameters.lower, dtype=float),
        upper=np.array(parameters.upper, dtype=float),
        inv_cell_size=cells / box,
        cells=cells,
        cell_head=np.empty(int(cells.prod()), dtype=np.int64),
        cell_next=np.empty(count, dtype=np.int64),
        cell_of=np.empty(count, dtype=np.int64),
        contact_law=np.array(contact_law, dtype=float),
        x=np.empty(6 * count),
        u=np.empty(6 * count),
        power_and_energy=np.zeros(2),
        **starts,
        supplied_index=layout["supplied_energy"].start,
        dissipated_index=layout["dissipated_energy"].start,
        n_state=layout.size,
        alpha=alpha,
        extrapolate_velocity=int(extrapolate_velocity),
    )


def contact_forces(t: DemArrays, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the forces of all contacts in a state, their dissipated power, and their stored energy."""
    t.x[:], t.u[:] = q, v
    forces = np.zeros(q.size)
    _contact_forces(t, forces)
    return forces, float(t.power_and_energy[0]), float(t.power_and_energy[1])


class DemStepper(Stepper):
    """Stepper of spheres with contact (discrete element method)."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        equations = compiled.equations
        assert isinstance(equations, GranularEquations)
        self._arrays = dem_arrays(
            equations.granular_box.granular_parameters(k),
            compiled.layout,
            equations.alpha,
            equations.extrapolate_velocity,
        )
        super().__init__(compiled.layout, WorkspaceManager(k, pool=compiled.workspace_pool))

    def set_parameters(self, k: np.ndarray) -> None:
        raise InputError(f"steps of the {type(self).__name__} do not support parameters that change during a run")

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        if policy.adaptive or policy.stop_entry >= 0:
            raise InputError("a GranularBox requires fixed steps: adaptive steps and fictive time are not supported")
        w = self._workspaces.prepare(state, n_steps)
        _advance_fixed(self._arrays, w.Z, n_steps, policy.h)
        return truncate_at_nonfinite(chunk_from_workspace(w, state, n_steps, policy), self._layout)
