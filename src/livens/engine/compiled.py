"""Compiled step: the equations of a scheme for a model, their native code, pivot orders, and the stepper factory."""

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

if TYPE_CHECKING:  # the assembled tier imports SciPy's sparse matrices, and most models are small
    from livens.engine.assembled.assembly import Assembly
    from livens.engine.assembled.elimination import Elimination

T = TypeVar("T")

#: Maximum number of compiled steps in the cache, for models that are built again.
_KEPT = 32
#: Largest instruction count of a step with a fused first Newton correction. For longer steps its compilation would take
#: as long as that of all other kernels, and would save at most a tenth of the step time.
_LONG = 8000
#: Maximum number of cached initial pivot orders per step.
_CHOICES = 64


class CompiledStep:
    """Equations, kernels and pivot orders of a scheme for a model; owns its machine code, which is freed with it.

    Parameters, step size and time are run-time inputs. One object serves every run of the model and of all models with
    equal fingerprints, also from several threads at once: data that change in a run belong to its stepper.
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
        """Return an object that is created once for this step and cached, such as the kernels of its derivatives."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            found: T = self._made[key]
        return found

    @functools.cached_property
    def flat(self) -> FlatEquations:
        """Equations as one expression graph."""
        self._say_deriving()
        return self.equations.flatten()

    @property
    def series(self) -> bool:
        """True for Taylor-series steps: their equations as one graph are long and rarely needed."""
        return isinstance(self.equations, SeriesEquations)

    @property
    def own_code(self) -> bool:
        """True for steps with dedicated native code and no unknowns; their equations as one graph are rarely needed."""
        return isinstance(self.equations, SeriesEquations | PlanetEquations | CrowdEquations | LooseParts)

    @property
    def swept(self) -> bool:
        """True if stages are solved by fixed-point iteration: no elimination and no pivots."""
        return isinstance(self.equations, SweptStages)

    @functools.cached_property
    def size(self) -> int:
        """Number of unknowns of a step."""
        if isinstance(self.equations, SweptStages):
            return self.equations.size
        return 0 if self.own_code else self.flat.size

    @property
    def crowded(self) -> bool:
        """True if steps loop over bodies and cells, without one graph of all equations."""
        return isinstance(self.equations, CrowdEquations | LooseParts)

    @property
    def says_inside(self) -> bool:
        """True if the scheme has dense output."""
        return self.between is not None or (not self.own_code and self.flat.inside is not None)

    @functools.cached_property
    def between(self) -> Between | None:
        """Dense output of Taylor-series steps."""
        return Between(self) if self.series else None

    def _say_deriving(self) -> None:
        unknowns = getattr(self.equations, "unknowns", None)
        stage(f"deriving {unknowns.size} equations" if unknowns is not None else "deriving equations")

    # -- assembly -----------------------------------------------------------------------------------------------------
    @functools.cached_property
    def pieces(self) -> Pieces | None:
        """Assembly plan of the assembled tier: equations by element batches; None if the scheme has none."""
        self._say_deriving()
        return self.equations.pieces()

    @functools.cached_property
    def assembly(self) -> Assembly:
        """Kernels of all element batches."""
        from livens.engine.assembled.assembly import Assembly

        assert self.pieces is not None
        return Assembly(self.pieces)

    @functools.cached_property
    def elimination(self) -> Elimination | None:
        """Elimination order of the assembled tier; None if no accurate one exists and SuperLU is used."""
        from livens.engine.assembled.trial import planned

        assembly = self.assembly
        stage("ordering their elimination")
        return planned(assembly, self.model.parameter_vector())

    @functools.cached_property
    def variables(self) -> tuple[str, ...]:
        """Variables that the rows of a run can contain."""
        fictive = ("fictive_time",) if "t" in self.layout else ()
        return tuple(name for name in VARIABLES if name in self.layout or name in (*ALWAYS, *fictive))

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the equations in a result file; for large models it does not require one graph of them all."""
        by_parts = self.model.large or self.own_code or self.swept
        return self.equations.fingerprint if by_parts else self.flat.fingerprint

    def solves(self, fingerprint: str) -> bool:
        """Return True if the equations match the fingerprint of a file; earlier versions always used the flat graph."""
        if fingerprint == self.fingerprint or self.crowded:
            return fingerprint == self.fingerprint
        return self.model.large and fingerprint == self.flat.fingerprint

    def estimated(self, tier: str) -> Estimated | None:
        """Return the description of the error estimate of a tier, or None."""
        if tier == "assembled":
            return self.assembly.pieces.estimated
        if self.own_code:
            return None
        return None if self.flat.error is None else self.flat.error.kind

    @functools.cached_property
    def estimates(self) -> int:
        """Number of values of an error estimate, including reference magnitudes and filter matrix."""
        error = self.flat.error
        return 0 if error is None else error.count * (2 if error.matrix is None else 2 + error.count)

    # -- native code --------------------------------------------------------------------------------------------------
    def kernels(self, order: Order | None) -> Kernels:
        """Return the kernel addresses for the time loop; without unknowns there is no pivot order."""
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
        """Return the neighbour list of detected contacts for one run, or None if the model has none."""
        box = self.flat.box
        return ContactTables(box.force, k) if box is not None and isinstance(box.force, FoundContacts) else None

    def may_take(self, order: Order, most: int) -> bool:
        """Return True if a pivot order is compiled already, or fewer than `max_orders` are."""
        return order in self._newton or len(self._newton) < most

    def _address(self, name: str) -> int:
        return self._code[name].address if name in self._code else 0

    def first_guess(self, z: np.ndarray, c: np.ndarray, tier: str = "fused") -> np.ndarray:
        """Return the initial guess of the unknowns of the first step."""
        if tier == "assembled":
            from livens.engine.assembled.assembly import Bench

            bench, pieces = Bench(self.assembly, c[2:]), self.assembly.pieces
            memory = np.zeros(pieces.memory.size)

            def guess(weight: float) -> np.ndarray:
                own = np.concatenate([[weight * c[0]], c[1:]])
                return pieces.guess(z, own, lambda x: bench.residual(x, z, memory, own))

            return np.concatenate([guess(weight) for weight in pieces.weights])
        if self.swept and tier == "fused":  # the iteration starts from the stage derivatives at the initial state
            return np.zeros(self.size)
        return self._guess(z, c)[0].ravel() if self.size else np.zeros(0)

    def first_memory(self, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the initial history of the assembled stepper."""
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
        """Return the pivot order for the Jacobian at this point."""
        e = self.flat
        stage(f"choosing pivots of {e.size} equations")
        return pivot_order(e.rows, e.columns, self._jacobian(x, z, c)[0].ravel(), e.size)

    def first_order(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, typical: np.ndarray) -> Order:
        """Return the initial pivot order, for reference values of h and the parameters.

        It depends on these values only, not on earlier runs, so that other parameters require no compilation. It is
        cached for equal arguments.
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

    # -- steppers -----------------------------------------------------------------------------------------------------
    def stepper(
        self,
        tier: str,
        k: np.ndarray,
        order: Order | None = None,
        control: Control | None = None,
        own: OwnSteps | None = None,
        threads: int = 1,
    ) -> Stepper:
        """Return the stepper of a tier for one run with the parameters k.

        `taylor_control` is for schemes with their own step-size control, `n_threads` for the assembled tier.
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
    """Return the compiled step of a scheme for a model; models with equal fingerprints share one."""
    key: Any = (model.digest, scheme, dropped)
    with _lock:
        found = _compiled.get(key)
        if found is None:
            found = _compiled[key] = CompiledStep(model, scheme, dropped)
        _compiled.move_to_end(key)
        while len(_compiled) > _KEPT:
            _compiled.popitem(last=False)
    return found
