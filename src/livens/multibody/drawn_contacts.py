"""Builder methods for contacts; collision shapes and force laws are imported on demand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import not_negative, one_of, positive
from livens.multibody.drawing import Drawing
from livens.multibody.parts import Part

if TYPE_CHECKING:
    from livens.multibody.contacts.contact import Contact
    from livens.multibody.contacts.crowd import DrawnCrowd
    from livens.multibody.contacts.friction import Friction
    from livens.multibody.contacts.laws import Law
    from livens.multibody.contacts.shape import Shape


class DrawnContacts(Drawing):
    """Methods of `livens.Multibody` that add compliant contacts."""

    def contact(
        self,
        first: Part | Shape,
        second: Part | Shape,
        *,
        name: str = "",
        law: Law | str | None = None,
        stiffness: float | None = None,
        damping: float = 0.0,
        friction: float | Friction = 0.0,
        expensive: bool = True,
    ) -> Contact:
        """Add a compliant (penalty) contact between two bodies, or a body and the ground.

        Results: ``name.normal_force`` (N), ``name.force`` and ``name.friction`` (N, on the second body, in space),
        ``name.depth`` (m), ``name.point`` (m), ``name.slip`` (m/s).

        Parameters
        ----------
        body_a, body_b : Body or CollisionShape
            Bodies collide with the shape they were created with. The ground is a plane through the origin, normal to
            gravity. `livens.contacts` contains other shapes.
        name : str, optional
            Name of the contact; by default the names of both bodies, as ``"ball-ground"``.
        law : {"linear", "hertz"} or contacts.NormalLaw, default "linear"
            Normal force as a function of the penetration depth.
        stiffness : float, optional
            Stiffness in N/m ("linear", required) or N/m^1.5 ("hertz"; by default from the shapes, for steel).
        dissipation : float, default 0
            Hunt-Crossley dissipation c in s/m: the normal force is multiplied by ``1 + c d(depth)/dt`` and is never
            tensile.
        friction : float or contacts.Friction, default 0
            Coulomb friction coefficient, regularised at low sliding velocities.
        expensive : bool, default True
            Whether IMEX schemes treat the contact as an expensive force: explicitly, evaluated once per step.

        Returns
        -------
        PairContact
            The contact.

        Raises
        ------
        InputError
            If both bodies are the same, a stiffness is missing, or the pair of shapes is not supported.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> ball = mb.sphere("ball", at=[0, 0, 0.2], radius=0.1, mass=1.0)
        >>> contact = mb.contact(ball, mb.ground, stiffness=1e4)
        """
        from livens.multibody.contacts.contact import Contact
        from livens.multibody.contacts.friction import Friction

        a, b = (self._touching(one) for one in (first, second))
        name = name or f"{a.part.name}-{b.part.name}"
        self._new(name)
        made = Contact(
            name,
            a,
            b,
            _law(name, law, stiffness),
            not_negative(f"{name}: the dissipation", damping),
            Friction.of(friction),
            expensive,
        )
        self._contacts[name] = made
        return made

    def contacts(self, bodies: Sequence[Part | Shape], *, within: float | None = None, **options: Any) -> list[Contact]:
        """Add compliant contacts between all pairs of a list of bodies.

        For n bodies there are n(n - 1)/2 contacts. See `contact_group` for detection during the run.

        Parameters
        ----------
        bodies : sequence of Body or CollisionShape
            At least two bodies of finite size.
        max_gap : float, optional
            Largest gap in m, in the reference configuration, of the pairs that get a contact. Other pairs never
            collide.
        **options : optional
            Options of `contact` other than `name`.

        Returns
        -------
        list of PairContact
            The contacts, called ``first-second`` after the bodies.

        Raises
        ------
        InputError
            If there are fewer than two bodies, or if the ground or a plane is among them.
        """
        if not isinstance(bodies, (list, tuple)) or len(bodies) < 2:
            raise InputError(f"contact_pairs needs a list of at least two bodies, got {bodies!r}")
        shapes = [self._touching(one) for one in bodies]
        if not np.isfinite([shape.reach for shape in shapes]).all():
            raise InputError("contact_pairs needs bodies of finite size; use `contact` for the ground and planes")
        if within is None:
            pairs = list(itertools.combinations(range(len(shapes)), 2))
        else:
            from livens.multibody.contacts.near import near_pairs

            pairs = near_pairs(shapes, not_negative("max_gap", within))
        if "name" in options:
            raise InputError("contacts of many bodies are named after the bodies, as 'first-second'; remove name=")
        return [self.contact(shapes[i], shapes[j], **options) for i, j in pairs]

    def crowd(
        self,
        name: str,
        bodies: Sequence[Part | Shape],
        *,
        law: Law | str | None = None,
        stiffness: float | None = None,
        damping: float = 0.0,
        friction: float | Friction = 0.0,
        margin: float | None = None,
    ) -> DrawnCrowd:
        """Add a contact group: compliant contacts of many bodies, detected during the run.

        The cost grows linearly with the number of bodies. A Verlet neighbour list contains all pairs with a gap below
        `margin`. It is rebuilt from a cell grid when a body has moved by half the margin. Bodies that are connected by
        a joint do not collide. The contacts are no elements. Contact groups require the schemes
        `semi-explicit:<alpha>,<beta>` or `semi-explicit-2:<beta>`, which evaluate contacts once per step without
        derivatives.

        Parameters
        ----------
        name : str
            Name of the group.
        bodies : sequence of Body or CollisionShape
            At least two bodies; the ground and planes may be among them.
        law : {"linear", "hertz"} or contacts.NormalLaw, default "linear"
            Normal force as a function of the penetration depth.
        stiffness : float, optional
            Stiffness in N/m ("linear", required) or N/m^1.5 ("hertz"; by default from the shapes, for steel).
        dissipation : float, default 0
            Hunt-Crossley dissipation in s/m, as in `contact`.
        friction : float or contacts.Friction, default 0
            Coulomb friction coefficient, regularised at low sliding velocities.
        margin : float, optional
            Margin of the neighbour list in m; by default 0.3 of the median bounding radius.

        Returns
        -------
        ContactGroup
            The group, with its energy and forces in a run.

        Raises
        ------
        InputError
            If there are fewer than two bodies, a body occurs twice, or there are too many different shapes.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> balls = [mb.sphere(f"ball{i}", at=[0.01 * i, 0, 0.1 + 0.21 * i], radius=0.1, mass=1.0) for i in range(3)]
        >>> heap = mb.crowd("heap", [*balls, mb.ground], stiffness=2e4, damping=0.5, friction=0.3)
        >>> run = mb.simulate(t_end=0.2, h=1e-4, every=100)
        >>> bool(run["ball0.position"][:, 2].min() > 0.09), bool(heap.stored(run)[-1] > 0)
        (True, True)
        """
        from livens.multibody.contacts.crowd import DrawnCrowd
        from livens.multibody.contacts.friction import Friction

        if not isinstance(bodies, (list, tuple)) or len(bodies) < 2:
            raise InputError(f"{name}: a contact group needs a list of at least two bodies, got {bodies!r}")
        self._new(name)
        made = DrawnCrowd(
            name,
            [self._touching(one) for one in bodies],
            _law(name, law, stiffness),
            not_negative(f"{name}: the dissipation", damping),
            Friction.of(friction),
            None if margin is None else positive(f"{name}: the margin", margin),
        )
        if len({id(one) for one in bodies}) < len(bodies):
            raise InputError(f"{name}: a body may be in a contact group only once, got {bodies!r}")
        self._crowds[name] = made
        return made

    def _touching(self, given: Any) -> Shape:
        from livens.multibody.contacts.shape import HalfSpace, shape_of

        if given is self.ground and self.gravity is not None and self.gravity.any():
            return HalfSpace(given, normal=-self.gravity)
        if given is self.ground:
            return HalfSpace(given)
        found = shape_of(given)
        self._known("a contact", found.part)
        return found


def _law(name: str, law: Any, stiffness: Any) -> Law:
    from livens.multibody.contacts.laws import Hertz, Law, Linear

    if isinstance(law, Law):
        if stiffness is not None:
            raise InputError(f"{name}: stiffness must not be given together with a law, which contains its stiffness")
        return law
    word = one_of(f"{name}: the law", "linear" if law is None else law, ("linear", "hertz"))
    if word == "hertz":
        return Hertz(stiffness)
    if stiffness is None:
        raise InputError(f"{name}: a contact needs a stiffness, or the law 'hertz', which defaults to steel")
    return Linear(stiffness)
