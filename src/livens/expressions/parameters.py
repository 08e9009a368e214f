"""Parameters: named numbers and arrays that stay open until the run."""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from livens import math as m
from livens.errors import InputError, ModelError, suggestion
from livens.expressions import numbers


class Owner(Protocol):
    """Whoever has parameters, such as an element."""

    name: str
    parameters: Parameters


@dataclass(frozen=True, eq=False)
class SameAs:
    """A parameter that another element has already; see `same_as`."""

    owner: Owner
    name: str

    @property
    def value(self) -> np.ndarray:
        return self.owner.parameters.values[self.name]


def same_as(owner: Owner, name: str) -> SameAs:
    """The parameter of another element, to be given as a value: when that is changed, this one changes with it.

    >>> import livens as lv
    >>> ball = lv.Element(["z"], kinetic=lambda v, k: k.mass * v[0] ** 2 / 2, parameters=dict(mass=2.0), name="ball")
    >>> weight = lv.Element(
    ...     ["z"], potential=lambda q, k: 9.81 * k.m * q[0], parameters=dict(m=same_as(ball, "mass")), name="weight"
    ... )
    >>> system = lv.System("z", elements=[ball, weight])
    >>> system.parameters, system.parameter_vector({"ball.mass": 3.0})
    ({'ball.mass': 2.0}, array([3., 3.]))
    """
    if name not in owner.parameters.values:
        raise InputError(
            f"{owner.name or 'the element'} has no parameter '{name}'{suggestion(name, owner.parameters.values)}"
        )
    return SameAs(owner, name)


class Parameters:
    """Named numbers and arrays, laid out one after the other in a vector."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self.values: dict[str, np.ndarray] = {}
        #: Those that follow a parameter of another element.
        self.ties: dict[str, SameAs] = {}
        if values is not None and not isinstance(values, Mapping):
            raise InputError(f"parameters must map names to values, got {values!r}")
        for name, value in (values or {}).items():
            if not str(name).isidentifier():
                raise InputError(f"parameter name {name!r} must be a Python identifier")
            if isinstance(value, SameAs):
                self.ties[name], value = value, value.value
            self.values[name] = numbers.array(f"parameter '{name}'", value)

    @functools.cached_property
    def shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple((name, value.shape) for name, value in self.values.items())

    @functools.cached_property
    def size(self) -> int:
        return sum(value.size for value in self.values.values())

    def vector(self) -> np.ndarray:
        parts = [value.ravel() for value in self.values.values()]
        return np.concatenate(parts) if parts else np.zeros(0)

    def symbols(self, vector: Any) -> dict[str, Any]:
        """Name -> Scalar or array of Scalars, taken from a CasADi vector laid out as `vector()`."""
        return self.named(m.symbols(vector))

    def named(self, items: np.ndarray) -> dict[str, Any]:
        """Name -> item or array of items, which are laid out as `vector()`."""
        first, named = 0, dict[str, Any]()
        for name, shape in self.shapes:
            size = math.prod(shape)
            named[name] = items[first] if shape == () else items[first : first + size].reshape(shape)
            first += size
        return named

    def plain(self) -> dict[str, Any]:
        """The values as plain Python numbers and lists, for files and reports."""
        return {name: value.tolist() for name, value in self.values.items()}


@dataclass(frozen=True)
class Entry:
    """A parameter of a model: where it stands in the vector of all, and where what follows it stands."""

    places: tuple[slice, ...]
    shape: tuple[int, ...]

    def shifted(self, by: int) -> Entry:
        """The same in a vector with this many entries before it."""
        return Entry(tuple(slice(place.start + by, place.stop + by) for place in self.places), self.shape)


class ParameterTable:
    """All parameters of a model by name, in one vector: the model's own first, then those of one owner after the other.

    The model's own are called as they are (``g``), those of an element by its name too (``door.mass``). Of elements
    with the same name, later ones are called ``door#2``, ``door#3``; one without a name is called by its number.

    >>> door = Parameters(dict(mass=2.0, centre=[0.0, 1.0]))
    >>> table = ParameterTable(Parameters(dict(g=9.81)), [("door", door), ("", Parameters(dict(c=3.0)))])
    >>> table.names
    ('g', 'door.mass', 'door.centre', 'element1.c')
    >>> table.vector({"door.centre": [5.0, 6.0]})
    array([9.81, 2.  , 5.  , 6.  , 3.  ])
    """

    def __init__(
        self,
        shared: Parameters,
        owners: Sequence[tuple[str, Parameters]] = (),
        further: Mapping[str, Entry] | None = None,
    ) -> None:
        self.shared = shared
        self._parts = (shared, *(parameters for _, parameters in owners))
        self.size = sum(part.size for part in self._parts)
        self._labels = unique_labels([name for name, _ in owners])
        #: Other names, by which parameters were called where they come from.
        self.further = dict(further or {})

    @functools.cached_property
    def _vector(self) -> np.ndarray:
        return np.concatenate([part.vector() for part in self._parts])

    @functools.cached_property
    def layout(self) -> tuple[tuple[str, tuple[int, ...], str], ...]:
        """Name and shape of everything in the vector, in its order, and the name of what it follows, if it does."""
        of_part = {id(part): label for part, label in zip(self._parts[1:], self._labels, strict=True)}
        rows = [(name, shape, "") for name, shape in self.shared.shapes]
        for part, label in zip(self._parts[1:], self._labels, strict=True):
            for name, shape in part.shapes:
                rows.append((f"{label}.{name}", shape, _followed(part, name, of_part)))
        return tuple(rows)

    @functools.cached_property
    def entries(self) -> dict[str, Entry]:
        """Everything that can be changed, by name."""
        first, places, shapes = 0, dict[str, list[slice]](), dict[str, tuple[int, ...]]()
        for name, shape, _ in self.layout:
            size = math.prod(shape)
            places[name], shapes[name] = [slice(first, first + size)], shape
            first += size
        for name, _, follows in self.layout:
            if follows:
                places[follows] += places.pop(name)
        return {name: Entry(tuple(found), shapes[name]) for name, found in places.items()}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.entries)

    def vector(self, changes: Mapping[str, Any] | None = None) -> np.ndarray:
        """All values as the compiled step reads them, with these changed: names and shapes must exist."""
        found = self._vector.copy()
        for name, value in (changes or {}).items():
            entry = self.find(name)
            new = numbers.array(f"parameter '{name}'", value)
            if new.shape != entry.shape:
                raise InputError(f"parameter '{name}' must have shape {entry.shape}, got {new.shape}")
            for place in entry.places:
                found[place] = new.ravel()
        return found

    def find(self, name: str) -> Entry:
        """Where a parameter stands that can be changed."""
        entry = self.entries.get(name) or self.further.get(name)
        if entry is not None:
            return entry
        for tied, _, follows in self.layout:
            if tied == name:
                raise InputError(f"parameter '{name}' is the same as '{follows}': change that")
        raise InputError(f"unknown parameter '{name}'{suggestion(str(name), {*self.entries, *self.further})}")

    def plain(self, values: np.ndarray | None = None, only: Collection[str] | None = None) -> dict[str, Any]:
        """The values by name as plain Python numbers and lists, if not these; `only` some of them, if named."""
        values = self._vector if values is None else values
        listed = {name: entry for name, entry in self.entries.items() if only is None or name in only}
        return {name: values[e.places[0]].reshape(e.shape).tolist() for name, e in listed.items()}

    def noted(self, changed: Collection[str], values: np.ndarray) -> dict[str, Any]:
        """The model's own parameters, and what else was changed."""
        return self.plain(values, {*self.shared.values, *changed})


def _followed(part: Parameters, name: str, of_part: Mapping[int, str]) -> str:
    """The name of what a parameter follows, if that belongs to the same model."""
    followed, seen = "", set[int]()
    while name in part.ties and id(part) not in seen:
        seen.add(id(part))
        part, name = part.ties[name].owner.parameters, part.ties[name].name
        followed = f"{of_part[id(part)]}.{name}" if id(part) in of_part else followed
    return followed


def unique_labels(names: Sequence[str]) -> tuple[str, ...]:
    """What elements are called: by name or number, each by a label of its own.

    >>> unique_labels(["door", "", "door"])
    ('door', 'element1', 'door#2')
    """
    labels: dict[str, None] = {}
    counts: dict[str, int] = {}
    for i, name in enumerate(names):
        label = stem = name or f"element{i}"
        while label in labels:
            counts[stem] = counts.get(stem, 1) + 1
            label = f"{stem}#{counts[stem]}"
        labels[label] = None
    return tuple(labels)


class Namespace:
    """What a model function sees as `k`."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self.__dict__.update(named)

    def __getattr__(self, name: str) -> Any:
        known = [n for n in self.__dict__ if not n.startswith("_")]
        if not known:
            raise ModelError(f"unknown parameter 'k.{name}': the system has no parameters")
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean 'k.{close[0]}'?" if close else f"known: {', '.join(known)}"
        raise ModelError(f"unknown parameter 'k.{name}'; {hint}")
