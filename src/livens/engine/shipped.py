"""Serialised step for worker processes: equations, monitor and pivot order, without the model."""

from __future__ import annotations

import collections
import hashlib
import pickle
import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.batch import Batch, Bins, Outcome, Schedule
from livens.engine.compiled import CompiledStep
from livens.engine.factors import Order
from livens.engine.watch import Watched
from livens.schemes.step import FlatEquations

#: Maximum number of steps that a worker process caches.
_KEPT = 8


@dataclass(frozen=True)
class Shipped:
    """Serialised equations, monitor and pivot order of a step; `fingerprint` identifies it."""

    payload: bytes
    content: str

    @classmethod
    def of(cls, equations: FlatEquations, watched: Watched, order: Order | None, width: int) -> Shipped:
        e = equations
        turn = None if e.turn is None else (list(map(int, e.turn[1])), list(map(int, e.turn[2])))
        outputs = [e.residual, e.jacobian, e.end, *([] if e.turn is None else [e.turn[0]])]
        outputs += [] if e.onward is None else [e.onward]
        graphs = ca.Function("step", e.arguments, [ca.SX(part) for part in outputs])
        told = dict(
            graphs=graphs.serialize(),
            guess=e.guess_function.serialize(),
            noise=None if e.noise is None else e.noise.serialize(),
            places=(e.rows, e.columns),
            turn=turn,
            onward=e.onward is not None,
            kinds=e.kinds,
            names=e.row_names,
            layout=e.layout,
            watched=(watched.function.serialize(), watched.sizes, watched.reduced, watched.supplied),
            order=order,
            width=width,
        )
        payload = pickle.dumps(told)
        return cls(payload, hashlib.sha256(payload).hexdigest())

    def batch(self) -> Batch:
        """Return the ensemble stepper of this process, compiled (or loaded from disk) once."""
        with _lock:
            known = _batches.get(self.content)
            if known is None:
                known = _batches[self.content] = self._made()
            _batches.move_to_end(self.content)
            while len(_batches) > _KEPT:
                _batches.popitem(last=False)
        return known

    def _made(self) -> Batch:
        told = pickle.loads(self.payload)
        graphs = ca.Function.deserialize(told["graphs"])
        x, z, c = (ca.SX.sym(name, graphs.numel_in(i)) for i, name in enumerate("xzc"))
        # called with symbols, the graphs are expanded operation by operation, in the same order
        found = graphs.call([x, z, c], True, False)
        residual, jacobian, end = found[:3]
        rest = list(found[3:])
        turn = None if told["turn"] is None else (rest.pop(0), *told["turn"])
        equations = FlatEquations(
            x=x,
            z=z,
            c=c,
            residual=residual,
            rows=told["places"][0],
            columns=told["places"][1],
            jacobian=jacobian,
            end=end,
            guess=ca.Function.deserialize(told["guess"]).call([z, c], True, False)[0],
            kinds=told["kinds"],
            row_names=told["names"],
            layout=told["layout"],
            noise=None if told["noise"] is None else ca.Function.deserialize(told["noise"]),
            turn=turn,
            onward=rest.pop(0) if told["onward"] else None,
        )
        function, *others = told["watched"]
        watched = Watched(ca.Function.deserialize(function), *others)
        step = CompiledStep(None, _Given(equations))  # type: ignore[arg-type]  # the model is not accessed
        return Batch(step, told["order"], watched, told["width"])


class _Given:
    """Scheme stand-in with fixed equations."""

    def __init__(self, equations: FlatEquations) -> None:
        self._equations = equations

    def equations(self, model: Any, dropped: Collection[int] = ()) -> FlatEquations:
        return self._equations


_batches: collections.OrderedDict[str, Batch] = collections.OrderedDict()
_lock = threading.RLock()


def run_block(
    shipped: Shipped, z: np.ndarray, k: np.ndarray, schedule: Schedule, threads: int, bins: tuple[Bins, ...]
) -> Outcome:
    """Integrate a block of members in a worker process."""
    return shipped.batch().run(z, k, schedule, threads, bins)
