"""Broad-phase contact detection: Verlet neighbour list, rebuilt from a cell list when a body has moved half the skin.

The list contains all pairs of shapes whose bounding spheres are closer than the skin. Pairs are sorted by shape, so
that forces are summed in the same order for every list: a resumed run, with another list, reproduces the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import call_kernel, sqrt
from livens.engine.lowering.types import F64Array, I64Array, Struct

#: Maximum number of cells per shape; for widely separated shapes cells are larger than necessary.
CELLS_PER_MEMBER = 2
#: Indices into `NeighbourListArrays.counters`: number of pairs in the list (-1: overflow), rebuilds, tested pairs, and
#: pairs with overlapping bounding spheres, summed over all evaluations.
N_PAIRS, N_REBUILDS, N_TESTS, N_OVERLAPS = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class NeighbourListArrays(Struct):
    """Parameters of all shapes, neighbour list, and workspace of one evaluation."""

    n_coordinates: int  # number of coordinates
    n_energy_terms: int
    n_members: int  # number of shapes
    n_types: int
    dimension: int
    first_coordinate: I64Array  # first coordinate of the body of a shape
    n_member_coordinates: I64Array  # number of its coordinates
    centre_offset: F64Array
    has_offset: I64Array  # whether the centre of the bounding sphere is not that of the body
    bounding_radius: F64Array
    group: I64Array
    shape_type: I64Array
    # small shapes (in cells), and large ones; planes are given by normal and distance from the origin
    small: I64Array
    n_small: int
    large: I64Array
    n_large: int
    is_plane: I64Array
    planes: F64Array
    # CSR lists of the following shapes that a shape never touches
    excluded_ptr: I64Array
    excluded: I64Array
    # CSR lists of the contact kernels of two shape types
    pair_kernel_ptr: I64Array
    kernel: I64Array
    swapped: I64Array
    parameter_ptr: I64Array
    pair_parameters: F64Array
    # neighbour list
    skin: float
    max_pairs: int
    x: F64Array
    x_at_rebuild: F64Array
    neighbour_ptr: I64Array
    neighbours: I64Array
    counters: I64Array
    cells: I64Array
    lower: F64Array
    cell_head: I64Array
    cell_next: I64Array
    cell_of: I64Array
    # shapes with contacts of the kernel of spheres: angular velocities, and torques of all contacts
    is_sphere: I64Array
    angular_velocity: F64Array
    torque: F64Array
    # workspace of a pair
    pair_q: F64Array
    pair_v: F64Array
    pair_out: F64Array


@lowered
def _update_centres(t: NeighbourListArrays, q: F64Array) -> float:
    """Update the centres of the bounding spheres; return the largest squared displacement since the last rebuild."""
    d, largest = t.dimension, 0.0
    for i in range(t.n_members):
        centre, before, displacement2 = t.x + 3 * i, t.x_at_rebuild + 3 * i, 0.0
        has_offset = t.has_offset[i]
        for axis in range(d):
            x = 0.0
            if t.n_member_coordinates[i] > 0:
                x = q[t.first_coordinate[i] + axis]
            if has_offset:
                x = _shifted_centre(t, q, i, axis)
            centre[axis] = x
            difference = x - before[axis]
            displacement2 += difference * difference
        if largest == largest and not displacement2 <= largest:  # NaN counts as moved
            largest = displacement2
    return largest


@lowered
def _shifted_centre(t: NeighbourListArrays, q: F64Array, i: int, axis: int) -> float:
    """Return a coordinate of the centre of a bounding sphere that differs from the centre of the body."""
    d, offset = t.dimension, t.centre_offset + 3 * i
    x = offset[axis]
    if t.n_member_coordinates[i] > 0:
        coordinate = t.first_coordinate[i] + axis
        x = q[coordinate]
        if t.n_member_coordinates[i] > d:
            for j in range(d):
                x += offset[j] * q[coordinate + d * (j + 1)]
    return x


@lowered
def _distance2(t: NeighbourListArrays, i: int, j: int) -> float:
    """Return the squared distance of two centres, whose third coordinate in the plane is zero."""
    a, b = t.x + 3 * i, t.x + 3 * j
    x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    return x * x + y * y + z * z


@lowered
def _is_pair_allowed(t: NeighbourListArrays, i: int, j: int) -> bool:
    """Return True if contact between shapes i < j is not excluded."""
    if t.group[i] != t.group[j]:
        return False
    for a in range(t.excluded_ptr[i], t.excluded_ptr[i + 1]):  # noqa: SIM110 - compiled code has no generators
        if t.excluded[a] == j:
            return False
    return True


@lowered
def _cell_index(t: NeighbourListArrays, i: int, axis: int, size: float) -> int:
    s, last = (t.x[3 * i + axis] - t.lower[axis]) / size, t.cells[axis] - 1
    if not s > 0.0:
        return 0
    if s >= float(last):
        return last
    return int(s)


@lowered
def _build_cell_list(t: NeighbourListArrays) -> float:
    """Build the cell list with cells at least as large as two bounding radii and the skin; return the cell size."""
    largest = 0.0
    for axis in range(3):
        t.lower[axis], t.lower[3 + axis] = 0.0, 0.0
    for n in range(t.n_small):
        i = t.small[n]
        largest = max(largest, t.bounding_radius[i])
        for axis in range(t.dimension):
            x = t.x[3 * i + axis]
            if n == 0 or x < t.lower[axis]:
                t.lower[axis] = x
            if n == 0 or x > t.lower[3 + axis]:
                t.lower[3 + axis] = x
    size, max_cells = 2.0 * largest + t.skin, float(CELLS_PER_MEMBER * t.n_small + 8)
    too_many = True
    while too_many:
        total = 1.0
        for axis in range(3):
            extent = (t.lower[3 + axis] - t.lower[axis]) / size
            cells = 1
            if extent > 1.0:
                cells = int(min(extent, max_cells)) + 1
            t.cells[axis] = cells
            total *= float(cells)
        too_many = total > max_cells
        if too_many:
            size *= 1.2
    for c in range(t.cells[0] * t.cells[1] * t.cells[2]):
        t.cell_head[c] = -1
    for n in range(t.n_small):
        i = t.small[n]
        c = (_cell_index(t, i, 0, size) * t.cells[1] + _cell_index(t, i, 1, size)) * t.cells[2] + _cell_index(
            t, i, 2, size
        )
        t.cell_of[i], t.cell_next[i] = c, t.cell_head[c]
        t.cell_head[c] = i
    return size


@lowered
def _insert_sorted(t: NeighbourListArrays, begin: int, end: int, j: int) -> None:
    """Insert a neighbour into the sorted range from `begin` to `end`."""
    p = end
    while p > begin and t.neighbours[p - 1] > j:
        t.neighbours[p] = t.neighbours[p - 1]
        p -= 1
    t.neighbours[p] = j


@lowered
def _rebuild_list(t: NeighbourListArrays) -> None:
    """Rebuild the neighbour list: all pairs closer than the skin."""
    _build_cell_list(t)
    nx, ny, nz, n_pairs = t.cells[0], t.cells[1], t.cells[2], 0
    for i in range(3 * t.n_members):
        t.x_at_rebuild[i] = t.x[i]
    t.counters[N_REBUILDS] += 1
    for i in range(t.n_members):
        t.neighbour_ptr[i] = n_pairs
        c = t.cell_of[i]
        if c >= 0:
            cz, cy, cx = c % nz, (c // nz) % ny, c // (nz * ny)
            for x in range(max(cx - 1, 0), min(cx + 2, nx)):
                for y in range(max(cy - 1, 0), min(cy + 2, ny)):
                    for z in range(max(cz - 1, 0), min(cz + 2, nz)):
                        j = t.cell_head[(x * ny + y) * nz + z]
                        while j >= 0:
                            cutoff = t.bounding_radius[i] + t.bounding_radius[j] + t.skin
                            # NaN is close to everything
                            if j > i and not _distance2(t, i, j) > cutoff * cutoff and _is_pair_allowed(t, i, j):
                                if n_pairs == t.max_pairs:
                                    t.counters[N_PAIRS] = -1
                                    return
                                _insert_sorted(t, t.neighbour_ptr[i], n_pairs, j)
                                n_pairs += 1
                            j = t.cell_next[j]
    t.neighbour_ptr[t.n_members] = n_pairs
    t.counters[N_PAIRS] = n_pairs


@lowered
def _update_angular_velocities(t: NeighbourListArrays, q: F64Array, v: F64Array) -> None:
    """Update the angular velocities ``sum d_i x d_i' / 2`` of spheres."""
    for i in range(t.n_members):
        if t.is_sphere[i]:
            x, y, z, c, rate = 0.0, 0.0, 0.0, t.first_coordinate[i], t.angular_velocity + 3 * i
            for j in range(c + 3, c + 12, 3):
                x += q[j + 1] * v[j + 2] - q[j + 2] * v[j + 1]
                y += q[j + 2] * v[j] - q[j] * v[j + 2]
                z += q[j] * v[j + 1] - q[j + 1] * v[j]
            rate[0], rate[1], rate[2] = 0.5 * x, 0.5 * y, 0.5 * z


@lowered
def _apply_torques(t: NeighbourListArrays, q: F64Array, force: F64Array) -> None:
    """Add the torques of spheres as forces on the directors, and reset them."""
    for i in range(t.n_members):
        if t.is_sphere[i]:
            torque, c = t.torque + 3 * i, t.first_coordinate[i]
            x, y, z = 0.5 * torque[0], 0.5 * torque[1], 0.5 * torque[2]
            if x != 0.0 or y != 0.0 or z != 0.0:
                for j in range(c + 3, c + 12, 3):
                    force[j] += y * q[j + 2] - z * q[j + 1]
                    force[j + 1] += z * q[j] - x * q[j + 2]
                    force[j + 2] += x * q[j + 1] - y * q[j]
                torque[0], torque[1], torque[2] = 0.0, 0.0, 0.0


@lowered
def _eval_spheres(
    t: NeighbourListArrays, p: F64Array, i: int, j: int, q: F64Array, v: F64Array, force: F64Array, terms: F64Array
) -> None:
    """Evaluate the contact of sphere i with sphere j or a fixed plane j; p are the values of `SphereContact`."""
    fa, fb, reach = t.first_coordinate[i], t.first_coordinate[j], p[0]
    x, y, z = q[fa], q[fa + 1], q[fa + 2]
    is_plane = p[7] > 0.0
    nx, ny, nz, gap = p[8], p[9], p[10], 0.0
    if is_plane:
        gap = nx * x + ny * y + nz * z - p[11] - reach
    else:
        nx, ny, nz = x - q[fb], y - q[fb + 1], z - q[fb + 2]
        distance = sqrt(nx * nx + ny * ny + nz * nz + 1e-60)
        gap = distance - p[1] - reach
        inverse = 1.0 / distance
        nx, ny, nz = nx * inverse, ny * inverse, nz * inverse
    if gap < 0.0:
        depth = -gap
        elastic = p[2] * depth
        if p[6] != 1.0:
            elastic *= sqrt(depth)
        # relative velocity at the contact point, at the distances arm and other_arm from the centres
        arm, other_arm = reach + gap / 2, p[1] + gap / 2
        w = t.angular_velocity + 3 * i
        sx = v[fa] - arm * (w[1] * nz - w[2] * ny)
        sy = v[fa + 1] - arm * (w[2] * nx - w[0] * nz)
        sz = v[fa + 2] - arm * (w[0] * ny - w[1] * nx)
        if not is_plane:
            w = t.angular_velocity + 3 * j
            sx -= v[fb] + other_arm * (w[1] * nz - w[2] * ny)
            sy -= v[fb + 1] + other_arm * (w[2] * nx - w[0] * nz)
            sz -= v[fb + 2] + other_arm * (w[0] * ny - w[1] * nx)
        rate = sx * nx + sy * ny + sz * nz
        sx -= rate * nx
        sy -= rate * ny
        sz -= rate * nz
        normal_force = elastic * max(0.0, 1.0 - p[3] * rate)
        square = sx * sx + sy * sy + sz * sz
        friction = 0.0
        if p[4] > 0.0:
            friction = p[4] * elastic / sqrt(square + p[5] * p[5])
        sx, sy, sz = -friction * sx, -friction * sy, -friction * sz
        # torque of friction at unit distance: n x friction
        a, b, c = ny * sz - nz * sy, nz * sx - nx * sz, nx * sy - ny * sx
        x, y, z = normal_force * nx + sx, normal_force * ny + sy, normal_force * nz + sz
        total, torque = force + fa, t.torque + 3 * i
        total[0] += x
        total[1] += y
        total[2] += z
        torque[0] -= arm * a
        torque[1] -= arm * b
        torque[2] -= arm * c
        if not is_plane:
            total, torque = force + fb, t.torque + 3 * j
            total[0] -= x
            total[1] -= y
            total[2] -= z
            torque[0] -= other_arm * a
            torque[1] -= other_arm * b
            torque[2] -= other_arm * c
        terms[0] += elastic * depth / (p[6] + 1.0)
        terms[1] += (elastic - normal_force) * rate
        terms[2] += friction * square


@lowered
def _eval_pair(t: NeighbourListArrays, i: int, j: int, q: F64Array, v: F64Array, force: F64Array) -> None:
    """Evaluate the contact forces of a pair with overlapping bounding spheres."""
    t.counters[N_OVERLAPS] += 1
    pair = t.shape_type[i] * t.n_types + t.shape_type[j]
    energy_terms = t.n_coordinates + t.n_energy_terms * t.group[i]
    for s in range(t.pair_kernel_ptr[pair], t.pair_kernel_ptr[pair + 1]):
        a, b = i, j
        if t.swapped[s]:
            a, b = j, i
        na, nb, fa, fb = (
            t.n_member_coordinates[a],
            t.n_member_coordinates[b],
            t.first_coordinate[a],
            t.first_coordinate[b],
        )
        if not t.kernel[s]:
            _eval_spheres(t, t.pair_parameters + t.parameter_ptr[s], a, b, q, v, force, force + energy_terms)
            continue
        for e in range(na):
            t.pair_q[e], t.pair_v[e] = q[fa + e], v[fa + e]
        for e in range(nb):
            t.pair_q[na + e], t.pair_v[na + e] = q[fb + e], v[fb + e]
        call_kernel(t.kernel[s], t.pair_q, t.pair_v, t.pair_parameters + t.parameter_ptr[s], t.pair_out, t.pair_out)
        for e in range(na):
            force[fa + e] += t.pair_out[e]
        for e in range(nb):
            force[fb + e] += t.pair_out[na + e]
        for e in range(t.n_energy_terms):
            force[energy_terms + e] += t.pair_out[na + nb + e]


@lowered
def _spheres_overlap(t: NeighbourListArrays, i: int, j: int) -> bool:
    """Return True if the bounding spheres of two shapes overlap."""
    contact_distance = t.bounding_radius[i] + t.bounding_radius[j]
    return not _distance2(t, i, j) > contact_distance * contact_distance


@lowered
def _overlaps_large(t: NeighbourListArrays, i: int, w: int) -> bool:
    """Return True if a shape overlaps a large shape or plane."""
    if t.is_plane[i]:
        return _below_plane(t, i, w)
    if t.is_plane[w]:
        return _below_plane(t, w, i)
    return _spheres_overlap(t, i, w)


@lowered
def _below_plane(t: NeighbourListArrays, plane: int, i: int) -> bool:
    """Return True if the bounding sphere of a shape reaches below a plane."""
    normal, x = t.planes + 4 * plane, t.x + 3 * i
    return not normal[0] * x[0] + normal[1] * x[1] + normal[2] * x[2] - normal[3] > t.bounding_radius[i]


@lowered
def contact_forces(q: F64Array, v: F64Array, time: F64Array, t: NeighbourListArrays, force: F64Array) -> None:
    """Evaluate the forces of all contacts, followed by their energy terms."""
    for e in range(t.n_coordinates + t.n_energy_terms * (t.group[t.n_members] + 1)):
        force[e] = 0.0
    displacement2 = _update_centres(t, q)
    if t.counters[N_PAIRS] < 0 or not 4.0 * displacement2 <= t.skin * t.skin or not t.counters[N_REBUILDS]:
        _rebuild_list(t)
    is_full = t.counters[N_PAIRS] < 0
    _update_angular_velocities(t, q, v)
    for i in range(t.n_members):
        if is_full and t.cell_of[i] >= 0:  # the list has overflowed
            for n in range(t.n_small):
                j = t.small[n]
                t.counters[N_TESTS] += j > i
                if j > i and _spheres_overlap(t, i, j) and _is_pair_allowed(t, i, j):
                    _eval_pair(t, i, j, q, v, force)
        elif t.cell_of[i] >= 0:
            t.counters[N_TESTS] += t.neighbour_ptr[i + 1] - t.neighbour_ptr[i]
            for n in range(t.neighbour_ptr[i], t.neighbour_ptr[i + 1]):
                j = t.neighbours[n]
                if _spheres_overlap(t, i, j):
                    _eval_pair(t, i, j, q, v, force)
        is_small = t.cell_of[i] >= 0
        t.counters[N_TESTS] += t.n_large
        for n in range(t.n_large):
            w = t.large[n]
            # a large and a small shape are paired once; two large shapes where the first one is i
            if (is_small or w > i) and _overlaps_large(t, i, w):
                a, b = min(i, w), max(i, w)
                if _is_pair_allowed(t, a, b):
                    _eval_pair(t, a, b, q, v, force)
    _apply_torques(t, q, force)


compile_unit(contact_forces)
