"""SciPy's own tests of `solve_ivp`, from the installed package, with `livens.solve_ivp` in its place."""

import importlib
import inspect
import warnings

import pytest

import livens as lv

suite = pytest.importorskip("scipy.integrate._ivp.tests.test_ivp")

#: Tests that cannot pass, with the reason.
EXPECTED_FAILURES = {
    "test_integration": "bounds on njev and nlu: livens evaluates the Jacobian in every Newton iteration",
    "test_integration_const_jac": "bounds on njev and nlu: livens evaluates the Jacobian in every Newton iteration",
    "test_integration_stiff[Radau]": "bounds on njev and nlu: livens evaluates the Jacobian in every Newton iteration",
    "test_integration_stiff[BDF]": "bounds on njev and nlu: livens evaluates the Jacobian in every Newton iteration",
    "test_integration_stiff[LSODA]": "bounds on njev and nlu: livens evaluates the Jacobian in every Newton iteration",
}


def calls():
    """Yield (name, function, arguments) of every test that calls `solve_ivp`."""
    for name, function in vars(suite).items():
        if not name.startswith("test_") or "solve_ivp(" not in inspect.getsource(function):
            continue
        marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
        cases = [({}, "")]
        for mark in marks:
            names = (
                [part.strip() for part in mark.args[0].split(",")] if isinstance(mark.args[0], str) else mark.args[0]
            )
            rows = [row if len(names) > 1 else (row,) for row in mark.args[1]]
            cases = [
                ({**case, **dict(zip(names, row, strict=True))}, f"{label}-{'-'.join(map(str, row))}".strip("-"))
                for case, label in cases
                for row in rows
            ]
        if "num_parallel_threads" in inspect.signature(function).parameters:
            cases = [({**case, "num_parallel_threads": 1}, label) for case, label in cases]
        for case, label in cases:
            yield name + (f"[{label}]" if label else ""), function, case


CASES = {name: (function, case) for name, function, case in calls()}


@pytest.mark.parametrize("name", CASES)
def test_scipy(name, monkeypatch):
    function, case = CASES[name]
    monkeypatch.setattr(suite, "solve_ivp", lv.solve_ivp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lv.LivensWarning)
        if name in EXPECTED_FAILURES:
            with pytest.raises(AssertionError):
                function(**case)
        else:
            function(**case)


def test_the_expected_failures_are_tests_of_scipy():
    assert EXPECTED_FAILURES.keys() <= CASES.keys()
    assert importlib.import_module("scipy.integrate").solve_ivp is not lv.solve_ivp
