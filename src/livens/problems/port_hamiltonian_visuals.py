"""Visual geometry of the port-Hamiltonian problems as functions of the states x."""

from __future__ import annotations

from typing import TYPE_CHECKING

from livens import math as m
from livens.scene import shapes
from livens.scene.shapes import Shape
from livens.types import Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def pendulum(x: Vector) -> list[Shape]:
    """Return a rod from the origin with a ball at its end."""
    return [shapes.ground([0, 0]), shapes.rod([0, 0], x[:2]), shapes.sphere(x[:2], name="bob")]


def spring_chain(x: Vector, k: ParameterNamespace) -> list[Shape]:
    """Return two carriages between two walls on three springs (Symank 2025, sketch of 7.2)."""
    end, w = k.r[0] + k.r[1] + k.r[2], 1.0
    return [
        shapes.path([[0, -1.5 * w], [0, 2.5 * w]]),
        shapes.path([[end, -1.5 * w], [end, 2.5 * w]]),
        shapes.path([[0, -w], [end, -w]]),
        shapes.spring([0, 0], [x[0] - w, 0], w),
        shapes.spring([x[0] + w, 0], [x[1] - w, 0], w),
        shapes.spring([x[1] + w, 0], [end, 0], w),
        shapes.box([x[0], 0], [2 * w, 2 * w], name="mass 1"),
        shapes.box([x[1], 0], [2 * w, 2 * w], name="mass 2"),
    ]


def slider_crank(x: Vector, k: ParameterNamespace) -> list[Shape]:
    """Return motor, crank, rod and slider; x[1] is the crank angle, x[3] the slider position."""
    pin = [k.a * m.cos(x[1]), k.a * m.sin(x[1])]
    return [
        shapes.ring([0, 0], 0.6 * k.a, name="motor"),
        shapes.ground([0, 0]),
        shapes.path([[0, -0.05], [k.a + k.b + 0.1, -0.05]]),
        shapes.rod([0, 0], pin, name="crank", trace=1.0),
        shapes.rod(pin, [x[3], 0], name="rod", trace=0.5),
        shapes.box([x[3], 0], [0.14, 0.09], name="slider"),
    ]


def loudspeaker(x: Vector) -> list[Shape]:
    """Return magnet, coil and membrane; displacements are some tenths of a millimetre."""
    w = 1e-3
    return [
        shapes.path([[-3 * w, -w], [-3 * w, w], [-w, w], [-w, 0.6 * w], [-2.6 * w, 0.6 * w]]),
        shapes.path([[-3 * w, -w], [-w, -w], [-w, -0.6 * w], [-2.6 * w, -0.6 * w]]),
        shapes.box([x[1] - 1.2 * w, 0], [1.4 * w, 0.8 * w], name="coil"),
        shapes.cable([[w, 2 * w], [x[1], 0.5 * w], [x[1], -0.5 * w], [w, -2 * w]], name="membrane"),
        shapes.path([[w, 2 * w], [w, 2.4 * w]]),
        shapes.path([[w, -2 * w], [w, -2.4 * w]]),
    ]


def circuit(x: Vector, k: ParameterNamespace) -> list[Shape]:
    """Return the line between two nodes, with balls at heights proportional to the voltages."""
    top, V = 1.2, k.voltage
    left, right = [1.0, x[1] / V], [2.5, x[2] / V]
    return [
        shapes.path([[0, 0], [3.5, 0]], name="ground"),
        shapes.path([[0, 0], [0, top], [3.5, top]]),
        shapes.box([0, 0.5], [0.25, 0.5], name="generator", trace=None),
        shapes.box([3.5, 0.5], [0.15, 0.5], name="load", trace=None),
        shapes.path([[3.5, 0], [3.5, top]]),
        shapes.spring([1.3, top], [2.2, top], 0.15, name="line"),
        shapes.rod([1.0, 0.0], left, 0.12, name="charge 1"),
        shapes.rod([2.5, 0.0], right, 0.12, name="charge 2"),
        shapes.sphere(left, 0.08, name="voltage 1"),
        shapes.sphere(right, 0.08, name="voltage 2"),
    ]


def momentum(x: Vector) -> list[Shape]:
    """Return the angular momentum vector in the body frame, on its sphere."""
    size = 1.0
    frames = [[[1, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]]
    return [
        shapes.axes([0, 0, 0], size=1.25 * size),
        shapes.ring([0, 0, 0], size),
        *(shapes.ring([0, 0, 0], size, frame) for frame in frames),
        shapes.rod([0, 0, 0], x, name="angular momentum", trace=1.0),
    ]
