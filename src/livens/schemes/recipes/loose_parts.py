"""Step of mutually independent bodies: one function per class of identical bodies.

Interactions are contacts that are detected before the step begins. The step of a body therefore depends on its own
state only, and the generated code does not grow with the number of bodies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.expressions.layout import Layout
from livens.models.black_box import BlackBox
from livens.models.element import ElementModel
from livens.models.found_contacts import FoundContacts
from livens.models.model import digest_of
from livens.models.system import System
from livens.schemes.recipes.split_forces import Ahead, SplitStep, memory_size, start_function
from livens.schemes.recipes.twists import twists
from livens.schemes.step import FlatEquations, StepEquations

#: Minimum number of bodies for this path.
FEWEST = 8
#: Markers in the index tables of body states for entries that are sums over all bodies.
SUPPLIED, DISSIPATED, MOVING, LOST = -1, -2, -3, -4


class Elsewhere(BlackBox):
    """Placeholder for the external force on one body; the forces are evaluated for all bodies at once."""

    def __init__(self) -> None:
        self.address, self.function, self.velocities = 0, None, True


@dataclass(frozen=True, eq=False)
class Kind:
    """Class of identical bodies: one body as a System, and coordinates and elements of each body in the full system."""

    system: System
    coordinates: np.ndarray
    elements: np.ndarray

    def parameters(self, whole: System) -> np.ndarray:
        """Return the parameter indices of each body."""
        size, where = whole.shared.size, whole.parameter_indices
        return np.array([[*range(size), *(i for e in own for i in where[e][size:])] for own in self.elements.tolist()])


@functools.lru_cache(maxsize=32)
def loose_parts(system: System) -> tuple[Kind, ...]:
    """Return the body classes of a system of independent bodies; () if the system is stepped as one.

    Returns () if a body has joints, sampled controllers or velocity-level constraints.
    """
    if not isinstance(system.box, FoundContacts) or system.controls or system.rolls:
        return ()
    inside = {i for frame in system.frames for i in frame.constraints}
    if len(inside) != system.m:
        return ()
    parts = _connected(system)
    if len(parts) < FEWEST:
        return ()
    alike: dict[Any, list[tuple[list[int], list[int]]]] = {}
    for coordinates, elements in parts:
        place = {i: j for j, i in enumerate(coordinates)}
        told = [
            (id(system.models[e]), tuple(place[i] for i in system.indices[e]), _flags(system.elements[e]))
            for e in elements
        ]
        alike.setdefault(tuple(told), []).append((coordinates, elements))
    found = []
    for some in alike.values():
        coordinates, elements = some[0]
        names, own = [system.coordinates[i] for i in coordinates], [system.elements[e] for e in elements]
        one = System(names, elements=own, parameters=system.shared.values, frames=True)
        one.box = Elsewhere()
        found.append(Kind(one, np.array([part[0] for part in some]), np.array([part[1] for part in some])))
    return tuple(found)


def _acts(model: ElementModel) -> bool:
    """Return True if an element has an energy, a force or a constraint; others are visuals or hold parameters."""
    return bool(model.m or model.F.nnz()) or not all(x.is_zero() for x in (model.T, model.V, model.R))


def _flags(element: Any) -> tuple[Any, ...]:
    return element.expensive, element.beta, element.rotor


def _connected(system: System) -> list[tuple[list[int], list[int]]]:
    """Return coordinates and elements of every connected component, in order."""
    root = list(range(system.n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    acting = [e for e, model in enumerate(system.models) if _acts(model)]
    for index in (system.indices[e] for e in acting):
        for i in index[1:]:
            a, b = find(index[0]), find(i)
            root[max(a, b)] = min(a, b)
    coordinates: dict[int, list[int]] = {}
    elements: dict[int, list[int]] = {}
    for i in range(system.n):
        coordinates.setdefault(find(i), []).append(i)
    for e in acting:
        elements.setdefault(find(system.indices[e][0]), []).append(e)
    return [(coordinates[i], elements.get(i, [])) for i in coordinates]


@dataclass(frozen=True, eq=False)
class LooseParts(StepEquations):
    """Step equations by body class."""

    system: System
    kinds: tuple[Kind, ...]
    steps: tuple[FlatEquations, ...]
    whole: Callable[[], FlatEquations]

    @functools.cached_property
    def layout(self) -> Layout:  # type: ignore[override]  # declared as attribute in the base class
        n, box = self.system.n, self.system.box
        assert box is not None
        return self.system.layout.with_(A=memory_size(self.system), asked=2 * n + 1, box=n + box.accounts)

    def flatten(self) -> FlatEquations:
        return self.whole()

    @functools.cached_property
    def fingerprint(self) -> str:
        return digest_of(["loose parts", self.system.digest, *(step.fingerprint for step in self.steps)])

    @functools.cached_property
    def places(self) -> tuple[np.ndarray, ...]:
        """State indices of each body in the full state, by body class; sums have negative markers."""
        return tuple(_places(self.system, kind, self.layout) for kind in self.kinds)


def _places(system: System, kind: Kind, layout: Layout) -> np.ndarray:
    n, one, rows = system.n, kind.system, []
    of_part, of_whole = _entries_of_twists(one), _entries_of_twists(system)
    for coordinates, elements in zip(kind.coordinates.tolist(), kind.elements.tolist(), strict=True):
        slots = [system.multiplier_slices[e] for e in elements]
        # a quasi-velocity is identified by its coordinates in both systems
        twist = [of_whole[tuple(coordinates[i] for i in own), j] for own, j in of_part]
        found: dict[str, list[int]] = {name: [layout[name].start + i for i in coordinates] for name in "qvp"}
        found |= dict(supplied_energy=[SUPPLIED], dissipated_energy=[DISSIPATED])
        found["multipliers"] = [layout["multipliers"].start + i for own in slots for i in range(own.start, own.stop)]
        size, A = len(of_whole), layout["A"].start
        found["A"] = [*(A + i for i in twist), *(A + size + i for i in twist), MOVING, LOST]
        asked = layout["asked"].start
        found["asked"] = [*(asked + i for i in coordinates), *(asked + n + i for i in coordinates), asked + 2 * n]
        found["box"] = [layout["box"].start + i for i in coordinates]
        rows.append([i for name in one.layout.sizes for i in found[name]] + found["A"] + found["asked"] + found["box"])
    return np.array(rows, dtype=np.int64)


def _entries_of_twists(system: System) -> dict[tuple[tuple[int, ...], int], int]:
    """Return the indices of quasi-velocities by coordinates: (coordinate,) or the coordinates of a frame."""
    own = twists(system)
    found: dict[tuple[tuple[int, ...], int], int] = {((i,), 0): j for i, j in own.place.items()}
    for frame, rates in own.rates():
        found |= {(frame.coordinates, j): rates.start + j for j in range(rates.stop - rates.start)}
    return found


@functools.lru_cache(maxsize=32)
def loose_steps(system: System, ahead: Ahead, beta: float) -> tuple[FlatEquations, ...]:
    """Return the steps of all body classes; () if there are none, or if a step is implicit."""
    steps = tuple(SplitStep(kind.system, ahead, beta).equations() for kind in loose_parts(system))
    return () if any(step.size for step in steps) else steps


def parts_start(system: System, ahead: Ahead, values: Mapping[str, Any], t: float, h: float, k: Any) -> dict[str, Any]:
    """Return the initial scheme state: A of the first step, and the contact forces."""
    n, box, size = system.n, system.box, twists(system).size
    assert box is not None
    k = np.asarray(k, dtype=float).ravel()
    q, v = np.asarray(values["q"], dtype=float), np.asarray(values["v"], dtype=float)
    A, asked = np.zeros(2 * size + 2), np.zeros(2 * n + 1)
    of_whole = _entries_of_twists(system)
    for kind in loose_parts(system):
        function, own = start_function(kind.system, ahead), _entries_of_twists(kind.system)
        count = len(own)
        for coordinates, parameters in zip(kind.coordinates, kind.parameters(system), strict=True):
            told, at = (np.array(x).ravel() for x in function(q[coordinates], v[coordinates], t, h, k[parameters]))
            places = [of_whole[tuple(int(coordinates[i]) for i in where), j] for where, j in own]
            A[places], A[[size + i for i in places]] = told[:count], told[count : 2 * count]
            A[2 * size :] += told[2 * count :]
            d = len(coordinates)
            asked[coordinates], asked[n + coordinates], asked[2 * n] = at[:d], at[d : 2 * d], at[2 * d]
    return {"A": A, "asked": asked, "box": box(asked[:n], asked[n : 2 * n], asked[2 * n], k)}
