"""Detected contacts: penalty contacts with run-time collision detection.

Contacts are not elements, of which n bodies would have n(n - 1)/2. Schemes that evaluate expensive forces once per step
evaluate all contacts at once, like an external force. The engine tests only neighbouring shapes.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.models.external_force import ExternalForce
from livens.types import Expr

#: Energy terms of a contact group: the stored energy and the dissipated powers.
ENERGY_TERMS = ("stored", "damping", "sliding", "pivoting", "rolling")
#: Parameters of the contact of a sphere: both radii, law, damping, friction and its slip tolerance.
SPHERE_PARAMETERS = ("reach", "radius", "stiffness", "damping", "friction", "smooth")
#: Bounding radius, relative to the median, above which a shape is tested against all others instead of being binned.
_OVERSIZE_FACTOR = 4.0


@dataclass(frozen=True, eq=False)
class CollisionProxy:
    """Collision proxy of a shape: coordinate indices of its body and a bounding sphere."""

    body: int
    group: int
    shape_class: int  # shapes of one class differ only in their bodies
    first_dof: int  # index of the first coordinate of the body
    n_dofs: int  # number of coordinates; 0 for the ground
    local_position: (
        np.ndarray
    )  # centre of the bounding sphere relative to that of the body, in components along the directors
    bounding_radius: float
    #: Normal and offset of a plane; None for other shapes.
    plane: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class SphereContact:
    """Contact of a sphere with a sphere or a fixed plane in space, without spinning or rolling friction.

    Such contacts have a hand-written kernel in the engine, with the parameters `SPHERE_PARAMETERS`.
    """

    exponent: float  # of the normal force as a function of the depth
    indices: tuple[int, ...]  # of `SPHERE_PARAMETERS` in the parameters of the kernel; -1 for a parameter that is zero
    plane: np.ndarray | None  # normal and offset; None for two spheres

    def parameter_row(self, values: np.ndarray) -> np.ndarray:
        """Return the parameters of the hand-written kernel from those of the general one."""
        row = [0.0 if i < 0 else float(values[i]) for i in self.indices]
        plane = np.zeros(4) if self.plane is None else self.plane
        return np.array([*row, self.exponent, float(self.plane is not None), *plane])


@dataclass(frozen=True, eq=False)
class ClassPairPoint:
    """Possible contact point of two shape classes: kernel and its parameters.

    The kernel is a function of ``(q, v, k)`` of both bodies. It returns the forces on these coordinates, followed by
    the values of `ENERGY_TERMS`. Its k are `parameters`, followed by those of the group.
    """

    kernel: int
    swapped: bool  # the body of the second class comes first
    parameters: np.ndarray
    sphere: SphereContact | None = None


@dataclass(frozen=True, eq=False)
class ContactGroupData:
    """Contact group with one contact law: its name, detection margin in metres, and parameter indices."""

    name: str
    margin: float
    parameter_indices: tuple[int, ...]


def dissipated_power(energy_terms: Expr) -> Expr:
    """Return the dissipated power of all groups: the sum of all energy terms except the stored energy."""
    table = ca.reshape(energy_terms, len(ENERGY_TERMS), energy_terms.numel() // len(ENERGY_TERMS))
    return ca.sum1(ca.sum2(table[1:, :]))


class DetectedContacts(ExternalForce):
    """Detected contacts of a system as one expensive external force."""

    depends_on_velocity = True
    evaluates_within_steps = False

    def __init__(
        self,
        size: int,
        dimension: int,
        groups: Sequence[ContactGroupData],
        proxies: Sequence[CollisionProxy],
        kernels: Sequence[ca.Function],
        gap_functions: Sequence[ca.Function],
        pair_points: Mapping[tuple[int, int], Sequence[ClassPairPoint]],
        excluded_pairs: frozenset[tuple[int, int]],
    ) -> None:
        self.size, self.dimension = size, dimension
        self.groups, self.proxies, self.kernels = tuple(groups), tuple(proxies), tuple(kernels)
        #: Gap functions, with the arguments of the kernels.
        self.gap_functions = tuple(gap_functions)
        self.pair_points = {pair: tuple(points) for pair, points in pair_points.items()}
        #: Pairs of bodies excluded from collision, such as bodies connected by a joint.
        self.excluded_pairs = excluded_pairs
        self.address, self.function = 0, None  # evaluated by dedicated code of the engine
        self.n_energy_terms = len(ENERGY_TERMS) * len(self.groups)

    def fingerprint_data(self) -> Sequence[object]:
        """Return the fingerprint data: everything the step equations depend on."""
        hasher = hashlib.sha256()
        for group in self.groups:
            hasher.update(repr((group.name, group.margin, group.parameter_indices)).encode())
        for proxy in self.proxies:
            hasher.update(
                repr(
                    (proxy.body, proxy.group, proxy.shape_class, proxy.first_dof, proxy.n_dofs, proxy.bounding_radius)
                ).encode()
            )
            hasher.update(proxy.local_position.tobytes())
            hasher.update(b"" if proxy.plane is None else proxy.plane.tobytes())
        for function in self.kernels:
            hasher.update(function.serialize().encode())
        for pair, points in sorted(self.pair_points.items()):
            for point in points:
                hasher.update(repr((pair, point.kernel, point.swapped)).encode())
                hasher.update(point.parameters.tobytes())
                hasher.update(repr(point.sphere is None or (point.sphere.exponent, point.sphere.indices)).encode())
        hasher.update(repr(sorted(self.excluded_pairs)).encode())
        return "found contacts", hasher.hexdigest()

    @functools.cached_property
    def unbounded(self) -> tuple[int, ...]:
        """Unbounded or oversize proxies, which are tested against all others: planes and very large shapes."""
        radii = np.array([proxy.bounding_radius for proxy in self.proxies])
        finite = radii[np.isfinite(radii)]
        limit = _OVERSIZE_FACTOR * float(np.median(finite)) if finite.size else 0.0
        return tuple(int(i) for i in np.flatnonzero(~(radii <= limit)))

    def may_collide(self, i: int, j: int) -> bool:
        """Return whether two proxies may collide (collision filter)."""
        a, b = self.proxies[i], self.proxies[j]
        pair = min(a.body, b.body), max(a.body, b.body)
        return a.group == b.group and a.body != b.body and pair not in self.excluded_pairs and a.n_dofs + b.n_dofs > 0

    def bounding_centres(self, q: np.ndarray) -> np.ndarray:
        """Return the centres of the bounding spheres, of shape (n_proxies, dimension)."""
        d, centres = self.dimension, np.zeros((len(self.proxies), self.dimension))
        for row, proxy in zip(centres, self.proxies, strict=True):
            if not proxy.n_dofs:
                row[:] = proxy.local_position
                continue
            vectors = q[proxy.first_dof : proxy.first_dof + proxy.n_dofs].reshape(-1, d)
            row[:] = vectors[0] + proxy.local_position[: len(vectors) - 1] @ vectors[1:]
        return centres

    def candidate_pairs(self, q: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield pairs of proxies with overlapping bounding spheres, in ascending order."""
        from scipy.spatial import cKDTree  # slow import

        x, radii = self.bounding_centres(q), np.array([proxy.bounding_radius for proxy in self.proxies])
        unbounded = set(self.unbounded)
        bounded = [i for i in range(len(x)) if i not in unbounded]
        pairs: set[tuple[int, int]] = set()
        if len(bounded) > 1:
            tree = cKDTree(x[bounded])
            pairs |= {(bounded[i], bounded[j]) for i, j in tree.query_pairs(2 * float(radii[bounded].max()))}
        pairs |= {(min(i, j), max(i, j)) for i in unbounded for j in range(len(x)) if i != j}
        for i, j in sorted((min(pair), max(pair)) for pair in pairs):
            if self.may_collide(i, j) and self._bounds_overlap(x, radii, i, j):
                yield i, j

    def _bounds_overlap(self, x: np.ndarray, radii: np.ndarray, i: int, j: int) -> bool:
        for a, b in ((i, j), (j, i)):
            plane = self.proxies[a].plane
            if plane is not None:
                return bool(plane[:-1] @ x[b] - plane[-1] < radii[b])
        return bool(np.linalg.norm(x[i] - x[j]) < radii[i] + radii[j])

    def _points_of_pair(self, i: int, j: int, k: np.ndarray) -> Iterator[tuple[int, int, int, np.ndarray]]:
        """Yield the possible contact points of a pair: first proxy, second proxy, kernel index and parameters."""
        for point in self.pair_points[self.proxies[i].shape_class, self.proxies[j].shape_class]:
            a, b = (j, i) if point.swapped else (i, j)
            parameter_indices = list(self.groups[self.proxies[i].group].parameter_indices)
            yield a, b, point.kernel, np.concatenate([point.parameters, k[parameter_indices]])

    def contributions(self, q: np.ndarray, v: np.ndarray, k: np.ndarray) -> Iterator[tuple[int, int, int, np.ndarray]]:
        """Yield the contributions of all possible contact points: both proxies, dofs of the first, kernel output."""
        for i, j in self.candidate_pairs(q):
            for a, b, kernel, parameters in self._points_of_pair(i, j, k):
                dofs = [*self._dofs(a), *self._dofs(b)]
                values = self.kernels[kernel](q[dofs], v[dofs], parameters)
                yield a, b, len(self._dofs(a)), np.array(values).ravel()

    def pair_gaps(self, i: int, j: int, q: np.ndarray, k: np.ndarray) -> list[float]:
        """Return the gaps at all possible contact points of a pair; negative for penetration."""
        gaps = []
        for a, b, kernel, parameters in self._points_of_pair(i, j, k):
            dofs = [*self._dofs(a), *self._dofs(b)]
            gaps.append(float(self.gap_functions[kernel](q[dofs], 0 * q[dofs], parameters)))
        return gaps

    def _dofs(self, i: int) -> range:
        proxy = self.proxies[i]
        return range(proxy.first_dof, proxy.first_dof + proxy.n_dofs)

    def __call__(self, q: Any, v: Any, t: float, k: Any) -> np.ndarray:
        """Return the forces on all coordinates and the energy terms of all groups (reference implementation)."""
        q, v, k = (np.asarray(x, dtype=float).ravel() for x in (q, v, k))
        output = np.zeros(self.size + self.n_energy_terms)
        for a, b, _, values in self.contributions(q, v, k):
            dofs = [*self._dofs(a), *self._dofs(b)]
            output[dofs] += values[: len(dofs)]
            offset = self.size + len(ENERGY_TERMS) * self.proxies[a].group
            output[offset : offset + len(ENERGY_TERMS)] += values[len(dofs) :]
        return output

    def energy_rates(self, q: np.ndarray, v: np.ndarray, k: np.ndarray, group: int) -> np.ndarray:
        """Return the power of the forces of one group, followed by its energy terms."""
        totals = np.zeros(1 + len(ENERGY_TERMS))
        for a, b, _, values in self.contributions(q, v, k):
            if self.proxies[a].group == group:
                dofs = [*self._dofs(a), *self._dofs(b)]
                totals[0] += values[: len(dofs)] @ v[dofs]
                totals[1:] += values[len(dofs) :]
        return totals

    def pair_forces(self, q: np.ndarray, v: np.ndarray, k: np.ndarray, group: int) -> dict[tuple[int, int], np.ndarray]:
        """Return the spatial forces of one group on the second proxy of each touching pair, by pair."""
        forces: dict[tuple[int, int], np.ndarray] = {}
        d = self.dimension
        for a, b, count, values in self.contributions(q, v, k):
            if self.proxies[a].group != group or not values[: len(values) - len(ENERGY_TERMS)].any():
                continue
            # the first d coordinates of a body are those of its centre
            force = values[count : count + d] if self.proxies[b].n_dofs else -values[:d]
            pair, force = ((a, b), force) if a < b else ((b, a), -force)
            forces[pair] = forces.get(pair, 0.0) + force
        return forces

    def __repr__(self) -> str:
        return f"<detected contacts of {len(self.proxies)} shapes>"
