"""Regrouping of inertia across joints: links without inertia about an axis receive some from their neighbours.

The equations of motion do not change if a hinge moves a point mass on its axis, or the tensor ``a (1 - e e^T)`` with
its axis e, from one of its links to the other: both links move this mass, and turn this tensor, in the same way. A
slide moves any tensor, as its links rotate together; a ball joint moves a point mass at its centre. Joint reactions
contain the forces on what was moved.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from livens.errors import InputError
from livens.multibody.imports.joint_composition import compose_joint
from livens.multibody.imports.link_inertia import LinkInertia, sum_inertias
from livens.multibody.imports.robot_description import JointDof, Link, RigidTransform, RobotDescription

if TYPE_CHECKING:
    from livens.multibody.imports.to_multibody import RigidCluster

#: Fractions of mass and smallest moment of inertia of a neighbour that are moved, tried in this order.
_FRACTIONS = (0.25, 0.05, 0.01, 2e-3)
#: Tolerance of the triangle inequality of principal moments, relative to the largest one.
TRIANGLE_TOLERANCE = 1e-9
#: Smallest principal moment of a link relative to the largest one.
_MIN_MOMENT = 1e-9


def split_joints(robot: RobotDescription, link: Link) -> list[str]:
    """Replace a link with several dofs by a chain of links with one dof each; return the names of the new links."""
    names: list[str] = []
    parent, pose, chain = link.parent, link.pose, dict[str, Link]()
    for dof in link.dofs[:-1]:
        name = f"{link.name} {dof.name}"
        chain[name] = Link(name, parent, pose, link.node, [dof])
        names.append(name)
        parent, pose = name, RigidTransform()
    link.parent, link.pose, link.dofs = parent, pose, link.dofs[-1:]
    links = dict[str, Link]()
    for name, other in robot.links.items():
        links |= ({} if other is not link else chain) | {name: other}
    robot.links = links
    return names


def links_without_inertia(
    robot: RobotDescription,
    clusters: Mapping[str | None, RigidCluster],
    poses: Mapping[str | None, RigidTransform],
) -> set[str]:
    """Return the names of moving links that need inertia; dofs that are no joint of the library are split.

    These are links in joints that cannot be composed, links without mass that have several children or close a loop,
    and links with an inertia tensor and no mass.
    """
    moving = [cluster for cluster in dict.fromkeys(clusters.values()) if cluster.root is not None]
    ends = {name for closure in robot.closures for name in (closure.body_a, closure.body_b)}
    n_children = collections.Counter(id(cluster.parent) for cluster in moving)
    receivers: set[str] = set()
    for cluster in moving:
        link, inertia = cluster.root, cluster.mass()
        assert link is not None
        is_end = any(clusters[name] is cluster for name in ends)
        if inertia is None and (n_children[id(cluster)] > 1 or (is_end and n_children[id(cluster)])):
            receivers |= {link.name, *split_joints(robot, link)}
        elif inertia is not None and not inertia.mass > 0:
            receivers.add(link.name)
        elif inertia is not None:
            chain, ancestor = [cluster], cluster.parent
            while ancestor is not None and ancestor.root is not None and ancestor.mass() is None:
                chain, ancestor = [ancestor, *chain], ancestor.parent
            links = [item.root for item in chain if item.root is not None]
            dofs = [dof.in_world(poses[item.name]) for item in links for dof in item.dofs]
            if not _is_composable(link, dofs) and all(dof.dof_type != "free" for dof in dofs):
                receivers |= {item.name for item in links[:-1]}
                receivers |= {name for item in links for name in split_joints(robot, item)}
    return receivers


def _is_composable(link: Link, chain: Sequence[JointDof]) -> bool:
    """Return True if a chain of dofs is one joint."""
    if len(chain) == 1:
        return True
    try:
        compose_joint(link, chain)
    except InputError:
        return False
    return True


@dataclass(eq=False)
class _Transfer:
    """Joint of a receiver with a neighbour (None for the ground), in world axes."""

    neighbour: RigidCluster | None
    dof: JointDof
    inertia: LinkInertia | None = field(default=None)

    def transferable_inertia(self, mass: float, moment: float, near: np.ndarray) -> LinkInertia | None:
        """Return the inertia that the joint can move: a mass, close to a point, and a tensor."""
        if self.dof.dof_type == "free":
            return None
        if self.dof.dof_type == "slide":
            return LinkInertia(0.0, near, moment * np.eye(3))
        if self.dof.dof_type == "ball":
            return LinkInertia(mass, self.dof.point, np.zeros((3, 3)))
        e = self.dof.axis
        return LinkInertia(
            mass, self.dof.point + e * (e @ (near - self.dof.point)), moment * (np.eye(3) - np.outer(e, e))
        )


def regroup_inertia(
    clusters: Mapping[str | None, RigidCluster], poses: Mapping[str | None, RigidTransform], receivers: set[str]
) -> list[str]:
    """Move inertia to receivers and to links with a singular inertia tensor; return the names of changed links."""
    moving = [cluster for cluster in dict.fromkeys(clusters.values()) if cluster.root is not None]
    open_links = [cluster for cluster in moving if _needs_inertia(cluster, receivers)]
    changed: list[str] = []
    while True:  # a link that has received inertia is a neighbour of the next ones
        supplied = [
            cluster
            for cluster in open_links
            if any(_receive(cluster, moving, poses, fraction) for fraction in _FRACTIONS)
        ]
        if not supplied:
            return changed
        changed += [cluster.root.name for cluster in supplied if cluster.root is not None]
        open_links = [cluster for cluster in open_links if cluster not in supplied]


def _needs_inertia(cluster: RigidCluster, receivers: set[str]) -> bool:
    assert cluster.root is not None
    inertia = cluster.mass()
    return cluster.root.name in receivers or (inertia is not None and inertia.mass > 0 and not _is_regular(inertia))


def _receive(
    receiver: RigidCluster, moving: list[RigidCluster], poses: Mapping[str | None, RigidTransform], fraction: float
) -> bool:
    """Move a fraction of the inertia of proper neighbours to a link, if it becomes proper and they remain so."""
    inertia = _in_world(receiver, poses)
    pairs = [
        (transfer, None if transfer.neighbour is None else _in_world(transfer.neighbour, poses))
        for transfer in _joints(receiver, moving, poses)
    ]
    pairs = [(t, donor) for t, donor in pairs if t.neighbour is None or (donor is not None and _is_proper(donor))]
    sizes = [(donor.mass, _smallest_moment(donor)) for _, donor in pairs if donor is not None]
    if inertia is not None and inertia.mass > 0:
        sizes.append((inertia.mass, max(inertia.mass * 1e-2, float(np.abs(inertia.tensor).max()))))
    if not sizes:
        return False
    mass, moment = max(size[0] for size in sizes), max(size[1] for size in sizes)  # transferred from the ground
    transferred: list[LinkInertia] = []
    for transfer, donor in pairs:
        if donor is None:
            near = inertia.centre if inertia is not None else transfer.dof.point
            part = transfer.transferable_inertia(fraction * mass, fraction * moment, near)
        else:
            part = transfer.transferable_inertia(
                fraction * donor.mass, fraction * _smallest_moment(donor), donor.centre
            )
        if part is None:
            continue
        transferred.append(part)
        if donor is not None:
            transfer.inertia = LinkInertia(-part.mass, part.centre, -part.tensor)
            rest = sum_inertias([donor, transfer.inertia])
            if rest is None or not _is_proper(rest):
                return False
    total = sum_inertias([*transferred, *([inertia] if inertia is not None else [])])
    if total is None or not _is_proper(total):
        return False
    receiver.transfers += [_in_link(part, receiver, poses) for part in transferred]
    for transfer, _ in pairs:
        if transfer.inertia is not None and transfer.neighbour is not None:
            transfer.neighbour.transfers.append(_in_link(transfer.inertia, transfer.neighbour, poses))
    return True


def _joints(
    receiver: RigidCluster, moving: list[RigidCluster], poses: Mapping[str | None, RigidTransform]
) -> Iterator[_Transfer]:
    """Iterate over the joints with one dof of a link with its parent and its children."""
    for cluster in moving:
        if cluster.root is None or len(cluster.root.dofs) != 1:
            continue
        dof = cluster.root.dofs[0].in_world(poses[cluster.root.name])
        if cluster is receiver:
            assert cluster.parent is not None
            yield _Transfer(cluster.parent if cluster.parent.root is not None else None, dof)
        elif cluster.parent is receiver:
            yield _Transfer(cluster, dof)


def _in_world(cluster: RigidCluster, poses: Mapping[str | None, RigidTransform]) -> LinkInertia | None:
    assert cluster.root is not None
    inertia, pose = cluster.mass(), poses[cluster.root.name]
    return None if inertia is None else inertia.transformed(pose.position, pose.rotation)


def _in_link(inertia: LinkInertia, cluster: RigidCluster, poses: Mapping[str | None, RigidTransform]) -> LinkInertia:
    assert cluster.root is not None
    inverse = poses[cluster.root.name].inverse
    return inertia.transformed(inverse.position, inverse.rotation)


def _smallest_moment(inertia: LinkInertia) -> float:
    return float(np.linalg.eigvalsh(inertia.tensor)[0])


def _is_proper(inertia: LinkInertia) -> bool:
    """Return True if a rigid body can have this inertia, and it is regular."""
    moments = np.linalg.eigvalsh((inertia.tensor + inertia.tensor.T) / 2)
    return _is_regular(inertia) and bool(moments[0] + moments[1] > moments[2] * (1 - TRIANGLE_TOLERANCE))


def _is_regular(inertia: LinkInertia) -> bool:
    moments = np.linalg.eigvalsh((inertia.tensor + inertia.tensor.T) / 2)
    return bool(inertia.mass > 0 and moments[0] > _MIN_MOMENT * moments[2])
