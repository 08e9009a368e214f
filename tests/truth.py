"""True errors of runs, against much more accurate ones: what estimates of the error are held against."""

import functools
import itertools

import numpy as np

import livens as lv
from livens.results.dense_output import interpolate_rows

#: Problems and how long they run here: long enough for a motion, short enough for a reference.
SPANS = {
    "andrews-squeezer": 0.01,
    "billiard": 2.0,
    "car-axis": 3.0,
    "cart-pole": 3.0,
    "closed-loop-bars": 4.0,
    "double-four-bar": 3.0,
    "double-four-bar-damped": 3.0,
    "double-pendulum": 3.0,
    "euler-top": 30.0,
    "four-particles": 5.0,
    "free-rigid-body": 0.5,
    "gyroscopic-top": 0.2,
    "heavy-top": 0.2,
    "henon-heiles": 20.0,
    "kepler": 12.0,
    "loudspeaker": 0.05,
    "magnetic-pendulum": 3.0,
    "mass-spring-damper": 20.0,
    "mass-spring-redundant": 10.0,
    "motor-slider-crank": 3.0,
    "non-reversible-oscillator": 60.0,
    "nonlinear-pendulum": 14.0,
    "pendulum": 10.0,
    "pendulum-penalty": 3.0,
    "rlc-circuit": 5.0,
    "rotor": 60.0,
    "simple-pendulum": 5.0,
    "spherical-pendulum": 5.0,
    "spring-chain": 20.0,
    "spring-pendulum": 1.0,
    "spring-pendulum-spherical": 1.0,
    "toda": 10.0,
    "two-oscillators": 20.0,
    "two-walls": 10.0,
    "vanishing-mass": 10.0,
    "viscous-pendulum": 5.0,
}
#: The most accurate schemes, of which the first that fits makes the reference.
_BEST = ("kahan-li-8", "lobatto-iiia-iiib-5", "radau-iia-4", "gauss-6", "murua-ggl-4", "livens-midpoint")
_STEPS, _SAMPLES = 16_000, 200


@functools.lru_cache(maxsize=2)
def reference(name):
    """A much more accurate run, and by how much it differs from one that is a little less so.

    That is a Taylor series, where the rates of a model follow; else many steps of an accurate scheme, and half as many.
    """
    problem, span = lv.problems.load(name), SPANS[name]
    series = by_series(problem, span) if "taylor" in fitting(name) else None
    if series is not None:
        return series
    usual = max(fitting(name), key=lambda scheme: (not lv.schemes.get(scheme).fictive, lv.schemes.get(scheme).order))
    names = problem.model.error_norm_variables
    for scheme in [best for best in _BEST if best in fitting(name)] or [usual]:
        options = dict(scheme=scheme, t_end=problem.t0 + span, redundant="remove", progress=False)
        try:
            fine, coarse = (lv.simulate(problem, h=span / steps, **options) for steps in (_STEPS, _STEPS // 2))
        except lv.IntegrationError:
            continue
        return fine, {name: np.abs(getattr(fine, name)[::2] - getattr(coarse, name)).max(axis=0) for name in names}
    raise AssertionError(f"no scheme makes a reference for {name}")


def by_series(problem, span):
    """Taylor series for two tolerances, compared at some of the times; None where a series does not get through."""
    times = problem.t0 + np.linspace(0.0, span, _SAMPLES)
    options = dict(scheme="taylor", t_end=times[-1], progress=False)
    try:
        fine, coarse = (
            lv.simulate(problem, control=lv.StepControl(tolerance=small), **options) for small in (1e-15, 1e-13)
        )
    except lv.IntegrationError:
        return None
    there, near = fine.at(times), coarse.at(times)
    names = problem.model.error_norm_variables
    return fine, {name: np.abs(getattr(there, name) - getattr(near, name)).max(axis=0) for name in names}


@functools.cache
def fitting(name):
    """The schemes that run a problem, with those that stand for many."""
    system = lv.problems.load(name).model
    found = []
    for scheme in [*lv.schemes.compatible(system), *_BEST]:
        try:
            lv.schemes.check_compatible(lv.schemes.get(scheme), system)
        except lv.LivensError:
            continue
        found.append(scheme)
    return list(dict.fromkeys(found))


def true_errors(name, run, size):
    """The largest errors of a run over its rows, relative to `size`, and the uncertainty of each."""
    fine, uncertainty = reference(name)
    errors = {}
    rows = np.arange(len(run.t))
    near = np.clip(np.round((run.t - fine.t[0]) / fine.info.h).astype(int), 0, len(fine.t) - 1)
    controlled = bool(fine.info.control)
    meet = not controlled and np.abs(fine.t[near] - run.t).max() < 1e-6 * fine.info.h
    if not meet and not controlled:  # between the rows of the reference, at some of the times
        rows = np.unique(np.linspace(0, len(run.t) - 1, _SAMPLES).astype(int))
    for variable in uncertainty:
        if meet:
            at = getattr(fine, variable)[near]
        elif controlled:
            at = getattr(fine.at(np.minimum(run.t[rows], fine.t[-1])), variable)
        else:
            at = interpolate_rows(fine, [variable], np.minimum(run.t[rows], fine.t[-1]), 8)[variable]
        change = np.abs(getattr(run, variable)[rows] - at)
        if np.ndim(size[variable]):
            errors[variable] = (change / size[variable]).max(), (uncertainty[variable] / size[variable]).max()
        else:
            far = np.linalg.norm(change, axis=1).max()
            errors[variable] = far / size[variable], np.linalg.norm(uncertainty[variable]) / size[variable]
    return errors


def judged(name, scheme, steps):
    """(variable, verdict, estimated error, true error) of a run, where the reference is good enough to tell."""
    problem, span = lv.problems.load(name), SPANS[name]
    try:
        run = lv.simulate(
            problem, scheme=scheme, h=span / steps, t_end=problem.t0 + span, redundant="remove", progress=False
        )
    except lv.LivensError:
        return []
    # what is affordable must not depend on the machine
    found = run.accuracy(seconds=1e6)
    if run.t[-1] < problem.t0 + span * (1 - 1e-9) or not found.size:
        return []
    true = true_errors(name, run, found.size)
    return [
        (variable, found.verdicts[variable], found.error[variable], float(error))
        for variable, (error, uncertain) in true.items()
        if np.isfinite(error) and error > 10 * uncertain and np.isfinite(found.error[variable])
    ]


def table(cases):
    """All judged values of (problem, scheme, steps), with where they come from."""
    return list(itertools.chain.from_iterable([(*case, *value) for value in judged(*case)] for case in cases))


def share(values, low=1 / 3, high=3.0):
    """Return the fraction of values whose estimate is within these factors of the true error."""
    return sum(low <= value[-2] / value[-1] <= high for value in values) / max(len(values), 1)
