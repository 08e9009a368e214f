"""Setting up a run grows like the number of its bodies, and what is derived does not grow: operations are counted."""

import sys
import tracemalloc

import casadi as ca
import numpy as np
import pytest

import livens as lv
from livens.models.initialization.sparse_linalg import SparseConstraintJacobian
from livens.models.numeric_assembly import NumericAssembly
from livens.run.drift_monitor import _model_cache
from livens.run.plan import Plan
from livens.run.startup import compile_and_start

#: Both are large systems, the second with twice as many bodies.
FEW, MANY = 64, 128
CASES = ["n-four-bar", "chain"]


def set_up(name, N):
    """Everything before the first step that does not belong to a tier."""
    plan = Plan.from_arguments(lv.problems.load(name, N=N))
    compiled, initial = compile_and_start(plan)
    info = plan.run_info(compiled)
    info.scene  # noqa: B018  # it is drawn when somebody asks
    energy = plan.model.monitored_energy(plan.scheme.conserves)
    plan.model.monitored_element_sums(energy, ())
    plan.model.roundoff_element_sums([energy, "constraint", "velocity_constraint"])
    plan.model.observable_element_sums("constraint_forces")
    str(plan.model)
    compiled.equations.equation_labels  # noqa: B018
    plan.scheme.initial_scheme_state(plan.model, initial.values, plan.k, 0.0, plan.h)
    assert not initial.removed_constraints
    return plan


def forget():
    """Remove equations derived by other tests."""
    _model_cache.cache_clear()


def calls(name, N):
    """Return the number of called functions of Python and C."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    forget()
    sys.setprofile(profile)
    try:
        set_up(name, N)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", CASES)
def test_calls_grow_like_bodies(name):
    set_up(name, 50)  # types of elements are read once
    a, b, c = (calls(name, N) for N in (FEW, MANY, 2 * MANY))
    assert (c - b) <= 2.1 * (b - a)
    assert (c - b) / MANY < 3000  # calls for a loop of two bodies with five joints


@pytest.mark.parametrize("name", CASES)
def test_memory_grows_like_bodies(name):
    def peak(N):
        forget()
        tracemalloc.start()
        try:
            set_up(name, N)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    set_up(name, 50)
    a, b, c = (peak(N) for N in (FEW, MANY, 2 * MANY))
    assert (c - b) <= 2.5 * (b - a)


@pytest.mark.parametrize("name", CASES)
def test_what_is_derived_does_not_grow(monkeypatch, name):
    """The instructions of all functions that are made."""
    made = []

    class Counted(ca.Function):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self.n_instructions() if self.is_a("SXFunction") else 1)

    monkeypatch.setattr(ca, "Function", Counted)
    found = []
    set_up(name, 50)
    for N in (FEW, MANY):
        made.clear()
        forget()
        set_up(name, N)
        found.append((len(made), sum(made)))
    assert found[0] == found[1] and found[0][0] > 5


@pytest.mark.parametrize("name", CASES)
def test_factors_grow_like_bodies(name):
    def nonzeros(N):
        problem = lv.problems.load(name, N=N)
        G = NumericAssembly(problem.model, 0.0, problem.model.parameter_vector()).constraint_jacobian(problem.q0)
        rows = SparseConstraintJacobian(G)
        assert np.isfinite(rows.min_norm_solve(np.ones(problem.model.m))).all()
        return rows._factors.L.nnz + rows._factors.U.nnz

    a, b, c = (nonzeros(N) for N in (FEW, MANY, 2 * MANY))
    assert (c - b) <= 2.3 * (b - a)


def test_fingerprints_tell_equations_apart():
    """Fingerprints of large systems without a common graph: equal for equal equations only."""

    def fingerprint(name, scheme=None, **options):
        plan = Plan.from_arguments(lv.problems.load(name, **options), scheme=scheme)
        return compile_and_start(plan)[0].fingerprint

    assert fingerprint("n-four-bar", N=50) == fingerprint("n-four-bar", N=50, g=1.62)
    assert fingerprint("chain", N=30) == fingerprint("chain", N=30, l=0.5)
    found = [
        fingerprint("n-four-bar", N=50),
        fingerprint("n-four-bar", N=51),
        fingerprint("n-four-bar", "livens-midpoint", N=50),
        fingerprint("chain", N=30),
        fingerprint("chain", N=30, frames=0),
        fingerprint("chain", N=30, revolute=1),
        fingerprint("chain", "livens-em", N=30),
    ]
    assert len(set(found)) == len(found)


def test_files_of_large_systems_that_tell_of_one_graph_go_on():
    plan = Plan.from_arguments(lv.problems.load("chain", N=22, frames=0))
    compiled, _ = compile_and_start(plan)
    assert plan.model.uses_sparse_path and compiled.fingerprint != compiled.flat_equations.fingerprint
    assert compiled.matches_fingerprint(compiled.fingerprint) and compiled.matches_fingerprint(
        compiled.flat_equations.fingerprint
    )
    assert not compiled.matches_fingerprint("something else")
