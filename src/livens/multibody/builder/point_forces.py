"""Builder methods for forces between points: springs, dampers, force laws, gravitation, cables, moving markers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.models.element import Element
from livens.multibody import bushings, force_laws, point_forces
from livens.multibody.body import Body, MovingMarker, PointLike, parse_point
from livens.multibody.body_elements import AttachmentPoint
from livens.multibody.builder.base import ModelBase
from livens.multibody.force_outputs import BodyWrenchOutputs, CableOutputs, PointToPointOutputs
from livens.multibody.inputs import (
    check_law,
    named_law,
    symbols_of,
    time_law,
)
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_nonnegative


class PointForceMethods(ModelBase):
    """Methods of `livens.Multibody` that add forces between points."""

    def spring(
        self,
        name: str,
        point_a: PointLike | Body,
        point_b: PointLike | Body,
        *,
        stiffness: float,
        free_length: float | None = None,
    ) -> Element:
        """Add a linear spring between two points.

        Results: ``name.tension`` (N, positive in tension) and ``name.length`` (m).

        Parameters
        ----------
        name : str
            Name of the spring.
        point_a, point_b : Marker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or fixed in space. At least one belongs to a body.
        stiffness : float
            Stiffness in N/m.
        free_length : float, optional
            Free length in m. By default the distance in the reference configuration.

        Returns
        -------
        Element
            Force element.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> ball = mb.particle("ball", at=[0, 0, -1], mass=2.0)
        >>> coil = mb.spring("coil", [0, 0, 0], ball, stiffness=100.0)
        >>> rest = mb.equilibrium()
        >>> round(float(mb.simulate(t_end=0.1, h=0.01)["coil.tension"][-1]), 9)
        19.62
        """
        if isinstance(point_a, MovingMarker) or isinstance(point_b, MovingMarker):
            values = dict(
                stiffness=check_nonnegative(f"{name}: the stiffness", stiffness),
                length=check_nonnegative(f"{name}: the length", self._reference_length(point_a, point_b, free_length)),
            )
            return self.force_law(name, point_a, point_b, potential=_spring_energy, parameters=values)
        ends, checked_length = (
            self._attachments(name, point_a, point_b),
            self._reference_length(point_a, point_b, free_length),
        )
        checked_stiffness = check_nonnegative(f"{name}: the stiffness", stiffness)
        element = self._add_force_element(
            name, point_forces.spring(*ends, checked_stiffness, checked_length), "spring", point_a, point_b
        )
        self._force_outputs.append(
            (name, PointToPointOutputs(element, self._body_and_point(point_a), self._body_and_point(point_b)))
        )
        return element

    def damper(self, name: str, point_a: PointLike | Body, point_b: PointLike | Body, *, damping: float) -> Element:
        """Add a linear damper between two points, along the line through them.

        The result is ``name.tension`` in N.

        Parameters
        ----------
        name : str
            Name of the damper.
        point_a, point_b : Marker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or fixed in space. At least one belongs to a body.
        damping : float
            Damping coefficient in N s/m.

        Returns
        -------
        Element
            Force element.
        """
        if isinstance(point_a, MovingMarker) or isinstance(point_b, MovingMarker):
            values = dict(viscosity=check_nonnegative(f"{name}: the damping", damping))
            return self.force_law(name, point_a, point_b, _damper_force, parameters=values)
        ends = self._attachments(name, point_a, point_b)
        element = self._add_force_element(name, point_forces.damper(*ends, damping), "damper", point_a, point_b)
        self._force_outputs.append(
            (name, PointToPointOutputs(element, self._body_and_point(point_a), self._body_and_point(point_b)))
        )
        return element

    def spring_damper(
        self,
        name: str,
        point_a: PointLike | Body,
        point_b: PointLike | Body,
        *,
        stiffness: float,
        damping: float,
        free_length: float | None = None,
    ) -> tuple[Element, Element]:
        """Add a linear spring and a damper between two points; the damper is called ``name damper``.

        Parameters
        ----------
        name : str
            Name of the spring.
        point_a, point_b : Marker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or fixed in space. At least one belongs to a body.
        stiffness : float
            Stiffness in N/m.
        damping : float
            Damping coefficient in N s/m.
        free_length : float, optional
            Free length in m. By default the distance in the reference configuration.

        Returns
        -------
        tuple of (Element, Element)
            Spring and damper.
        """
        check_nonnegative(f"{name}: the damping", damping)  # before the spring is added
        spring = self.spring(name, point_a, point_b, stiffness=stiffness, free_length=free_length)
        return spring, self.damper(f"{name} damper", point_a, point_b, damping=damping)

    def marker(self, name: str, *, position: ModelFunction) -> MovingMarker:
        """Return a point in space that moves as a function of time, such as a point of a road or of a shaker.

        The marker can be an end of springs, dampers and force laws. Its motion supplies energy.

        Parameters
        ----------
        name : str
            Name of the marker.
        position : callable
            Position in m, a function of time with the shape of a point.

        Returns
        -------
        MovingMarker
            Moving marker.

        Raises
        ------
        InputError
            If `position` is not a function of time that returns a point.

        Examples
        --------
        >>> import livens as lv
        >>> from livens import math as m
        >>> mb = lv.Multibody()
        >>> wheel = mb.particle("wheel", at=[0, 0, 0.5], mass=1.0)
        >>> road = mb.marker("road", position=lambda t: [0, 0, 0.1 * m.sin(t)])
        >>> tyre = mb.spring("tyre", road, wheel, stiffness=1e4)
        """
        self._claim_name(name)
        if not callable(position):
            raise InputError(f"{name}: the position must be a function of time, got {position!r}; see body.point")
        law = time_law(f"{name}: the position", position, "command", (self.dimension,))
        return MovingMarker(name, lambda t: law.function(t, None))

    def force_law(
        self,
        name: str,
        point_a: Any,
        point_b: Any,
        force: ModelFunction | None = None,
        *,
        potential: ModelFunction | None = None,
        parameters: Mapping[str, ArrayLike] | None = None,
    ) -> Element:
        """Add a force between two points, along the line through them, by a law of their distance.

        Results: ``name.tension`` (N, positive in tension) and ``name.length`` (m). A force that depends on the length
        only conserves the energy exactly if it is given as `potential`.

        Parameters
        ----------
        name : str
            Name of the force.
        point_a, point_b : Marker, MovingMarker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or in space. At least one belongs to a body.
        force : callable, optional
            Tension in N: a function of some of ``length``, ``rate``, ``t`` and ``k`` (the parameters).
        potential : callable, optional
            Potential energy in J: a function of ``length`` and ``k``. It adds to `force`.
        parameters : mapping of str to float, optional
            Parameters of the law.

        Returns
        -------
        Element
            Force element.

        Raises
        ------
        InputError
            If there is neither a force nor a potential, or a law has other arguments or no scalar value.

        Examples
        --------
        A spring that only pushes, and a damper of the square of the rate:

        >>> import livens as lv
        >>> from livens import math as m
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> ball = mb.particle("ball", at=[0, 0, 1], mass=1.0)
        >>> stop = mb.force_law(
        ...     "stop", ball, [0, 0, 0], lambda length, rate: -2.0 * rate * abs(rate),
        ...     potential=lambda length: 500 * m.maximum(1 - length, 0) ** 2,
        ... )
        >>> run = mb.simulate(t_end=0.1, h=1e-3)
        """
        if force is None and potential is None:
            raise InputError(f"{name}: a force law needs a force or a potential")
        law_parameters = dict(parameters or {})
        laws: dict[str, Any] = {}
        for role, law, arguments in (
            ("force", force, force_laws.FORCE_ARGUMENTS),
            ("potential", potential, force_laws.POTENTIAL_ARGUMENTS),
        ):
            if law is None:
                continue
            if not callable(law):
                raise InputError(f"{name}: the {role} must be a function, got {law!r}")
            check_law(f"{name}: the {role}", law, arguments, (), symbols_of(law_parameters))
            laws[role] = named_law(law, arguments)
        motion = tuple(x.position if isinstance(x, MovingMarker) else None for x in (point_a, point_b))
        ends = self._attachments(name, point_a, point_b, may_move=True)
        element = force_laws.point_force(*ends, **laws, motion=(motion[0], motion[1]), parameters=law_parameters)
        self._add_force_element(name, element, "force_law", point_a, point_b)
        sides = self._body_and_point(point_a), self._body_and_point(point_b)
        self._force_outputs.append((name, PointToPointOutputs(element, *sides, (motion[0], motion[1]))))
        return element

    def gravitation(
        self, name: str, body_a: Body, body_b: Body, *, constant: float = point_forces.GRAVITATION
    ) -> Element:
        """Add Newtonian gravitation between two bodies, with their masses at their centres.

        The result is ``name.force`` (N) on the second body, in space.

        Parameters
        ----------
        name : str
            Name of the force.
        body_a, body_b : Body
            Bodies; not the ground.
        constant : float, default 6.6743e-11
            Gravitational constant in m^3/(kg s^2).

        Returns
        -------
        Element
            Force element.
        """
        self._check_body_pair(name, body_a, body_b)
        if body_a.element is None or body_b.element is None:
            raise InputError(f"{name}: gravitation needs two bodies; the ground has no mass")
        element = self._add_force_element(name, point_forces.gravitation(body_a.element, body_b.element, constant))
        self._force_outputs.append((name, BodyWrenchOutputs(element, body_b, np.zeros(self.dimension), ("force",))))
        return element

    def cable(
        self, name: str, *points: object, stiffness: float, free_length: float | None = None, damping: float = 0.0
    ) -> Element:
        """Add a cable from the first point to the last; it slides over the points between without friction.

        The cable is in tension if it is longer than its free length, and never pushes. Results: ``name.tension`` (N)
        and ``name.length`` (m).

        Parameters
        ----------
        name : str
            Name of the cable.
        *points : Marker, Body or array_like
            At least two points of bodies or of space.
        stiffness : float
            Stiffness in N/m.
        free_length : float, optional
            Free length in m. By default the length in the reference configuration.
        damping : float, default 0
            Damping coefficient in N s/m, active while the cable is taut.

        Returns
        -------
        Element
            Force element.

        Raises
        ------
        InputError
            If there are fewer than two points, or no point belongs to a body.
        """
        if len(points) < 2:
            raise InputError(f"{name}: a cable needs at least two points")
        ends = [AttachmentPoint(self._attachment(name, point)) for point in points]
        names = list(dict.fromkeys(str(c) for end in ends for c in end.coordinates))
        if not names:
            raise InputError(f"{name}: one of the points must belong to a body")
        indices = tuple(tuple(names.index(str(c)) for c in end.coordinates) for end in ends)
        parametrisations = tuple(end.parametrisation for end in ends)
        positions = [parse_point(name, x.centre if isinstance(x, Body) else x, self.dimension) for x in points]
        reference_length = sum(float(np.linalg.norm(y - x)) for x, y in itertools.pairwise(positions))
        parameters: dict[str, Any] = {f"X{i}": end.local_position for i, end in enumerate(ends)}
        parameters |= dict(
            stiffness=check_nonnegative(f"{name}: the stiffness", stiffness),
            length=reference_length if free_length is None else check_nonnegative(f"{name}: the length", free_length),
        )
        functions: dict[str, Any] = dict(potential=bushings.cable_potential(parametrisations, indices))
        if check_nonnegative(f"{name}: the damping", damping):
            parameters["viscosity"] = float(damping)
            functions["dissipation"] = bushings.cable_dissipation(parametrisations, indices)
        visual = bushings.cable_visual(parametrisations, indices)
        element = self._add_force_element(
            name, Element(names, parameters=parameters, name=name, visual=visual, **functions)
        )
        tension = bushings.cable_tension(parametrisations, indices, damping > 0)
        self._force_outputs.append(
            (name, CableOutputs(element, bushings.cable_length(parametrisations, indices), tension))
        )
        return element


def _spring_energy(length: Any, k: Any) -> Any:
    return 0.5 * k.stiffness * (length - k.length) ** 2


def _damper_force(rate: Any, k: Any) -> Any:
    return k.viscosity * rate
