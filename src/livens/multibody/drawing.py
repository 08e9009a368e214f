"""Containers of a multibody model and the checks of names, bodies and joints: base class of `livens.Multibody`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import array
from livens.models.element import Element
from livens.multibody.assembly import Target
from livens.multibody.beam import Beam
from livens.multibody.bodies import Body
from livens.multibody.connection import Connection
from livens.multibody.couplings import Coupling
from livens.multibody.exerting import Exerting
from livens.multibody.gauge import Gauge
from livens.multibody.holding import Hold
from livens.multibody.joint import Joint
from livens.multibody.parts import Marker, Part, point_in_space
from livens.multibody.sampled import Sampled
from livens.multibody.stops import DrawnStop

if TYPE_CHECKING:  # contact modules are imported on demand
    from livens.multibody.contacts.contact import Contact
    from livens.multibody.contacts.crowd import DrawnCrowd
    from livens.multibody.contacts.landing import Landing


class Drawing:
    """Bodies, joints and force elements by name; derived classes contain the methods that add them."""

    def __init__(self, gravity: Any = None, *, planar: bool = False, redundant: str = "auto") -> None:
        if not isinstance(planar, bool):
            raise InputError(f"planar must be True or False, got {planar!r}")
        self.dimension = 2 if planar else 3
        self.gravity = None if gravity is None else np.atleast_1d(array("gravity", gravity))[: self.dimension]
        if self.gravity is not None and self.gravity.shape != (self.dimension,):
            raise InputError(f"gravity must be a vector of {self.dimension} numbers, got {gravity!r}")
        self.redundant = redundant
        self.ground = Part("ground", None, np.zeros(self.dimension), np.eye(self.dimension))
        self.bodies: dict[str, Part] = {}
        #: Constraints between two bodies by name: joints, rolling, points on curves and surfaces.
        self.connections: dict[str, Connection] = {}
        self.couplings: dict[str, Coupling] = {}
        #: Measured coordinates of joints with several degrees of freedom.
        self.gauges: dict[str, Gauge] = {}
        self.beams: dict[str, Beam] = {}
        #: Import warnings: content of the imported file that is ignored or approximated.
        self.notes: list[str] = []
        self._acting: dict[str, Element] = {}
        #: Builder call by element name (method name, points or joint), for export.
        self._said: dict[str, tuple[str, tuple[Any, ...]]] = {}
        #: Outputs of force elements, with the names of the elements.
        self._exerting: list[tuple[str, Exerting]] = []
        self._elastic: list[Element] = []  # beams, trusses, plates
        self._targets: list[Target] = []
        self._links: list[Element] = []
        self._drives: list[tuple[Element, str]] = []  # with the unit of the drive force
        self._observed: dict[str, Callable[..., Any]] = {}
        self._sampled: dict[str, Sampled] = {}
        self._stops: list[DrawnStop] = []
        self._integrals: dict[str, tuple[Body, str]] = {}  # by controller name, with the unit
        self._watched: dict[str, tuple[Marker, Marker | None]] = {}
        self._turned: dict[str, tuple[str, Marker | None]] = {}  # vectors resolved in the axes of a frame
        self._contacts: dict[str, Contact] = {}
        self._crowds: dict[str, DrawnCrowd] = {}
        self._holds: dict[str, Hold] = {}
        self._landings: dict[str, Landing] = {}
        self._bounces: list[str] = []  # names of all rigid contacts, persistent or not

    @property
    def joints(self) -> dict[str, Joint]:
        """Joints by name, including the measured coordinates of joints with several degrees of freedom.

        Returns
        -------
        dict of str to Joint
            Joints of the joint table and joint coordinates.
        """
        own = {name: one for name, one in self.connections.items() if isinstance(one, Joint)}
        return {**own, **self.gauges}

    def _new(self, name: str) -> None:
        """Check that a name is valid and unused, and discard the cached system."""
        if not isinstance(name, str) or not name or "." in name:
            raise InputError(f"a name is a text without dots, got {name!r}")
        taken = (self.bodies, self.connections, self.couplings, self.gauges, self._acting, self._watched, self._sampled)
        others = (self.beams, self._contacts, self._crowds, self._landings, self._turned, self._observed)
        if name == "ground" or any(name in some for some in (*taken, *others)):
            raise InputError(f"there is a '{name}' already")
        self.__dict__.pop("_made", None)

    def _act(self, name: str, element: Element, what: str = "", *given: Any) -> Element:
        self._new(name)
        element.name = name
        self._acting[name], self._said[name] = element, (what, given)
        return element

    def _end(self, name: str, given: Any) -> Any:
        """Return an attachment point for springs and links: ``(body element, X)`` or a point in space."""
        if isinstance(given, Part):
            given = given.centre
        if isinstance(given, Marker) and given.part.element is not None:
            self._known(name, given.part)
            return given.part.element, given.lever
        return point_in_space(name, given, self.dimension)

    def _ends(self, name: str, first: Any, second: Any) -> tuple[Any, Any]:
        """Return two attachment points, on two different bodies or on a body and the ground."""
        ends = self._end(name, first), self._end(name, second)
        owners = [end[0] if isinstance(end, tuple) else None for end in ends]
        if owners[0] is owners[1]:
            words = (
                f"both points belong to '{owners[0].name}'" if owners[0] is not None else "no point belongs to a body"
            )
            raise InputError(f"{name}: the two points must belong to a body and another body or the ground; {words}")
        return ends

    def _seen(self, given: Any) -> tuple[Part, np.ndarray]:
        """Return the body of a point and its body-fixed position; a point in space belongs to the ground."""
        if isinstance(given, Part):
            given = given.centre
        if isinstance(given, Marker) and given.part.element is not None:
            return given.part, given.lever
        return self.ground, point_in_space("a point", given, self.dimension)

    def _drawn_length(self, first: Any, second: Any, length: float | None) -> float:
        if length is not None:
            return length
        ends = [x.centre if isinstance(x, Part) else x for x in (first, second)]
        a, b = (point_in_space("a spring", x, self.dimension) for x in ends)
        return float(np.linalg.norm(a - b))

    def _known(self, name: str, part: Any) -> None:
        if not isinstance(part, Part) or (part is not self.ground and self.bodies.get(part.name) is not part):
            raise InputError(f"{name}: {part!r} is not a body of this mechanism, nor its ground")

    def _between(self, name: str, first: Any, second: Any) -> None:
        """Check that two bodies belong to this model, differ, and are not both the ground."""
        for part in (first, second):
            self._known(name, part)
        if first is second or (first.element is None and second.element is None):
            raise InputError(f"{name}: a joint needs two different bodies; at most one of them may be the ground")

    def _after(self, joint: Any, word: str) -> str:
        """Return the default name of a force element in a joint."""
        if not isinstance(joint, Joint):
            raise InputError(f"a {word} acts in a joint, and {joint!r} is not a joint of this mechanism")
        return f"{joint.name} {word}"

    def _is_joint(self, name: str, joint: Any) -> None:
        if not isinstance(joint, Joint) or self.joints.get(joint.name) is not joint:
            raise InputError(f"{name}: {joint!r} is not a joint of this mechanism")

    def _needs(self, name: str, joint: Any, what: str) -> None:
        self._is_joint(name, joint)
        if not getattr(joint.kind, what):
            verb = "turn" if what == "angle" else "slide"
            raise InputError(f"{name}: the {joint.what} joint '{joint.name}' does not {verb} about one axis")
