"""Containers of a multibody model and the checks of names, bodies and joints: base class of `livens.Multibody`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.models.element import Element
from livens.models.external_force import ExternalForce
from livens.multibody.armature import JointArmature
from livens.multibody.assembly import InitialCondition
from livens.multibody.beam import Beam
from livens.multibody.body import Body, Marker, MovingMarker, parse_point
from livens.multibody.body_constraint import BodyConstraint
from livens.multibody.body_elements import BodyElement
from livens.multibody.couplings import Coupling
from livens.multibody.force_outputs import ForceOutputs
from livens.multibody.inputs import Input
from livens.multibody.joint import Joint
from livens.multibody.joint_coordinate import JointCoordinate
from livens.multibody.joint_stops import JointStop
from livens.multibody.penalty_joint import PenaltyJoint
from livens.multibody.pid import ControllerState
from livens.multibody.sampled_controller import SampledController
from livens.types import ArrayLike, FloatArray, ModelFunction
from livens.validation import check_array

if TYPE_CHECKING:  # contact modules are imported on demand
    from livens.multibody.contacts.contact_group import ContactGroup
    from livens.multibody.contacts.pair_contact import PairContact
    from livens.multibody.contacts.rigid_contact import RigidContact
    from livens.multibody.wheel import Wheel


class ModelBase:
    """Bodies, joints and force elements by name; derived classes contain the methods that add them."""

    def __init__(
        self,
        gravity: ArrayLike | None = None,
        *,
        planar: bool = False,
        redundant: str = "auto",
        name: str = "mechanism",
    ) -> None:
        if not isinstance(name, str) or not name.isprintable() or not name.strip():
            raise InputError(f"the name of a mechanism must be a text of one line, got {name!r}")
        self.name = name
        if not isinstance(planar, bool):
            raise InputError(f"planar must be True or False, got {planar!r}")
        self.dimension = 2 if planar else 3
        acceleration = None if gravity is None else np.atleast_1d(check_array("gravity", gravity))
        if planar and acceleration is not None and acceleration.shape == (3,) and acceleration[2]:
            raise InputError(
                f"a planar mechanism moves in the x-y plane: gravity {gravity!r} has a component along z, which has no "
                "effect. Give gravity in the plane, such as [0, -9.81]"
            )
        self.gravity = None if acceleration is None else acceleration[: self.dimension]
        if self.gravity is not None and self.gravity.shape != (self.dimension,):
            example = "[0, -9.81]" if planar else "[0, 0, -9.81]"
            raise InputError(
                f"gravity must be a vector of {self.dimension} numbers in m/s^2, such as {example}, got {gravity!r}"
            )
        self.redundant = redundant
        self.ground = Body("ground", None, np.zeros(self.dimension), np.eye(self.dimension))
        self.bodies: dict[str, Body] = {}
        #: Constraints between two bodies by name: joints, rolling, points on curves and surfaces.
        self.connections: dict[str, BodyConstraint] = {}
        self.couplings: dict[str, Coupling] = {}
        #: Reflected rotor inertias of joints by name.
        self.armatures: dict[str, JointArmature] = {}
        #: Measured coordinates of joints with several degrees of freedom.
        self.joint_coordinates: dict[str, JointCoordinate] = {}
        self.beams: dict[str, Beam] = {}
        #: Import warnings: content of the imported file that is ignored or approximated.
        self.import_warnings: list[str] = []
        self._force_elements: dict[str, Element] = {}
        #: Builder call by element name (method name, points or joint), for export.
        self._definitions: dict[str, tuple[str, tuple[Any, ...]]] = {}
        #: Outputs of force elements, with the names of the elements.
        self._force_outputs: list[tuple[str, ForceOutputs]] = []
        self._flexible_elements: list[Element] = []  # beams, trusses, plates
        #: Compiled force on all bodies.
        self._external_force: ExternalForce | None = None
        self._inputs: dict[str, Input] = {}
        #: Joints with the elements that depend on their continuous angle.
        self._angle_branches: list[tuple[Joint, Element, str]] = []
        self._initial_conditions: list[InitialCondition] = []
        self._distance_constraints: list[Element] = []
        self._drives: list[tuple[Element, str]] = []  # with the unit of the drive force
        self._user_outputs: dict[str, ModelFunction] = {}
        self._sampled_controllers: dict[str, SampledController] = {}
        #: Rigid stops of the joint limits by name of the limit.
        self._joint_stops: dict[str, list[JointStop]] = {}
        self._integrator_states: dict[str, ControllerState] = {}  # by controller name
        self._wheels: dict[str, Wheel] = {}
        self._point_sensors: dict[str, tuple[Marker, Marker | None]] = {}
        self._resolved_outputs: dict[str, tuple[str, Marker | None]] = {}  # vectors resolved in the axes of a frame
        self._pair_contacts: dict[str, PairContact] = {}
        self._contact_groups: dict[str, ContactGroup] = {}
        self._penalty_joints: dict[str, PenaltyJoint] = {}
        self._rigid_contacts: dict[str, RigidContact] = {}

    @property
    def joints(self) -> dict[str, Joint]:
        """Joints by name, including the measured coordinates of joints with several degrees of freedom.

        Returns
        -------
        dict of str to Joint
            Joints of the joint table and joint coordinates.
        """
        table_joints = {
            name: constraint for name, constraint in self.connections.items() if isinstance(constraint, Joint)
        }
        return {**table_joints, **self.joint_coordinates}

    def _claim_name(self, name: str) -> None:
        """Check that a name is valid and unused, and discard the cached system."""
        if not isinstance(name, str) or not name or "." in name:
            raise InputError(f"a name is a text without dots, got {name!r}")
        containers = (
            self.bodies,
            self.connections,
            self.couplings,
            self.armatures,
            self.joint_coordinates,
            self._force_elements,
            self._point_sensors,
            self._sampled_controllers,
        )
        more_containers = (
            self.beams,
            self._pair_contacts,
            self._contact_groups,
            self._rigid_contacts,
            self._joint_stops,
            self._resolved_outputs,
            self._user_outputs,
            self._inputs,
        )
        if name == "ground" or any(name in container for container in (*containers, *more_containers)):
            raise InputError(f"there is a '{name}' already")
        self.__dict__.pop("_built", None)

    def _add_force_element(self, name: str, element: Element, method: str = "", *arguments: object) -> Element:
        self._claim_name(name)
        element.name = name
        self._force_elements[name], self._definitions[name] = element, (method, arguments)
        return element

    def _attachment(
        self, name: str, point: object, may_move: bool = False
    ) -> FloatArray | tuple[BodyElement, FloatArray] | None:
        """Return an attachment point for springs and links: ``(body element, X)`` or a point in space."""
        if isinstance(point, Body):
            point = point.centre
        if isinstance(point, MovingMarker) and may_move:  # an offset from the origin, see `force_laws`
            return np.zeros(self.dimension)
        if isinstance(point, Marker) and point.body.element is not None:
            self._check_body(name, point.body)
            return point.body.element, point.local_position
        return parse_point(name, point, self.dimension)

    def _attachments(self, name: str, point_a: object, point_b: object, may_move: bool = False) -> tuple[Any, Any]:
        """Return two attachment points, on two different bodies or on a body and the ground."""
        attachments = self._attachment(name, point_a, may_move), self._attachment(name, point_b, may_move)
        owners = [attachment[0] if isinstance(attachment, tuple) else None for attachment in attachments]
        if owners[0] is owners[1]:
            reason = (
                f"both points belong to '{owners[0].name}'" if owners[0] is not None else "no point belongs to a body"
            )
            raise InputError(f"{name}: the two points must belong to a body and another body or the ground; {reason}")
        return attachments

    def _body_and_point(self, point: object) -> tuple[Body, np.ndarray]:
        """Return the body of a point and its body-fixed position; a point in space belongs to the ground."""
        if isinstance(point, Body):
            point = point.centre
        if isinstance(point, Marker) and point.body.element is not None:
            return point.body, point.local_position
        if isinstance(point, MovingMarker):
            return self.ground, np.zeros(self.dimension)
        return self.ground, parse_point("a point", point, self.dimension)

    def _reference_length(self, point_a: object, point_b: object, length: float | None) -> float:
        if length is not None:
            return length
        ends = [x.centre if isinstance(x, Body) else x for x in (point_a, point_b)]
        starts = [[float(c) for c in x.position(0.0)] if isinstance(x, MovingMarker) else x for x in ends]
        a, b = (parse_point("a spring", x, self.dimension) for x in starts)
        return float(np.linalg.norm(a - b))

    def _check_body(self, name: str, body: object) -> None:
        if not isinstance(body, Body) or (body is not self.ground and self.bodies.get(body.name) is not body):
            raise InputError(f"{name}: {body!r} is not a body of this mechanism, nor its ground")

    def _check_body_pair(self, name: str, body_a: Body, body_b: Body) -> None:
        """Check that two bodies belong to this model, differ, and are not both the ground."""
        for body in (body_a, body_b):
            self._check_body(name, body)
        if body_a is body_b or (body_a.element is None and body_b.element is None):
            raise InputError(f"{name}: a joint needs two different bodies; at most one of them may be the ground")

    def _default_name(self, joint: object, suffix: str) -> str:
        """Return the default name of a force element in a joint."""
        if not isinstance(joint, Joint):
            raise InputError(f"a {suffix} acts in a joint, and {joint!r} is not a joint of this mechanism")
        return f"{joint.name} {suffix}"

    def _check_joint(self, name: str, joint: object) -> None:
        if not isinstance(joint, Joint) or self.joints.get(joint.name) is not joint:
            raise InputError(f"{name}: {joint!r} is not a joint of this mechanism")

    def _require_coordinate(self, name: str, joint: Any, coordinate: str) -> None:
        self._check_joint(name, joint)
        if not getattr(joint.joint_type, coordinate):
            verb = "turn" if coordinate == "angle" else "slide"
            raise InputError(f"{name}: the {joint.type_name} joint '{joint.name}' does not {verb} about one axis")
