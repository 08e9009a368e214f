"""Bodies of a drawing: rods, boxes, cylinders, spheres, and any other with its inertia."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.errors import InputError, ModelError
from livens.expressions.numbers import array, flag, not_negative, positive
from livens.multibody import looks, shapes
from livens.multibody.bodies import Body, director_body, particle, planar_body
from livens.multibody.drawing import Drawing
from livens.multibody.inertia import Inertia
from livens.multibody.parts import Part, axes_about, axes_along, direction, point_in_space


class DrawnBodies(Drawing):
    """The methods of `livens.Multibody` that add bodies."""

    def body(
        self,
        name: str,
        *,
        mass: float,
        inertia: Any,
        centre: Any = None,
        position: Any = None,
        rotation: Any = None,
        points: Mapping[str, Any] | None = None,
        shape: tuple[Any, ...] = (),
        rotor: bool = False,
    ) -> Part:
        """A rigid body: its mass, its inertia about its centre of mass in its own axes, and where it is drawn.

        `inertia` is a tensor or its three principal values (in the plane: one number), `rotation` a matrix with the
        body's axes as columns. Where another point than the centre of mass is at the `position`, `centre` is how far
        from there that is, in the body's own axes, and the point is called ``origin``. `points` are named points, given
        in space. A `rotor` is symmetric about its third axis and spins fast about it: its error in phase is taken out,
        see `livens.bodies.director_body`.
        """
        self._new(name)
        spins = flag(f"{name}: rotor", rotor)
        if spins and self.dimension == 2:
            raise InputError(f"{name}: a rotor is a body in space")
        d = self.dimension
        at = np.zeros(d) if position is None else point_in_space(f"{name}: position", position, d)
        R = np.eye(d) if rotation is None else array(f"{name}: rotation", rotation, (d, d))
        if np.abs(R.T @ R - np.eye(d)).max() > 1e-9 or np.linalg.det(R) < 0:
            raise InputError(f"{name}: rotation must be a rotation matrix, with orthonormal columns")
        if centre is not None:
            points = {"origin": at, **(points or {})}
            at = at + R @ array(f"{name}: centre", centre, (d,))
        look = looks.drawn(shape, d) if shape else None
        try:
            element: Body
            if d == 2:
                moment = inertia if np.ndim(inertia) == 0 else np.ravel(inertia)[-1]
                element = planar_body(name, mass, float(moment), look=look)
            else:
                element = director_body(name, Inertia(mass, inertia), look=look, rotor=spins)
        except ModelError as error:
            raise InputError(f"{name}: {error}") from None
        return self._added(name, element, at, R, points, shape)

    def rod(self, name: str, *, a: Any, b: Any, mass: float, radius: float | None = None) -> Part:
        """A round rod from one point to another.

        Without a radius it is a fiftieth of the length, which adds 1.2e-3 to the moment of inertia of an ideally thin
        rod about its centre, in units of that: nothing turns without inertia about its own axis.
        """
        ends = [point_in_space(f"{name}: {which}", x, self.dimension) for which, x in (("a", a), ("b", b))]
        length = positive(f"{name}: the length", np.linalg.norm(ends[1] - ends[0]))
        R = axes_along((ends[1] - ends[0]) / length)
        thick = None if radius is None else positive(f"{name}: the radius", radius)
        moments = shapes.rod(length, positive(f"{name}: the mass", mass), thick)
        centre, named = (ends[0] + ends[1]) / 2, dict(a=ends[0], b=ends[1])
        shape = ("rod", length, thick or shapes.SLENDER * length)
        return self.body(name, mass=mass, inertia=moments, position=centre, rotation=R, points=named, shape=shape)

    def box(self, name: str, *, at: Any, size: Any, mass: float, rotation: Any = None) -> Part:
        """A box about its centre; in the plane, `size` may be two numbers."""
        edges = array(f"{name}: size", size)
        if edges.shape not in ((3,), (self.dimension,)) or not np.all(edges >= 0) or not edges.any():
            raise InputError(f"{name}: size must be {self.dimension} numbers, not negative nor all zero, got {size!r}")
        heavy = positive(f"{name}: the mass", mass)
        moments = shapes.box(np.append(edges, 0.0) if len(edges) == 2 else edges, heavy)
        shape = ("box", *edges.tolist())
        return self.body(name, mass=mass, inertia=moments, position=at, rotation=rotation, shape=shape)

    def plate(self, name: str, *, at: Any, size: Any, mass: float, rotation: Any = None) -> Part:
        """A thin plate in its own first two axes."""
        return self.box(name, at=at, size=[*array(f"{name}: size", size, (2,)), 0.0], mass=mass, rotation=rotation)

    def cylinder(
        self, name: str, *, at: Any, axis: Any = "z", length: float, radius: float, mass: float, rotor: bool = False
    ) -> Part:
        """A full cylinder about its centre; a `rotor` spins fast about its axis."""
        long, wide = not_negative(f"{name}: the length", length), positive(f"{name}: the radius", radius)
        heavy = positive(f"{name}: the mass", mass)
        moments, shape = shapes.cylinder(long, wide, heavy), ("cylinder", long, wide)
        return self._round(name, at, axis, moments, mass, shape, rotor)

    def ring(
        self,
        name: str,
        *,
        at: Any,
        axis: Any = "z",
        radius: float,
        mass: float,
        tube: float = 0.0,
        rotor: bool = False,
    ) -> Part:
        """A ring about its centre, with a round section; a `rotor` spins fast about its axis."""
        wide, thick = positive(f"{name}: the radius", radius), not_negative(f"{name}: the tube", tube)
        moments = shapes.ring(wide, positive(f"{name}: the mass", mass), thick)
        return self._round(name, at, axis, moments, mass, ("ring", wide, thick), rotor)

    def sphere(self, name: str, *, at: Any, radius: float, mass: float) -> Part:
        """A full sphere."""
        wide, heavy = positive(f"{name}: the radius", radius), positive(f"{name}: the mass", mass)
        moments, shape = shapes.sphere(wide, heavy), ("sphere", wide)
        return self.body(name, mass=mass, inertia=moments, position=at, shape=shape)

    def particle(self, name: str, *, at: Any, mass: float) -> Part:
        """A point with mass."""
        self._new(name)
        place = point_in_space(f"{name}: at", at, self.dimension)
        element = particle(name, mass, dimension=self.dimension)
        return self._added(name, element, place, np.eye(self.dimension), None, ("particle",))

    def _round(
        self, name: str, at: Any, axis: Any, moments: Any, mass: float, shape: tuple[Any, ...], rotor: bool
    ) -> Part:
        R = axes_about(direction(f"{name}: axis", axis)) if self.dimension == 3 else None
        return self.body(name, mass=mass, inertia=moments, position=at, rotation=R, shape=shape, rotor=rotor)

    def _added(
        self, name: str, element: Body, at: np.ndarray, R: np.ndarray, points: Mapping[str, Any] | None, shape: Any
    ) -> Part:
        part = self.bodies[name] = Part(name, element, at, R, shape=shape)
        for point, place in {"centre": at, **(points or {})}.items():
            part.point(point, place)
        return part
