"""Keyframes of MJCF files: stored states from which a model starts."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError, suggestion
from livens.multibody.imports.orientations import from_quaternion
from livens.multibody.imports.robot_description import Keyframe, RigidTransform, RobotDescription
from livens.multibody.imports.xml import XmlNode

#: Numbers of position and velocity coordinates of the joint types of MuJoCo.
_SIZES = {"free": (7, 6), "ball": (4, 3), "hinge": (1, 1), "slide": (1, 1)}


def read_keyframe(root: XmlNode, robot: RobotDescription, joint_ref: dict[str, float], chosen: str | int) -> None:
    """Set the state of a keyframe, by name or number; the pose of free links becomes their reference pose."""
    keys = [key for section in root.children_with_tag("keyframe") for key in section.children_with_tag("key")]
    names = {key.name: key for key in keys if key.name}
    if isinstance(chosen, int):
        if not 0 <= chosen < len(keys):
            raise InputError(f"the file has {len(keys)} keyframes, there is no keyframe {chosen}")
        key = keys[chosen]
    elif chosen in names:
        key = names[chosen]
    else:
        raise InputError(f"there is no keyframe '{chosen}'{suggestion(chosen, names)}")
    dofs = [(link, dof) for link in robot.links.values() for dof in link.dofs]
    n_q, n_v = (sum(_SIZES[dof.dof_type][i] for _, dof in dofs) for i in (0, 1))
    qpos, qvel = key.numbers("qpos", n_q), key.numbers("qvel", n_v, np.zeros(n_v))
    frame = robot.keyframe = Keyframe(key.name or str(chosen), key)
    i = j = 0
    for link, dof in dofs:
        width_q, width_v = _SIZES[dof.dof_type]
        position = None if qpos is None else qpos[i : i + width_q]
        velocity = qvel[j : j + width_v]
        i, j = i + width_q, j + width_v
        if dof.dof_type == "free":
            if position is not None:
                link.pose = RigidTransform(position[:3], from_quaternion(position[3:]))
            frame.free_links[link.name] = velocity[:3], link.pose.rotation @ velocity[3:]
        elif dof.dof_type == "ball":
            turned = position is not None and np.abs(position[1:]).max() > 1e-12 * np.abs(position).max()
            if turned or velocity.any():
                key.refuse(f"the rotation of the ball joint '{dof.name}' is not supported in a keyframe")
        else:
            start = 0.0 if position is None else float(position[0]) - joint_ref[dof.name]
            frame.joints[dof.name] = start, float(velocity[0])
    controls = key.numbers("ctrl", None)
    for attribute in ("mpos", "mquat", "time"):
        key.get(attribute)
    activations = key.numbers("act", None)
    if activations is not None:
        with_state = [actuator.name for actuator in robot.actuators if actuator.activation_type != "none"]
        if len(activations) == len(with_state):
            frame.activations = dict(zip(with_state, activations.tolist(), strict=True))
        else:
            key.refuse(f"act has {len(activations)} numbers, but {len(with_state)} actuators have a state")
    if controls is not None:
        section = [node for part in root.children_with_tag("actuator") for node in part.children]
        by_node = {id(actuator.node): actuator.name for actuator in robot.actuators}
        if len(controls) != len(section):
            raise key.error(f"ctrl has {len(controls)} numbers, but there are {len(section)} actuators")
        for node, value in zip(section, controls, strict=True):
            if id(node) in by_node:
                frame.controls[by_node[id(node)]] = float(value)
