"""Builder methods for contacts; collision shapes and force laws are imported on demand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.multibody.body import Body
from livens.multibody.builder.base import ModelBase
from livens.validation import check_choice, check_nonnegative, check_positive

if TYPE_CHECKING:
    from livens.multibody.contacts.contact_group import ContactGroup
    from livens.multibody.contacts.dissipation import Friction
    from livens.multibody.contacts.normal_laws import NormalLaw
    from livens.multibody.contacts.pair_contact import PairContact
    from livens.multibody.contacts.shapes import CollisionShape


class ContactMethods(ModelBase):
    """Methods of `livens.Multibody` that add compliant contacts."""

    def contact(
        self,
        body_a: Body | CollisionShape,
        body_b: Body | CollisionShape,
        *,
        name: str = "",
        law: NormalLaw | str | None = None,
        stiffness: float | None = None,
        dissipation: float = 0.0,
        friction: float | Friction = 0.0,
        expensive: bool = True,
    ) -> PairContact:
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
        from livens.multibody.contacts.dissipation import Friction
        from livens.multibody.contacts.pair_contact import PairContact

        a, b = (self._collision_shape(body) for body in (body_a, body_b))
        name = name or f"{a.body.name}-{b.body.name}"
        self._claim_name(name)
        contact = PairContact(
            name,
            a,
            b,
            _parse_law(name, law, stiffness),
            check_nonnegative(f"{name}: the dissipation", dissipation),
            Friction.of(friction),
            expensive,
        )
        self._pair_contacts[name] = contact
        return contact

    def contact_pairs(
        self, bodies: Sequence[Body | CollisionShape], *, max_gap: float | None = None, **options: Any
    ) -> list[PairContact]:
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
        shapes = [self._collision_shape(body) for body in bodies]
        if not np.isfinite([shape.bounding_radius for shape in shapes]).all():
            raise InputError("contact_pairs needs bodies of finite size; use `contact` for the ground and planes")
        if max_gap is None:
            pairs = list(itertools.combinations(range(len(shapes)), 2))
        else:
            from livens.multibody.contacts.broad_phase import candidate_pairs

            pairs = candidate_pairs(shapes, check_nonnegative("max_gap", max_gap))
        if "name" in options:
            raise InputError("contacts of many bodies are named after the bodies, as 'first-second'; remove name=")
        return [self.contact(shapes[i], shapes[j], **options) for i, j in pairs]

    def contact_group(
        self,
        name: str,
        bodies: Sequence[Body | CollisionShape],
        *,
        law: NormalLaw | str | None = None,
        stiffness: float | None = None,
        dissipation: float = 0.0,
        friction: float | Friction = 0.0,
        margin: float | None = None,
    ) -> ContactGroup:
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
            If there are fewer than two bodies, a body occurs twice, or there are too many different shapes. The system
            of the model raises it if two shapes of the group also touch in another contact or group.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> balls = [mb.sphere(f"ball{i}", at=[0.01 * i, 0, 0.1 + 0.21 * i], radius=0.1, mass=1.0) for i in range(3)]
        >>> heap = mb.contact_group("heap", [*balls, mb.ground], stiffness=2e4, dissipation=0.5, friction=0.3)
        >>> run = mb.simulate(t_end=0.2, h=1e-4, every=100)
        >>> bool(run["ball0.position"][:, 2].min() > 0.09), bool(heap.stored_energy(run)[-1] > 0)
        (True, True)
        """
        from livens.multibody.contacts.contact_group import ContactGroup
        from livens.multibody.contacts.dissipation import Friction

        if not isinstance(bodies, (list, tuple)) or len(bodies) < 2:
            raise InputError(f"{name}: a contact group needs a list of at least two bodies, got {bodies!r}")
        if self._external_force is not None:
            raise InputError(f"{name}: a mechanism with an external force takes no contact group: use mb.contact")
        if len({id(body) for body in bodies}) < len(bodies) and any(body is not self.ground for body in bodies):
            raise InputError(f"{name}: a body may be in a contact group only once, got {bodies!r}")
        self._claim_name(name)
        group = ContactGroup(
            name,
            [self._collision_shape(body) for body in bodies],
            _parse_law(name, law, stiffness),
            check_nonnegative(f"{name}: the dissipation", dissipation),
            Friction.of(friction),
            None if margin is None else check_positive(f"{name}: the margin", margin),
        )
        self._contact_groups[name] = group
        return group

    def _collision_shape(self, body: object) -> CollisionShape:
        from livens.multibody.contacts.shapes import HalfSpace, default_shape

        if body is self.ground and self.gravity is not None and self.gravity.any():
            return HalfSpace(body, normal=-self.gravity)
        if body is self.ground:
            return HalfSpace(body)
        shape = default_shape(body)
        self._check_body("a contact", shape.body)
        return shape


def _parse_law(name: str, law: object, stiffness: Any) -> NormalLaw:
    from livens.multibody.contacts.normal_laws import Hertz, Linear, NormalLaw

    if isinstance(law, NormalLaw):
        if stiffness is not None:
            raise InputError(f"{name}: stiffness must not be given together with a law, which contains its stiffness")
        return law
    law_name = check_choice(f"{name}: the law", "linear" if law is None else law, ("linear", "hertz"))
    if law_name == "hertz":
        return Hertz(stiffness)
    if stiffness is None:
        raise InputError(f"{name}: a contact needs a stiffness, or the law 'hertz', which defaults to steel")
    return Linear(stiffness)
