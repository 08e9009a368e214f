"""Neighbour list of the detected contacts of one run: its arrays, its parameters, and a warning of tunnelling."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.collision import CELLS_PER_MEMBER, NeighbourListArrays, contact_forces
from livens.engine.newton.iteration import StepKernels
from livens.errors import InputError, LivensWarning
from livens.models.contact_detection import ENERGY_TERMS, DetectedContacts

#: Capacity of the list per shape; if it overflows, all pairs are tested.
_MAX_NEIGHBOURS = 200


def neighbour_list_arrays(detected: DetectedContacts, k: np.ndarray) -> tuple[NeighbourListArrays, list[NativeCode]]:
    """Return the arrays of the compiled loops for the parameters of one run, and the code that they refer to."""
    members, d = detected.proxies, detected.dimension
    n_members, n_types = len(members), max(member.shape_class for member in members) + 1
    general = {point.kernel for points in detected.pair_points.values() for point in points if point.sphere is None}
    codes = {kernel: compile_function_kernel(detected.kernels[kernel], "touch") for kernel in sorted(general)}
    kernel_ptr, functions, swapped, parameter_ptr, pair_parameters = [0], [], [], [], []
    group_parameters = {group: k[list(member.parameter_indices)] for group, member in enumerate(detected.groups)}
    group_of = {member.shape_class: member.group for member in members}
    offset = 0
    for a in range(n_types):
        for b in range(n_types):
            for pair_contact in detected.pair_points.get((a, b), ()):
                row = np.concatenate([pair_contact.parameters, group_parameters[group_of[a]]])
                if pair_contact.sphere is not None:
                    row = pair_contact.sphere.parameter_row(row)
                functions.append(0 if pair_contact.sphere is not None else codes[pair_contact.kernel].address)
                swapped.append(int(pair_contact.swapped))
                parameter_ptr.append(offset)
                pair_parameters.append(row)
                offset += row.size
            kernel_ptr.append(len(functions))
    sphere_classes = {
        shape_class
        for pair, points in detected.pair_points.items()
        if any(point.sphere is not None for point in points)
        for shape_class in pair
    }
    large = set(detected.unbounded)
    small = [i for i in range(n_members) if i not in large]
    excluded_ptr, excluded = _excluded_pairs(detected)
    planes = np.zeros((n_members, 4))
    for row, member in zip(planes, members, strict=True):
        if member.plane is not None:
            row[:d], row[3] = member.plane[:d], member.plane[d]
    max_pairs = int(min(n_members * (n_members - 1) // 2 + 1, _MAX_NEIGHBOURS * n_members))
    centre_offset = np.zeros((n_members, 3))
    centre_offset[:, :d] = [member.local_position for member in members]
    width = max(member.n_dofs for member in members)
    arrays = NeighbourListArrays(
        n_coordinates=detected.size,
        n_energy_terms=len(ENERGY_TERMS),
        n_members=n_members,
        n_types=n_types,
        dimension=d,
        first_coordinate=_integers([member.first_dof for member in members]),
        n_member_coordinates=_integers([member.n_dofs for member in members]),
        centre_offset=centre_offset,
        has_offset=_integers(centre_offset.any(axis=1)),
        bounding_radius=np.array([member.bounding_radius for member in members]),
        group=_integers([*(member.group for member in members), len(detected.groups) - 1]),
        shape_type=_integers([member.shape_class for member in members]),
        small=_integers(small),
        n_small=len(small),
        large=_integers(sorted(large)),
        n_large=len(large),
        is_plane=_integers([member.plane is not None for member in members]),
        planes=planes,
        excluded_ptr=excluded_ptr,
        excluded=excluded,
        pair_kernel_ptr=_integers(kernel_ptr),
        kernel=_integers(functions),
        swapped=_integers(swapped),
        parameter_ptr=_integers(parameter_ptr),
        pair_parameters=np.concatenate([*pair_parameters, np.zeros(1)]),
        skin=max(group.margin for group in detected.groups),
        max_pairs=max_pairs,
        x=np.zeros(3 * n_members),
        x_at_rebuild=np.zeros(3 * n_members),
        neighbour_ptr=np.zeros(n_members + 1, dtype=np.int64),
        neighbours=np.empty(max_pairs + 1, dtype=np.int64),
        counters=np.zeros(4, dtype=np.int64),
        cells=np.ones(3, dtype=np.int64),
        lower=np.zeros(6),
        cell_head=np.empty(CELLS_PER_MEMBER * n_members + 9, dtype=np.int64),
        cell_next=np.full(n_members, -1, dtype=np.int64),
        cell_of=np.full(n_members, -1, dtype=np.int64),
        is_sphere=_integers([member.n_dofs > 0 and member.shape_class in sphere_classes for member in members]),
        angular_velocity=np.zeros(3 * n_members),
        torque=np.zeros(3 * n_members),
        pair_q=np.zeros(2 * width + 1),
        pair_v=np.zeros(2 * width + 1),
        pair_out=np.zeros(2 * width + len(ENERGY_TERMS)),
    )
    return arrays, list(codes.values())


def _excluded_pairs(detected: DetectedContacts) -> tuple[np.ndarray, np.ndarray]:
    """Return CSR lists of excluded pairs: shapes of the same body, or of bodies connected by a joint."""
    members_of_body: dict[int, list[int]] = {}
    for i, member in enumerate(detected.proxies):
        members_of_body.setdefault(member.body, []).append(i)
    excluded_bodies: dict[int, set[int]] = {body: {body} for body in members_of_body}
    for a, b in detected.excluded_pairs:
        if a in excluded_bodies and b in excluded_bodies:
            excluded_bodies[a].add(b)
            excluded_bodies[b].add(a)
    excluded_ptr, excluded = [0], list[int]()
    for i, member in enumerate(detected.proxies):
        excluded += sorted(j for body in excluded_bodies[member.body] for j in members_of_body[body] if j > i)
        excluded_ptr.append(len(excluded))
    return _integers(excluded_ptr), _integers(excluded)


def _integers(values: object) -> np.ndarray:
    array = np.array(values, dtype=np.int64).ravel()
    return array if array.size else np.zeros(1, dtype=np.int64)


class NeighbourList:
    """Neighbour list of the detected contacts of one run."""

    def __init__(self, detected: DetectedContacts, k: np.ndarray) -> None:
        self.arrays, self._codes = neighbour_list_arrays(detected, k)
        self._parameter_indices = sorted({i for group in detected.groups for i in group.parameter_indices})
        self._parameters = k[self._parameter_indices]
        moving = [proxy for proxy in detected.proxies if proxy.n_dofs and np.isfinite(proxy.bounding_radius)]
        self._moving = np.array([proxy.first_dof for proxy in moving], dtype=np.int64)
        self._bounding_radii = np.array([proxy.bounding_radius for proxy in moving])
        self._group_names, self._is_reported = [detected.groups[proxy.group].name for proxy in moving], False
        self.address = contact_forces.address  # type: ignore[attr-defined]  # attribute of a lowered function

    def require_parameters(self, k: np.ndarray) -> None:
        """Raise an error if the parameters of contact groups differ from those of the neighbour list."""
        if not np.array_equal(k[self._parameter_indices], self._parameters):
            raise InputError("parameters of contact groups cannot change during a run")

    def report_tunnelling(self, v: np.ndarray, h: float) -> None:
        """Issue a warning, once, if a body moves by more than its bounding radius in a step, for rows of velocities."""
        if self._is_reported or not self._moving.size:
            return
        speeds = np.sqrt(sum(v[:, self._moving + axis] ** 2 for axis in range(self.arrays.dimension)))
        is_fast = (speeds * h > self._bounding_radii).any(axis=0)
        if is_fast.any():
            self._is_reported, first = True, int(np.argmax(is_fast))
            warnings.warn(
                f"{self._group_names[first]}: a body moves at {speeds[:, first].max():.3g} m/s by more than its "
                f"bounding radius ({self._bounding_radii[first]:.3g} m) in a step: it may pass through others without "
                "contact: use smaller steps",
                LivensWarning,
                stacklevel=2,
            )

    def __call__(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the forces on all coordinates in a state, followed by the energy terms."""
        t = self.arrays
        forces = np.zeros(t.n_coordinates + t.n_energy_terms * (int(t.group[t.n_members]) + 1))
        contact_forces(np.ascontiguousarray(q), np.ascontiguousarray(v), np.zeros(1), t, forces)
        return forces


def bind_contacts(kernels: StepKernels, neighbours: NeighbourList | None) -> StepKernels:
    """Return the kernels of a step with the contacts of one run as external force."""
    return (
        kernels
        if neighbours is None
        else replace(kernels, external_force=neighbours.address, external_data=neighbours.arrays.address)
    )
