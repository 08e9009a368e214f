"""Effective inertias of joints: reciprocals of the diagonal of the inverse mass matrix in the reference pose.

MJCF specifies stiffness and damping relative to them (`springdamper`, `dampratio`).
"""

from __future__ import annotations

import numpy as np

from livens.multibody.imports.robot_description import JointDof, RobotDescription

_DOFS = {"hinge": 1, "slide": 1, "ball": 3, "free": 6}


def effective_joint_inertias(robot: RobotDescription) -> dict[str, float]:
    """Return the effective inertia of every joint, in kg m^2 or kg, with armatures and without loop closures.

    That of a ball joint is the reciprocal of the mean over its three axes.
    """
    poses, columns = robot.poses(), dict[str | None, list[int]]({None: []})
    dofs: list[tuple[JointDof, np.ndarray, bool, np.ndarray]] = []  # direction, and True for a rotation about a point
    for link in robot.links.values():
        columns[link.name] = [*columns[link.parent]]
        pose = poses[link.name]
        for dof in link.dofs:
            axes = [pose.rotation @ dof.axis] if _DOFS[dof.dof_type] == 1 else list(pose.rotation.T)
            turns = [dof.dof_type != "slide"] * len(axes)
            if dof.dof_type == "free":
                axes, turns = [*np.eye(3), *axes], [False] * 3 + turns
            columns[link.name] += range(len(dofs), len(dofs) + len(axes))
            dofs += [(dof, axis, turn, pose.point(dof.point)) for axis, turn in zip(axes, turns, strict=True)]
    if not dofs:
        return {}
    M = np.diag([dof.armature for dof, *_ in dofs])
    for link in robot.links.values():
        used = columns[link.name]
        if link.mass is None or not used:
            continue
        inertia = link.mass.transformed(poses[link.name].position, poses[link.name].rotation)
        rotation = np.array([axis if turn else np.zeros(3) for _, axis, turn, _ in (dofs[j] for j in used)])
        translation = np.array(
            [
                np.cross(axis, inertia.centre - point) if turn else axis
                for _, axis, turn, point in (dofs[j] for j in used)
            ]
        )
        M[np.ix_(used, used)] += inertia.mass * translation @ translation.T + rotation @ inertia.tensor @ rotation.T
    inverse = np.diag(np.linalg.pinv(M, hermitian=True))
    of_joint: dict[str, list[float]] = {}
    for (dof, *_), value in zip(dofs, inverse, strict=True):
        of_joint.setdefault(dof.name, []).append(float(value))
    return {name: 1 / float(np.mean(values)) for name, values in of_joint.items() if np.mean(values) > 0}
