"""A compiled step: the equations of a scheme for a model, their native code, and the pivot orders that were needed."""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from livens.engine.correction import first_kernel
from livens.engine.crowd import CrowdStepper
from livens.engine.explicit import ExplicitStepper
from livens.engine.factors import Order
from livens.engine.found_contacts import ContactTables
from livens.engine.fused import FusedStepper
from livens.engine.kernels import (
    carry_kernel,
    end_kernel,
    error_kernel,
    floor_kernel,
    guess_kernel,
    newton_kernel,
    residual_kernel,
)
from livens.engine.loose_parts import PartsStepper
from livens.engine.native import Code
from livens.engine.newton import Kernels, Workspace, kernel_names
from livens.engine.pivots import SingularMatrixError, pivot_order
from livens.engine.planets.stepper import PlanetStepper
from livens.engine.predictor import predictor_kernel
from livens.engine.reference import ReferenceStepper
from livens.engine.series.stepper import Between, OwnSteps, SeriesStepper
from livens.engine.stage_lanes import SweptStepper
from livens.engine.step_size import Control
from livens.engine.steps import Stepper
from livens.expressions.evaluate import Evaluator
from livens.expressions.layout import Layout
from livens.expressions.stages import stage
from livens.expressions.variables import ALWAYS, VARIABLES
from livens.models.found_contacts import FoundContacts
from livens.models.model import Model
from livens.schemes.base import Scheme
from livens.schemes.recipes.crowds import CrowdEquations
from livens.schemes.recipes.loose_parts import LooseParts
from livens.schemes.recipes.pieces import Pieces
from livens.schemes.recipes.swept_stages import SweptStages
from livens.schemes.series import SeriesEquations
from livens.schemes.step import Estimated, FlatEquations
from livens.schemes.wisdom_holman import PlanetEquations

if TYPE_CHECKING:  # the assembled tier brings SciPy's sparse matrices, and most models are small
    from livens.engine.assembled.assembly import Assembly
    from livens.engine.assembled.elimination import Elimination

T = TypeVar("T")

#: At most this many compiled steps are kept for models that are built again.
_KEPT = 32
#: A step of more instructions than this has no function for its first correction and everything behind it: compiling
#: it would take as long as all the rest, and what it saves is a tenth of the time of such a step at most.
_LONG = 8000
#: At most this many choices of a first pivot order are remembered per step.
_CHOICES = 64


class CompiledStep:
    """Equations, kernels and pivot orders of a scheme for a model. It owns its machine code, which is freed with it.

    Parameters, step size and time are run-time inputs, so it serves every run of the model and of all models with the
    same content, also from several threads at once: whatever changes in a run belongs to its stepper.
    """

    def __init__(self, model: Model, scheme: Scheme, dropped: tuple[int, ...] = ()) -> None:
        self.model, self.scheme, self.dropped = model, scheme, dropped
        self.equations = scheme.equations(model, dropped)
        self.layout: Layout = self.equations.layout
        self._code: dict[str, Code] = {}
        self._newton: dict[Order, tuple[Code, Code | None]] = {}
        self._addresses: dict[Order | None, Kernels] = {}
        self._first: collections.OrderedDict[Hashable, Order] = collections.OrderedDict()
        self.spare: list[Workspace] = []
        self._lock = threading.RLock()
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is made once for this step and kept with it, such as the code of its derivatives."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            found: T = self._made[key]
        return found

    @functools.cached_property
    def flat(self) -> FlatEquations:
        """The equations as one graph, for the tiers that need it."""
        self._say_deriving()
        return self.equations.flatten()

    @property
    def series(self) -> bool:
        """Steps are taken by Taylor series: their equations as one graph are long, and seldom needed."""
        return isinstance(self.equations, SeriesEquations)

    @property
    def own_code(self) -> bool:
        """Steps are taken by code of their own, without unknowns: their equations as one graph are seldom needed."""
        return isinstance(self.equations, SeriesEquations | PlanetEquations | CrowdEquations | LooseParts)

    @property
    def swept(self) -> bool:
        """Stages are found by sweeps: nothing is eliminated, and there are no pivots."""
        return isinstance(self.equations, SweptStages)

    @functools.cached_property
    def size(self) -> int:
        """How many unknowns a step has."""
        if isinstance(self.equations, SweptStages):
            return self.equations.size
        return 0 if self.own_code else self.flat.size

    @property
    def crowded(self) -> bool:
        """Steps are taken by loops over bodies and cells, without a graph of all their equations."""
        return isinstance(self.equations, CrowdEquations | LooseParts)

    @property
    def says_inside(self) -> bool:
        """Whether the scheme has a formula within the step."""
        return self.between is not None or (not self.own_code and self.flat.inside is not None)

    @functools.cached_property
    def between(self) -> Between | None:
        """The polynomials of steps by Taylor series."""
        return Between(self) if self.series else None

    def _say_deriving(self) -> None:
        unknowns = getattr(self.equations, "unknowns", None)
        stage(f"deriving {unknowns.size} equations" if unknowns is not None else "deriving equations")

    # -- piece by piece -----------------------------------------------------------------------------------------------
    @functools.cached_property
    def pieces(self) -> Pieces | None:
        """The equations piece by piece, for the assembled tier; None if they cannot be written like that."""
        self._say_deriving()
        return self.equations.pieces()

    @functools.cached_property
    def assembly(self) -> Assembly:
        """The kernels of all pieces."""
        from livens.engine.assembled.assembly import Assembly

        assert self.pieces is not None
        return Assembly(self.pieces)

    @functools.cached_property
    def elimination(self) -> Elimination | None:
        """The order of elimination; None if there is no good one, and SuperLU has to do."""
        from livens.engine.assembled.trial import planned

        assembly = self.assembly
        stage("ordering their elimination")
        return planned(assembly, self.model.parameter_vector())

    @functools.cached_property
    def variables(self) -> tuple[str, ...]:
        """What the rows of a run can hold."""
        fictive = ("fictive_time",) if "t" in self.layout else ()
        return tuple(name for name in VARIABLES if name in self.layout or name in (*ALWAYS, *fictive))

    @property
    def fingerprint(self) -> str:
        """What a result file says about the equations of its run; of large models, without one graph of them all."""
        by_parts = self.model.large or self.own_code or self.swept
        return self.equations.fingerprint if by_parts else self.flat.fingerprint

    def solves(self, fingerprint: str) -> bool:
        """Whether the equations are those that a file tells of; earlier versions told of all of them by one graph."""
        if fingerprint == self.fingerprint or self.crowded:
            return fingerprint == self.fingerprint
        return self.model.large and fingerprint == self.flat.fingerprint

    def estimated(self, tier: str) -> Estimated | None:
        """Whose errors this tier estimates, if the scheme has an estimate."""
        if tier == "assembled":
            return self.assembly.pieces.estimated
        if self.own_code:
            return None
        return None if self.flat.error is None else self.flat.error.kind

    @functools.cached_property
    def estimates(self) -> int:
        """How many numbers an estimate of the error of a step consists of, sizes and matrix included."""
        error = self.flat.error
        return 0 if error is None else error.count * (2 if error.matrix is None else 2 + error.count)

    # -- native code --------------------------------------------------------------------------------------------------
    def kernels(self, order: Order | None) -> Kernels:
        """Addresses for the loop; with nothing to solve there is no pivot order."""
        known = self._addresses.get(order)
        if known is not None:
            return known
        e = self.flat
        with self._lock:
            if not self._code:
                self._code = {"end": end_kernel(e)}
                if e.size:
                    self._code |= {"residual": residual_kernel(e), "floor": floor_kernel(e), "guess": guess_kernel(e)}
                    self._code["predict"] = predictor_kernel(e)
                if e.error is not None:
                    self._code["error"] = error_kernel(e)
                if e.carried is not None:
                    self._code["carry"] = carry_kernel(e)
            if order is not None and order not in self._newton:
                long = e.newton_function.n_instructions() > _LONG
                self._newton[order] = newton_kernel(e, order), None if long else first_kernel(e, order)
            both = self._newton[order] if order is not None else (None, None)
            newton, first = (0 if code is None else code.address for code in both)
            others = {name: self._address(name) for name in kernel_names() if name not in ("newton", "first")}
            boxed = {}
            if e.box is not None:
                q, n = e.box.asked, e.box.size
                boxed = dict(box=e.box.force.address, box_q=q, box_v=q + n, box_t=q + 2 * n, box_force=e.box.found)
            found = self._addresses[order] = Kernels(newton=newton, first=first, **others, **boxed)
        return found

    def contacts(self, k: np.ndarray) -> ContactTables | None:
        """Contacts that are found while bodies move, with tables for one run, if the model has any."""
        box = self.flat.box
        return ContactTables(box.force, k) if box is not None and isinstance(box.force, FoundContacts) else None

    def may_take(self, order: Order, most: int) -> bool:
        """Whether a pivot order has been compiled, or fewer than `most` have."""
        return order in self._newton or len(self._newton) < most

    def _address(self, name: str) -> int:
        return self._code[name].address if name in self._code else 0

    def first_guess(self, z: np.ndarray, c: np.ndarray, tier: str = "fused") -> np.ndarray:
        """The unknowns to start the first step from."""
        if tier == "assembled":
            from livens.engine.assembled.assembly import Bench

            bench, pieces = Bench(self.assembly, c[2:]), self.assembly.pieces
            memory = np.zeros(pieces.memory.size)

            def guess(weight: float) -> np.ndarray:
                own = np.concatenate([[weight * c[0]], c[1:]])
                return pieces.guess(z, own, lambda x: bench.residual(x, z, memory, own))

            return np.concatenate([guess(weight) for weight in pieces.weights])
        if self.swept and tier == "fused":  # which begins with the slopes where it is
            return np.zeros(self.size)
        return self._guess(z, c)[0].ravel() if self.size else np.zeros(0)

    def first_memory(self, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """What the assembled tier carries on, before the first step."""
        from livens.engine.assembled.loop import first_memory

        return first_memory(self.assembly.pieces, z, c)

    @functools.cached_property
    def _guess(self) -> Evaluator:
        return Evaluator([self.flat.z, self.flat.c], [self.flat.guess])

    @functools.cached_property
    def _jacobian(self) -> Evaluator:
        return Evaluator(self.flat.arguments, [self.flat.jacobian])

    # -- pivot orders -------------------------------------------------------------------------------------------------
    def order_for(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> Order:
        """The pivot order that suits the Jacobian at these numbers."""
        e = self.flat
        stage(f"choosing pivots of {e.size} equations")
        return pivot_order(e.rows, e.columns, self._jacobian(x, z, c)[0].ravel(), e.size)

    def first_order(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, typical: np.ndarray) -> Order:
        """The order to begin with: for typical values of h and the parameters, so that others compile nothing.

        It follows from these numbers alone, whatever was run before, and is remembered for the next run like this one.
        """
        key = x.tobytes(), z.tobytes(), typical.tobytes()
        with self._lock:
            found = self._first.get(key)
        if found is None:
            try:
                found = self.order_for(x, z, typical)
            except SingularMatrixError:
                found = self.order_for(x, z, c)
            with self._lock:
                self._first[key] = found
                while len(self._first) > _CHOICES:
                    self._first.popitem(last=False)
        return found

    # -- at work ------------------------------------------------------------------------------------------------------
    def stepper(
        self,
        tier: str,
        k: np.ndarray,
        order: Order | None = None,
        control: Control | None = None,
        own: OwnSteps | None = None,
        threads: int = 1,
    ) -> Stepper:
        """A tier for one run with the parameters k; `own` for schemes that choose their steps by themselves, `threads`
        for the assembled tier.
        """
        if tier == "assembled":
            from livens.engine.assembled.stepper import AssembledStepper

            return AssembledStepper(self, k, control, threads)
        if isinstance(self.equations, LooseParts) and tier == "fused":
            return PartsStepper(self, k)
        if self.crowded and tier == "fused":
            return CrowdStepper(self, k)
        if tier == "reference":
            return ReferenceStepper(self.flat, k)
        if self.series:
            return SeriesStepper(self, k, own)
        if self.own_code:
            return PlanetStepper(self, k)
        if self.swept:
            return SweptStepper(self, k)
        if not self.flat.size:
            return ExplicitStepper(self, k)
        assert order is not None
        return FusedStepper(self, k, order, control)


_compiled: collections.OrderedDict[Hashable, CompiledStep] = collections.OrderedDict()
_lock = threading.RLock()


def compiled_step(model: Model, scheme: Scheme, dropped: tuple[int, ...] = ()) -> CompiledStep:
    """The compiled step of a scheme for a model, found by content: equal models, built separately, share one."""
    key: Any = (model.digest, scheme, dropped)
    with _lock:
        found = _compiled.get(key)
        if found is None:
            found = _compiled[key] = CompiledStep(model, scheme, dropped)
        _compiled.move_to_end(key)
        while len(_compiled) > _KEPT:
            _compiled.popitem(last=False)
    return found
