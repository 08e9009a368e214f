"""Mechanisms in scenario files: bodies, joints, forces, initial values and sensors of a `livens.Multibody`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from livens.errors import InputError, LivensError, suggestion
from livens.expressions.numbers import array
from livens.multibody import units
from livens.multibody.builder import Multibody
from livens.multibody.parts import Part
from livens.scenario.evaluate import CONSTANTS, evaluate
from livens.scenario.grammar import names, parse
from livens.scenario.reader import Document, Place
from livens.scenario.schema import MechanismScenario, RobotScenario
from livens.scenario.show import shown
from livens.scenario.tokens import ExpressionError
from livens.scenario.vocabulary import check_name

BODIES = ("body", "box", "cylinder", "particle", "plate", "ring", "rod", "sphere")
_BETWEEN_BODIES = (
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
_OF_JOINTS = {"gear": 2, "rack": 2, "belt": 2, "differential": 3}
JOINTS = (*_BETWEEN_BODIES, "distance", "couple", *_OF_JOINTS)
_IN_JOINTS = ("drive", "friction", "limit", "motor", "pd", "pid", "torsion_damper", "torsion_spring")
#: Elements whose name is an optional keyword argument.
_NAMED_LATER = ("drive", "motor", "pd", "pid")
FORCES = ("bushing", "cable", "damper", "gravitation", "spring", "spring_damper", "wrench", *_IN_JOINTS)

#: Arguments by type; all other arguments are numbers.
_POINTS = ("a", "b", "at", "to", "position", "origin")
_AXES = ("axis", "other_axis", "normal", "across")
_NUMBERS = ("centre", "size", "inertia", "rotation", "axes", "radii", "velocity", "omega")
_WORDS = ("frame",)
_FLAGS = ("crossed", "hold", "rotor")
_OF_TIME = ("t",)
#: Arguments that are expressions, by element type, with the variables the expressions may use.
_LAWS: dict[str, dict[str, tuple[str, ...]]] = {
    "motor": {"torque": ("t", "angle", "rate"), "force": ("t", "position", "speed")},
    "drive": dict.fromkeys(("angle", "position", "rate", "speed"), _OF_TIME),
    "pd": dict.fromkeys(("angle", "rate", "feedforward"), _OF_TIME),
    "pid": dict.fromkeys(("angle", "rate", "feedforward"), _OF_TIME),
    "wrench": dict.fromkeys(("force", "torque"), _OF_TIME),
    "point_on_curve": {"curve": ("x", "y", "z")},
    "point_on_surface": {"surface": ("x", "y", "z")},
}
_UNITS = {"deg": units.deg, "mm": units.mm, "rpm": units.rpm}


#: File suffixes of robot descriptions: URDF and MJCF.
ROBOTS = (".urdf", ".xml", ".mjcf")


def robot_file(name: str, source: str) -> Path:
    """Return the path of a robot file relative to the file that refers to it."""
    return Path(source).resolve().parent / name


class Mechanism:
    """Validated mechanism of a scenario file."""

    def __init__(self, fields: MechanismScenario, document: Document) -> None:
        self._fields, self._document = fields, document
        self._values: dict[str, float] = dict(_UNITS)
        for name, text in fields.parameters.items():
            place: Place = ("parameters", name)
            with self._at(place):
                check_name(name, "parameter", dict.fromkeys(_UNITS, "unit"))
            self._values[name] = self._number(text, place)
        self.drawn = self._draw()

    @contextmanager
    def _at(self, place: Place) -> Iterator[None]:
        """Add the location in the file to all errors raised inside."""
        try:
            yield
        except InputError as error:
            if str(error).startswith(self._document.source):
                raise
            raise self._document.error(place, error) from None
        except LivensError as error:
            raise self._document.error(place, error) from None

    # -- elements -----------------------------------------------------------------------------------------------------
    def _draw(self) -> Multibody:
        fields = self._fields
        gravity = None if fields.gravity is None else self._vector(fields.gravity, ("gravity",))
        if isinstance(fields, RobotScenario):
            mb = self._robot(fields, gravity)
        else:
            with self._at(("gravity",)):
                mb = Multibody(gravity, planar=bool(fields.planar), redundant=fields.redundant or "auto")
        self._mb = mb
        for name, given in fields.bodies.items():
            self._body(name, given, ("bodies", name))
        for name, given in fields.joints.items():
            self._part(name, given, ("joints", name), JOINTS)
        for name, given in fields.forces.items():
            self._part(name, given, ("forces", name), FORCES)
        for name, given in fields.start.items():
            self._start(name, given, ("start", name))
        for name, given in fields.sensors.items():
            self._sensor(name, given, ("sensors", name))
        with self._at(("start",) if fields.start else ("joints",)):
            _ = mb.assembled.state
        return mb

    def _robot(self, fields: RobotScenario, gravity: Any) -> Multibody:
        """Import a robot file; `gravity` replaces that of the file."""
        file = robot_file(fields.robot, self._document.source)
        with self._at(("robot",)):
            if file.suffix.lower() not in ROBOTS:
                ends = ", ".join(ROBOTS)
                raise InputError(f"the name of a robot file must end in {ends}, got '{shown(file.name)}'")
            if fields.planar:
                raise InputError("planar is not available for a robot file, which is three-dimensional")
            more: dict[str, Any] = {} if fields.limit_stiffness is None else {"limit_stiffness": fields.limit_stiffness}
            if file.suffix.lower() == ".urdf":
                mb = Multibody.from_urdf(file, base=fields.base or "fixed", **more)
            elif fields.base is not None:
                raise InputError("base is for URDF files only: an MJCF file defines whether its base is fixed")
            else:
                mb = Multibody.from_mjcf(file, **more)
        with self._at(("gravity",)):
            if gravity is not None:
                mb.gravity = array("gravity", gravity, (3,))
        mb.redundant = fields.redundant or "auto"
        return mb

    def _type(self, given: Mapping[str, Any], place: Place, field: str, known: tuple[str, ...]) -> str:
        what = given.get(field)
        if not isinstance(what, str) or what not in known:
            got = "nothing" if what is None else f"'{shown(what)}'"
            hint = suggestion(str(what)[:60], known) if what is not None else f"; allowed: {', '.join(known)}"
            raise self._document.error((*place, field), f"unknown type {got}{hint}")
        return what

    def _body(self, name: str, given: Mapping[str, Any], place: Place) -> None:
        shape = self._type({"shape": "body", **given}, place, "shape", BODIES)
        points = given.get("points") or {}
        if not isinstance(points, Mapping):
            raise self._document.error((*place, "points"), "must be names with points (name: [x, y, z])")
        rest = {key: value for key, value in given.items() if key not in ("shape", "points", "look")}
        arguments = self._arguments(shape, rest, place)
        if "look" in given:
            arguments["shape"] = self._look(shape, given["look"], (*place, "look"))
        with self._at(place):
            part = getattr(self._mb, shape)(name, **arguments)
        for point, at in points.items():
            where = (*place, "points", point)
            with self._at(where):
                if isinstance(at, Mapping):  # a frame
                    if "at" not in at or not set(at) <= {"at", "axes"}:
                        raise InputError("a frame must have the form {at: point, axes: three columns}")
                    axes = None if at.get("axes") is None else self._vector(at["axes"], (*where, "axes"))
                    part.frame(point, at=self._point(at["at"], (*where, "at")), axes=axes)
                else:
                    part.point(point, at=self._point(at, where))

    def _look(self, shape: str, given: Any, place: Place) -> tuple[Any, ...]:
        """Parse the visual geometry of a body with given inertia: ``{cylinder: [length, radius]}``."""
        sizes = {"rod": 2, "box": 3, "sphere": 1, "cylinder": 2, "ring": 2}
        if shape != "body" or not isinstance(given, Mapping) or len(given) != 1:
            reason = "needs a body without a shape, and one shape with its sizes, such as {cylinder: [0.2, 0.1]}"
            raise self._document.error(place, reason)
        ((kind, numbers),) = given.items()
        values = self._vector(numbers, (*place, kind))
        if kind not in sizes or len(values) != sizes[kind]:
            raise self._document.error(place, f"'{shown(kind)}' is not a shape with {len(values)} sizes: {sizes}")
        return (kind, *values)

    def _part(self, name: str, given: Mapping[str, Any], place: Place, known: tuple[str, ...]) -> None:
        what = self._type(given, place, "type", known)
        method = getattr(self._mb, what)
        between = {"type", "between", "joints", "joint", "body", "through", *(["weights"] if what == "couple" else [])}
        arguments = self._arguments(what, {k: v for k, v in given.items() if k not in between}, place)
        with self._at(place):
            if what in _BETWEEN_BODIES or what in ("bushing", "gravitation"):
                method(name, *self._listed(given, place, "between", 2, self._named_body), **arguments)
            elif what == "couple":
                members = self._listed(given, place, "joints", None, self._joint)
                weights = self._vector(given.get("weights"), (*place, "weights"))
                if len(weights) != len(members):
                    reason = f"must have one number for each of the {len(members)} joints"
                    raise self._document.error((*place, "weights"), reason)
                method(name, *zip(members, weights, strict=True), **arguments)
            elif what in _OF_JOINTS:
                method(name, *self._listed(given, place, "joints", _OF_JOINTS[what], self._joint), **arguments)
            elif what in _NAMED_LATER:
                method(self._joint(given.get("joint"), (*place, "joint")), name=name, **arguments)
            elif what in _IN_JOINTS:
                method(name, self._joint(given.get("joint"), (*place, "joint")), **arguments)
            elif what == "wrench":
                method(name, self._named_body(given.get("body"), (*place, "body")), **arguments)
            elif what == "cable":
                method(name, *self._listed(given, place, "through", None, self._point), **arguments)
            else:
                method(name, *self._listed(given, place, "between", 2, self._point), **arguments)

    def _listed(
        self, given: Mapping[str, Any], place: Place, field: str, count: int | None, read: Callable[[Any, Place], Any]
    ) -> list[Any]:
        values = given.get(field)
        if not isinstance(values, (list, tuple)) or (count is not None and len(values) != count):
            raise self._document.error((*place, field), f"must be a list of {count or 'points'}, got '{shown(values)}'")
        return [read(value, (*place, field, i)) for i, value in enumerate(values)]

    def _start(self, name: str, given: Mapping[str, Any], place: Place) -> None:
        what = self._mb.bodies.get(name) or self._mb.joints.get(name)
        if what is None:
            known = {*self._mb.bodies, *self._mb.joints}
            raise self._document.error(
                place, f"unknown body or joint '{shown(name)}'{suggestion(name[:60], known)}"
            )
        of_joint = not isinstance(what, Part)
        read = {
            key: self._value(key, value, (*place, key), number=of_joint and key != "hold")
            for key, value in given.items()
        }
        with self._at(place):
            self._mb.start(what, **read)

    def _sensor(self, name: str, given: Mapping[str, Any], place: Place) -> None:
        for key in given:
            if key not in ("point", "quantity", "relative_to"):
                reason = f"unknown field '{shown(key)}'; a sensor has the fields point or quantity, and relative_to"
                raise self._document.error(place, reason)
        if ("point" in given) == ("quantity" in given):
            raise self._document.error(place, "a sensor needs either point or quantity")
        seen = str(given["quantity"]) if "quantity" in given else self._point(given.get("point"), (*place, "point"))
        frame = given.get("relative_to")
        with self._at(place):
            self._mb.sensor(
                name, seen, relative_to=None if frame is None else self._point(frame, (*place, "relative_to"))
            )

    # -- arguments ----------------------------------------------------------------------------------------------------
    def _arguments(self, what: str, given: Mapping[str, Any], place: Place) -> dict[str, Any]:
        allowed, needed = _signature(what)
        for key in given:
            if key not in allowed:
                reason = f"a {what} has no '{shown(key)}'{suggestion(str(key)[:60], allowed)}"
                raise self._document.error((*place, key), reason)
        for key in needed:
            if given.get(key) is None:
                raise self._document.error(place, f"the field '{key}' of a {what} is missing")
        found = {}
        for key, value in given.items():
            if value is None:
                continue
            here = (*place, key)
            law = _LAWS.get(what, {}).get(key)
            found[key] = self._law(value, law, here) if law else self._value(key, value, here)
        return found

    def _value(self, key: str, value: Any, place: Place, number: bool = False) -> Any:
        if key in _FLAGS:
            if value not in ("true", "false", True, False):
                raise self._document.error(place, f"must be true or false, got '{shown(value)}'")
            return value in ("true", True)
        if key in _WORDS:
            return str(value)
        if key in _AXES and isinstance(value, str) and value in ("x", "y", "z"):
            return value
        if key in _POINTS and not number:
            return self._point(value, place)
        if isinstance(value, (list, tuple)) and not number:
            return self._vector(value, place)
        return self._number(value, place)

    def _point(self, value: Any, place: Place) -> Any:
        """Parse a point: numbers, a named point such as ``crank.b``, or a body (its centre)."""
        if not isinstance(value, str):
            return self._vector(value, place)
        body, _, point = value.partition(".")
        part = self._named_body(body, place)
        if not point:
            return part
        if point not in part.markers:
            reason = f"'{body}' has no point '{shown(point)}'{suggestion(point[:60], part.markers)}"
            raise self._document.error(place, reason)
        return part.markers[point]

    def _named_body(self, value: Any, place: Place) -> Part:
        if value == "ground":
            return self._mb.ground
        if not isinstance(value, str) or value not in self._mb.bodies:
            known = {"ground", *self._mb.bodies}
            got = "nothing" if value is None else f"'{shown(value)}'"
            raise self._document.error(place, f"unknown body {got}{suggestion(str(value)[:60], known)}")
        return self._mb.bodies[value]

    def _joint(self, value: Any, place: Place) -> Any:
        if not isinstance(value, str) or value not in self._mb.joints:
            got = "nothing" if value is None else f"'{shown(value)}'"
            raise self._document.error(place, f"unknown joint {got}{suggestion(str(value)[:60], self._mb.joints)}")
        return self._mb.joints[value]

    def _vector(self, value: Any, place: Place) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise self._document.error(place, f"must be a list of numbers such as [0, 0, 1], got '{shown(value)}'")
        return [
            self._vector(one, (*place, i)) if isinstance(one, (list, tuple)) else self._number(one, (*place, i))
            for i, one in enumerate(value)
        ]

    def _number(self, value: Any, place: Place) -> float:
        return float(self._expression(value, (), place)())

    def _law(self, value: Any, allowed: tuple[str, ...], place: Place) -> Callable[..., Any]:
        """Return a function of the allowed variables; with x, y, z a function of one point."""
        if isinstance(value, (list, tuple)):
            parts = [self._expression(one, allowed, (*place, i)) for i, one in enumerate(value)]
            whole: Callable[..., Any] = lambda *args: [part(*args) for part in parts]  # noqa: E731
        else:
            whole = self._expression(value, allowed, place)
        if allowed == ("x", "y", "z"):
            return lambda point: whole(*(list(point) + [0.0])[:3])
        return whole

    def _expression(self, value: Any, allowed: tuple[str, ...], place: Place) -> Callable[..., Any]:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = repr(float(value))
        if not isinstance(value, str):
            got = "nothing" if value is None else f"'{shown(value)}'"
            raise self._document.error(place, f"must be a number or an expression, got {got}")
        text = value
        with self._at(place):
            tree = parse(text)
            for name in names(tree):
                known = {*self._values, *CONSTANTS, *allowed}
                if name.name not in known:
                    reason = f"unknown name '{shown(name.name)}'{suggestion(name.name[:60], known)}"
                    raise ExpressionError(reason, text, name.column)

        def law(*arguments: Any) -> Any:
            values = {**self._values, **dict(zip(allowed, arguments, strict=True))}
            with self._at(place):
                return evaluate(tree, values, text)

        return law


@functools.cache
def _signature(what: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keyword arguments of a method of Multibody, and the required ones."""
    parameters = inspect.signature(getattr(Multibody, what)).parameters.values()
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in ("name", "shape", "points")]
    more = ("at", "to") if any(p.kind is p.VAR_KEYWORD for p in parameters) else ()
    allowed = (*(p.name for p in keywords if p.name != "parameters"), *more)
    return allowed, tuple(p.name for p in keywords if p.default is p.empty)
