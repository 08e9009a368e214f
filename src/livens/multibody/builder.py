"""Multibody models: `livens.Multibody`, built from bodies, joints and force elements in a reference configuration."""

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

if TYPE_CHECKING:  # importers, contacts and statics are imported on demand
    from livens.multibody.imports.robot import Robot
    from livens.multibody.mobility import Report
    from livens.multibody.statics import Equilibrium

#: Largest plausible initial angle in radians; a larger value is rejected, with a hint to `lv.deg`.
_MOST_RADIANS = 50.0
#: Largest number of load steps of a static equilibrium.
_MOST_LOAD_STEPS = 1_000_000


class Multibody(DrawnPlates, DrawnJoints, DrawnControl, DrawnContacts):
    """Multibody model: bodies, joints, force elements and contacts, added by methods.

    Points and axes are given in the reference configuration, in global coordinates. The reference configuration need
    not satisfy the constraints: `initial` sets initial values, and the assembly solves for a consistent initial state.

    Parameters
    ----------
    gravity : array_like of shape (3,) or (2,), optional
        Gravitational acceleration in m/s^2. By default there is none.
    planar : bool, default False
        If True, all bodies move in the plane x, y.
    redundant : {"auto", "error", "remove"}, default "auto"
        Treatment of redundant constraints.

    Examples
    --------
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
        """Read a robot from a URDF file.

        The reference configuration has all joint coordinates at zero. A ``<mimic>`` joint becomes an exact coupling.

        Parameters
        ----------
        path : str or Path
            URDF file.
        base : {"fixed", "floating"}, default "fixed"
            Whether the root link belongs to the ground or is a free body.
        packages : mapping of str to path, optional
            Folders of the packages in ``package://`` addresses. By default they are searched above the file.
        limit_stiffness : float, optional
            Stiffness of the joint limits in N m/rad or N/m. Without it, joint limits are ignored.

        Returns
        -------
        Multibody
            Model of the robot; ``import_warnings`` lists the content of the file that is ignored.

        Raises
        ------
        InputError
            If the file is not a valid URDF file, or if no link can move.
        """
        from livens.multibody.imports.urdf import read_urdf

        file = path_of("path", path)
        one_of("base", base, ("fixed", "floating"))
        return cls._drawn_from(read_urdf(file, base, _folders(packages)), limit_stiffness)

    @classmethod
    def from_mjcf(cls, path: str | Path, *, limit_stiffness: float | None = None) -> Multibody:
        """Read a model from an MJCF file (MuJoCo).

        The reference configuration is that of the file. ``equality`` elements become exact constraints.

        Parameters
        ----------
        path : str or Path
            MJCF file.
        limit_stiffness : float, optional
            Stiffness of the joint limits in N m/rad or N/m. Without it, joint limits are ignored.

        Returns
        -------
        Multibody
            Model; ``import_warnings`` lists the content of the file that is ignored.

        Raises
        ------
        InputError
            If the file is not a valid MJCF file, or if no body can move.
        """
        from livens.multibody.imports.mjcf import read_mjcf

        return cls._drawn_from(read_mjcf(path_of("path", path)), limit_stiffness)

    def to_mjcf(self, path: str | Path, *, force: bool = False) -> list[str]:
        """Write the model as an MJCF file (MuJoCo), in its initial configuration.

        The keyframe ``start`` contains the initial velocities. Loop-closing joints become ``equality`` constraints,
        which MuJoCo treats as soft constraints.

        Parameters
        ----------
        path : str or Path
            File to write.
        force : bool, default False
            Whether to replace an existing file.

        Returns
        -------
        list of str
            Content of the model that MJCF cannot represent, such as control laws; also written as comments.

        Raises
        ------
        InputError
            If a joint has no counterpart in MuJoCo, or if the file exists and `force` is False.
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
            raise InputError(f"{robot.name}: no body can move, so there is nothing to simulate")
        return mb

    # -- initial state ------------------------------------------------------------------------------------------------
    def start(self, what: Joint | Part, *, hold: bool = True, **targets: Any) -> None:
        """Set initial values of a joint or of a body.

        All other coordinates and velocities follow from the constraints: the configuration nearest to the reference
        configuration, and the velocity of least kinetic energy.

        Parameters
        ----------
        component : Joint or Body
            Joint or body whose initial values are set.
        required : bool, default True
            Whether the values must be met exactly. Values that are not required are met in the least-squares sense.
        **targets : float or array_like
            For joints: ``angle`` (rad), ``rate`` (rad/s), ``position`` (m), ``velocity`` (m/s). For bodies:
            ``position`` (m) and ``velocity`` (m/s) of the centre of mass, ``omega`` (rad/s); components in space.

        Raises
        ------
        InputError
            If the joint or body does not have the quantity, or if an angle is implausibly large for radians.
        """
        if isinstance(what, Joint):
            self._is_joint("a start", what)
        else:
            self._known("a start", what)
        known = {"angle", "rate", "position", "speed"} if isinstance(what, Joint) else {"position", "velocity", "omega"}
        for name, value in targets.items():
            if name not in known:
                raise InputError(f"{what.name}: there is no initial value '{name}'{suggestion(name, known)}")
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
        # monitored as long as no element, such as one fixed in space, breaks the symmetry
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
        """Equations of motion as a `System` of elements.

        Returns
        -------
        System
            System, built on first access and after every change of the model.
        """
        return self._made[0]

    @property
    def elements(self) -> tuple[Element, ...]:
        """Elements of the system.

        Returns
        -------
        tuple of Element
            Elements in the order of the system.
        """
        return self.system.elements

    @property
    def assembled(self) -> Assembly:
        """Solver of the initial configuration and velocities.

        Returns
        -------
        Assembly
            Assembly of this model.
        """
        return self._made[1]

    @property
    def started(self) -> tuple[np.ndarray, np.ndarray]:
        """Consistent initial coordinates and velocities.

        Returns
        -------
        q : ndarray of shape (n,)
            Initial coordinates.
        v : ndarray of shape (n,)
            Initial velocities.

        Raises
        ------
        InputError
            If the constraints and required initial values cannot be met, or if bodies penetrate too deeply.
        """
        q, v = self.assembled.state
        if self._contacts or self._crowds:
            from livens.multibody.contacts.crowd import check_start
            from livens.multibody.contacts.start import check_overlaps

            check_overlaps(self._contacts.values(), self.system, q)
            check_start(self._crowds, self.system, q)
        return q, v

    def check_steps(self, h: float) -> None:
        """Check that a step size resolves the collisions that are about to happen.

        Parameters
        ----------
        h : float
            Step size in s.

        Raises
        ------
        InputError
            If an expected collision lasts less than two steps.
        """
        if not self._contacts and not self._crowds:
            return
        from livens.multibody.contacts.crowd import check_blows
        from livens.multibody.contacts.start import check_steps

        fall = 0.0 if self.gravity is None else float(np.linalg.norm(self.gravity))
        check_steps(self._contacts.values(), self.system, *self.assembled.state, h, fall)
        check_blows(self._crowds, self.system, *self.assembled.state, h, fall)

    @property
    def usual_scheme(self) -> str:
        """Default integration scheme of the model.

        Returns
        -------
        str
            ``"semi-explicit-2:0.5"`` with contact groups, else ``"lie-em"``.
        """
        return "semi-explicit-2:0.5" if self._crowds else "lie-em"

    def check(self) -> Report:
        """Report mobility, redundant constraints and the assembled initial values; nothing is compiled.

        Returns
        -------
        MobilityReport
            Report; ``print(mb.check())`` shows it as text.
        """
        from livens.multibody.mobility import report

        return dataclasses.replace(report(self.system, self.assembled, self.connections), notes=tuple(self.notes))

    def equilibrium(self, *, load_steps: int | None = None, t: float = 0.0) -> Equilibrium:
        """Compute a static equilibrium, and use it as the initial state, at rest.

        Parameters
        ----------
        load_steps : int, optional
            Number of load steps. Forces, torques and gravity then grow in at least this many steps, and each
            equilibrium is computed from the previous one. Use it for elastic bodies with large deflections. Without
            it, a Newton method with a line search on the energy starts from the initial configuration.
        t : float, default 0
            Time in s at which the loads are evaluated.

        Returns
        -------
        Equilibrium
            Coordinates, residual, stability and number of iterations.

        Raises
        ------
        InputError
            If no equilibrium is found, or if the model has a PID controller.
        """
        if self._integrals:
            one = next(iter(self._integrals))
            raise InputError(f"the equilibrium of the PID controller '{one}' has zero error: set it as initial value")
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
        """Add a sensor: the motion of a point relative to a frame, or a vector resolved in a frame.

        Results of a point are ``name.position`` (m) and ``name.velocity`` (m/s), relative to the frame. The result of
        a quantity is ``run[name]``.

        Parameters
        ----------
        name : str
            Name of the sensor.
        target : Marker, Body or str
            Point of a body (for a body: its centre of mass), or the name of a vector such as ``"pin.force"``.
        relative_to : Marker or Body, optional
            Frame of a body. By default, or with the ground, the frame is that of space.

        Raises
        ------
        InputError
            If the target is not a point of a body of this model.
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
            raise InputError(f"{name}: a sensor needs a point of a body, got {given!r}")
        self._known(name, found.part)
        return found

    def problem(
        self, name: str = "mechanism", *, h: float = 1e-3, t_end: float = 1.0, scheme: str | None = None, **more: Any
    ) -> Problem:
        """Return the model as a `Problem` with its initial values.

        Parameters
        ----------
        name : str, default "mechanism"
            Name of the problem.
        h : float, default 1e-3
            Step size in s.
        t_end : float, default 1
            End time in s.
        scheme : str, optional
            Integration scheme; by default `default_scheme`.
        **options : optional
            Further fields of `Problem`.

        Returns
        -------
        Problem
            Problem with consistent initial values.
        """
        q, v = self.started
        return Problem(name, self.system, q, v, scheme or self.usual_scheme, h, t_end, **more)

    @classmethod
    def attach(cls, name: str, value: Any) -> None:
        """Add a method that a later layer defines, under a name listed in `livens.MULTIBODY_ACCESSORS`.

        Parameters
        ----------
        name : str
            Name of the method.
        value : callable
            Function or property.
        """
        setattr(cls, name, with_words(value, f"Multibody.{name}") if isinstance(value, FunctionType) else value)

    def __getattr__(self, name: str) -> Any:
        """Import the layer that defines a late-bound method such as `simulate`, and return the method."""
        if name in livens.MULTIBODY_ACCESSORS and name not in vars(type(self)):
            importlib.import_module(f"livens.{livens.MULTIBODY_ACCESSORS[name]}")
            return getattr(self, name)
        raise AttributeError(f"a Multibody has no '{name}'{suggestion(name, dir(type(self)))}")

    def __repr__(self) -> str:
        return f"<livens.Multibody: {len(self.bodies)} bodies, {len(self.joints)} joints>"


def _besides(generator: Callable[[Any], Any], count: int) -> Callable[[Any], Any]:
    """Extend the generator of a symmetry by `count` coordinates that it leaves unchanged."""

    def generated(q: Any) -> Any:
        rows = generator(q[:-count])
        return np.hstack([rows, np.zeros((len(rows), count))])

    return generated


def _folders(packages: Any) -> dict[str, Path] | None:
    if packages is None:
        return None
    if not isinstance(packages, Mapping):
            raise InputError(f"packages must map package names to folders, as {{'name': folder}}, got {packages!r}")
    return {str(name): path_of(f"packages: {name}", folder) for name, folder in packages.items()}


def _weight(body: Body) -> Element:
    """Return the gravity element of a body, with the gravity parameter shared by the whole model."""
    centre = Point((body, body.centre))
    parameters = dict(mass=same_as(body, "mass"), X=centre.lever)
    name = f"weight of {body.name}"
    return Element(centre.coordinates, potential=loads.weight(centre.placement), parameters=parameters, name=name)
