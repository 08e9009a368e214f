"""Random mechanical systems, their runs, and their motions by CasADi and DOP853, against which verdicts are compared.

A system is one set of formulas. livens traces it; the reference derives Lagrange's equations from the same formulas by
CasADi and integrates them by DOP853, from one switch or event to the next.
"""

import dataclasses
import math
import random
from types import SimpleNamespace

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens.analysis.conservation import AS_GUARANTEED, ROUND_OFF, conservation_rows

SCHEMES = (
    "livens-em", "livens-midpoint", "livens-variational", "hamilton-em", "stormer-verlet", "ggl-em", "ggl-variational",
    "gauss-1", "gauss-2", "gauss-3", "radau-iia-2", "radau-iia-3", "lobatto-iiic-3", "lobatto-iiia-iiib-3",
    "murua-ggl-2", "semi-explicit:0.5,0.5", "suzuki-4:livens-midpoint", "taylor",
)  # fmt: skip
CONTROLLED = ("gauss-2", "gauss-3", "radau-iia-2", "radau-iia-3", "lobatto-iiic-3", "taylor")
KINDS = ("oscillator", "double well", "saddle", "pendulum", "sphere", "surface", "skate")
TRACED = SimpleNamespace(sin=m.sin, cos=m.cos, where=m.where, maximum=m.maximum, sqrt=m.sqrt)
#: Errors of a reference, relative to its tolerance, as seen in comparisons of two tolerances.
RTOL = 1e-12
#: Largest number of evaluations of a reference, and largest state that is a motion: potentials may be unbounded below.
MOST_EVALUATIONS, FAR = 100_000, 1e3
#: Largest number of steps of a run with step control, whose steps become shorter without end where a motion escapes.
MOST_STEPS = 100_000


@dataclasses.dataclass
class Drawn:
    """A random system: formulas of q, v, t and a module of functions, initial values, scheme and step size."""

    features: list
    kinetic: object
    potential: object
    q0: list
    v0: list
    dissipation: object = None
    forces: object = None
    constraints: object = None
    velocity_constraints: object = None
    wall: tuple = ()  # coordinate, place, direction of crossing, restitution
    timed: bool = False
    scheme: str = "livens-em"
    h: float = 0.01
    t_end: float = 5.0
    tolerance: float | None = None

    @property
    def n(self):
        return len(self.q0)


def draw(seed):
    """Draw the system with this seed."""
    chance = random.Random(f"system {seed}")
    kind = chance.choice(KINDS)
    n = 3 if kind in ("sphere", "surface", "skate") else 1 if kind == "pendulum" else chance.choice((1, 2, 2, 3))
    masses = [chance.uniform(0.5, 2) for _ in range(n)]
    stiff = [10 ** chance.uniform(-0.3, 1.3) for _ in range(n)]
    mix, bend = chance.uniform(-0.3, 0.3), chance.uniform(-0.5, 0.5)
    features = [kind]

    def kinetic(q, v, f):
        return sum(masses[i] * v[i] * v[i] for i in range(n)) / 2

    def potential(q, t, f):
        return sum(stiff[i] * q[i] * q[i] for i in range(n)) / 2 + mix * q[0] * q[-1] * q[-1] + bend * f.cos(q[0])

    if kind == "double well":

        def potential(q, t, f):
            return sum(q[i] ** 4 / 4 - q[i] * q[i] / 2 for i in range(n)) + mix * q[0] * q[-1]
    elif kind == "saddle":

        def potential(q, t, f):
            return -stiff[0] * q[0] * q[0] / 8 + q[0] ** 4 / 10 + sum(stiff[i] * q[i] * q[i] for i in range(1, n)) / 2
    elif kind == "pendulum":

        def potential(q, t, f):
            return -stiff[0] * f.cos(q[0])
    elif kind in ("sphere", "surface", "skate"):

        def potential(q, t, f):
            return 3 * q[2] + stiff[0] * q[0] * q[0] / 4 + mix * q[0] * q[1] * q[2]

    size = chance.choice((0.3, 1.0))
    q0 = [chance.uniform(-1, 1) * size for _ in range(n)]
    v0 = [chance.uniform(-1, 1) * size for _ in range(n)]
    if kind == "saddle":
        q0[0], v0[0] = (10 ** chance.uniform(-9, -1) for _ in range(2))
    drawn = Drawn(features, kinetic, potential, q0, v0)
    if kind == "sphere":
        radius = 1.0
        drawn.constraints = lambda q, t, f: [0.5 * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] - radius)]
        length = math.sqrt(sum(x * x for x in q0))
        drawn.q0 = [x / length for x in q0]
    elif kind == "surface":
        drawn.constraints = lambda q, t, f: [q[2] - 0.5 * q[0] * q[0] - 0.3 * f.sin(q[1])]
        drawn.q0[2] = 0.5 * q0[0] ** 2 + 0.3 * math.sin(q0[1])
    elif kind == "skate":
        drawn.velocity_constraints = lambda q, f: [[f.sin(q[2]), -f.cos(q[2]), 0 * q[0]]]
    for feature in chance.sample(list(FEATURES), chance.choice((0, 1, 1, 2, 2, 3))):
        if FEATURES[feature](drawn, chance, n, kind):
            features.append(feature)
    drawn.t_end = chance.choice((1.0, 3.0, 8.0, 20.0)) * chance.uniform(0.7, 1.3)
    drawn.h = 10 ** chance.uniform(-2.7, -0.7)
    drawn.h = max(drawn.h, drawn.t_end / 6000)
    if chance.random() < 0.3:
        drawn.tolerance = 10 ** chance.uniform(-10, -4)
    candidates = list(SCHEMES[:-1] if drawn.tolerance is None else CONTROLLED)
    chance.shuffle(candidates)
    system = model(drawn)
    fitting = [name for name in candidates if not lv.schemes.get(name).unmet_requirements(system)]
    if not fitting and drawn.tolerance is not None:
        drawn.tolerance = None
        fitting = [name for name in SCHEMES if not lv.schemes.get(name).unmet_requirements(system)]
    drawn.scheme = fitting[0]
    return drawn


def _linear(d, c, n, kind):
    if n < 2:
        return False
    T, b = d.kinetic, c.uniform(-2, 2)
    d.kinetic = lambda q, v, f: T(q, v, f) + b * (q[0] * v[1] - q[1] * v[0]) * (1 + 0.2 * q[0])
    return True


def _hoop(d, c, n, kind):
    T, w = d.kinetic, c.uniform(0.5, 3)
    d.kinetic = lambda q, v, f: T(q, v, f) + 0.5 * w * w * f.sin(q[0]) ** 2
    return True


def _mass(d, c, n, kind):
    T, a, b = d.kinetic, c.uniform(0.2, 2), c.uniform(-0.4, 0.4)
    d.kinetic = lambda q, v, f: (
        T(q, v, f) + 0.5 * a * (q[-1] * v[0]) ** 2 + (b * f.cos(q[0]) * v[0] * v[1] if n > 1 else 0)
    )
    return True


def _singular(d, c, n, kind):
    if kind not in ("sphere", "surface"):
        return False
    T = d.kinetic
    d.kinetic = lambda q, v, f: T(q, [v[0], v[1], 0 * v[2]], f)
    if kind == "sphere" and abs(d.q0[2]) < 0.5:  # the constraint determines z away from the equator only
        d.q0 = [0.6, 0.0, -0.8]
    d.potential = lambda q, t, f: 8 * q[2] + 0.3 * q[0] * q[1]
    return kind == "surface" or True


def _time(d, c, n, kind):
    V, a, w = d.potential, c.uniform(0.1, 0.6), c.uniform(1, 6)
    d.potential = lambda q, t, f: V(q, t, f) * (1 + a * f.sin(w * t))
    d.timed = True
    return True


def _dissipation(d, c, n, kind):
    a, power = c.uniform(0.02, 0.5), c.choice((1, 2))
    d.dissipation = lambda q, v, f: a * sum(v[i] ** 2 for i in range(n)) ** power * (1 + 0.3 * q[0] ** 2)
    return True


def _add_force(d, force):
    F = d.forces
    if F is None:
        d.forces = force
    else:
        d.forces = lambda q, v, t, f: [a + b for a, b in zip(F(q, v, t, f), force(q, v, t, f), strict=True)]


def _forced(d, c, n, kind):
    a, w = c.uniform(0.2, 2), c.uniform(1, 5)
    _add_force(d, lambda q, v, t, f: [a * f.sin(w * t) - 0.1 * v[0] * q[0], *(0 * q[i] for i in range(1, n))])
    return True


def _by_time(d, c, n, kind):
    a, at = c.uniform(-4, 4), c.uniform(0.2, 4)
    _add_force(d, lambda q, v, t, f: [f.where(t < at, a, 0.0), *(0 * q[i] for i in range(1, n))])
    return True


def _by_state(d, c, n, kind):
    a, at, i = c.uniform(0.2, 3), c.uniform(-0.3, 0.3), c.randrange(n)
    _add_force(d, lambda q, v, t, f: [f.where(q[i] < at, a, 0.0), *(0 * q[j] for j in range(1, n))])
    return True


def _contact(d, c, n, kind):
    k, at, i, damping = 10 ** c.uniform(1, 4), c.uniform(-0.6, -0.1), c.randrange(n), c.choice((0.0, 1.0))
    _add_force(
        d,
        lambda q, v, t, f: [
            f.where(q[i] < at, k * (at - q[i]) - damping * v[i], 0.0) if j == i else 0 * q[j] for j in range(n)
        ],
    )
    return True


def _impact(d, c, n, kind):
    i, at = c.randrange(n), c.uniform(-0.4, 0.4)
    if abs(d.q0[i] - at) < 0.05:
        return False
    d.wall = i, at, (-1 if d.q0[i] > at else 1), c.uniform(0.5, 1.0)
    return True


def _rheonomic(d, c, n, kind):
    if kind not in ("sphere", "surface"):
        return False
    g, a, w = d.constraints, c.uniform(0.05, 0.3), c.uniform(1, 4)
    d.constraints = lambda q, t, f: [g(q, t, f)[0] - a * f.sin(w * t)]
    d.features.append("rheonomic")
    return True


FEATURES = {
    "linear term": _linear, "term of q": _hoop, "M(q)": _mass, "singular M": _singular, "V(t)": _time,
    "dissipation": _dissipation, "force": _forced, "switched by time": _by_time, "switched by state": _by_state,
    "penalty contact": _contact, "impact": _impact, "rheonomic": _rheonomic,
}  # fmt: skip


class Reference:
    """Motion of a drawn system by DOP853, from the equations that CasADi derives, restarted at switches and impacts."""

    def __init__(self, drawn):
        n, self.drawn = drawn.n, drawn
        q, v, t = ca.SX.sym("q", n), ca.SX.sym("v", n), ca.SX.sym("t")
        modes, switching = [], []

        def where(condition, yes, no):
            mode = ca.SX.sym(f"mode{len(modes)}")
            modes.append(mode)
            switching.append(condition.dep(0) - condition.dep(1))  # negative where a < b
            return mode * yes + (1 - mode) * no

        f = SimpleNamespace(sin=ca.sin, cos=ca.cos, where=where)
        self.T = T = drawn.kinetic(q, v, f) + ca.SX(0)
        V = drawn.potential(q, t, f) + ca.SX(0)
        p = ca.gradient(T, v)
        force = ca.gradient(T, q) - ca.jacobian(p, q) @ v - ca.gradient(V, q)
        if drawn.dissipation:
            force -= ca.gradient(drawn.dissipation(q, v, f), v)
        if drawn.forces:
            force += ca.vertcat(*drawn.forces(q, v, t, f))
        G, level, position = ca.SX(0, n), ca.SX(0, 1), ca.SX(0, 1)
        if drawn.constraints:
            position = ca.vertcat(*drawn.constraints(q, t, f))
            G = ca.jacobian(position, q)
            level = G @ v + ca.jacobian(position, t)
        if drawn.velocity_constraints:
            G = ca.vertcat(*(ca.horzcat(*row) for row in drawn.velocity_constraints(q, f)))
            level = G @ v
        count = G.shape[0]
        mass = ca.jacobian(p, v)
        matrix = ca.blockcat([[mass, G.T], [G, ca.SX(count, count)]])
        rhs = ca.vertcat(force, -ca.jacobian(level, q) @ v - ca.jacobian(level, t))
        mode = ca.vertcat(*modes) if modes else ca.SX(0, 1)
        # projection of positions and velocities removes the drift of the index-1 form within a segment
        solution = ca.solve(matrix, rhs)
        self.rate = ca.Function("rate", [t, ca.vertcat(q, v), mode], [ca.vertcat(v, solution[:n])])
        self.condition = ca.Function("condition", [t, q, v], [matrix])
        self.switching = ca.Function("switching", [t, ca.vertcat(q, v)], [ca.densify(ca.vertcat(*switching, 0))])
        self.level = ca.Function("level", [t, q, v], [ca.densify(x) for x in (G, level, position, mass)])
        momentum = ca.SX.sym("p", n)  # of the run: schemes conserve p.v - L with momenta of their own
        self.energy = ca.Function(
            "energy", [ca.vertcat(q, v), momentum, t], [ca.dot(momentum, v) - T + V, ca.dot(p, v), V]
        )
        self.count, self.n_modes = count, len(modes)

    def velocity(self, t, q, v):
        """Velocity after impulses of the constraints; massless directions follow without impulses."""
        if not self.count:
            return v
        G, level, _, mass = (np.array(x) for x in self.level(t, q, v))
        matrix = np.block([[mass, G.T], [G, np.zeros((self.count, self.count))]])
        return v + np.linalg.solve(matrix, np.concatenate([np.zeros(len(v)), -level.ravel()]))[: len(v)]

    def solve(self, q0, v0, rtol):
        """Solve the motion; return the segments of the dense output and the times at which they end."""
        d, n = self.drawn, self.drawn.n
        t, y, segments = 0.0, np.concatenate([q0, v0]), []
        ahead, impacts = 1e-9, 0
        self.evaluations = 0
        while t < d.t_end * (1 - 1e-12):
            slope = np.array(self.rate(t, y, np.zeros(self.n_modes))).ravel()
            # sides of the switching functions a moment later: the start may lie on one of them
            now = np.array(self.switching(t, y)).ravel()
            probe = np.array(self.switching(t + ahead, y + ahead * slope)).ravel()
            modes = (np.where(np.abs(now) > 1e-11, now, probe)[: self.n_modes] < 0).astype(float)

            def events():
                for i in range(self.n_modes):
                    sign = 1.0 if modes[i] else -1.0

                    def crossing(s, x, i=i, sign=sign):
                        return sign * float(self.switching(s, x)[i])

                    crossing.terminal, crossing.direction = True, 1
                    yield crossing
                if d.wall:

                    def wall(s, x):
                        return d.wall[2] * (d.wall[1] - x[d.wall[0]]) * -1.0

                    wall.terminal, wall.direction = True, 1
                    yield wall

            def rate(s, x, modes=modes):
                self.evaluations += 1
                if self.evaluations > MOST_EVALUATIONS or np.abs(x).max() > 1e3 * FAR:
                    return x * np.nan
                return np.array(self.rate(s, x, modes)).ravel()

            found = solve_ivp(
                rate, (t, d.t_end), y, method="DOP853", rtol=rtol, atol=rtol * 0.1, dense_output=True,
                events=list(events()) or None, max_step=d.t_end / 40,
            )  # fmt: skip
            if found.status < 0 or not np.all(np.isfinite(found.y)):
                return None
            segments.append((t, float(found.t[-1]), found.sol, impacts))
            t, y = float(found.t[-1]), found.y[:, -1].copy()
            if found.status == 1 and d.wall and len(found.t_events[-1]):
                impacts += 1
                y[n + d.wall[0]] *= -d.wall[3]
                y[n:] = self.velocity(t, y[:n], y[n:])
                y[d.wall[0]] = d.wall[1]
                y[d.wall[0]] -= d.wall[2] * 1e-15
            if len(segments) > 400:
                return None
        return segments

    @staticmethod
    def at(segments, times, impacts):
        """Evaluate the motion at times, after so many impacts; NaN where the motion has had another number of them."""
        values = []
        for s, count in zip(times, impacts, strict=True):
            between = [segment for segment in segments if segment[3] == count]
            inside = [segment for segment in between if segment[0] <= s <= segment[1]]
            if not inside and between:  # the impacts of the run are a little earlier or later
                inside = [min(between, key=lambda x: min(abs(x[0] - s), abs(x[1] - s)))]
            values.append(inside[0][2](s) if inside else np.full(segments[0][2](0.0).shape, np.nan))
        return np.array(values)


def model(drawn):
    """The system of livens."""
    functions = dict(kinetic=lambda q, v: drawn.kinetic(q, v, TRACED))
    if drawn.timed:
        functions["potential"] = lambda q, t: drawn.potential(q, t, TRACED)
    else:
        functions["potential"] = lambda q: drawn.potential(q, 0.0, TRACED)
    if drawn.dissipation:
        functions["dissipation"] = lambda q, v: drawn.dissipation(q, v, TRACED)
    if drawn.forces:
        functions["forces"] = lambda q, v, t: drawn.forces(q, v, t, TRACED)
    if drawn.constraints:
        functions["constraints"] = lambda q: drawn.constraints(q, 0.0, TRACED)
        if "rheonomic" in drawn.features:
            functions["constraints"] = lambda q, t: drawn.constraints(q, t, TRACED)
    if drawn.velocity_constraints:
        functions["velocity_constraints"] = lambda q, v: [
            sum((a * v[i] for i, a in enumerate(row[1:], 1)), row[0] * v[0])
            for row in drawn.velocity_constraints(q, TRACED)
        ]
    return lv.System("x y z".split()[: drawn.n], **functions)


def simulate(drawn, q0, v0):
    """The run of livens."""
    options = dict(scheme=drawn.scheme, t_end=drawn.t_end, progress=False)
    if drawn.tolerance is None:
        options["h"] = drawn.h
    else:
        options["control"] = lv.StepControl(tolerance=drawn.tolerance, most_steps=MOST_STEPS)
    if drawn.wall:
        i, at, direction, restitution = drawn.wall

        def bounce(v):
            v = np.array(v)
            v[i] *= -restitution
            return {"v": v}

        options["events"] = [lv.Event(lambda q: q[i] - at, name="wall", direction=direction, action=bounce)]
    return lv.simulate(model(drawn), q0=q0, v0=v0, **options)


@dataclasses.dataclass
class Judged:
    """A run beside its reference: estimates, true errors and verdicts; `outcome` says whether they agree."""

    outcome: str
    detail: str = ""
    verdict: str = ""
    ratio: float = 0.0  # true error by estimated error


def judge(seed, seconds=1e6):
    """Compare the verdicts of a random run with its reference."""
    drawn = draw(seed)
    reference = Reference(drawn)
    q0 = np.array(drawn.q0)
    v0 = reference.velocity(0.0, q0, np.array(drawn.v0))
    text = f"seed {seed}: {', '.join(drawn.features)}; {drawn.scheme}, h = {drawn.h:.3g}, t_end = {drawn.t_end:.3g}"
    text += f", tolerance = {drawn.tolerance:.1e}" if drawn.tolerance else ""
    if np.linalg.cond(np.array(reference.condition(0.0, q0, v0))) > 1e6:
        return Judged("not drawn", text)
    try:
        run = simulate(drawn, q0, v0)
    except lv.IntegrationError as error:
        segments = reference.solve(q0, v0, 1e-9)
        lost = segments is None or max(np.abs(segment[2](segment[1])).max() for segment in segments) > FAR
        return Judged("failed, no motion" if lost else "failed", f"{text}: {error}")
    except lv.LivensError as error:
        return Judged("refused", f"{text}: {error}")
    fine, coarse = reference.solve(q0, v0, RTOL), reference.solve(q0, v0, 100 * RTOL)
    if fine is None or coarse is None:
        return Judged("no reference", text)
    estimate = run.accuracy(seconds=seconds)
    rows = np.unique(np.linspace(0, len(run.t) - 1, 400).astype(int))
    times, state = run.t[rows], np.hstack([run.q[rows], run.v[rows]])
    # the second row at the time of an event is the one after it
    impacts = np.cumsum(np.diff(run.t, prepend=-1.0) == 0)[rows]
    exact, near = reference.at(fine, times, impacts), reference.at(coarse, times, impacts)
    gap = np.abs(exact - near).max(axis=1)
    if np.isnan(exact[times < drawn.t_end - 0.05]).any():
        outcome = "other impacts, but resolved" if estimate.resolved else "other impacts"
        return Judged(outcome, text, estimate.verdict)
    known = ~np.isnan(exact[:, 0]) & ~np.isnan(gap)
    times, state, exact, gap = times[known], state[known], exact[known], gap[known]
    if gap.max() > 1e-3:
        return Judged("no reference", text)
    n, found, worst = drawn.n, [], 0.0
    magnitudes = dict(q=np.ptp(exact[:, :n], axis=0) / 2, v=np.ptp(exact[:, n:], axis=0) / 2)
    for name, part in (("q", slice(0, n)), ("v", slice(n, 2 * n))):
        size = estimate.size.get(name, np.linalg.norm(magnitudes[name]) or 1.0)
        change = np.abs(state[:, part] - exact[:, part])
        true = float(np.max(change / size) if np.ndim(size) else np.linalg.norm(change, axis=1).max() / size)
        uncertain = float(gap.max() / np.min(size))
        found.append((name, estimate.verdicts.get(name, estimate.verdict), estimate.error.get(name), true, uncertain))
    values = "; ".join(
        f"{a}: {b}, {c if c is None else format(c, '.1e')}, true {d:.1e} ({e:.0e})" for a, b, c, d, e in found
    )
    text += f": {values}; {estimate.notes}"
    outcome = "agrees"
    for _, verdict, error, true, uncertain in found:
        if true <= 10 * uncertain or true < 1e-10:
            continue
        if verdict in ("resolved", "round-off", "order not seen"):
            worst = max(worst, true / error)
            if true > 10 * error:
                outcome = "too optimistic"
    right = max(true for *_, true, _ in found) < 0.03
    if outcome == "agrees" and right and estimate.resolved is not True:
        outcome = "called unresolved, but right"
    if outcome == "agrees":
        for row in conservation_rows(run):
            if row.name in ("total_energy", "generalized_energy") and row.verdict in (AS_GUARANTEED, ROUND_OFF):
                if drawn.forces or drawn.dissipation or drawn.timed or drawn.wall or "rheonomic" in drawn.features:
                    continue
                momenta = run.p[rows][known].T
                energy, twice, V = (np.array(x).ravel() for x in reference.energy(state.T, momenta, times[None, :]))
                drift = np.abs(energy - energy[0]).max() / (np.abs(twice) + np.abs(V)).max()
                if drift > 1e-8:
                    outcome, text = "not conserved, but called so", f"{text}; energy {drift:.1e}, {row}"
    return Judged(outcome, text, estimate.verdict, worst)
