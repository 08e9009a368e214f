"""Mechanisms by drawing them: bodies, joints and forces, said once, in space."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

import livens
from livens.errors import InputError, suggestion, with_words
from livens.expressions.numbers import array, flag, number, one_of, path_of, positive, whole_number
from livens.expressions.parameters import same_as
from livens.models.element import Element
from livens.models.problem import Problem
from livens.models.system import System
from livens.multibody import loads
from livens.multibody.assembly import Assembly, Target
from livens.multibody.bodies import Body, Point, coordinates
from livens.multibody.drawn_contacts import DrawnContacts
from livens.multibody.drawn_control import DrawnControl
from livens.multibody.drawn_joints import DrawnJoints
from livens.multibody.drawn_plates import DrawnPlates
from livens.multibody.joint import Joint
from livens.multibody.momenta import angular_momentum, linear_momentum
from livens.multibody.named import quantities
from livens.multibody.parts import Marker, Part
from livens.multibody.sampled import connect
from livens.multibody.stops import impacts_of, stops_of

if TYPE_CHECKING:  # files of robots, contacts and statics are imported where they are needed: most drawings need none
    from livens.multibody.imports.robot import Robot
    from livens.multibody.mobility import Report
    from livens.multibody.statics import Equilibrium

#: An angle above this at the start is taken for degrees.
_MOST_RADIANS = 50.0
#: Loads grow in at most this many steps.
_MOST_LOAD_STEPS = 1_000_000


class Multibody(DrawnPlates, DrawnJoints, DrawnControl, DrawnContacts):
    """A mechanism: parts are added by its methods, each with a name first, then the bodies it is between.

    Points and axes are those of the drawing, in space; ``planar=True`` is for bodies in the plane x, y. The drawing
    need not be assembled: `start` says what is known, the rest is solved for.

    >>> import livens as lv
    >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
    >>> arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
    >>> hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
    >>> mb.start(hinge, angle=90 * lv.deg, rate=0.5)
    >>> mb.check().mobility
    1
    """

    # -- files of robots ----------------------------------------------------------------------------------------------
    @classmethod
    def from_urdf(
        cls,
        path: str | Path,
        *,
        base: str = "fixed",
        packages: Mapping[str, str | Path] | None = None,
        limit_stiffness: float | None = None,
    ) -> Multibody:
        """A robot from a URDF file, drawn with all joints at zero; ``<mimic>`` becomes an exact coupling.

        The first link is part of the ground unless the `base` is "floating". `packages` says where those are that
        ``package://`` names, if not above the file. Ends of the ways of joints act with a `limit_stiffness`. What is
        not taken over is listed in ``notes``.
        """
        from livens.multibody.imports.urdf import read_urdf

        file = path_of("path", path)
        one_of("base", base, ("fixed", "floating"))
        return cls._drawn_from(read_urdf(file, base, _folders(packages)), limit_stiffness)

    @classmethod
    def from_mjcf(cls, path: str | Path, *, limit_stiffness: float | None = None) -> Multibody:
        """A robot from an MJCF file (MuJoCo's), drawn at its reference pose; ``equality`` becomes exact constraints.

        Ends of the ways of joints act with a `limit_stiffness`. What is not taken over is listed in ``notes``.
        """
        from livens.multibody.imports.mjcf import read_mjcf

        return cls._drawn_from(read_mjcf(path_of("path", path)), limit_stiffness)

    def to_mjcf(self, path: str | Path, *, force: bool = False) -> list[str]:
        """Write the mechanism as an MJCF file, to look at it in MuJoCo, as it stands at the start.

        The velocities of the start are the keyframe ``start``. Joints that close loops become ``equality`` constraints,
        which MuJoCo holds softly. Returned, and written as comments, are sentences about what is not in the file, such
        as laws of motors; a joint that MuJoCo has nothing for is an error. A file that is there already is replaced
        only with `force`.
        """
        from livens.multibody.exports.mjcf import write_mjcf

        return write_mjcf(self, path_of("path", path), flag("force", force))

    @classmethod
    def _drawn_from(cls, robot: Robot, limit_stiffness: float | None) -> Multibody:
        from livens.multibody.imports.draw import Drawer

        stiffness = None if limit_stiffness is None else positive("limit_stiffness", limit_stiffness)
        mb = cls(gravity=robot.gravity if robot.gravity.any() else None)
        Drawer(mb, robot, stiffness).draw()
        if not mb.bodies:
            raise InputError(f"{robot.name}: nothing in it moves, so there is nothing to simulate")
        return mb

    # -- start --------------------------------------------------------------------------------------------------------
    def start(self, what: Joint | Part, *, hold: bool = True, **targets: Any) -> None:
        """What is known of the start: ``angle``, ``rate``, ``position``, ``speed`` of a joint, or ``position``,
        ``velocity``, ``omega`` of a body.

        Held targets are met, or it is an error; others as well as they can.
        """
        if isinstance(what, Joint):
            self._is_joint("a start", what)
        else:
            self._known("a start", what)
        known = {"angle", "rate", "position", "speed"} if isinstance(what, Joint) else {"position", "velocity", "omega"}
        for name, value in targets.items():
            if name not in known:
                raise InputError(f"{what.name}: a start has no '{name}'{suggestion(name, known)}")
            if isinstance(what, Joint):
                self._needs(f"start of {what.name}", what, "angle" if name in ("angle", "rate") else "slide")
            values = array(f"{what.name}: {name}", value)
            size = 1 if isinstance(what, Joint) or (name == "omega" and self.dimension == 2) else self.dimension
            if values.size != size or values.ndim > 1:
                words = "one number" if size == 1 else f"{size} numbers"
                raise InputError(f"{what.name}: {name} must be {words}, got {value!r}")
            if name == "angle" and abs(float(values.item())) > _MOST_RADIANS:
                raise InputError(
                    f"{what.name}: an angle of {float(values.item()):g} rad? In degrees it is written {value}*lv.deg"
                )
            self._targets.append(Target(what, name, np.atleast_1d(values), hold))
        self.__dict__.pop("_made", None)

    @functools.cached_property
    def _made(self) -> tuple[System, Assembly]:
        made = self._drawn()
        if self._stops:
            touched = {one.stop.limit for one in impacts_of(made[0], self._stops) if one.touches(made[1].position)}
            for limit in {one.limit for one in self._stops}:
                self._acting[limit].parameters.values["touching"] = np.array(float(limit in touched))
            if touched:
                made = self._drawn()
        return made

    def _drawn(self) -> tuple[System, Assembly]:
        system = self._system()
        return system, Assembly(system, list(self.bodies.values()), list(self._targets))

    def _system(self) -> System:
        parts = list(self.bodies.values())
        if not parts:
            raise InputError("a mechanism needs at least one body")
        owned = [part.element for part in parts if part.element is not None]
        beside = [body for body, _ in self._integrals.values()]
        beside += [body for landing in self._landings.values() for body in landing.idle]
        elements: list[Element] = [*owned, *beside, *(one.element for one in self.connections.values())]
        elements += [*(one.element for one in self.couplings.values()), *self._acting.values()]
        elements += [element for contact in self._contacts.values() for element in contact.elements]
        elements += [landing.element for landing in self._landings.values()]
        elements += [crowd.element for crowd in self._crowds.values()]
        elements += self._elastic
        shared = {}
        if self.gravity is not None:
            shared["gravity"] = self.gravity
            elements += [_weight(body) for body in owned]
        # watched wherever nothing breaks them, such as the ground
        momenta = dict(linear_momentum=linear_momentum(owned), angular_momentum=angular_momentum(owned))
        if beside:
            momenta = {name: _besides(generator, len(beside)) for name, generator in momenta.items()}
        names = coordinates([*owned, *beside])
        system = System(names, elements=elements, parameters=shared, symmetries=momenta, frames=True)
        if self._crowds:
            from livens.multibody.contacts.crowd import found_contacts

            system.box = found_contacts(system, self)
        system.redundant = self.redundant
        system.quantities = quantities(system, self)
        if self._sampled:
            system.quantities |= connect(system, self._sampled)
        system.stops = stops_of(system, self._stops)
        system.bounces = self._bounces
        return system

    @property
    def system(self) -> System:
        """The mechanism as a system of elements."""
        return self._made[0]

    @property
    def elements(self) -> tuple[Element, ...]:
        return self.system.elements

    @property
    def assembled(self) -> Assembly:
        """Positions and velocities that meet joints and targets, and how."""
        return self._made[1]

    @property
    def started(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities to start from, in which no two bodies are within each other."""
        q, v = self.assembled.state
        if self._contacts or self._crowds:
            from livens.multibody.contacts.crowd import check_start
            from livens.multibody.contacts.start import check_overlaps

            check_overlaps(self._contacts.values(), self.system, q)
            check_start(self._crowds, self.system, q)
        return q, v

    def check_steps(self, h: float) -> None:
        """Refuse steps that are longer than half of a blow that is about to come."""
        if not self._contacts and not self._crowds:
            return
        from livens.multibody.contacts.crowd import check_blows
        from livens.multibody.contacts.start import check_steps

        fall = 0.0 if self.gravity is None else float(np.linalg.norm(self.gravity))
        check_steps(self._contacts.values(), self.system, *self.assembled.state, h, fall)
        check_blows(self._crowds, self.system, *self.assembled.state, h, fall)

    @property
    def usual_scheme(self) -> str:
        """What runs are simulated with, if nothing else is said."""
        return "semi-explicit-2:0.5" if self._crowds else "lie-em"

    def check(self) -> Report:
        """Mobility, redundancy and assembly, before anything is compiled."""
        from livens.multibody.mobility import report

        return dataclasses.replace(report(self.system, self.assembled, self.connections), notes=tuple(self.notes))

    def equilibrium(self, *, load_steps: int | None = None, t: float = 0.0) -> Equilibrium:
        """A position of rest, found downhill from the start; the mechanism then starts there, at rest.

        With `load_steps`, forces, torques and gravity grow to what they are at the time `t` in this many steps at
        least, and each equilibrium is found from the one before: for elastic bodies that go far.
        """
        if self._integrals:
            one = next(iter(self._integrals))
            raise InputError(f"the controller '{one}' rests where its error is zero: give that as the start")
        if load_steps is None:
            from livens.multibody.statics import equilibrium

            found = equilibrium(self.system, self.assembled)
        else:
            from livens.multibody.load_steps import loaded_equilibrium

            steps = whole_number("load_steps", load_steps, least=1, most=_MOST_LOAD_STEPS)
            found = loaded_equilibrium(self.system, self.assembled, steps, number("t", t))
        self.assembled.settle(found.position)
        return found

    def sensor(self, name: str, what: Marker | Part | str, *, relative_to: Marker | Part | None = None) -> None:
        """Where a point is, and how fast, seen from a frame of a body: ``name.position`` and ``name.velocity``.

        Without a frame, or with the ground, it is seen from space; velocities are those that the frame sees. With the
        name of a quantity, such as ``"pin.force"``, this vector is shown in the axes of the frame, as ``run[name]``.
        """
        self._new(name)
        frame = None if relative_to is None or relative_to is self.ground else self._marker(name, relative_to)
        if isinstance(what, str):
            self._turned[name] = what, frame
        else:
            self._watched[name] = self._marker(name, what), frame

    def _marker(self, name: str, given: Any) -> Marker:
        found = given.centre if isinstance(given, Part) and given.element is not None else given
        if not isinstance(found, Marker):
            raise InputError(f"{name}: a sensor is at a point of a body, got {given!r}")
        self._known(name, found.part)
        return found

    def problem(
        self, name: str = "mechanism", *, h: float = 1e-3, t_end: float = 1.0, scheme: str | None = None, **more: Any
    ) -> Problem:
        """The mechanism as a problem, assembled."""
        q, v = self.started
        return Problem(name, self.system, q, v, scheme or self.usual_scheme, h, t_end, **more)

    @classmethod
    def attach(cls, name: str, value: Any) -> None:
        """Add a method from a later room, under a name that `livens.MULTIBODY_ACCESSORS` has."""
        setattr(cls, name, with_words(value, f"Multibody.{name}") if isinstance(value, FunctionType) else value)

    def __getattr__(self, name: str) -> Any:
        """What later rooms attach, such as `simulate`, is attached when they are imported."""
        if name in livens.MULTIBODY_ACCESSORS and name not in vars(type(self)):
            importlib.import_module(f"livens.{livens.MULTIBODY_ACCESSORS[name]}")
            return getattr(self, name)
        raise AttributeError(f"a Multibody has no '{name}'{suggestion(name, dir(type(self)))}")

    def __repr__(self) -> str:
        return f"<livens.Multibody: {len(self.bodies)} bodies, {len(self.joints)} joints>"


def _besides(generator: Callable[[Any], Any], count: int) -> Callable[[Any], Any]:
    """A generator of a symmetry, for a system with so many coordinates more, which it does not move."""

    def generated(q: Any) -> Any:
        rows = generator(q[:-count])
        return np.hstack([rows, np.zeros((len(rows), count))])

    return generated


def _folders(packages: Any) -> dict[str, Path] | None:
    if packages is None:
        return None
    if not isinstance(packages, Mapping):
        raise InputError(f"packages must say where each package is, as {{'name': folder}}, got {packages!r}")
    return {str(name): path_of(f"packages: {name}", folder) for name, folder in packages.items()}


def _weight(body: Body) -> Element:
    """As `livens.bodies.gravity`, with the gravity of the whole mechanism."""
    centre = Point((body, body.centre))
    parameters = dict(mass=same_as(body, "mass"), X=centre.lever)
    name = f"weight of {body.name}"
    return Element(centre.coordinates, potential=loads.weight(centre.placement), parameters=parameters, name=name)
