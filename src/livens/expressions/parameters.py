"""Named parameters (numbers and arrays) whose values are set at run time."""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from livens import math as m
from livens import validation
from livens.errors import InputError, ModelError, explain_call_errors, suggestion
from livens.types import Expr


class HasParameters(Protocol):
    """Protocol of objects with parameters, such as an element."""

    name: str
    parameters: Parameters


@dataclass(frozen=True, eq=False)
class TiedParameter:
    """Parameter tied to a parameter of another element; see `shared`."""

    owner: HasParameters
    name: str

    @property
    def value(self) -> np.ndarray:
        return self.owner.parameters.values[self.name]


@explain_call_errors
def shared(owner: HasParameters, name: str) -> TiedParameter:
    """Return a parameter value tied to a parameter of another element.

    The tied parameter always has the value of the original one. Only the original one can be changed.

    Parameters
    ----------
    owner : Element
        Element that defines the original parameter.
    name : str
        Name of the parameter in `owner`.

    Returns
    -------
    TiedParameter
        Value for the `parameters` argument of another element.

    Raises
    ------
    InputError
        If `owner` has no parameter `name`.

    Examples
    --------
    >>> import livens as lv
    >>> ball = lv.Element(["z"], kinetic=lambda v, k: k.mass * v[0] ** 2 / 2, parameters=dict(mass=2.0), name="ball")
    >>> weight = lv.Element(
    ...     ["z"], potential=lambda q, k: 9.81 * k.m * q[0], parameters=dict(m=shared(ball, "mass")), name="weight"
    ... )
    >>> system = lv.System("z", elements=[ball, weight])
    >>> system.parameters, system.parameter_vector({"ball.mass": 3.0})
    ({'ball.mass': 2.0}, array([3., 3.]))
    """
    if name not in owner.parameters.values:
        raise InputError(
            f"{owner.name or 'the element'} has no parameter '{name}'{suggestion(name, owner.parameters.values)}"
        )
    return TiedParameter(owner, name)


class Parameters:
    """Named numbers and arrays, stored contiguously in a parameter vector."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self.values: dict[str, np.ndarray] = {}
        #: Parameters tied to a parameter of another element.
        self.tied: dict[str, TiedParameter] = {}
        if values is not None and not isinstance(values, Mapping):
            raise InputError(f"parameters must map names to values, got {values!r}")
        for name, value in (values or {}).items():
            if not str(name).isidentifier():
                raise InputError(f"parameter name {name!r} must be a Python identifier")
            if isinstance(value, TiedParameter):
                self.tied[name], value = value, value.value
            self.values[name] = validation.check_array(f"parameter '{name}'", value)

    @functools.cached_property
    def shapes(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return tuple((name, value.shape) for name, value in self.values.items())

    @functools.cached_property
    def size(self) -> int:
        return sum(value.size for value in self.values.values())

    def vector(self) -> np.ndarray:
        parts = [value.ravel() for value in self.values.values()]
        return np.concatenate(parts) if parts else np.zeros(0)

    def unpack_symbols(self, vector: Expr) -> dict[str, object]:
        """Return name -> Scalar or array of Scalars, unpacked from a CasADi vector laid out as `vector()`."""
        return self.unpack(m.from_casadi(vector))

    def unpack(self, items: np.ndarray) -> dict[str, object]:
        """Return name -> item or array of items, unpacked from an array laid out as `vector()`."""
        offset, unpacked = 0, dict[str, Any]()
        for name, shape in self.shapes:
            size = math.prod(shape)
            unpacked[name] = items[offset] if shape == () else items[offset : offset + size].reshape(shape)
            offset += size
        return unpacked

    def to_python(self) -> dict[str, float]:
        """Return the values as Python numbers and lists, for files and reports."""
        return {name: value.tolist() for name, value in self.values.items()}


@dataclass(frozen=True)
class ParameterEntry:
    """Slices of a parameter, and of the parameters tied to it, in the parameter vector of a model."""

    slices: tuple[slice, ...]
    shape: tuple[int, ...]

    def offset(self, n_entries: int) -> ParameterEntry:
        """Return the entry with its slices moved by an offset."""
        return ParameterEntry(
            tuple(slice(slice_.start + n_entries, slice_.stop + n_entries) for slice_ in self.slices), self.shape
        )


class ParameterTable:
    """All parameters of a model by name, in one vector: model parameters first, then the parameters of each owner.

    Model parameters keep their name (``g``); parameters of elements are prefixed by the element (``door.mass``).
    Repeated element names are numbered ``door#2``, ``door#3``; unnamed elements are labelled by their index.

    >>> door = Parameters(dict(mass=2.0, centre=[0.0, 1.0]))
    >>> table = ParameterTable(Parameters(dict(g=9.81)), [("door", door), ("", Parameters(dict(c=3.0)))])
    >>> table.names
    ('g', 'door.mass', 'door.centre', 'element1.c')
    >>> table.vector({"door.centre": [5.0, 6.0]})
    array([9.81, 2.  , 5.  , 6.  , 3.  ])
    """

    def __init__(
        self,
        model_parameters: Parameters,
        owners: Sequence[tuple[str, Parameters]] = (),
        aliases: Mapping[str, ParameterEntry] | None = None,
    ) -> None:
        self.model_parameters = model_parameters
        self._parts = (model_parameters, *(parameters for _, parameters in owners))
        self.size = sum(part.size for part in self._parts)
        self._labels = unique_labels([name for name, _ in owners])
        #: Aliases: names of parameters in the models that this model was composed of.
        self.aliases = dict(aliases or {})

    def extended(self, owner: str, parameters: Parameters) -> ParameterTable:
        """Return the table with the parameters of one more owner at the end of the vector."""
        owners = zip((*self._labels, owner), (*self._parts[1:], parameters), strict=True)
        return ParameterTable(self.model_parameters, list(owners), self.aliases)

    @functools.cached_property
    def _values(self) -> np.ndarray:
        return np.concatenate([part.vector() for part in self._parts])

    @functools.cached_property
    def rows(self) -> tuple[tuple[str, tuple[int, ...], str], ...]:
        """Name, shape and tie target (empty string if none) of every parameter, in the order of the vector."""
        label_by_id = {id(part): label for part, label in zip(self._parts[1:], self._labels, strict=True)}
        table_rows = [(name, shape, "") for name, shape in self.model_parameters.shapes]
        for part, label in zip(self._parts[1:], self._labels, strict=True):
            for name, shape in part.shapes:
                table_rows.append((f"{label}.{name}", shape, _tie_target(part, name, label_by_id)))
        return tuple(table_rows)

    @functools.cached_property
    def entries(self) -> dict[str, ParameterEntry]:
        """Entries of all changeable parameters, by name."""
        offset, slices, shapes = 0, dict[str, list[slice]](), dict[str, tuple[int, ...]]()
        for name, shape, _ in self.rows:
            size = math.prod(shape)
            slices[name], shapes[name] = [slice(offset, offset + size)], shape
            offset += size
        for name, _, tie_target in self.rows:
            if tie_target:
                slices[tie_target] += slices.pop(name)
        return {name: ParameterEntry(tuple(entry_slices), shapes[name]) for name, entry_slices in slices.items()}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.entries)

    def vector(self, changes: Mapping[str, object] | None = None) -> np.ndarray:
        """Return the parameter vector with changed values; names and shapes must match."""
        vector = self._values.copy()
        for name, value in (changes or {}).items():
            entry = self.lookup(name)
            new_value = validation.check_array(f"parameter '{name}'", value)
            if new_value.shape != entry.shape:
                raise InputError(f"parameter '{name}' must have shape {entry.shape}, got {new_value.shape}")
            for slice_ in entry.slices:
                vector[slice_] = new_value.ravel()
        return vector

    def lookup(self, name: str) -> ParameterEntry:
        """Return the entry of a changeable parameter, or raise `InputError`."""
        entry = self.entries.get(name) or self.aliases.get(name)
        if entry is not None:
            return entry
        for tied_name, _, tie_target in self.rows:
            if tied_name == name:
                raise InputError(f"parameter '{name}' is shared with '{tie_target}': change that parameter instead")
        raise InputError(f"unknown parameter '{name}'{suggestion(str(name), {*self.entries, *self.aliases})}")

    def to_python(self, values: np.ndarray | None = None, only: Collection[str] | None = None) -> dict[str, object]:
        """Return parameter values by name as Python numbers and lists; `only` selects names."""
        values = self._values if values is None else values
        selected = {name: entry for name, entry in self.entries.items() if only is None or name in only}
        selected |= {name: entry for name, entry in self.aliases.items() if only is not None and name in only}
        return {name: values[e.slices[0]].reshape(e.shape).tolist() for name, e in selected.items()}

    def changed_values(self, changed: Collection[str], values: np.ndarray) -> dict[str, object]:
        """Return the model parameters and all changed parameters."""
        return self.to_python(values, {*self.model_parameters.values, *changed})


def _tie_target(part: Parameters, name: str, label_by_id: Mapping[int, str]) -> str:
    """Return the name of the parameter that a tied parameter refers to, or "" if it belongs to another model."""
    target, visited = "", set[int]()
    while name in part.tied and id(part) not in visited:
        visited.add(id(part))
        part, name = part.tied[name].owner.parameters, part.tied[name].name
        target = f"{label_by_id[id(part)]}.{name}" if id(part) in label_by_id else target
    return target


def unique_labels(names: Sequence[str]) -> tuple[str, ...]:
    """Return unique labels of elements, from their names or their indices.

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


class ParameterNamespace:
    """Parameter namespace: the argument `k` of model functions."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        known = [n for n in self.__dict__ if not n.startswith("_")]
        if not known:
            raise ModelError(f"unknown parameter 'k.{name}': the system has no parameters")
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean 'k.{close[0]}'?" if close else f"known: {', '.join(known)}"
        raise ModelError(f"unknown parameter 'k.{name}'; {hint}")
