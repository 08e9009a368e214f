"""Contacts of a drawing; shapes and laws are imported where bodies touch, as in most drawings none do."""

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
    """The methods of `livens.Multibody` that let bodies touch."""

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
        """Two bodies push each other apart where their shapes overlap; by name it is ``first-second``.

        Bodies touch as they are drawn, the ground as a plane through the origin, normal to gravity; `livens.contacts`
        has other shapes, laws and friction. The `law` is "linear" with a `stiffness` in N/m, or "hertz" with one in
        N/m^1.5 or that of the shapes in steel. With `damping` c, in s/m, the force is ``(1 + c rate of the depth)``
        times as large, and never pulls (Hunt and Crossley). `friction` is Coulomb's coefficient, or a
        `livens.contacts.Friction`.
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
            not_negative(f"{name}: the damping", damping),
            Friction.of(friction),
            expensive,
        )
        self._contacts[name] = made
        return made

    def contacts(self, bodies: Sequence[Part | Shape], *, within: float | None = None, **options: Any) -> list[Contact]:
        """Contacts of all of some bodies with one another; the options are those of `contact`.

        Of n bodies these are n(n - 1)/2. With `within`, only those that are no farther apart than this in the drawing,
        as neighbours in a row or a heap: others then never touch.
        """
        if not isinstance(bodies, (list, tuple)) or len(bodies) < 2:
            raise InputError(f"contacts are between at least two bodies in a list, got {bodies!r}")
        shapes = [self._touching(one) for one in bodies]
        if not np.isfinite([shape.reach for shape in shapes]).all():
            raise InputError("contacts are of bodies with one another; the ground and planes are for `contact`")
        if within is None:
            pairs = list(itertools.combinations(range(len(shapes)), 2))
        else:
            from livens.multibody.contacts.near import near_pairs

            pairs = near_pairs(shapes, not_negative("within", within))
        if "name" in options:
            raise InputError("contacts of many bodies are called after them, as 'first-second'")
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
        """Bodies that push each other apart wherever they meet, found while they move: n bodies cost n.

        Shapes, law and losses are those of `contact`; the ground and other planes may be among the bodies. These
        contacts are no elements. In every step only pairs that are near each other are looked at: they are listed, by
        cells, as far as they are no farther apart than the `margin`, and listed anew when a body has moved by half of
        that. Bodies that a joint holds together do not push each other. Schemes are `semi-explicit:<alpha>,<beta>` and
        `semi-explicit-2:<beta>`, which evaluate contacts once per step and differentiate nothing.

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
            raise InputError(f"{name}: a crowd is of at least two bodies in a list, got {bodies!r}")
        self._new(name)
        made = DrawnCrowd(
            name,
            [self._touching(one) for one in bodies],
            _law(name, law, stiffness),
            not_negative(f"{name}: the damping", damping),
            Friction.of(friction),
            None if margin is None else positive(f"{name}: the margin", margin),
        )
        if len({id(one) for one in bodies}) < len(bodies):  # it would touch everything twice
            raise InputError(f"{name}: a body is in a crowd only once, got {bodies!r}")
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
            raise InputError(f"{name}: the law has a stiffness of its own")
        return law
    word = one_of(f"{name}: the law", "linear" if law is None else law, ("linear", "hertz"))
    if word == "hertz":
        return Hertz(stiffness)
    if stiffness is None:
        raise InputError(f"{name}: a contact needs a stiffness, or the law 'hertz', which knows that of steel")
    return Linear(stiffness)
