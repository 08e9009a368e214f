"""Registry of steppers: a stepper of new step equations is registered and runs without any other change."""

import numpy as np
import pytest

import livens as lv
from livens.engine import stepper_registry
from livens.engine.compiled_step import compiled_step
from livens.engine.stepper import Stepper, WorkspaceManager, chunk_from_workspace, truncate_at_nonfinite
from livens.engine.steppers.explicit import ExplicitStepper
from livens.engine.steppers.fused import FusedStepper
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.symplectic.stormer_verlet import StormerVerlet


class LoopEquations(StepEquations):
    """Explicit step equations with a stepper of their own."""

    def __init__(self, graph):
        self.graph, self.layout = graph, graph.layout

    @property
    def n_unknowns(self):
        return 0

    @property
    def fingerprint(self):
        return "loop " + self.graph.fingerprint

    def to_single_graph(self):
        return self.graph


class SpecialLoopEquations(LoopEquations):
    """Subclass of registered equations."""


class LoopStepper(Stepper):
    """Explicit steps in Python; only `advance` is overridden."""

    def __init__(self, compiled, k):
        super().__init__(compiled.layout, WorkspaceManager(k))
        self._graph = compiled.flat_equations

    def advance(self, state, n_steps, policy, controller_state):
        w = self._workspaces.prepare(state, n_steps)
        w.c[0] = policy.h
        for s in range(n_steps):
            w.c[1] = policy.t_origin + (policy.step0 + s) * policy.h
            w.Z[s + 1] = self._graph.evaluate_final_state(np.zeros(0), w.Z[s], w.c)
        return truncate_at_nonfinite(chunk_from_workspace(w, state, n_steps, policy), self._layout)


@pytest.fixture
def loop_scheme(monkeypatch):
    lv.schemes.all()  # fills the registry that the test restores
    monkeypatch.setattr(stepper_registry, "_STEPPERS", dict(stepper_registry._STEPPERS))
    monkeypatch.setattr(Scheme, "_registry", dict(Scheme._registry))

    class LoopVerlet(StormerVerlet):
        """Stoermer-Verlet scheme with a stepper of its own."""

        name = "loop-verlet"

        def equations(self, model, removed_constraints=()):
            return SpecialLoopEquations(super().equations(model, removed_constraints).to_single_graph())

    stepper_registry.register_stepper(LoopEquations, LoopStepper)
    return LoopVerlet()


def oscillator():
    return lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2 + q[0] ** 4)


def test_a_registered_stepper_runs_by_simulate(loop_scheme):
    model, options = oscillator(), dict(q0=[1.0], p0=[0.0], h=0.01, t_end=1.0, progress=False)
    assert compiled_step(model, loop_scheme).stepper_type("fused") is LoopStepper
    own, plain = (lv.simulate(model, scheme=scheme, **options) for scheme in (loop_scheme, "stormer-verlet"))
    np.testing.assert_allclose(own.q, plain.q, rtol=1e-14)


def test_equations_without_an_entry_are_compiled_as_one_graph():
    model = oscillator()
    for name, expected in (("stormer-verlet", ExplicitStepper), ("gauss-1", FusedStepper)):
        assert compiled_step(model, lv.schemes.get(name)).stepper_type("fused") is expected


def test_built_in_entries_name_step_equations_and_steppers():
    for equations, stepper in stepper_registry._STEPPERS.items():
        assert issubclass(stepper_registry._stepper_class(equations), StepEquations)
        assert issubclass(stepper_registry._stepper_class(stepper), Stepper)


def test_defaults_of_the_base_class_are_those_of_a_stepper_without_private_state():
    model = oscillator()
    compiled = compiled_step(model, lv.schemes.get("stormer-verlet"))
    stepper = compiled.make_stepper("fused", model.parameter_vector())
    assert stepper.checkpoint() == {}
    stepper.restore({})
    stepper.close()
    assert not stepper.needs_pivot_order
