"""Mechanisms in scenario files: bodies, joints, forces, initial values and sensors of a `livens.Multibody`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from livens import contacts
from livens.errors import InputError, LivensError, suggestion
from livens.multibody import units
from livens.multibody.body import Body
from livens.multibody.contacts.dissipation import Friction
from livens.multibody.contacts.shapes import CollisionShape
from livens.multibody.multibody import Multibody
from livens.scenario.evaluate import CONSTANTS, evaluate
from livens.scenario.grammar import names, parse
from livens.scenario.quoting import quoted
from livens.scenario.reader import Document, YamlPath
from livens.scenario.schema import MechanismScenario, RobotScenario
from livens.scenario.tokens import ExpressionError
from livens.scenario.vocabulary import check_name
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_array, check_readable_path

BODIES = ("body", "box", "cylinder", "particle", "plate", "ring", "rod", "sphere")
_TWO_BODY_JOINTS = (
    "cylindrical",
    "fixed",
    "knife_edge",
    "planar",
    "point_on_curve",
    "point_on_line",
    "point_on_plane",
    "point_on_surface",
    "prismatic",
    "revolute",
    "rolling",
    "screw",
    "spherical",
    "universal",
)
_JOINT_COUPLINGS = {"gear": 2, "rack": 2, "belt": 2, "differential": 3}
JOINTS = (*_TWO_BODY_JOINTS, "distance", "couple", *_JOINT_COUPLINGS)
_JOINT_FORCES = ("armature", "drive", "friction", "limit", "motor", "pd", "pid", "torsion_damper", "torsion_spring")
#: Elements whose name is an optional keyword argument.
_NAME_LAST = ("armature", "drive", "motor", "pd", "pid")
FORCES = ("bushing", "cable", "damper", "gravitation", "spring", "spring_damper", "wrench", *_JOINT_FORCES)

#: Arguments by type; all other arguments are numbers.
_POINTS = ("a", "b", "at", "at_second", "position", "origin")
_AXES = ("axis", "second_axis", "normal", "lateral")
_VECTORS = ("centre", "size", "inertia", "rotation", "axes", "radii", "velocity", "omega")
_STRINGS = ("frame", "law")
_BOOLEANS = ("crossed", "required", "rotor", "persistent", "unique", "expensive")
_TIME_ONLY = ("t",)
#: Arguments that are expressions, by element type, with the variables the expressions may use.
_EXPRESSIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "motor": {"torque": ("t", "angle", "rate"), "force": ("t", "position", "velocity")},
    "drive": dict.fromkeys(("angle", "position", "rate", "velocity"), _TIME_ONLY),
    "pd": dict.fromkeys(("reference", "reference_rate", "feedforward"), _TIME_ONLY),
    "pid": dict.fromkeys(("reference", "reference_rate", "feedforward"), _TIME_ONLY),
    "wrench": dict.fromkeys(("force", "torque"), _TIME_ONLY),
    "point_on_curve": {"curve": ("x", "y", "z")},
    "point_on_surface": {"surface": ("x", "y", "z")},
}
#: Contacts by type: the field that lists the bodies, and how many there are.
CONTACTS: dict[str, tuple[str, int | None]] = {
    "contact": ("between", 2),
    "contact_group": ("bodies", None),
    "rigid_contact": ("between", 2),
}
#: Collision shapes by name, with the arguments that are points.
_COLLISION_SHAPES = (
    "box", "capsule", "convex_mesh", "cylinder", "ellipsoid", "groove", "half_space", "hollow_cylinder",
    "hollow_sphere", "point_cloud", "sphere", "torus",
)  # fmt: skip
_UNITS = {"deg": units.deg, "mm": units.mm, "rpm": units.rpm}


#: File suffixes of robot descriptions: URDF, SDF and MJCF.
ROBOT_SUFFIXES = (".urdf", ".sdf", ".xml", ".mjcf")


def robot_file(name: str, source: str) -> Path:
    """Return the path of a robot file relative to the file that refers to it."""
    return Path(source).resolve().parent / name


class Mechanism:
    """Validated mechanism of a scenario file."""

    def __init__(self, fields: MechanismScenario, document: Document) -> None:
        self._fields, self._document = fields, document
        self._values: dict[str, float] = dict(_UNITS)
        for name, text in fields.parameters.items():
            path: YamlPath = ("parameters", name)
            with self._located_errors(path):
                check_name(name, "parameter", dict.fromkeys(_UNITS, "unit"))
            self._values[name] = self._number(text, path)
        self.multibody = self._build()

    @contextmanager
    def _located_errors(self, path: YamlPath) -> Iterator[None]:
        """Add the location in the file to all errors raised inside."""
        try:
            yield
        except InputError as error:
            if str(error).startswith(self._document.source):
                raise
            raise self._document.error(path, error) from None
        except LivensError as error:
            raise self._document.error(path, error) from None

    # -- elements -----------------------------------------------------------------------------------------------------
    def _build(self) -> Multibody:
        fields = self._fields
        gravity = None if fields.gravity is None else self._vector(fields.gravity, ("gravity",))
        if isinstance(fields, RobotScenario):
            mb = self._robot(fields, gravity)
        else:
            with self._located_errors(("gravity",)):
                mb = Multibody(gravity, planar=bool(fields.planar), redundant=fields.redundant or "auto")
        self._mb = mb
        for name, definition in fields.bodies.items():
            self._body(name, definition, ("bodies", name))
        for name, definition in fields.joints.items():
            self._add_element(name, definition, ("joints", name), JOINTS)
        for name, definition in fields.forces.items():
            self._add_element(name, definition, ("forces", name), FORCES)
        for name, definition in fields.contacts.items():
            self._add_contact(name, definition, ("contacts", name))
        for name, definition in fields.initial.items():
            self._add_initial_values(name, definition, ("initial", name))
        for name, definition in fields.sensors.items():
            self._sensor(name, definition, ("sensors", name))
        with self._located_errors(("initial",) if fields.initial else ("joints",)):
            _ = mb.assembly.state
        return mb

    def _robot(self, fields: RobotScenario, gravity: ArrayLike | None) -> Multibody:
        """Import a robot file; `gravity` replaces that of the file."""
        file = robot_file(fields.robot, self._document.source)
        with self._located_errors(("robot",)):
            check_readable_path(file)
            if file.suffix.lower() not in ROBOT_SUFFIXES:
                suffixes = ", ".join(ROBOT_SUFFIXES)
                raise InputError(f"the name of a robot file must end in {suffixes}, got '{quoted(file.name)}'")
            if fields.planar:
                raise InputError("planar is not available for a robot file, which is three-dimensional")
            options: dict[str, Any] = (
                {} if fields.limit_stiffness is None else {"limit_stiffness": fields.limit_stiffness}
            )
            if fields.robot_contacts:
                options["contacts"] = {
                    key: value if key == "pairs" or value == "solref" else self._number(value, ("robot_contacts", key))
                    for key, value in fields.robot_contacts.items()
                }
            if file.suffix.lower() == ".urdf":
                mb = Multibody.from_urdf(file, base=fields.base or "fixed", **options)
            elif fields.base is not None:
                raise InputError("base is for URDF files only: other files define whether their base is fixed")
            elif file.suffix.lower() == ".sdf":
                mb = Multibody.from_sdf(file, **options)
            else:
                mb = Multibody.from_mjcf(file, **options)
        with self._located_errors(("gravity",)):
            if gravity is not None:
                mb.gravity = check_array("gravity", gravity, (3,))
        mb.redundant = fields.redundant or "auto"
        return mb

    def _type(self, definition: Mapping[str, object], path: YamlPath, field: str, allowed: tuple[str, ...]) -> str:
        type_name = definition.get(field)
        if not isinstance(type_name, str) or type_name not in allowed:
            got = "nothing" if type_name is None else f"'{quoted(type_name)}'"
            hint = (
                suggestion(str(type_name)[:60], allowed)
                if type_name is not None
                else f"; allowed: {', '.join(allowed)}"
            )
            raise self._document.error((*path, field), f"unknown type {got}{hint}")
        return type_name

    def _body(self, name: str, definition: Mapping[str, object], path: YamlPath) -> None:
        shape = self._type({"shape": "body", **definition}, path, "shape", BODIES)
        points = definition.get("points") or {}
        if not isinstance(points, Mapping):
            raise self._document.error((*path, "points"), "must be names with points (name: [x, y, z])")
        rest = {key: value for key, value in definition.items() if key not in ("shape", "points", "visual")}
        arguments = self._arguments(shape, rest, path)
        if "visual" in definition:
            arguments["shape"] = self._visual(shape, definition["visual"], (*path, "visual"))
        with self._located_errors(path):
            part = getattr(self._mb, shape)(name, **arguments)
        for point, at in points.items():
            point_path = (*path, "points", point)
            with self._located_errors(point_path):
                if isinstance(at, Mapping):  # a frame
                    if "at" not in at or not set(at) <= {"at", "axes"}:
                        raise InputError("a frame must have the form {at: point, axes: three columns}")
                    axes = None if at.get("axes") is None else self._vector(at["axes"], (*point_path, "axes"))
                    part.frame(point, at=self._point(at["at"], (*point_path, "at")), axes=axes)
                else:
                    part.point(point, at=self._point(at, point_path))

    def _visual(self, shape: str, definition: object, path: YamlPath) -> tuple[str, float, float, float] | None:
        """Parse the visual geometry of a body with given inertia: ``{cylinder: [length, radius]}``."""
        sizes = {"rod": 2, "box": 3, "sphere": 1, "cylinder": 2, "ring": 2}
        if shape != "body" or not isinstance(definition, Mapping) or len(definition) != 1:
            reason = "needs a body without a shape, and one shape with its sizes, such as {cylinder: [0.2, 0.1]}"
            raise self._document.error(path, reason)
        ((shape_type, shape_sizes),) = definition.items()
        values = self._vector(shape_sizes, (*path, shape_type))
        if shape_type not in sizes or len(values) != sizes[shape_type]:
            raise self._document.error(path, f"'{quoted(shape_type)}' is not a shape with {len(values)} sizes: {sizes}")
        return (shape_type, *values)

    def _add_element(
        self, name: str, definition: Mapping[str, object], path: YamlPath, allowed: tuple[str, ...]
    ) -> None:
        element_type = self._type(definition, path, "type", allowed)
        method = getattr(self._mb, element_type)
        structural_fields = {
            "type",
            "between",
            "joints",
            "joint",
            "body",
            "through",
            *(["weights"] if element_type == "couple" else []),
        }
        arguments = self._arguments(
            element_type, {k: v for k, v in definition.items() if k not in structural_fields}, path
        )
        with self._located_errors(path):
            if element_type in _TWO_BODY_JOINTS or element_type in ("bushing", "gravitation"):
                method(name, *self._parse_list(definition, path, "between", 2, self._named_body), **arguments)
            elif element_type == "couple":
                members = self._parse_list(definition, path, "joints", None, self._joint)
                weights = self._vector(definition.get("weights"), (*path, "weights"))
                if len(weights) != len(members):
                    reason = f"must have one number for each of the {len(members)} joints"
                    raise self._document.error((*path, "weights"), reason)
                method(name, *zip(members, weights, strict=True), **arguments)
            elif element_type in _JOINT_COUPLINGS:
                method(
                    name,
                    *self._parse_list(definition, path, "joints", _JOINT_COUPLINGS[element_type], self._joint),
                    **arguments,
                )
            elif element_type in _NAME_LAST:
                method(self._joint(definition.get("joint"), (*path, "joint")), name=name, **arguments)
            elif element_type in _JOINT_FORCES:
                method(name, self._joint(definition.get("joint"), (*path, "joint")), **arguments)
            elif element_type == "wrench":
                method(name, self._named_body(definition.get("body"), (*path, "body")), **arguments)
            elif element_type == "cable":
                method(name, *self._parse_list(definition, path, "through", None, self._point), **arguments)
            else:
                method(name, *self._parse_list(definition, path, "between", 2, self._point), **arguments)

    def _parse_list(
        self,
        definition: Mapping[str, object],
        path: YamlPath,
        field: str,
        count: int | None,
        read: Callable[[Any, YamlPath], Any],
    ) -> list[Any]:
        values = definition.get(field)
        if not isinstance(values, (list, tuple)) or (count is not None and len(values) != count):
            raise self._document.error((*path, field), f"must be a list of {count or 'points'}, got '{quoted(values)}'")
        return [read(value, (*path, field, i)) for i, value in enumerate(values)]

    def _add_contact(self, name: str, definition: Mapping[str, object], path: YamlPath) -> None:
        """Add a contact of bodies or collision shapes."""
        contact_type = self._type({"type": "contact", **definition}, path, "type", tuple(CONTACTS))
        field, count = CONTACTS[contact_type]
        method = getattr(self._mb, contact_type)  # attaches methods of later layers
        shapes = self._parse_list(definition, path, field, count, self._collision_shape)
        rest = {key: value for key, value in definition.items() if key not in ("type", field, "friction")}
        arguments = self._arguments(contact_type, rest, path)
        if "friction" in definition:
            arguments["friction"] = self._contact_friction(definition["friction"], (*path, "friction"))
        with self._located_errors(path):
            if contact_type == "contact_group":
                method(name, shapes, **arguments)
            else:
                method(*shapes, name=name, **arguments)

    def _contact_friction(self, value: object, path: YamlPath) -> Friction | float:
        """Parse a friction coefficient, or the fields of a friction law."""
        if not isinstance(value, Mapping):
            return self._number(value, path)
        for key in value:
            if key not in Friction.__dataclass_fields__:
                reason = f"a friction has no '{quoted(key)}'{suggestion(str(key)[:60], Friction.__dataclass_fields__)}"
                raise self._document.error((*path, key), reason)
        if "coefficient" not in value:
            raise self._document.error(path, "the field 'coefficient' of a friction is missing")
        with self._located_errors(path):
            return Friction(**{key: self._number(entry, (*path, key)) for key, entry in value.items()})

    def _collision_shape(self, value: object, path: YamlPath) -> Body | CollisionShape:
        """Parse a body, or a collision shape such as ``{shape: half_space, body: ground, normal: [1, 0, 0]}``."""
        if not isinstance(value, Mapping):
            return self._named_body(value, path)
        shape_type = self._type(value, path, "shape", _COLLISION_SHAPES)
        body = self._named_body(value.get("body"), (*path, "body"))
        shape = getattr(contacts, shape_type.title().replace("_", ""))
        allowed = [name for name in inspect.signature(shape).parameters if name != "body"]
        arguments = {}
        for key, entry in value.items():
            if key in ("shape", "body"):
                continue
            if key not in allowed:
                reason = f"a {shape_type} has no '{quoted(key)}'{suggestion(str(key)[:60], allowed)}"
                raise self._document.error((*path, key), reason)
            arguments[key] = self._value(key, entry, (*path, key))
        with self._located_errors(path):
            result: CollisionShape = shape(body, **arguments)
        return result

    def _add_initial_values(self, name: str, definition: Mapping[str, Any], path: YamlPath) -> None:
        element = self._mb.bodies.get(name) or self._mb.joints.get(name)
        if element is None:
            known = {*self._mb.bodies, *self._mb.joints}
            raise self._document.error(path, f"unknown body or joint '{quoted(name)}'{suggestion(name[:60], known)}")
        is_joint = not isinstance(element, Body)
        values = {
            key: self._value(key, value, (*path, key), number=is_joint and key != "required")
            for key, value in definition.items()
        }
        with self._located_errors(path):
            self._mb.initial(element, **values)

    def _sensor(self, name: str, definition: Mapping[str, str], path: YamlPath) -> None:
        for key in definition:
            if key not in ("point", "quantity", "relative_to"):
                reason = f"unknown field '{quoted(key)}'; a sensor has the fields point or quantity, and relative_to"
                raise self._document.error(path, reason)
        if ("point" in definition) == ("quantity" in definition):
            raise self._document.error(path, "a sensor needs either point or quantity")
        quantity = (
            str(definition["quantity"])
            if "quantity" in definition
            else self._point(definition.get("point"), (*path, "point"))
        )
        frame = definition.get("relative_to")
        with self._located_errors(path):
            self._mb.sensor(
                name, quantity, relative_to=None if frame is None else self._point(frame, (*path, "relative_to"))
            )

    # -- arguments ----------------------------------------------------------------------------------------------------
    def _arguments(self, element_type: str, definition: Mapping[str, Any], path: YamlPath) -> dict[str, Any]:
        allowed, required = _signature(element_type)
        for key in definition:
            if key not in allowed:
                reason = f"a {element_type} has no '{quoted(key)}'{suggestion(str(key)[:60], allowed)}"
                raise self._document.error((*path, key), reason)
        for key in required:
            if definition.get(key) is None:
                raise self._document.error(path, f"the field '{key}' of a {element_type} is missing")
        arguments = {}
        for key, value in definition.items():
            if value is None:
                continue
            field_path = (*path, key)
            law = _EXPRESSIONS.get(element_type, {}).get(key)
            arguments[key] = self._law(value, law, field_path) if law else self._value(key, value, field_path)
        return arguments

    def _value(self, key: str, value: Sequence[str] | str, path: YamlPath, number: bool = False) -> Any:
        if key in _BOOLEANS:
            if value not in ("true", "false", True, False):
                raise self._document.error(path, f"must be true or false, got '{quoted(value)}'")
            return value in ("true", True)
        if key in _STRINGS:
            return str(value)
        if key in _AXES and isinstance(value, str) and value in ("x", "y", "z"):
            return value
        if key in _POINTS and not number:
            return self._point(value, path)
        if isinstance(value, (list, tuple)) and not number:
            return self._vector(value, path)
        return self._number(value, path)

    def _point(self, value: object, path: YamlPath) -> Any:
        """Parse a point: numbers, a named point such as ``crank.b``, or a body (its centre)."""
        if not isinstance(value, str):
            return self._vector(value, path)
        body, _, point = value.partition(".")
        part = self._named_body(body, path)
        if not point:
            return part
        if point not in part.markers:
            reason = f"'{body}' has no point '{quoted(point)}'{suggestion(point[:60], part.markers)}"
            raise self._document.error(path, reason)
        return part.markers[point]

    def _named_body(self, value: object, path: YamlPath) -> Body:
        if value == "ground":
            return self._mb.ground
        if not isinstance(value, str) or value not in self._mb.bodies:
            known = {"ground", *self._mb.bodies}
            got = "nothing" if value is None else f"'{quoted(value)}'"
            raise self._document.error(path, f"unknown body {got}{suggestion(str(value)[:60], known)}")
        return self._mb.bodies[value]

    def _joint(self, value: object, path: YamlPath) -> Any:
        if not isinstance(value, str) or value not in self._mb.joints:
            got = "nothing" if value is None else f"'{quoted(value)}'"
            raise self._document.error(path, f"unknown joint {got}{suggestion(str(value)[:60], self._mb.joints)}")
        return self._mb.joints[value]

    def _vector(self, value: object, path: YamlPath) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise self._document.error(path, f"must be a list of numbers such as [0, 0, 1], got '{quoted(value)}'")
        return [
            self._vector(entry, (*path, i)) if isinstance(entry, (list, tuple)) else self._number(entry, (*path, i))
            for i, entry in enumerate(value)
        ]

    def _number(self, value: object, path: YamlPath) -> float:
        return float(self._expression(value, (), path)())

    def _law(self, value: Sequence[str] | str, allowed: tuple[str, ...], path: YamlPath) -> ModelFunction:
        """Return a function of the allowed variables; with x, y, z a function of one point."""
        if isinstance(value, (list, tuple)):
            parts = [self._expression(entry, allowed, (*path, i)) for i, entry in enumerate(value)]
            function: ModelFunction = lambda *args: [part(*args) for part in parts]  # noqa: E731
        else:
            function = self._expression(value, allowed, path)
        if allowed == ("x", "y", "z"):
            return lambda point: function(*(list(point) + [0.0])[:3])
        return function

    def _expression(self, value: object, allowed: tuple[str, ...], path: YamlPath) -> ModelFunction:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = repr(float(value))
        if not isinstance(value, str):
            got = "nothing" if value is None else f"'{quoted(value)}'"
            raise self._document.error(path, f"must be a number or an expression, got {got}")
        text = value
        with self._located_errors(path):
            tree = parse(text)
            for name in names(tree):
                known = {*self._values, *CONSTANTS, *allowed}
                if name.name not in known:
                    reason = f"unknown name '{quoted(name.name)}'{suggestion(name.name[:60], known)}"
                    raise ExpressionError(reason, text, name.column)

        def law(*arguments: object) -> Any:
            values = {**self._values, **dict(zip(allowed, arguments, strict=True))}
            with self._located_errors(path):
                return evaluate(tree, values, text)

        return law


@functools.cache
def _signature(method_name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keyword arguments of a method of Multibody, and the required ones."""
    parameters = inspect.signature(getattr(Multibody, method_name)).parameters.values()
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in ("name", "shape", "points")]
    placement_keywords = ("at", "at_second") if any(p.kind is p.VAR_KEYWORD for p in parameters) else ()
    allowed = (*(p.name for p in keywords if p.name != "parameters"), *placement_keywords)
    return allowed, tuple(p.name for p in keywords if p.default is p.empty)
