"""Arrays of the tree tier for one run: records of bodies, force laws and output indices from a model's parameters."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.arrays import aligned_zeros
from livens.engine.codegen.jit import NativeCode
from livens.engine.trees import records as r
from livens.engine.trees.closure_kernels import ClosureKernels, closure_kernels
from livens.engine.trees.force_kernels import force_kernels
from livens.engine.trees.law_kernels import law_kernels
from livens.engine.trees.output import JOINT_FLOATS, JOINT_INTS, OutputArrays, joint_rates
from livens.models.director_bodies import DirectorBodyDofs, inertia_function
from livens.models.system import System
from livens.multibody.spanning_tree import BodyForce, SpanningTree, TreeJoint, joint_type_name
from livens.schemes.discretization.rigid_body_equations import BODY_ANGULAR_MOMENTA
from livens.schemes.discretization.rigid_body_kernels import RigidBodyScheme
from livens.schemes.energy_momentum.base import EnergyMomentum

if TYPE_CHECKING:
    from livens.expressions.state_layout import Layout

#: Joints with several degrees of freedom: types of the massless bodies, with the axis on the first body.
_CARRIAGES: dict[str, tuple[tuple[int, int], ...]] = {
    "cylindrical": ((r.PRISMATIC, 2),),
    "planar": ((r.PRISMATIC, 0), (r.PRISMATIC, 1)),
    "universal": ((r.REVOLUTE, 0),),
    "screw": ((r.PRISMATIC, 2),),
}
_JOINT_TYPES = dict(
    free=r.FREE, revolute=r.REVOLUTE, prismatic=r.PRISMATIC, spherical=r.SPHERICAL, fixed=r.FIXED,
    scalar=r.PRISMATIC, cylindrical=r.REVOLUTE, planar=r.REVOLUTE, universal=r.REVOLUTE, screw=r.REVOLUTE,
)  # fmt: skip

#: Kernels of a force: forces or wrenches with their derivatives, and work.
Kernels = tuple[NativeCode, NativeCode]


@dataclass(frozen=True)
class _Node:
    """Body of the tree: type of its joint, parent node, tree joint, and model body (negative: massless)."""

    joint_type: int
    parent: int
    tree_joint: TreeJoint
    model_body: int
    axis: int  # axis of a massless body on the first body
    is_first: bool  # first body of its chain


class TreeModel:
    """Tree of a system with the kernels of its force laws; parameters are set by `set_parameters`."""

    def __init__(self, system: System, tree: SpanningTree, layout: Layout, scheme: RigidBodyScheme) -> None:
        self.system, self.tree, self.layout = system, tree, layout
        self._geometry_values = np.zeros(0)  # parameters in the records
        self._nodes = _nodes(tree)
        self._drivers = {armature.rotor: armature.body for armature in tree.armatures}
        node_of_body = {node.model_body: i for i, node in enumerate(self._nodes) if node.model_body >= 0}
        n = len(self._nodes)
        self._scheme = scheme
        self._set_laws(node_of_body)
        self._codes, self._force_codes = self.kernels()
        force_sizes = [2 + len(system.element_parameters[force.element_index]) for force in tree.forces]
        sizes = [r.N_UNKNOWNS[node.joint_type] for node in self._nodes]
        closures = self._closure_arrays(scheme, node_of_body, sum(sizes))
        tails, last = [], n - 1
        for i in reversed(range(n)):
            last = i if self._nodes[i].model_body >= 0 else last
            tails.append(last)
        spin_starts = np.cumsum([0, *(frame.n_rot for frame in system.frames)])[:-1].tolist()
        self.arrays = r.TreeArrays(
            dimension=2 if any(frame.dimension == 2 for frame in system.frames) else 3,
            n_bodies=n,
            n_driven=n - len(tree.armatures),
            n_unknowns=sum(sizes) + tree.n_multipliers,
            n_real=len(system.frames),
            joint_type=np.array([node.joint_type for node in self._nodes], dtype=np.int64),
            parent=np.array([node.parent if node.parent >= 0 else n for node in self._nodes], dtype=np.int64),
            model_body=np.array([*(node.model_body for node in self._nodes), r.GROUND], dtype=np.int64),
            tail=np.array(tails[::-1], dtype=np.int64),
            unknown_ptr=np.cumsum([0, *sizes], dtype=np.int64),
            spin_ptr=np.array(
                [start if frame.n_rot else -1 for frame, start in zip(system.frames, spin_starts, strict=True)],
                dtype=np.int64,
            ),
            driver=np.array(
                [node_of_body.get(self._drivers.get(node.model_body, -1), -1) for node in self._nodes], dtype=np.int64
            ),
            records=aligned_zeros((n + 1) * r.STRIDE),
            newton=aligned_zeros(8),
            law_of_body=self._law_of_node,
            law_sign=self._law_sign,
            law_ptr=self._law_ptr,
            law_kernel=np.array([code.address for code, _ in self._codes], dtype=np.int64),
            law_work_kernel=np.array([code.address for _, code in self._codes], dtype=np.int64),
            law_inputs_ptr=np.cumsum([0, *self._law_sizes], dtype=np.int64),
            law_inputs=np.zeros(sum(self._law_sizes) + 1),
            law_records=aligned_zeros((len(self._law_ptr)) * r.LAW_STRIDE),
            n_laws=len(self._codes),
            n_forces=len(tree.forces),
            force_body=np.array([node_of_body[force.body] for force in tree.forces], dtype=np.int64),
            force_kernel=np.array([code.address for code, _ in self._force_codes], dtype=np.int64),
            force_work_kernel=np.array([code.address for _, code in self._force_codes], dtype=np.int64),
            force_inputs_ptr=np.cumsum([0, *force_sizes], dtype=np.int64),
            force_inputs=np.zeros(sum(force_sizes) + 1),
            force_outputs=aligned_zeros(64),
            n_joint_unknowns=sum(sizes),
            **closures,
        )
        self._records = self.arrays.records.reshape(n + 1, r.STRIDE)
        self._records[n, [r.F, r.R, r.R + 5, r.R + 10]] = 1.0  # the ground
        self.output = self._output_arrays(node_of_body)

    def _closure_arrays(
        self, scheme: RigidBodyScheme, node_of_body: dict[int, int], n_joint_unknowns: int
    ) -> dict[str, Any]:
        """Compile the kernels of all closures, and return the arrays of closures."""
        system, closures = self.system, self.tree.closures
        ints = np.zeros((len(closures), r.CLOSURE_INTS), dtype=np.int64)
        bodies, entries, paths, self._closure_codes = list[int](), list[int](), list[int](), list[ClosureKernels]()
        n_data = n_inputs = column = 0
        unknown = n_joint_unknowns
        for row, closure in zip(ints, closures, strict=True):
            dofs = {dof: i for i, dof in enumerate(system.element_dofs[closure.element_index])}
            coordinates = (spatial_coordinates(system.frames[body]) for body in closure.bodies)
            local_dofs = tuple(tuple(dofs.get(i, -1) for i in of_body) for of_body in coordinates)
            code = closure_kernels(scheme, system.element_types[closure.element_index], local_dofs, closure.rows)
            self._closure_codes.append(code)
            n, m, n_coupled = len(closure.bodies), len(closure.rows), len(code.coupled)
            pose = n_data + 8 * n + -(-m // 4) * 4
            columns = n * r.WRENCH_AND_BLOCKS + -(-m // 4) * 4
            row[: r.C_COLUMN + 1] = n, len(bodies), n_coupled, len(entries), m, unknown, column
            row[r.C_INPUTS : r.C_OUTPUTS + 1] = n_inputs, n_data, pose, pose + 16 * n
            row[r.C_CONSTRAINTS : r.C_ROWS + 1] = n * r.WRENCH_AND_BLOCKS, columns, columns + 8 * n * m
            path = self._path_to_roots([node_of_body[body] for body in closure.bodies])
            row[r.C_STEP : r.C_PATH] = (
                code.step.address,
                code.work.address,
                code.residuals.address,
                code.n_position_residuals,
                code.n_velocity_residuals,
            )
            row[r.C_PATH :] = len(paths), len(path)
            paths += path
            bodies += [node_of_body[body] for body in closure.bodies]
            entries += [entry for pair in code.coupled for entry in pair]
            unknown, column = unknown + m, column + n_coupled + m
            n_residuals = code.n_position_residuals + code.n_velocity_residuals
            n_data = pose + 16 * n + -(-max(code.n_outputs, n_residuals + 1, 8) // 4) * 4
            n_inputs += 2 + len(system.element_parameters[closure.element_index])
        active = self._path_to_roots(bodies)
        return dict(
            n_closures=len(closures),
            n_columns=column,
            closures=ints.ravel(),
            closure_bodies=np.array(bodies, dtype=np.int64),
            closure_entries=np.array(entries, dtype=np.int64),
            closure_inputs=np.zeros(n_inputs + 1),
            closure_data=aligned_zeros(n_data + 4),
            n_active=len(active),
            active=np.array(active, dtype=np.int64),
            closure_paths=np.array(paths, dtype=np.int64),
            schur=aligned_zeros(column * (column + 2) + 1),
        )

    def _path_to_roots(self, nodes: list[int]) -> list[int]:
        """Return nodes and their predecessors in topological order."""
        path = set[int]()
        for node in nodes:
            while node >= 0 and node not in path:
                path.add(node)
                node = self._nodes[node].parent
        return sorted(path)

    def kernels(self, width: int = 1) -> tuple[list[Kernels], list[Kernels]]:
        """Return the kernels of force laws and of forces on single bodies, for a number of lanes."""
        types, force_scheme = self.system.element_types, self._scheme.force_scheme()
        assert isinstance(force_scheme, EnergyMomentum)
        gradient = force_scheme.gradient.inner
        return [law_kernels(types[law.element_index], gradient, width) for law in self._laws], [
            force_kernels(self._scheme, types[force.element_index], self._local_dofs(force), width)
            for force in self.tree.forces
        ]

    def _set_laws(self, node_of_body: dict[int, int]) -> None:
        """Group the force laws by the node on whose coordinate they act."""
        by_node: dict[int, list[int]] = {}
        for i, law in enumerate(self.tree.laws):
            node = node_of_body[law.body]
            if not law.rotational and self._nodes[node].joint_type != r.PRISMATIC:
                node = self._nodes[node].parent  # carriage of a cylindrical joint
            by_node.setdefault(node, []).append(i)
        self._laws = [self.tree.laws[i] for members in by_node.values() for i in members]
        self._law_nodes = list(by_node)
        self._law_ptr = np.cumsum([0, *(len(members) for members in by_node.values())], dtype=np.int64)
        self._law_of_node = np.full(len(self._nodes), -1, dtype=np.int64)
        self._law_sign = np.array([-1.0 if node.tree_joint.is_reversed else 1.0 for node in self._nodes])
        for index, node in enumerate(by_node):
            self._law_of_node[node] = index
        self._law_sizes = [2 + len(self.system.element_parameters[law.element_index]) for law in self._laws]

    def _local_dofs(self, force: BodyForce) -> tuple[int, ...]:
        """Return the coordinates of a force element within those of its body."""
        coordinates = spatial_coordinates(self.system.frames[force.body])
        return tuple(coordinates.index(i) for i in self.system.element_dofs[force.element_index])

    # -- parameters --------------------------------------------------------------------------------------------------
    def _named(self, element_index: int, k: np.ndarray) -> dict[str, np.ndarray]:
        """Return the parameters of an element by name, with those shared by all elements."""
        system, n_shared = self.system, self.system.model_parameters.size
        values = k[list(system.element_parameters[element_index])]
        parameters = system.elements[element_index].parameters
        return system.model_parameters.unpack(values[:n_shared]) | parameters.unpack(values[n_shared:])

    def _geometry(self, tree_joint: TreeJoint, k: np.ndarray) -> dict[str, np.ndarray]:
        """Return joint positions X, Y and axes A, B (columns) on the first and on the second body, in space.

        The third axis is the normal of a plane, or the sliding axis of a prismatic joint in the plane.
        """
        if tree_joint.joint is None:
            return dict(X=np.zeros(3), Y=np.zeros(3), A=np.eye(3), B=np.eye(3))
        geometry = {name: np.array(value, dtype=float) for name, value in tree_joint.joint.parameters.items()}
        for name, value in self._named(tree_joint.element_index, k).items():
            if name in geometry:
                geometry[name] = np.array(value, dtype=float)
            elif name[:-1] in ("X", "Y") and name[-1] in "123":
                geometry[name[0]][int(name[1]) - 1] = value
        if len(geometry["X"]) == 3:
            return geometry
        columns = [i - 1 for i in _axis_numbers(tree_joint)]
        for name in ("A", "B"):
            axes = np.eye(3)
            axes[:2, :2] = geometry[name]
            geometry[name] = np.empty((3, 3))
            geometry[name][:, columns] = axes
        return geometry | {name: np.append(geometry[name], 0.0) for name in ("X", "Y")}

    def set_parameters(self, k: np.ndarray) -> None:
        """Set masses, inertias, geometry and the parameters of force laws."""
        system, records = self.system, self._records
        structural = k[self._structural]
        if self._geometry_values.size and (structural == self._geometry_values).all():
            self.set_law_parameters(k)
            return
        self._geometry_values = structural
        for i, node in enumerate(self._nodes):
            record = records[i]
            if node.model_body >= 0:
                frame = system.frames[node.model_body]
                mass, euler = inertia_function(system, frame)(k[list(system.element_parameters[frame.element_index])])
                record[r.MASS] = float(mass)
                if frame.dimension == 1:  # a body without inertia that slides along the first axis
                    record[r.AXIS_A] = record[r.AXIS_B] = record[r.A1 + 1] = record[r.A2 + 2] = 1.0
                    _set_matrix(record, r.RELATIVE, np.eye(3))
                    continue
                E, n = np.zeros((3, 3)), frame.dimension
                E[:n, :n] = euler
                J, inverse = np.trace(E) * np.eye(3) - E, np.zeros((3, 3))
                inverse[3 - frame.n_rot :, 3 - frame.n_rot :] = np.linalg.inv(J[3 - frame.n_rot :, 3 - frame.n_rot :])
                _set_matrix(record, r.J, J)
                _set_matrix(record, r.J_INV, inverse)
                weight = self.tree.weights.get(node.model_body)
                if weight is not None:
                    named = self._named(weight, k)
                    record[r.WEIGHT : r.WEIGHT + n] = named["mass"] * named["gravity"]
            if node.joint_type not in (r.FREE, r.ROTOR) and not node.tree_joint.is_scalar:
                self._set_geometry(record, node, self._geometry(node.tree_joint, k))
        law_records = self.arrays.law_records.reshape(-1, r.LAW_STRIDE)
        for index, i in enumerate(self._law_nodes):
            geometry = self._geometry(self._nodes[i].tree_joint, k)
            for offset, axis in ((r.LAW_A1, geometry["A"][:, 0]), (r.LAW_A2, geometry["A"][:, 1])):
                law_records[index, offset : offset + 3] = axis
            law_records[index, r.LAW_B1 : r.LAW_B1 + 3] = geometry["B"][:, 0]
        self.set_law_parameters(k)
        floats = self.output.joint_floats.reshape(-1, JOINT_FLOATS)
        jointed = (tree_joint for tree_joint in self.tree.joints if tree_joint.joint is not None)
        for j, tree_joint in enumerate(jointed):
            geometry = self._geometry(tree_joint, k)
            _set_matrix(floats[j], 0, geometry["A"])
            _set_matrix(floats[j], 12, geometry["B"])

    def set_law_parameters(self, k: np.ndarray) -> None:
        """Set the parameters of force laws and forces, such as inputs and commands of controllers."""
        for inputs, entries, indices in self._law_entries:
            inputs[entries] = k[indices]

    @functools.cached_property
    def _law_entries(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Inputs of force laws and of forces: arrays, their entries, and indices of the parameters."""
        t, parameters, entries = self.arrays, self.system.element_parameters, []
        laws, forces, closures = (
            [part.element_index for part in parts] for parts in (self._laws, self.tree.forces, self.tree.closures)
        )
        closure_starts = t.closures.reshape(-1, r.CLOSURE_INTS)[:, r.C_INPUTS]
        for inputs, starts, elements in (
            (t.law_inputs, t.law_inputs_ptr.tolist(), laws),
            (t.force_inputs, t.force_inputs_ptr.tolist(), forces),
            (t.closure_inputs, closure_starts.tolist(), closures),
        ):
            targets = [
                start + 2 + i for start, e in zip(starts, elements, strict=False) for i in range(len(parameters[e]))
            ]
            sources = [i for element in elements for i in parameters[element]]
            if targets:
                entries.append((inputs, np.array(targets, dtype=np.int64), np.array(sources, dtype=np.int64)))
        return entries

    @functools.cached_property
    def _structural(self) -> np.ndarray:
        """Indices of the parameters of bodies, joints and weights, with those shared by all elements."""
        elements = [frame.element_index for frame in self.system.frames] + list(self.tree.weights.values())
        elements += [joint.element_index for joint in self.tree.joints if joint.joint is not None]
        return np.unique([i for element in elements for i in self.system.element_parameters[element]]).astype(np.int64)

    def _set_geometry(self, record: np.ndarray, node: _Node, geometry: dict[str, np.ndarray]) -> None:
        X, Y, A, B = (geometry[name] for name in "XYAB")
        first = A
        if node.tree_joint.is_reversed:
            X, Y, A, B = Y, X, B, A
        if node.is_first:
            record[r.X : r.X + 3] = X
        if node.model_body < 0:
            record[r.AXIS_A : r.AXIS_A + 3] = record[r.AXIS_B : r.AXIS_B + 3] = A[:, node.axis]
            _set_matrix(record, r.RELATIVE, np.eye(3))
            return
        axis = 1 if joint_type_name(node.tree_joint) == "universal" else 2
        record[r.Y : r.Y + 3] = Y
        record[r.AXIS_A : r.AXIS_A + 3], record[r.AXIS_B : r.AXIS_B + 3] = A[:, axis], B[:, axis]
        record[r.A1 : r.A1 + 3], record[r.A2 : r.A2 + 3] = first[:, 0], first[:, 1]
        _set_matrix(record, r.RELATIVE, A @ B.T)

    # -- output ------------------------------------------------------------------------------------------------------
    def _output_arrays(self, node_of_body: dict[int, int]) -> OutputArrays:
        system, layout, n = self.system, self.layout, len(self._nodes)
        jointed = [tree_joint for tree_joint in self.tree.joints if tree_joint.joint is not None]
        elements = {armature.rotor: armature.element_index for armature in self.tree.armatures}
        rotors = (node.model_body for node in self._nodes[self.arrays.n_driven :])
        ints = np.full((len(jointed), JOINT_INTS), -1, dtype=np.int64)
        for j, tree_joint in enumerate(jointed):
            joint_type, child = tree_joint.joint.joint_type, node_of_body[tree_joint.body]  # type: ignore[union-attr]
            parent = n if tree_joint.parent < 0 else node_of_body[tree_joint.parent]
            ends = (child, parent) if tree_joint.is_reversed else (parent, child)
            is_prismatic = self._nodes[child].joint_type == r.PRISMATIC
            law, carriage = int(self._law_of_node[child]), self._nodes[child].parent
            has_carriage = not is_prismatic and carriage >= 0 and self._nodes[carriage].model_body == r.CARRIAGE
            slide_law = law if is_prismatic else int(self._law_of_node[carriage]) if has_carriage else -1
            start = system.element_constraints[tree_joint.element_index].start
            numbers = _axis_numbers(tree_joint)
            locked = [numbers[i - 1] for i in joint_type.locked_translations]
            orthogonal = [numbers[i - 1] for pair in joint_type.orthogonal_axes for i in pair]
            head = [*ends, child, 0 if tree_joint.is_reversed else 1, start, -1 if is_prismatic else law, slide_law]
            ints[j, :9] = [*head, len(locked), len(orthogonal) // 2]
            ints[j, 9 : 9 + len(locked)] = locked
            ints[j, 12 : 12 + len(orthogonal)] = orthogonal
        return OutputArrays(
            n_state=layout.size,
            q=layout["q"].start,
            v=layout["v"].start,
            p=layout["p"].start,
            supplied=layout["supplied_energy"].start,
            multipliers=layout["multipliers"].start,
            n_multipliers=system.m,
            spins=layout[BODY_ANGULAR_MOMENTA].start,
            dofs=np.array([spatial_coordinates(frame) for frame in system.frames], dtype=np.int64).ravel(),
            n_joints=len(jointed),
            joint_ints=ints.ravel(),
            joint_floats=aligned_zeros(max(1, len(jointed)) * JOINT_FLOATS),
            n_closure_multipliers=self.tree.n_multipliers,
            closure_constraints=np.array(
                [
                    system.element_constraints[closure.element_index].start + row
                    for closure in self.tree.closures
                    for row in closure.rows
                ],
                dtype=np.int64,
            ),
            armature_constraints=np.array(
                [system.element_constraints[elements[rotor]].start for rotor in rotors], dtype=np.int64
            ),
        )

    # -- states ------------------------------------------------------------------------------------------------------
    def compact_state(self, z: np.ndarray) -> np.ndarray:
        """Return the compact state of a full state: centre, rotation matrix and momenta of each body."""
        return self.compact_states(z[None, :])[0]

    def compact_states(self, Z: np.ndarray) -> np.ndarray:
        """Return the compact states of full states, one per row."""
        o, spin_ptr, n_rows = self.output, self.arrays.spin_ptr, len(Z)
        states = np.empty((n_rows, self.arrays.n_real, r.COMPACT))
        states[:, :, :12], states[:, :, 12:15] = self._poses(Z, o.q), self._poses(Z, o.p, 0.0)[:, :, :3]
        first = 15 if self.arrays.dimension == 3 else 17
        spins = Z[:, o.spins + np.maximum(spin_ptr, 0)[:, None] + np.arange(18 - first)]
        states[:, :, 15:first] = 0.0
        states[:, :, first:] = np.where(spin_ptr[:, None] >= 0, spins, 0.0)
        return states.reshape(n_rows, -1)

    def _poses(self, Z: np.ndarray, start: int, diagonal: float = 1.0) -> np.ndarray:
        """Return a block of full states by row and body: centre and directors, fixed for bodies with one coordinate."""
        dofs = self.output.dofs.reshape(-1, 12)
        values = Z[:, start + np.maximum(dofs, 0)]
        values[:, dofs < 0] = 0.0
        fixed_bodies, fixed_entries = np.nonzero(dofs[:, [3, 7, 11]] < 0)
        values[:, fixed_bodies, 3 + 4 * fixed_entries] = diagonal
        return np.asarray(values)

    def initial_unknowns(self, z: np.ndarray) -> np.ndarray:
        """Return the rates of all joints for the velocities of a full state, and the multipliers of closures."""
        x = np.zeros(self.arrays.n_unknowns)
        joint_rates(self.arrays, self.output, np.ascontiguousarray(z, dtype=float), self.compact_state(z), x)
        return x


def spatial_coordinates(frame: DirectorBodyDofs) -> list[int]:
    """Return the indices of centre and directors of a body in space; -1 if it does not have the coordinate."""
    parts = [list(part) for part in (frame.position, *frame.directors)]
    return [i for part in [*parts, *[[]] * 3][:4] for i in [*part, *[-1] * 3][:3]]


def _axis_numbers(tree_joint: TreeJoint) -> tuple[int, int, int]:
    """Return the number of each joint axis in space: the third one is the rotation axis or the sliding axis."""
    return (3, 1, 2) if tree_joint.dimension == 2 and joint_type_name(tree_joint) == "prismatic" else (1, 2, 3)


def _nodes(tree: SpanningTree) -> list[_Node]:
    """Return the bodies of the tree, massless ones included, in topological order."""
    nodes: list[_Node] = []
    node_of_body, rotors = {-1: -1}, {armature.rotor for armature in tree.armatures}
    for tree_joint in tree.joints:
        name, parent = joint_type_name(tree_joint), node_of_body[tree_joint.parent]
        carriages = _CARRIAGES.get(name, ())
        massless = r.CROSS if name == "universal" else r.CARRIAGE
        for i, (joint_type, axis) in enumerate(carriages):
            nodes.append(_Node(joint_type, parent, tree_joint, massless, axis, i == 0))
            parent = len(nodes) - 1
        joint_type = r.ROTOR if tree_joint.body in rotors else _JOINT_TYPES[name]
        nodes.append(_Node(joint_type, parent, tree_joint, tree_joint.body, 2, not carriages))
        node_of_body[tree_joint.body] = len(nodes) - 1
    return nodes


def _set_matrix(record: np.ndarray, offset: int, matrix: np.ndarray) -> None:
    """Store a 3x3 matrix as three columns of four entries."""
    for j in range(3):
        record[offset + 4 * j : offset + 4 * j + 3] = matrix[:, j]
