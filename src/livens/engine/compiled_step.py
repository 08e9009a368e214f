"""Compiled step: the equations of a scheme for a model, their native code, pivot orders, and the stepper factory."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from livens.engine.codegen.external_force_kernels import ExternalForceKernels
from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.newton_kernels import first_correction_kernel
from livens.engine.codegen.predictor_kernel import predictor_kernel
from livens.engine.codegen.step_kernels import (
    error_kernel,
    initial_guess_kernel,
    inv_roundoff_kernel,
    newton_kernel,
    residual_kernel,
    stage_extrapolation_kernel,
    state_update_kernel,
)
from livens.engine.codegen.unrolled_lu import PivotOrder
from livens.engine.lru_cache import LruCache
from livens.engine.neighbour_list import NeighbourList
from livens.engine.newton.iteration import StepKernels, Workspace, kernel_names
from livens.engine.newton.markowitz import SingularMatrixError, pivot_order
from livens.engine.newton.step_size_control import StepSizeController
from livens.engine.stepper import Stepper, StepperOptions
from livens.engine.stepper_registry import fused_stepper_type
from livens.engine.steppers.reference import ReferenceSolver, ReferenceStepper
from livens.expressions.evaluate import Evaluator
from livens.expressions.result_variables import MANDATORY, RESULT_VARIABLES
from livens.expressions.state_layout import Layout
from livens.models.base import Model
from livens.models.contact_detection import DetectedContacts
from livens.models.system import System, coordinate_scale_groups
from livens.progress import report_progress
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import ErrorEstimateInfo, MidpointForceSlot, StepEquations, StepGraph
from livens.schemes.discretization.assembly_plan import AssemblyPlan
from livens.schemes.taylor_equations import TaylorEquations
from livens.schemes.time_transformed.step_density_equations import StepDensityEquations

if TYPE_CHECKING:  # the assembled tier imports SciPy's sparse matrices, and most models are small
    from livens.engine.assembled.assembly import Assembly
    from livens.engine.assembled.symbolic_analysis import EliminationPlan
    from livens.engine.taylor.stepper import TaylorInterpolant, TaylorStepControl
    from livens.engine.trees.arrays import TreeModel
    from livens.multibody.spanning_tree import SpanningTree

T = TypeVar("T")

#: Largest growth of successive steps with an error estimate of the positions by a double step. Errors of positions
#: vanish at turning points, where those of velocities do not: slow growth passes these points.
_DOUBLING_MAX_GROWTH = 1.1
#: Maximum number of released arrays of the tree tier.
_MAX_TREE_MODELS = 2
#: Maximum number of compiled steps in the cache, for models that are built again.
_MAX_CACHED_STEPS = 32
#: Largest instruction count of a step with a fused first Newton correction. For longer steps its compilation would take
#: as long as that of all other kernels, and would save at most a tenth of the step time.
_MAX_FUSED_INSTRUCTIONS = 8000
#: Maximum number of cached initial pivot orders per step.
_MAX_PIVOT_ORDERS = 64


class CompiledStep:
    """Equations, kernels and pivot orders of a scheme for a model; owns its machine code, which is freed with it.

    Parameters, step size and time are run-time inputs. One object serves every run of the model and of all models with
    equal fingerprints, also from several threads at once: data that change in a run belong to its stepper.
    """

    def __init__(self, model: Model, scheme: Scheme, removed_constraints: tuple[int, ...] = ()) -> None:
        self.model, self.scheme, self.removed_constraints = model, scheme, removed_constraints
        self.equations = scheme.equations(model, removed_constraints)
        self.layout: Layout = self.equations.layout
        self._code: dict[str, NativeCode] = {}
        self._newton: dict[PivotOrder, tuple[NativeCode, NativeCode | None]] = {}
        self._addresses: dict[PivotOrder | None, StepKernels] = {}
        self._first_pivot_orders: LruCache[Hashable, PivotOrder] = LruCache(_MAX_PIVOT_ORDERS)
        self.workspace_pool: list[Workspace] = []
        self._external_force_kernels: ExternalForceKernels | None = None
        self._tree_models: list[TreeModel] = []
        self._lock = threading.RLock()
        self._cache: dict[Hashable, Any] = {}

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return an object that is created once for this step and cached, such as the kernels of its derivatives."""
        with self._lock:
            if key not in self._cache:
                self._cache[key] = make()
            result: T = self._cache[key]
        return result

    def find_cached(self, key: Hashable) -> Any:
        """Return a cached object, or None if it has not been created."""
        return self._cache.get(key)

    @functools.cached_property
    def flat_equations(self) -> StepGraph:
        """Equations as one expression graph."""
        self._report_stage()
        return self.equations.to_single_graph()

    @property
    def uses_taylor_series(self) -> bool:
        """True for Taylor-series steps: their equations as one graph are long and rarely needed."""
        return isinstance(self.equations, TaylorEquations)

    @property
    def has_dedicated_code(self) -> bool:
        """True for steps with dedicated native code and no unknowns; their equations as one graph are rarely needed."""
        return self.equations.n_unknowns == 0

    @functools.cached_property
    def size(self) -> int:
        """Number of unknowns of a step."""
        n_unknowns = self.equations.n_unknowns
        return self.flat_equations.size if n_unknowns is None else n_unknowns

    @property
    def has_dense_output(self) -> bool:
        """True if the scheme has dense output."""
        return self.taylor_interpolant is not None or (
            not self.has_dedicated_code and self.flat_equations.dense_output is not None
        )

    @functools.cached_property
    def taylor_interpolant(self) -> TaylorInterpolant | None:
        """Dense output of Taylor-series steps."""
        if not self.uses_taylor_series:
            return None
        from livens.engine.taylor.stepper import TaylorInterpolant

        return TaylorInterpolant(self)

    def _report_stage(self) -> None:
        unknowns = getattr(self.equations, "unknowns", None)
        report_progress(f"deriving {unknowns.size} equations" if unknowns is not None else "deriving equations")

    @functools.cached_property
    def base_step(self) -> CompiledStep | None:
        """Compiled step of the base scheme of steps with a step density; None for all other schemes."""
        e = self.equations
        if not isinstance(e, StepDensityEquations):
            return None
        return compiled_step(self.model, e.base_scheme, self.removed_constraints)

    # -- tree ---------------------------------------------------------------------------------------------------------
    @functools.cached_property
    def tree_or_reason(self) -> SpanningTree | str:
        """Spanning tree of the tree tier, or the reason why there is none."""
        from livens.multibody.spanning_tree import NotATreeError, spanning_tree

        if not self.scheme.steps_on_trees or not isinstance(self.model, System):
            return f"scheme '{self.scheme.name}' does not step on trees"
        try:
            return spanning_tree(self.model, self.removed_constraints)
        except NotATreeError as error:
            return str(error)

    def make_tree_model(self, k: np.ndarray) -> TreeModel:
        """Return the arrays of the tree tier for one run, new or released by an earlier one; the run changes them."""
        if self.base_step is not None:
            return self.base_step.make_tree_model(k)
        try:
            released = self._tree_models.pop()
        except IndexError:
            pass
        else:
            released.set_parameters(k)
            return released
        return self.new_tree_model(k)

    def new_tree_model(self, k: np.ndarray) -> TreeModel:
        """Return new arrays of the tree tier."""
        from livens.engine.trees.arrays import TreeModel
        from livens.schemes.discretization.rigid_body_kernels import RigidBodyScheme

        tree, model = self.tree_or_reason, self.model
        assert not isinstance(tree, str) and isinstance(model, System) and isinstance(self.scheme, RigidBodyScheme)
        tree_model = TreeModel(model, tree, self.layout, self.scheme)
        tree_model.set_parameters(k)
        return tree_model

    def release_tree_model(self, tree_model: TreeModel) -> None:
        """Make the arrays of a finished run available to the next one."""
        if self.base_step is not None:
            self.base_step.release_tree_model(tree_model)
        elif len(self._tree_models) < _MAX_TREE_MODELS:
            self._tree_models.append(tree_model)

    # -- assembly -----------------------------------------------------------------------------------------------------
    @functools.cached_property
    def assembly_plan(self) -> AssemblyPlan | None:
        """Assembly plan of the assembled tier: equations by element batches; None if the scheme has none."""
        self._report_stage()
        return self.equations.assembly_plan()

    @functools.cached_property
    def assembly(self) -> Assembly:
        """Kernels of all element batches."""
        from livens.engine.assembled.assembly import Assembly

        assert self.assembly_plan is not None
        return Assembly(self.assembly_plan)

    @functools.cached_property
    def elimination(self) -> EliminationPlan | None:
        """Elimination order of the assembled tier; None if no accurate one exists and SuperLU is used."""
        from livens.engine.assembled.ordering_selection import choose_elimination

        assembly = self.assembly
        report_progress("ordering their elimination")
        return choose_elimination(assembly, self.model.parameter_vector())

    @functools.cached_property
    def variables(self) -> tuple[str, ...]:
        """Variables that the rows of a run can contain."""
        fictive = ("fictive_time",) if "t" in self.layout else ()
        return tuple(name for name in RESULT_VARIABLES if name in self.layout or name in (*MANDATORY, *fictive))

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the equations in a result file; for large models it does not require one graph of them all."""
        return self._fingerprinted_equations.fingerprint

    @property
    def _fingerprinted_equations(self) -> StepEquations | StepGraph:
        avoids_flat_graph = self.model.uses_sparse_path or self.equations.n_unknowns is not None
        return self.equations if avoids_flat_graph or self._may_step_on_tree else self.flat_equations

    @property
    def lazy_fingerprint(self) -> Callable[[], str]:
        """Function that returns the fingerprint; on trees, element kernels are derived for it alone."""
        return functools.partial(getattr, self._fingerprinted_equations, "fingerprint")

    def matches_fingerprint(self, fingerprint: str) -> bool:
        """Return True if the equations match the fingerprint of a file; earlier versions always used the flat graph."""
        if fingerprint == self.fingerprint or self.equations.loops_over_bodies:
            return fingerprint == self.fingerprint
        has_flat_graph = self.model.uses_sparse_path or self._may_step_on_tree
        return has_flat_graph and fingerprint == self.flat_equations.fingerprint

    @property
    def _may_step_on_tree(self) -> bool:
        return self.scheme.steps_on_trees and isinstance(self.model, System)

    def error_estimate(self, tier: str) -> ErrorEstimateInfo | None:
        """Return the description of the error estimate of a tier, or None."""
        if self._doubling_estimate is not None:
            return self._doubling_estimate
        if tier == "assembled":
            return self.assembly.plan.error_info
        if self.has_dedicated_code:
            return None
        return None if self.flat_equations.error_estimate is None else self.flat_equations.error_estimate.info

    @functools.cached_property
    def _doubling_estimate(self) -> ErrorEstimateInfo | None:
        """Description of an error estimate of the coordinates by a double step, per unit of time; None without it."""
        model, scheme = self.model, self.scheme
        if not scheme.estimates_error_by_doubling or not isinstance(model, System):
            return None
        n = model.n
        return ErrorEstimateInfo(
            model.coordinates,
            scheme.order,
            (-1,) * n,
            False,
            _DOUBLING_MAX_GROWTH,
            scheme.order,
            coordinate_scale_groups(model),
        )

    @functools.cached_property
    def error_estimate_size(self) -> int:
        """Number of values of an error estimate, including reference magnitudes and filter matrix."""
        if self._doubling_estimate is not None:
            return 2 * len(self._doubling_estimate.names)
        error = self.flat_equations.error_estimate
        return 0 if error is None else error.count * (2 if error.matrix is None else 2 + error.count)

    # -- native code --------------------------------------------------------------------------------------------------
    def kernels(self, order: PivotOrder | None) -> StepKernels:
        """Return the kernel addresses for the time loop; without unknowns there is no pivot order."""
        cached_kernels = self._addresses.get(order)
        if cached_kernels is not None:
            return cached_kernels
        e = self.flat_equations
        implicit = isinstance(e.external_force, MidpointForceSlot)
        with self._lock:
            if not self._code:
                code = {"update_state": state_update_kernel(e)}
                if e.size:
                    code |= {
                        "residual": residual_kernel(e),
                        "inv_roundoff": inv_roundoff_kernel(e),
                        "initial_guess": initial_guess_kernel(e),
                    }
                    code["predict"] = predictor_kernel(e)
                if e.error_estimate is not None:
                    code["error"] = error_kernel(e)
                if e.stage_extrapolation is not None:
                    code["extrapolate_stages"] = stage_extrapolation_kernel(e)
                self._code = code  # all of it or nothing: Ctrl-C may interrupt a compilation
            if order is not None and order not in self._newton:
                is_long = e.newton_function.n_instructions() > _MAX_FUSED_INSTRUCTIONS
                first = None if is_long or implicit else first_correction_kernel(e, order)
                self._newton[order] = newton_kernel(e, order), first
            newton_codes = self._newton[order] if order is not None else (None, None)
            newton, first_correction = (0 if code is None else code.address for code in newton_codes)
            other_kernels = {
                name: self._address(name) for name in kernel_names() if name not in ("newton", "first_correction")
            }
            external = {}
            if isinstance(e.external_force, MidpointForceSlot):
                if self._external_force_kernels is None:
                    self._external_force_kernels = ExternalForceKernels(e.external_force, e.c.numel())
                other_kernels |= self._external_force_kernels.with_force({"newton": newton, **other_kernels})
                newton = other_kernels.pop("newton")
            elif e.external_force is not None:
                q, n = e.external_force.query_start, e.external_force.n
                external = dict(
                    external_force=e.external_force.force.address,
                    external_q=q,
                    external_v=q + n,
                    external_t=q + 2 * n,
                    external_out=e.external_force.result_start,
                )
            kernels = self._addresses[order] = StepKernels(
                newton=newton, first_correction=first_correction, **other_kernels, **external
            )
        return kernels

    def force_counts(self) -> np.ndarray | None:
        """Return the numbers of evaluations of an external force within steps, and of its Jacobian, by all runs so far.

        None without such a force.
        """
        external = getattr(self.model, "external_force", None)
        if external is None or not (external.evaluates_within_steps and self.scheme.external_force_at_midpoint):
            return None  # without the graph of a large model
        slot = self.flat_equations.external_force
        return slot.force.counts.copy() if isinstance(slot, MidpointForceSlot) else None

    def evaluations_since(self, before: np.ndarray | None) -> np.ndarray | None:
        """Return the numbers of evaluations since `force_counts` returned the numbers `before`."""
        counts = self.force_counts()
        return None if counts is None or before is None else counts - before

    def neighbour_list(self, k: np.ndarray) -> NeighbourList | None:
        """Return the neighbour list of detected contacts for one run, or None if the model has none."""
        external = self.flat_equations.external_force
        return (
            NeighbourList(external.force, k)
            if external is not None and isinstance(external.force, DetectedContacts)
            else None
        )

    def _address(self, name: str) -> int:
        return self._code[name].address if name in self._code else 0

    def initial_unknowns(self, z: np.ndarray, c: np.ndarray, tier: str = "fused") -> np.ndarray:
        """Return the initial guess of the unknowns of the first step."""
        if self.base_step is not None and tier in ("assembled", "tree"):
            return self.base_step.initial_unknowns(*self._inputs_of_base(z, c), tier)
        if tier == "tree":
            tree_model = self.make_tree_model(c[2:])
            x = tree_model.initial_unknowns(z)
            self.release_tree_model(tree_model)
            return x
        if tier == "assembled":
            from livens.engine.assembled.assembly import AssemblyWorkspace

            bench, plan = AssemblyWorkspace(self.assembly, c[2:]), self.assembly.plan
            history = np.zeros(plan.compensation_layout.size)

            def guess_substep(weight: float) -> np.ndarray:
                substep_inputs = np.concatenate([[weight * c[0]], c[1:]])
                return plan.initial_guess(z, substep_inputs, lambda x: bench.residual(x, z, history, substep_inputs))

            return np.concatenate([guess_substep(weight) for weight in plan.substep_weights])
        if tier == "fused" and self.equations.n_unknowns is not None:
            return np.zeros(self.size)  # dedicated code computes its own initial guess
        return self._initial_guess(z, c)[0].ravel() if self.size else np.zeros(0)

    def initial_history(self, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the initial history of the assembled stepper."""
        from livens.engine.assembled.time_loop import initial_history

        if self.base_step is not None:
            return self.base_step.initial_history(*self._inputs_of_base(z, c))
        return initial_history(self.assembly.plan, z, c)

    def _inputs_of_base(self, z: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return state and inputs of a step of the base scheme; c contains the size in fictive time."""
        density = z[self.layout["step_density"]]
        return z[: self.layout["t"].start], np.concatenate([c[:1] / density, c[1:]])

    @functools.cached_property
    def _initial_guess(self) -> Evaluator:
        return Evaluator([self.flat_equations.z, self.flat_equations.c], [self.flat_equations.initial_guess])

    @functools.cached_property
    def _jacobian(self) -> Evaluator:
        return Evaluator(self.flat_equations.arguments, [self.flat_equations.jac_values])

    # -- pivot orders -------------------------------------------------------------------------------------------------
    def pivot_order_for(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> PivotOrder:
        """Return the pivot order for the Jacobian at this point."""
        e = self.flat_equations
        report_progress(f"choosing pivots of {e.size} equations")
        return pivot_order(e.jac_rows, e.jac_cols, self._jacobian(x, z, e.complete_inputs(x, z, c))[0].ravel(), e.size)

    def initial_pivot_order(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray, reference_inputs: np.ndarray
    ) -> PivotOrder:
        """Return the initial pivot order, for reference values of h and the parameters.

        It depends on these values only, not on earlier runs, so that other parameters require no compilation. It is
        cached for equal arguments.
        """

        def reference_order() -> PivotOrder:
            return self.pivot_order_for(x, z, reference_inputs)

        key = x.tobytes(), z.tobytes(), reference_inputs.tobytes()
        try:
            return self._first_pivot_orders.get_or_make(key, reference_order)
        except SingularMatrixError:
            return self.pivot_order_for(x, z, c)  # not cached: it depends on c

    # -- steppers -----------------------------------------------------------------------------------------------------
    @functools.cached_property
    def reference_solver(self) -> ReferenceSolver:
        """Reference solver, for steps that other steppers cannot solve."""
        return ReferenceSolver(self.flat_equations)

    def stepper_type(self, tier: str) -> type[Stepper]:
        """Return the stepper class of a tier."""
        if self.base_step is not None and tier in ("assembled", "tree"):
            from livens.engine.steppers.step_density import STEPPERS

            return STEPPERS[tier]
        if tier == "assembled":
            from livens.engine.assembled.stepper import AssembledStepper

            return AssembledStepper
        if tier == "tree":
            from livens.engine.trees.stepper import TreeStepper

            return TreeStepper
        return ReferenceStepper if tier == "reference" else self._fused_stepper_type

    @functools.cached_property
    def _fused_stepper_type(self) -> type[Stepper]:
        return fused_stepper_type(self)

    def make_stepper(
        self,
        tier: str,
        k: np.ndarray,
        order: PivotOrder | None = None,
        control: StepSizeController | TaylorStepControl | None = None,
        n_threads: int = 1,
    ) -> Stepper:
        """Return the stepper of a tier for one run with the parameters k; `n_threads` is for the assembled tier."""
        return self.stepper_type(tier).create(self, k, StepperOptions(order, control, n_threads))


_compiled: LruCache[Hashable, CompiledStep] = LruCache(_MAX_CACHED_STEPS)


def compiled_step(model: Model, scheme: Scheme, removed_constraints: tuple[int, ...] = ()) -> CompiledStep:
    """Return the compiled step of a scheme for a model; models with equal fingerprints share one."""
    key = model.fingerprint, scheme, removed_constraints
    return _compiled.get_or_make(key, lambda: CompiledStep(model, scheme, removed_constraints))
