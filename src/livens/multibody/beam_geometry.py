"""Geometry of beam axes in the reference configuration: node positions, frames and arc lengths."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.multibody.body import frame_from_x, parse_direction, parse_point
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_array

#: Samples per element of a curve that is given as a function.
_SAMPLES = 24


@dataclass(frozen=True, eq=False)
class Centreline:
    """Beam axis: positions, frames (columns, the first along the beam) and arc lengths of the nodes."""

    positions: np.ndarray
    frames: np.ndarray
    stations: np.ndarray
    straight: bool


def centreline(
    name: str, points: object, elements: int, section_axis: ArrayLike | None, stations: Sequence[float], dimension: int
) -> Centreline:
    """Return the beam axis through points, or along a curve given as a function of a number from 0 to 1."""
    points_array = _curve_points(name, points, elements, dimension)
    straight = len(points_array) == 2
    chords = np.linalg.norm(np.diff(points_array, axis=0), axis=1)
    if not np.all(chords > 0):
        raise InputError(f"{name}: two consecutive points of the beam coincide")
    if straight:
        chord_length = float(chords[0])
        along = _mesh(name, chord_length, elements, stations)
        tangent = (points_array[1] - points_array[0]) / chord_length
        positions = points_array[0] + along[:, None] * tangent
        return Centreline(positions, np.array([_initial_frame(name, tangent, section_axis)] * len(along)), along, True)
    length, position, tangent = _arc_length_spline(points_array, chords)
    along = _mesh(name, length, elements, stations)
    positions, tangents = position(along), tangent(along)
    frames = _parallel_transport(_initial_frame(name, tangents[0], section_axis), tangents)
    return Centreline(positions, frames, along, False)


def circle(name: str, at: ArrayLike, axis: ArrayLike, radius: float, elements: int, dimension: int) -> Centreline:
    """Return a closed circle about an axis; the last node coincides with the first."""
    middle = parse_point(f"{name}: at", at, dimension)
    angles = np.linspace(0, 2 * np.pi, elements + 1)
    flat = np.column_stack([np.cos(angles), np.sin(angles)])
    if dimension == 2:
        axes = np.array([[[-s, -c], [c, -s]] for c, s in flat])
        return Centreline(middle + radius * flat, axes, radius * angles, False)
    normal = parse_direction(f"{name}: axis", axis)
    x = frame_from_x(normal)[:, 1]
    y = np.cross(normal, x)
    outwards = flat @ np.array([x, y])
    along = np.cross(normal, outwards)
    axes = np.stack([along, -outwards, np.broadcast_to(normal, along.shape)], axis=2)
    return Centreline(middle + radius * outwards, axes, radius * angles, False)


def _curve_points(name: str, points: object, elements: int, dimension: int) -> np.ndarray:
    if callable(points):
        samples: list[Any] = [points(s) for s in np.linspace(0.0, 1.0, _SAMPLES * elements + 1).tolist()]
    elif isinstance(points, (list, tuple, np.ndarray)) and len(points) >= 2:
        samples = list(points)
    else:
        raise InputError(f"{name}: a beam needs at least two points, or a function of s, got {points!r}")
    return np.array([parse_point(f"{name}: points[{i}]", x, dimension) for i, x in enumerate(samples)])


def _mesh(name: str, length: float, elements: int, stations: Sequence[float]) -> np.ndarray:
    """Return the arc lengths of the nodes: the stations, and an even mesh between them."""
    requested = (
        np.sort(np.atleast_1d(check_array(f"{name}: stations", stations)).ravel()) if len(stations) else np.zeros(0)
    )
    if requested.size and not (requested[0] >= 0 and requested[-1] <= length * (1 + 1e-9)):
        raise InputError(
            f"{name}: stations are arc lengths between 0 and the length {length:.6g} of the beam, "
            f"got {requested.tolist()}"
        )
    inner = [x for x in requested.tolist() if 1e-9 * length < x < (1 - 1e-9) * length]
    if len(set(inner)) < len(inner):
        raise InputError(f"{name}: a station is given twice, got {requested.tolist()}")
    if len(inner) + 1 > elements:
        raise InputError(f"{name}: {len(inner)} stations within the beam need at least {len(inner) + 1} elements")
    ends = np.array([0.0, *inner, length])
    counts = np.ones(len(ends) - 1, dtype=int)
    for _ in range(elements - len(counts)):  # subdivide the interval with the longest elements
        counts[np.argmax(np.diff(ends) / counts)] += 1
    segments = [
        np.linspace(a, b, n, endpoint=False) for (a, b), n in zip(itertools.pairwise(ends), counts, strict=True)
    ]
    return np.append(np.concatenate(segments), length)


def _initial_frame(name: str, tangent: np.ndarray, section_axis: ArrayLike | None) -> np.ndarray:
    """Return the initial section frame: tangent and section axes."""
    if section_axis is None or len(tangent) == 2:
        return frame_from_x(tangent)
    axis = parse_direction(f"{name}: across", section_axis)
    second = axis - tangent * (tangent @ axis)
    size = float(np.linalg.norm(second))
    if size < 1e-6:
        raise InputError(f"{name}: section_axis is the first axis of the section, and must not be along the beam")
    second = second / size
    return np.column_stack([tangent, second, np.cross(tangent, second)])


def _arc_length_spline(points: np.ndarray, chords: np.ndarray) -> tuple[float, ModelFunction, ModelFunction]:
    """Return a cubic spline by arc length: its length, and functions for position and tangent."""
    from scipy.interpolate import CubicSpline

    knots = np.concatenate([[0.0], np.cumsum(chords)])
    curve = CubicSpline(knots, points)
    nodes, weights = np.polynomial.legendre.leggauss(5)
    half = np.diff(knots) / 2
    at = (knots[:-1] + half)[:, None] + half[:, None] * nodes
    speeds = np.linalg.norm(curve(at, 1), axis=2)
    lengths = np.concatenate([[0.0], np.cumsum(half * (speeds @ weights))])

    def parameter(s: np.ndarray) -> np.ndarray:
        u = np.interp(s, lengths, knots)
        for _ in range(4):  # Newton's method for the arc length within an interval
            i = np.clip(np.searchsorted(lengths, s, side="right") - 1, 0, len(half) - 1)
            width = (u - knots[i]) / 2
            inner = (knots[i] + width)[:, None] + width[:, None] * nodes
            reached = lengths[i] + width * (np.linalg.norm(curve(inner, 1), axis=2) @ weights)
            u = u - (reached - s) / np.linalg.norm(curve(u, 1), axis=1)
        return u

    def tangent(s: np.ndarray) -> np.ndarray:
        derivative = curve(parameter(s), 1)
        return np.asarray(derivative / np.linalg.norm(derivative, axis=1, keepdims=True))

    return float(lengths[-1]), lambda s: curve(parameter(s)), tangent


def _parallel_transport(initial_frame: np.ndarray, tangents: np.ndarray) -> np.ndarray:
    """Return frames by parallel transport along the tangents (no twist)."""
    frames = [initial_frame]
    for before, after in itertools.pairwise(tangents):
        if len(after) == 2:
            frames.append(frame_from_x(after))
            continue
        n, c = np.cross(before, after), before @ after
        hat = np.array([[0, -n[2], n[1]], [n[2], 0, -n[0]], [-n[1], n[0], 0]])
        rotated = (np.eye(3) + hat + hat @ hat / (1 + c)) @ frames[-1]
        second = rotated[:, 1] - after * (after @ rotated[:, 1])
        second = second / np.linalg.norm(second)
        frames.append(np.column_stack([after, second, np.cross(after, second)]))
    return np.array(frames)
