"""Contact groups: compliant contacts of many bodies, detected during the run (`livens.Multibody.contact_group`)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import Namespace, Parameters
from livens.models.element import Element
from livens.models.found_contacts import ACCOUNTS, FoundContacts, Group, Member, Touch
from livens.models.system import System
from livens.multibody.contacts import friction as resisting
from livens.multibody.contacts.contact import DEEPEST, reduced_mass
from livens.multibody.contacts.friction import Friction
from livens.multibody.contacts.laws.base import Law
from livens.multibody.contacts.looks import surroundings
from livens.multibody.contacts.pairs import Spot, spots
from livens.multibody.contacts.shape import HalfSpace, Shape
from livens.multibody.contacts.start import ENOUGH, FEWEST, SLOW

if TYPE_CHECKING:
    from livens.multibody.drawing import Drawing

#: Default margin of the neighbour list (Verlet skin), relative to the median bounding radius.
_MARGIN = 0.3
#: Largest number of shape classes of a group; every pair of classes has its own parameters.
_MOST_KINDS = 200


class DrawnCrowd:
    """Contact group of a model, with energy and forces of its contacts in a run.

    Only pairs in the neighbour list are evaluated.
    """

    def __init__(
        self,
        name: str,
        shapes: Sequence[Shape],
        law: Law,
        damping: float,
        friction: Friction | None,
        margin: float | None,
    ) -> None:
        self.name, self.shapes = name, tuple(shapes)
        self.law, self.damping, self.friction = law, damping, friction
        reach = np.array([shape.reach for shape in self.shapes])
        finite = reach[np.isfinite(reach)]
        if not finite.size:
            raise InputError(f"{name}: a contact group needs bodies of finite size, not only planes")
        self.margin = _MARGIN * float(np.median(finite)) if margin is None else margin
        self._kinds: dict[Any, int] = {}
        self.kinds = [self._kind(shape) for shape in self.shapes]
        if len(self._kinds) > _MOST_KINDS:
            raise InputError(
                f"{name}: {len(self._kinds)} different shapes exceed the limit of a contact group ({_MOST_KINDS}): "
                "use bodies of fewer different sizes"
            )
        self._laws = self._numbers_of_pairs()
        #: Placeholder element that owns the shared parameters and the static visuals; it applies no force.
        self.element = Element(
            [next(shape for shape in self.shapes if shape.part.element is not None).part.coordinates[0]],
            parameters=self._shared(),
            name=name,
            look=self._look(),
        )

    # -- shape classes and parameters ---------------------------------------------------------------------------------
    def _kind(self, shape: Shape) -> int:
        sizes = {name: np.asarray(value).tobytes() for name, value in shape.sizes.items()}
        own = getattr(shape, "levers", None), getattr(shape, "rounding", 0.0), getattr(shape, "radius", 0.0)
        more = None if own[0] is None else np.array(own[0]).tobytes()
        surface = shape.surface if shape.surface is not None else type(shape)
        key = (
            type(shape),
            surface,
            shape.part.placement,
            shape.lever.tobytes(),
            shape.axes.tobytes(),
            *sizes.items(),
            (more, *own[1:]),
        )
        return self._kinds.setdefault(key, len(self._kinds))

    def example(self, a: int, b: int) -> tuple[Shape, Shape]:
        """Return two shapes of these classes that may collide, else raise LookupError."""
        both = list(zip(self.shapes, self.kinds, strict=True))
        firsts, seconds = ([shape for shape, kind in both if kind == wanted] for wanted in (a, b))
        for one, other in itertools.product(firsts[:2], seconds):
            if one.part is not other.part and (one.part.element is not None or other.part.element is not None):
                return one, other
        raise LookupError("no two of these shapes can collide")

    def _numbers_of_pairs(self) -> dict[tuple[int, int], dict[str, Any]]:
        """Return the law parameters of every pair of shape classes that may collide."""
        found: dict[tuple[int, int], dict[str, Any]] = {}
        for a, b in itertools.combinations_with_replacement(range(len(self._kinds)), 2):
            try:
                one, other = self.example(a, b)
            except LookupError:
                continue
            found[a, b] = self.law.parameters(f"{self.name}: {one.part.name}-{other.part.name}", one, other)
        if not found:
            raise InputError(f"{self.name}: a contact group needs at least two bodies, or one body and the ground")
        return found

    def _shared(self) -> dict[str, float]:
        """Return the parameters that all contacts share: dissipation, and the law unless it depends on shapes."""
        numbers = list(self._laws.values())
        found = dict(numbers[0]) if all(one == numbers[0] for one in numbers) else {}
        f = self.friction
        if self.damping:
            found["damping"] = self.damping
        if f is not None and f.coefficient:
            found |= dict(friction=f.coefficient, smooth=f.smooth)
            found |= dict(pivoting=f.pivoting) if f.pivoting else {}
        if f is not None and f.rolling:
            found["rolling"] = f.rolling
        if f is not None and (f.pivoting or f.rolling):
            found["smooth_rate"] = f.smooth_rate
        return found

    def _look(self) -> Any:
        """Return the visual of the static shapes: floors and walls."""
        still = [shape for shape in self.shapes if shape.part.element is None]
        lying = next(shape for shape in self.shapes if shape.part.element is not None)
        looks = [look for look in (surroundings(one, lying) for one in still) if look is not None]
        return None if not looks else lambda: [shape for look in looks for shape in look()]

    def numbers(self, a: int, b: int, spot: Spot) -> dict[str, Any]:
        """Return the parameters specific to a pair of shape classes."""
        own = {} if set(self._laws[a, b]) <= set(self.element.parameters.values) else self._laws[a, b]
        return {**spot.sizes, **own}

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of shape classes that may collide."""
        return list(self._laws)

    # -- forces -------------------------------------------------------------------------------------------------------
    def touching(self, spot: Spot, own: Parameters) -> tuple[ca.Function, ca.Function]:
        """Return force and energy kernel of a contact point, and its gap, as functions of ``(q, v, k)``."""
        a, b = spot.first.placement, spot.second.placement
        n, shared = len(a.names) + len(b.names), self.element.parameters
        q, v, k = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("k", own.size + shared.size)
        named = own.symbols(k[: own.size]) | shared.symbols(k[own.size :])
        K = Namespace({**named, **spot.constants})
        Q, V = m.symbols(q), m.symbols(v)
        gap = spot.geometry.gap_at(a, b, Q, K)
        stored = m.expression(self.law.energy(resisting.depth_of(gap), K))
        force, lost = -ca.gradient(stored, q), []
        for word in ACCOUNTS[1:]:
            power = ca.SX(0)
            if word in shared.values or (word == "sliding" and "friction" in shared.values):
                loss = getattr(resisting, word)(spot.geometry, self.law, a, b)(Q, V, K)
                resisted = ca.gradient(m.expression(loss), v)
                force, power = force - resisted, ca.dot(resisted, v)
            lost.append(power)
        out = ca.cse(ca.densify(ca.vertcat(force, stored, *lost)))
        return ca.Function("touch", [q, v, k], [out]), ca.Function("gap", [q, v, k], [m.expression(gap)])

    # -- evaluation in a run ------------------------------------------------------------------------------------------
    def _of(self, run: Any) -> tuple[FoundContacts, int]:
        found = getattr(run.system, "box", None)
        groups = [group.name for group in found.groups] if isinstance(found, FoundContacts) else []
        if self.name not in groups:
            raise InputError(f"the run does not belong to a mechanism with the contact group '{self.name}'")
        assert isinstance(found, FoundContacts)
        return found, groups.index(self.name)

    def accounts(self, run: Any) -> dict[str, np.ndarray]:
        """Return the ``stored`` energy of all contacts (J), and the powers (W) dissipated by ``damping``, ``sliding``,
        ``pivoting`` and ``rolling``, each of shape (n_stored,)."""
        found, group = self._of(run)
        rows = [found.powers(q, v, run.parameter_vector, group)[1:] for q, v in zip(run.q, run.v, strict=True)]
        return dict(zip(ACCOUNTS, np.array(rows).reshape(-1, len(ACCOUNTS)).T, strict=True))

    def stored(self, run: Any) -> np.ndarray:
        """Return the elastic energy of all contacts in J, of shape (n_stored,)."""
        return self.accounts(run)["stored"]

    def forces(self, run: Any, row: int = -1) -> dict[str, np.ndarray]:
        """Return the contact forces at one stored time: ``first-second`` to the force on the second body, in space."""
        found, group = self._of(run)
        before = sum(one.group < group for one in found.members)
        names = {before + i: shape.part.name for i, shape in enumerate(self.shapes)}
        forces = found.forces_on(np.asarray(run.q[row]), np.asarray(run.v[row]), run.parameter_vector, group)
        return {f"{names[i]}-{names[j]}": force for (i, j), force in forces.items()}

    def __repr__(self) -> str:
        return f"<contact group {self.name}: {len(self.shapes)} shapes>"


def found_contacts(system: System, drawing: Drawing) -> FoundContacts | None:
    """Return the contact groups of a model as one external force on its system."""
    crowds = list(drawing._crowds.values())
    if not crowds:
        return None
    place = {name: i for i, name in enumerate(system.coordinates)}
    numbers = {id(element): i for i, element in enumerate(system.elements)}
    bodies = {id(part): i for i, part in enumerate([drawing.ground, *drawing.bodies.values()])}
    groups, members, first_kind = list[Group](), list[Member](), 0
    functions: dict[Any, int] = {}
    made: list[ca.Function] = []
    gaps: list[ca.Function] = []
    touches: dict[tuple[int, int], list[Touch]] = {}
    for number, crowd in enumerate(crowds):
        where = system.parameter_indices[numbers[id(crowd.element)]][system.shared.size :]
        groups.append(Group(crowd.name, crowd.margin, tuple(where)))
        for shape, kind in zip(crowd.shapes, crowd.kinds, strict=True):
            members.append(_member(shape, first_kind + kind, number, bodies[id(shape.part)], place))
        for a, b in crowd.pairs:
            one, other = crowd.example(a, b)
            for spot in spots(f"{crowd.name}: {one.part.name}-{other.part.name}", one, other):
                turned = spot.first is other.part
                own = Parameters(crowd.numbers(a, b, spot))
                fixed = tuple((name, np.asarray(value).tobytes()) for name, value in spot.constants.items())
                key = number, spot.geometry, spot.first.placement, spot.second.placement, own.shapes, fixed
                if key not in functions:
                    functions[key] = len(made)
                    function, gap = crowd.touching(spot, own)
                    made.append(function)
                    gaps.append(gap)
                pair = first_kind + a, first_kind + b
                touches.setdefault(pair, []).append(Touch(functions[key], turned, own.vector()))
                if a != b:
                    touches.setdefault((pair[1], pair[0]), []).append(Touch(functions[key], not turned, own.vector()))
        first_kind += len(crowd._kinds)
    joined = [(bodies[id(one.first)], bodies[id(one.second)]) for one in drawing.connections.values()]
    apart = frozenset((min(pair), max(pair)) for pair in joined)
    return FoundContacts(system.n, drawing.dimension, groups, members, made, gaps, touches, apart)


def _member(shape: Shape, kind: int, group: int, body: int, place: Mapping[str, int]) -> Member:
    plane = None
    if isinstance(shape, HalfSpace) and shape.part.element is None:
        normal = shape.drawn_axes[:, -1]
        plane = np.append(normal, normal @ shape.at)
    own = [place[str(c)] for c in shape.part.coordinates]
    first = own[0] if own else 0
    assert own == list(range(first, first + len(own)))
    return Member(body, group, kind, first, len(own), np.asarray(shape.lever, dtype=float), float(shape.reach), plane)


def check_start(crowds: Mapping[str, DrawnCrowd], system: System, q: np.ndarray) -> None:
    """Raise InputError if the initial penetration of two bodies in a group exceeds the limit."""
    found, k = system.box, system.parameter_vector()
    if not isinstance(found, FoundContacts):
        return
    shapes = [shape for crowd in crowds.values() for shape in crowd.shapes]
    for i, j in found.near(q):
        limit = DEEPEST * min(shapes[i].size, shapes[j].size)
        for gap in found.gaps_of(i, j, q, k):
            if -gap > limit:
                raise InputError(
                    f"{found.groups[found.members[i].group].name}: '{shapes[i].part.name}' and '{shapes[j].part.name}' "
                    f"overlap by {-gap:.3g} at the start, which exceeds the allowed initial penetration ({limit:.3g}): "
                    "move them apart"
                )


def check_blows(
    crowds: Mapping[str, DrawnCrowd], system: System, q: np.ndarray, v: np.ndarray, h: Any, g: float
) -> None:
    """Raise InputError if a collision at the initial velocity plus free fall lasts less than two steps."""
    found = system.box
    if not isinstance(found, FoundContacts) or not isinstance(h, (int, float)) or not h > 0:
        return
    centres, d = found.centres(q), found.dimension
    moving = [i for i, one in enumerate(found.members) if one.count]
    fast = max(float(np.linalg.norm(v[found.members[i].first :][:d])) for i in moving)
    speed = float(np.hypot(fast, np.sqrt(2 * g * np.ptp(centres[moving], axis=0).max())))
    if speed < SLOW:
        return
    for crowd in crowds.values():
        for (a, b), numbers in crowd._laws.items():
            one, other = crowd.example(a, b)
            lasts = np.pi / crowd.law.frequency(numbers, reduced_mass(one.part, other.part), speed)
            if lasts < FEWEST * h:
                raise InputError(
                    f"{crowd.name}: a collision of {one.part.name} and {other.part.name} at {speed:.3g} m/s lasts "
                    f"{lasts:.2g} s, too short for steps of h = {h:g}: use h <= {lasts / ENOUGH:.1g}, or a "
                    "smaller stiffness"
                )
