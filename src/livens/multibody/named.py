"""Named outputs of a model: ``hinge.angle``, ``slider.position``, ``pin.force``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.errors import InputError, suggestion
from livens.models.element import Element, ElementModel
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.actuators import angular_velocity
from livens.multibody.beam import beam_quantities
from livens.multibody.connection import Connection
from livens.multibody.couplings import Coupling
from livens.multibody.exerting import Seat, force_and_torque
from livens.multibody.holding import Hold
from livens.multibody.joint import Joint
from livens.multibody.parts import Marker, Part

if TYPE_CHECKING:
    from livens.multibody.drawing import Drawing


def quantities(system: System, drawing: Drawing) -> dict[str, Quantity]:
    """Return all outputs of a model by name."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    numbers = {id(element): i for i, element in enumerate(system.elements)}
    found: dict[str, Quantity] = {}

    def add(owner: str, some: Mapping[str, Quantity]) -> None:
        found.update({f"{owner}.{name}": quantity for name, quantity in some.items()})

    for part in drawing.bodies.values():
        add(part.name, _of_part(part, [place[str(c)] for c in part.coordinates]))
    for one in drawing.connections.values():
        i = [place[str(c)] for c in one.coordinates]
        add(one.name, _of_connection(system, one, numbers[id(one.element)], i))
        if isinstance(one, Joint):
            add(one.name, _of_joint(one, i))
    for beam in drawing.beams.values():
        add(beam.name, beam_quantities(system, beam, numbers))
    for gauge in drawing.gauges.values():
        add(gauge.name, _of_joint(gauge, [place[str(c)] for c in gauge.coordinates]))
    for coupling in drawing.couplings.values():
        i = [place[c] for c in coupling.coordinates]
        add(coupling.name, _of_coupling(coupling, system.multiplier_slices[numbers[id(coupling.element)]].start, i))
    for link in drawing._links:
        number = numbers[id(link)]
        first, length = system.multiplier_slices[number].start, system.parameter_indices[number][-1]
        add(link.name, dict(tension=_tension(link, first, length)))
    for drive, unit in drawing._drives:
        first = system.multiplier_slices[numbers[id(drive)]].start
        add(drive.name, {"force" if unit == "N" else "torque": _driving(drive, first, unit)})
    for name, exerting in drawing._exerting:
        add(name, exerting.quantities(name, Seat.of(system, numbers[id(exerting.element)], place)))
    for name, (body, unit) in drawing._integrals.items():
        found[f"{name}.integral"] = _integral(name, place[str(body.coordinates[0])], unit)
    for hold in drawing._holds.values():
        add(hold.name, _of_hold(system, hold, numbers[id(hold.element)], place))
    for landing in drawing._landings.values():
        own = system.multiplier_slices[numbers[id(landing.element)]]
        add(landing.name, _of_landing(landing.name, own.start))
    if drawing._contacts or drawing._crowds:
        from livens.multibody.contacts import sensors  # imported on demand

        for contact in drawing._contacts.values():
            add(contact.name, sensors.quantities(contact, system, numbers))
        for crowd in drawing._crowds.values():
            found.update(sensors.of_crowd(crowd, system, numbers[id(crowd.element)]))
    for name, function in drawing._observed.items():
        found[name] = Quantity(name, "", _own(function))
    for name, (marker, frame) in drawing._watched.items():
        add(name, _of_sensor(name, marker, frame, place))
    for name, (of, frame) in drawing._turned.items():
        if of not in found:
            raise InputError(f"{name}: there is no output '{of}'{suggestion(of, found)}")
        found[name] = _turned(name, found[of], frame, place)
    return found


def _turned(name: str, quantity: Quantity, frame: Marker | None, place: Mapping[str, int]) -> Quantity:
    """Return a vector output resolved in the axes of a frame of a body."""
    if frame is None:
        return quantity
    d = frame.part.dimension
    if quantity.shape != (d,):
        raise InputError(
            f"{name}: only a vector of {d} numbers can be resolved in a frame, which {quantity.words} is not"
        )

    def seen(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        own = m.symbols(q[[place[str(c)] for c in frame.part.coordinates]])
        axes = [m.expression(m.array(frame.part.placement.vector(own, frame.axes[:, i]))) for i in range(d)]
        vector = quantity.expression(q, v, lam, t, k)
        return ca.vertcat(*(ca.dot(axis, vector) for axis in axes))

    words = f"{quantity.words}, in the axes of {frame.part.name}.{frame.name}"
    return dataclasses.replace(quantity, words=words, expression=seen, acts=None)


def _integral(name: str, place: int, unit: str) -> Quantity:
    return Quantity(f"integrated error of {name}", unit, lambda q, v, lam, t, k: q[place])


def _of_sensor(name: str, marker: Marker, frame: Marker | None, place: Mapping[str, int]) -> dict[str, Quantity]:
    """Return position ``A^T (x - x_frame)`` and velocity of a point relative to a frame."""
    d, own = marker.part.dimension, [place[str(c)] for c in marker.part.coordinates]

    def seen(q: Any) -> Any:
        x = marker.part.placement.point(m.symbols(q[own]), marker.lever)
        if frame is None:
            return m.expression(m.array(x))
        of_frame = m.symbols(q[[place[str(c)] for c in frame.part.coordinates]])
        gap = x - frame.part.placement.point(of_frame, frame.lever)
        axes = [frame.part.placement.vector(of_frame, frame.axes[:, i]) for i in range(d)]
        return m.expression(m.array([m.dot(axis, gap) for axis in axes]))

    def rate(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        symbol = ca.SX.sym("q", q.numel())
        moved = ca.Function("rate", [symbol, v], [ca.jtimes(seen(symbol), symbol, v)])
        return moved(q, v)

    where = "" if frame is None else f" relative to {frame.part.name}.{frame.name}"
    return {
        "position": Quantity(f"position of {name}{where}", "m", lambda q, v, lam, t, k: seen(q), shape=(d,)),
        "velocity": Quantity(f"velocity of {name}{where}", "m/s", rate, shape=(d,)),
    }


def _driving(drive: Element, multiplier: int, unit: str) -> Quantity:
    """Return the drive force on the second body; its constraint has derivative one in angle or displacement."""
    words = f"{'force' if unit == 'N' else 'torque'} of {drive.name}"
    return Quantity(words, unit, lambda q, v, lam, t, k: -lam[multiplier], force=True)


def _of_coupling(coupling: Coupling, multiplier: int, i: list[int]) -> dict[str, Quantity]:
    def values(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        return m.expression(m.array(coupling.values(m.symbols(q[i]))))

    joint, quantity, weight = coupling.members[-1]
    what, unit = ("torque", "N m") if quantity == "angle" else ("force", "N")
    return {
        "violation": Quantity(
            f"violation of {coupling.name}", "rad" if quantity == "angle" else "m", values, after=coupling.violation
        ),
        what: Quantity(
            f"{what} of {coupling.name} in {joint.name}",
            unit,
            lambda q, v, lam, t, k: -weight * lam[multiplier],
            force=True,
        ),
    }


def _of_landing(name: str, multiplier: int) -> dict[str, Quantity]:
    """Return the normal force of a rigid contact, the multiplier of the gap constraint; zero while it is open."""
    words = f"normal force of {name}"
    return dict(normal=Quantity(words, "N", lambda q, v, lam, t, k: -lam[multiplier], force=True))


def _tension(link: Element, multiplier: int, length: int) -> Quantity:
    """Return the tension of a rigid link, positive in tension; its constraint is ``(x.x - length^2)/2``."""
    return Quantity(f"tension of {link.name}", "N", lambda q, v, lam, t, k: lam[multiplier] * k[length], force=True)


def _own(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda q, v, lam, t, k: m.expression(m.array(function(m.symbols(q), m.symbols(v))))


def _of_part(part: Part, i: list[int]) -> dict[str, Quantity]:
    d, placement = part.dimension, part.placement

    def local(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        return lambda q, v, lam, t, k: m.expression(m.array(function(m.symbols(q[i]), m.symbols(v[i]))))

    found = {
        "position": Quantity(f"centre of {part.name}", "m", local(lambda q, v: q[:d]), shape=(d,)),
        "velocity": Quantity(f"velocity of the centre of {part.name}", "m/s", local(lambda q, v: v[:d]), shape=(d,)),
    }
    if part.turns:
        whole = local(lambda q, v: placement.frame(q).ravel())
        found["rotation"] = Quantity(f"axes of {part.name} as columns", "1", whole, shape=(d, d))
        rate = local(lambda q, v: angular_velocity(placement, q, v) if d == 3 else [angular_velocity(placement, q, v)])
        found["omega"] = Quantity(f"angular velocity of {part.name}", "rad/s", rate, shape=(3,) if d == 3 else ())
    for name, marker in part.markers.items():
        lever = marker.lever
        if name not in ("centre", *found):
            found[name] = Quantity(
                f"point {name} of {part.name}",
                "m",
                local(lambda q, v, lever=lever: placement.point(q, lever)),  # type: ignore[misc]
                shape=(d,),
            )
    return found


def _of_joint(joint: Joint, i: list[int]) -> dict[str, Quantity]:
    name = joint.name

    def local(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        return lambda q, v, lam, t, k: m.expression(m.array([function(m.symbols(q[i]), m.symbols(v[i]))]))

    found = {}
    if joint.kind.angle:
        found["angle"] = Quantity(f"angle of {name}", "rad", local(lambda q, v: joint.angle(q)), angle=True)
        found["rate"] = Quantity(f"rate of {name}", "rad/s", local(joint.rate))
    if joint.kind.slide:
        found["position"] = Quantity(f"position of {name}", "m", local(lambda q, v: joint.position(q)))
        found["speed"] = Quantity(f"speed of {name}", "m/s", local(joint.speed))
    return found


def _of_connection(system: System, one: Connection, number: int, i: list[int]) -> dict[str, Quantity]:
    name = one.name
    model, own = system.models[number], system.multiplier_slices[number]
    where = list(system.parameter_indices[number])
    found = {}

    def gap(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        of = ca.Function("g", [model.q, model.t, model.k], [ca.densify(model.g[: model.on_position])])
        return of(q[i], t, k[where])

    if model.on_position:
        found["violation"] = Quantity(f"violation of {name}", "m", gap, shape=(model.on_position,))
    d = one.a.dimension

    # built on demand: most reactions of a large model are never evaluated
    @functools.cache
    def reaction() -> ca.Function:
        return _reaction(model, one)

    def force(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        return reaction()(q[i], lam[own], t, k[where])[0]

    def torque(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        return reaction()(q[i], lam[own], t, k[where])[1]

    found["force"] = Quantity(f"force of {name} on {one.second.name}, in space", "N", force, force=True, shape=(d,))
    turning = (3,) if d == 3 else ()
    about = "the joint" if isinstance(one, Joint) else "the point or the centre"
    words = f"torque of {name} on {one.second.name} about {about}, in space"
    found["torque"] = Quantity(words, "N m", torque, force=True, shape=turning)
    return found


def _of_hold(system: System, hold: Hold, number: int, place: Mapping[str, int]) -> dict[str, Quantity]:
    """Return the outputs of a penalty joint: constraint residuals and force on the second body."""
    model, where, joint = system.models[number], list(system.parameter_indices[number]), hold.joint
    i, d = [place[str(c)] for c in joint.coordinates], joint.a.dimension
    invariants = model.through["potential"].of
    acting = -ca.gradient(model.V, model.q) - ca.gradient(model.R, model.v)
    first = len(joint.first.coordinates)
    # if the second body is the ground: the force on the first body with opposite sign
    on = acting[first : first + d] if joint.second.element is not None else -acting[:d]
    both = ca.Function("hold", [model.q, model.v, model.k], [ca.densify(invariants), ca.densify(on)])

    def gaps(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        return both(q[i], v[i], k[where])[0]

    def force(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        return both(q[i], v[i], k[where])[1]

    return {
        "violation": Quantity(f"violation of {hold.name}", "m", gaps, shape=(int(invariants.numel()),)),
        "force": Quantity(f"force of {hold.name} on {joint.second.name}, in space", "N", force, shape=(d,)),
    }


def _reaction(model: ElementModel, joint: Connection) -> ca.Function:
    """Return the reaction force and torque about the joint on the second body, from multipliers."""
    lam = ca.SX.sym("lam", model.m)
    slopes = ca.jacobian(model.g, model.q)
    if model.rates is not None:
        slopes[model.on_position :, :] = ca.jacobian(model.rates.a, model.v)
    f = -slopes.T @ lam
    first = len(joint.first.coordinates)
    # if the second body is the ground: the force on the first body with opposite sign
    part, sign = (joint.second, 1) if joint.second.element is not None else (joint.first, -1)
    own = slice(first, None) if sign == 1 else slice(0, first)
    force, torque = force_and_torque(part, model.q[own], f[own], joint.parameters["Y" if sign == 1 else "X"])
    outputs = [ca.densify(sign * force), ca.densify(sign * torque)]
    return ca.Function("reaction", [model.q, lam, model.t, model.k], outputs)
