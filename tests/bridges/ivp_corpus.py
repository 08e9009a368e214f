"""Right-hand sides as people write them for SciPy, in the styles of textbooks, course notes and questions on the web.

Nothing here refers to livens. Each case has a name, a field, a function, a time span, initial values, further arguments,
whether it is stiff, a note about its style, and whether it is smooth.
"""

# ruff: noqa
import math
from dataclasses import dataclass, field
from math import cos, exp, pi, sin, sqrt

import numpy as np
from numpy import array, dot
from scipy import special
from scipy.interpolate import CubicSpline, interp1d
from scipy.linalg import solve as lin_solve


@dataclass
class Case:
    name: str
    field: str
    fun: object
    span: tuple
    y0: list
    args: tuple = ()
    stiff: bool = False
    style: str = ""
    smooth: bool = True


CASES: list[Case] = []


def case(name, field_, span, y0, args=(), stiff=False, style="", smooth=True):
    def keep(f):
        CASES.append(Case(name, field_, f, span, list(y0), args, stiff, style, smooth))
        return f

    return keep


# ---- documentation and tutorials --------------------------------------------------------------------------------------
@case("exponential-decay", "tutorial", (0, 10), [2, 4, 8], style="array expression")
def exponential_decay(t, y):
    return -0.5 * y


@case("upward-cannon", "tutorial", (0, 60), [0, 50], style="list")
def upward_cannon(t, y):
    return [y[1], -0.5]


@case("lotka-volterra", "tutorial", (0, 15), [10, 5], (1.5, 1, 3, 1), style="unpack, args")
def lotkavolterra(t, z, a, b, c, d):
    x, y = z
    return [a * x - b * x * y, -c * y + d * x * y]


@case("van-der-pol-1", "tutorial", (0, 20), [2, 0], (1.0,), style="list, args")
def vdp(t, y, mu):
    return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]


case("van-der-pol-1000", "stiff test", (0, 2000), [2, 0], (1000.0,), stiff=True, style="list, args")(vdp)


@case(
    "linear-matrix",
    "tutorial",
    (0, 25),
    [1, 2, -1],
    (np.array([[-0.25 + 0, 0.14, 0], [0.33, -0.5, -0.1], [0.2, 0, -0.3]]),),
    style="A @ y, matrix as arg",
)
def deriv_vec(t, y, A):
    return A @ y


@case("airy", "tutorial", (0, -8), [0.355028053887817239, -0.258819403792806798], style="np.array, backwards in time")
def airy(t, y):
    return np.array([y[1], t * y[0]])


@case("pendulum", "cookbook", (0, 10), [np.pi - 0.1, 0.0], (0.25, 5.0), style="np.sin, unpack")
def pend(t, y, b, c):
    theta, omega = y
    dydt = [omega, -b * omega - c * np.sin(theta)]
    return dydt


@case("lorenz", "textbook", (0, 10), [1, 1, 1], (10.0, 28.0, 8 / 3), style="unpack, tuple")
def lorenz(t, state, sigma, rho, beta):
    x, y, z = state
    return sigma * (y - x), x * (rho - z) - y, x * y - beta * z


@case("rossler", "textbook", (0, 50), [1, 1, 0], style="dydt = np.zeros(3) filled")
def rossler(t, y):
    a, b, c = 0.2, 0.2, 5.7
    dydt = np.zeros(3)
    dydt[0] = -y[1] - y[2]
    dydt[1] = y[0] + a * y[1]
    dydt[2] = b + y[2] * (y[0] - c)
    return dydt


@case("double-pendulum", "physics", (0, 10), [np.pi / 2, 0, np.pi / 2, 0], style="np.zeros_like filled, np.sin/cos")
def double_pendulum(t, state):
    G, L1, L2, M1, M2 = 9.8, 1.0, 1.0, 1.0, 1.0
    dydx = np.zeros_like(state)
    dydx[0] = state[1]
    delta = state[2] - state[0]
    den1 = (M1 + M2) * L1 - M2 * L1 * np.cos(delta) * np.cos(delta)
    dydx[1] = (
        M2 * L1 * state[1] * state[1] * np.sin(delta) * np.cos(delta)
        + M2 * G * np.sin(state[2]) * np.cos(delta)
        + M2 * L2 * state[3] * state[3] * np.sin(delta)
        - (M1 + M2) * G * np.sin(state[0])
    ) / den1
    dydx[2] = state[3]
    den2 = (L2 / L1) * den1
    dydx[3] = (
        -M2 * L2 * state[3] * state[3] * np.sin(delta) * np.cos(delta)
        + (M1 + M2) * G * np.sin(state[0]) * np.cos(delta)
        - (M1 + M2) * L1 * state[1] * state[1] * np.sin(delta)
        - (M1 + M2) * G * np.sin(state[2])
    ) / den2
    return dydx


@case(
    "coupled-springs",
    "cookbook",
    (0, 10),
    [0.5, 0, 2.25, 0],
    ((1.0, 1.5, 8.0, 40.0, 0.5, 1.0, 0.8, 0.5),),
    style="tuple of parameters as one arg",
)
def springs(t, w, p):
    x1, y1, x2, y2 = w
    m1, m2, k1, k2, L1, L2, b1, b2 = p
    return [y1, (-b1 * y1 - k1 * (x1 - L1) + k2 * (x2 - x1 - L2)) / m1, y2, (-b2 * y2 - k2 * (x2 - x1 - L2)) / m2]


@case("zombies", "cookbook", (0, 5), [500, 0, 0], style="globals for parameters")
def zombies(t, y):
    S, Z, R = y
    return [
        P_birth - B_trans * S * Z - d_death * S,
        B_trans * S * Z + G_res * R - A_des * S * Z,
        d_death * S + A_des * S * Z - G_res * R,
    ]


P_birth, d_death, B_trans, G_res, A_des = 0, 0.0001, 0.0095, 0.0001, 0.0001


# ---- epidemiology, biology ------------------------------------------------------------------------------------------------
@case("sir", "epidemiology", (0, 160), [999, 1, 0], (1000, 0.2, 0.1), style="unpack, args")
def sir(t, y, N, beta, gamma):
    S, I, R = y
    dSdt = -beta * S * I / N
    dIdt = beta * S * I / N - gamma * I
    dRdt = gamma * I
    return dSdt, dIdt, dRdt


@case("seir-lockdown", "epidemiology", (0, 200), [9999, 0, 1, 0], style="if t > 40: branch on time", smooth=False)
def seir_lockdown(t, y):
    S, E, I, R = y
    N = S + E + I + R
    beta = 0.6
    if t > 40:
        beta = 0.15
    if t > 100:
        beta = 0.3
    return [-beta * S * I / N, beta * S * I / N - E / 5.2, E / 5.2 - I / 10, I / 10]


@case(
    "seir-beta-function",
    "epidemiology",
    (0, 150),
    [9999, 1, 0, 0],
    style="helper with if/elif/else on time",
    smooth=False,
)
def seir_helper(t, y):
    def beta(t):
        if t < 30:
            return 0.5
        elif t < 60:
            return 0.5 - 0.4 * (t - 30) / 30
        else:
            return 0.1

    S, E, I, R = y
    b = beta(t)
    return np.array([-b * S * I / 1e4, b * S * I / 1e4 - 0.2 * E, 0.2 * E - 0.1 * I, 0.1 * I])


_MIX = np.array([[2.0, 0.5, 0.2], [0.5, 1.5, 0.3], [0.2, 0.3, 0.8]])


@case(
    "sir-age-groups",
    "epidemiology",
    (0, 100),
    np.r_[[990.0, 495, 297], [10.0, 5, 3], [0, 0, 0]],
    style="reshape, matrix, concatenate",
)
def sir_age(t, y):
    S, I, R = y.reshape(3, 3)
    N = np.array([1000.0, 500.0, 300.0])
    force = 0.1 * _MIX.dot(I / N)
    new = force * S
    return np.concatenate([-new, new - 0.1 * I, 0.1 * I])


@case("fitzhugh-nagumo", "neuroscience", (0, 200), [-1, 1], style="np.array of unpack")
def fhn(t, y):
    v, w = y
    return np.array([v - v**3 / 3 - w + 0.5, 0.08 * (v + 0.7 - 0.8 * w)])


def _alpha_n(V):
    return 0.01 * (V + 55) / (1 - np.exp(-(V + 55) / 10))


def _beta_n(V):
    return 0.125 * np.exp(-(V + 65) / 80)


def _alpha_m(V):
    return 0.1 * (V + 40) / (1 - np.exp(-(V + 40) / 10))


def _beta_m(V):
    return 4 * np.exp(-(V + 65) / 18)


def _alpha_h(V):
    return 0.07 * np.exp(-(V + 65) / 20)


def _beta_h(V):
    return 1 / (1 + np.exp(-(V + 35) / 10))


def _current(t):
    return 10.0 * (t > 10) - 10.0 * (t > 60)


@case(
    "hodgkin-huxley",
    "neuroscience",
    (0, 100),
    [-65, 0.05, 0.6, 0.32],
    style="helpers, (t > 10) as a number",
    smooth=False,
)
def hodgkin_huxley(t, X):
    V, m, h, n = X
    I_Na = 120 * m**3 * h * (V - 50)
    I_K = 36 * n**4 * (V + 77)
    I_L = 0.3 * (V + 54.387)
    return [
        (_current(t) - I_Na - I_K - I_L) / 1.0,
        _alpha_m(V) * (1 - m) - _beta_m(V) * m,
        _alpha_h(V) * (1 - h) - _beta_h(V) * h,
        _alpha_n(V) * (1 - n) - _beta_n(V) * n,
    ]


@case("repressilator", "systems biology", (0, 40), [1, 2, 3, 2, 1, 3], style="loop with modulo index, np.empty")
def repressilator(t, y):
    m, p = y[:3], y[3:]
    dm, dp = np.empty(3), np.empty(3)
    for i in range(3):
        dm[i] = -m[i] + 216 / (1 + p[(i - 1) % 3] ** 2) + 0.216
        dp[i] = -0.2 * (p[i] - m[i])
    return np.hstack([dm, dp])


@case("goodwin-hill", "systems biology", (0, 100), [0.1, 0.2, 2.5], style="np.power, real exponents")
def goodwin(t, y):
    X, Y, Z = y
    return [np.power(2.0, 10) / (np.power(2.0, 10) + np.power(Z, 9.5)) - 0.1 * X, X - 0.1 * Y, Y - 0.1 * Z]


@case("chemostat-monod", "systems biology", (0, 50), [0.1, 5.0], style="max(S, 0) on a state", smooth=False)
def chemostat(t, y):
    X, S = y
    S = max(S, 0.0)
    mu = 0.8 * S / (0.5 + S)
    return [mu * X - 0.2 * X, 0.2 * (5.0 - S) - mu * X / 0.4]


@case("logistic-harvest", "ecology", (0, 60), [0.3], style="scalar y returned, y[0]")
def logistic(t, y):
    return 0.5 * y * (1 - y) - 0.1 * y / (0.05 + y)


@case(
    "predator-holling",
    "ecology",
    (0, 100),
    [40.0, 9.0],
    (0.1, 0.02, 0.3, 0.01),
    style="np.array, dictionary built inside",
)
def holling(t, y, r, a, m, e):
    p = dict(r=r, a=a, m=m, e=e)
    N, P = y[0], y[1]
    f = p["a"] * N / (1 + 0.05 * N)
    return np.array([p["r"] * N * (1 - N / 200) - f * P, p["e"] * 50 * f * P * 0.5 - p["m"] * P])


@case(
    "pharmacokinetics-dosing", "pharmacology", (0, 48), [0.0, 0.0], style="t % 12 < 0.5: periodic branch", smooth=False
)
def dosing(t, y):
    rate = 100.0 if (t % 12) < 0.5 else 0.0
    gut, blood = y
    return [rate - 1.1 * gut, 1.1 * gut - 0.25 * blood]


@case("glucose-minimal", "pharmacology", (0, 180), [287, 0.0, 403.4], style="np.interp of measured table", smooth=False)
def glucose(t, y):
    G, X, I = y
    Ib = np.interp(t, _T_MEAS, _I_MEAS)
    return [-(0.031 + X) * G + 0.031 * 92, -0.012 * X + 4.92e-6 * (Ib - 11), -0.1 * (I - Ib)]


_T_MEAS = np.array([0, 2, 4, 6, 8, 10, 14, 19, 22, 27, 32, 42, 52, 62, 72, 92, 102, 122, 142, 162, 182.0])
_I_MEAS = np.array([11, 26, 130, 85, 51, 49, 45, 41, 35, 30, 30, 27, 30, 22, 15, 15, 11, 10, 8, 11, 7.0])


# ---- chemistry -------------------------------------------------------------------------------------------------------------
@case("robertson", "chemistry", (0, 1e5), [1, 0, 0], stiff=True, style="unpack, list")
def robertson(t, y):
    x, y_, z = y
    xdot = -0.04 * x + 1e4 * y_ * z
    ydot = 0.04 * x - 1e4 * y_ * z - 3e7 * y_**2
    zdot = 3e7 * y_**2
    return xdot, ydot, zdot


@case("brusselator", "chemistry", (0, 20), [1.5, 3], style="lambda")
def brusselator(t, u):
    return [1 + u[0] ** 2 * u[1] - 4 * u[0], 3 * u[0] - u[0] ** 2 * u[1]]


@case("oregonator", "chemistry", (0, 360), [1, 2, 3], stiff=True, style="np.array")
def oregonator(t, y):
    return np.array(
        [
            77.27 * (y[1] + y[0] * (1 - 8.375e-6 * y[0] - y[1])),
            (y[2] - (1 + y[0]) * y[1]) / 77.27,
            0.161 * (y[0] - y[2]),
        ]
    )


@case("hires", "chemistry", (0, 321.8122), [1, 0, 0, 0, 0, 0, 0, 0.0057], stiff=True, style="np.zeros((8,)) filled")
def hires(t, y):
    f = np.zeros((8,))
    f[0] = -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007
    f[1] = 1.71 * y[0] - 8.75 * y[1]
    f[2] = -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4]
    f[3] = 8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3]
    f[4] = -1.745 * y[4] + 0.43 * (y[5] + y[6])
    f[5] = -280 * y[5] * y[7] + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6]
    f[6] = 280 * y[5] * y[7] - 1.81 * y[6]
    f[7] = -f[6]
    return f


_K = np.array([0.35, 0.266e2, 0.123e5, 0.86e-3, 0.82e-3, 0.15e5, 0.13e-3, 0.24e5, 0.165e5, 0.9e4])
_N = np.zeros((6, 10))
for _s, _r in ((0, (0, -1)), (1, (0, 1)), (2, (1, -1)), (3, (2, 1)), (4, (3, -1)), (5, (4, 1))):
    _N[_s, _r[0]] += _r[1]
_N[0, 1] -= 1
_N[1, 2] -= 1
_N[2, 3] += 1
_N[3, 5] -= 1
_N[4, 6] += 1
_N[5, 7] -= 1


@case(
    "reaction-network",
    "chemistry",
    (0, 60),
    [0.2, 0.0, 0.04, 0.1, 0.3, 0.017],
    stiff=True,
    style="rates in np.zeros, stoichiometric matrix",
)
def network(t, c):
    r = np.zeros(10)
    r[0] = _K[0] * c[0]
    r[1] = _K[1] * c[0] * c[1]
    r[2] = _K[2] * c[1] * c[2]
    r[3] = _K[3] * c[3]
    r[4] = _K[4] * c[4]
    r[5] = _K[5] * c[3] * c[5]
    r[6] = _K[6] * c[4]
    r[7] = _K[7] * c[5] * c[2]
    return _N @ r


@case(
    "batch-arrhenius",
    "chemical engineering",
    (0, 100),
    [1.0, 0.0, 330.0],
    style="math.exp, math functions on states",
    stiff=False,
)
def arrhenius(t, y):
    cA, cB, T = y
    k = 7.2e10 * math.exp(-8750.0 / T)
    r = k * cA
    return [-r / 60, r / 60, 209.2 * r / 60 - 0.05 * (T - 300) / 1.0]


@case("cstr-jacket", "chemical engineering", (0, 10), [0.9, 305.0], style="from math import exp", smooth=True)
def cstr(t, x):
    Ca, T = x
    rA = 7.2e10 * exp(-8750 / T) * Ca
    return [1.0 * (1.0 - Ca) - rA, 1.0 * (350 - T) + 209.2 * rA + 2.09 * (300 - T)]


@case(
    "distillation-flash",
    "chemical engineering",
    (0, 50),
    [0.3, 0.35, 0.4, 0.5, 0.6],
    style="loop over trays, list append",
)
def trays(t, x):
    alpha, out = 2.5, []
    y = [alpha * xi / (1 + (alpha - 1) * xi) for xi in x]
    for i in range(len(x)):
        below = y[i - 1] if i > 0 else 0.45
        above = x[i + 1] if i < len(x) - 1 else y[-1]
        out.append((below - y[i]) + 0.8 * (above - x[i]))
    return out


# ---- heat, diffusion, fluids ------------------------------------------------------------------------------------------------
@case(
    "heat-1d",
    "partial differential",
    (0, 0.1),
    np.sin(np.pi * np.linspace(0, 1, 22)[1:-1]),
    stiff=True,
    style="slices, np.zeros_like",
)
def heat(t, u):
    dx = 1 / 21
    dudt = np.zeros_like(u)
    dudt[1:-1] = (u[2:] - 2 * u[1:-1] + u[:-2]) / dx**2
    dudt[0] = (u[1] - 2 * u[0]) / dx**2
    dudt[-1] = (u[-2] - 2 * u[-1]) / dx**2
    return dudt


@case(
    "burgers-roll",
    "partial differential",
    (0, 0.2),
    np.sin(2 * np.pi * np.arange(24) / 24),
    style="np.roll, periodic",
    stiff=False,
)
def burgers(t, u):
    dx = 1 / 24
    ux = (np.roll(u, -1) - np.roll(u, 1)) / (2 * dx)
    uxx = (np.roll(u, -1) - 2 * u + np.roll(u, 1)) / dx**2
    return -u * ux + 0.02 * uxx


@case(
    "gray-scott",
    "partial differential",
    (0, 50),
    np.r_[np.ones(16) - 0.5 * (np.abs(np.arange(16) - 8) < 3), 0.25 * (np.abs(np.arange(16) - 8) < 3)],
    style="np.gradient-free, np.split, np.r_",
)
def gray_scott(t, w):
    u, v = np.split(w, 2)
    lap = lambda a: np.roll(a, 1) + np.roll(a, -1) - 2 * a
    r = u * v * v
    return np.r_[0.16 * lap(u) - r + 0.035 * (1 - u), 0.08 * lap(v) + r - 0.095 * v]


@case("tank-draining", "fluids", (0, 30), [2.0, 1.0], style="np.sqrt(np.maximum(h, 0))", smooth=False)
def tanks(t, h):
    q1 = 0.3 * np.sqrt(np.maximum(h[0], 0))
    q2 = 0.2 * np.sqrt(np.maximum(h[1], 0))
    return [0.25 - q1, q1 - q2]


@case("room-thermostat", "building", (0, 24), [18.0, 18.0], style="np.where on state and np.clip", smooth=False)
def room(t, T):
    outside = 5 + 5 * np.sin(2 * np.pi * (t - 9) / 24)
    power = np.clip(2.0 * (21 - T[0]), 0, 4)
    loss = np.where(T[1] > outside, 0.3, 0.2)
    return [power - 0.5 * (T[0] - T[1]), 0.2 * (T[0] - T[1]) - loss * (T[1] - outside)]


# ---- orbits -----------------------------------------------------------------------------------------------------------------
@case(
    "two-body", "orbits", (0, 20000), [7000, 0, 0, 0, 7.5, 1.0], (398600.4418,), style="np.linalg.norm, np.concatenate"
)
def two_body(t, s, mu):
    r = s[:3]
    v = s[3:]
    return np.concatenate((v, -mu * r / np.linalg.norm(r) ** 3))


@case(
    "arenstorf",
    "orbits",
    (0, 17.0652165601579625588917206249),
    [0.994, 0, 0, -2.00158510637908252240537862224],
    style="from math import sqrt",
)
def arenstorf(t, y):
    mu = 0.012277471
    x1, x2, v1, v2 = y
    d1 = sqrt((x1 + mu) ** 2 + x2**2) ** 3
    d2 = sqrt((x1 - (1 - mu)) ** 2 + x2**2) ** 3
    return [
        v1,
        v2,
        x1 + 2 * v2 - (1 - mu) * (x1 + mu) / d1 - mu * (x1 - (1 - mu)) / d2,
        x2 - 2 * v1 - (1 - mu) * x2 / d1 - mu * x2 / d2,
    ]


@case(
    "three-body-figure-8",
    "orbits",
    (0, 6.32591398),
    [
        -0.97000436,
        0.24308753,
        0.97000436,
        -0.24308753,
        0,
        0,
        0.466203685,
        0.43236573,
        0.466203685,
        0.43236573,
        -0.93240737,
        -0.86473146,
    ],
    style="double loop, if i != j, in place +=",
)
def figure8(t, y):
    n = 3
    pos = y[:6].reshape(n, 2)
    acc = np.zeros((n, 2))
    for i in range(n):
        for j in range(n):
            if i != j:
                d = pos[j] - pos[i]
                acc[i] += d / np.linalg.norm(d) ** 3
    return np.hstack((y[6:], acc.ravel()))


@case(
    "nbody-broadcast",
    "orbits",
    (0, 2),
    [0, 0, 0, 1, 0, 0, 0, 1.6, 0.1, -2.2, 0, 0.2, 0, 0, 0, 0, 1, 0.05, -0.79, 0, 0, 0, -0.67, 0.1],
    style="broadcast pairs, sum over axis",
)
def nbody(t, w):
    m = np.array([1.0, 1e-3, 2e-3, 1e-3])
    x, v = w[:12].reshape(4, 3), w[12:].reshape(4, 3)
    d = x[None, :, :] - x[:, None, :]
    r3 = (np.sum(d**2, axis=-1) + 1e-6) ** 1.5
    a = np.sum(m[None, :, None] * d / r3[:, :, None], axis=1)
    return np.concatenate([v.ravel(), a.ravel()])


@case("j2-drag", "orbits", (0, 6000), [6778, 0, 0, 0, 7.66, 0.5], style="np.cross, np.exp, unpack of slices")
def j2_drag(t, s):
    mu, Re, J2 = 398600.4418, 6378.137, 1.08263e-3
    r, v = s[0:3], s[3:6]
    R = np.linalg.norm(r)
    x, y, z = r
    a = -mu * r / R**3
    f = 1.5 * J2 * mu * Re**2 / R**5
    a_j2 = np.array([f * x * (5 * z**2 / R**2 - 1), f * y * (5 * z**2 / R**2 - 1), f * z * (5 * z**2 / R**2 - 3)])
    vrel = v - np.cross([0, 0, 7.2921e-5], r)
    drag = -1e-9 * np.exp(-(R - Re - 400) / 60) * np.linalg.norm(vrel) * vrel
    return np.hstack((v, a + a_j2 + drag))


@case(
    "rocket-staging",
    "orbits",
    (0, 200),
    [0.0, 0.0, 1000.0],
    style="if m > dry and t < burn: branch on state and time",
    smooth=False,
)
def rocket(t, y):
    h, v, m = y
    g = 9.81 * (6371e3 / (6371e3 + h)) ** 2
    rho = 1.225 * np.exp(-h / 8500.0)
    if m > 300.0 and t < 120.0:
        thrust, flow = 2.2e4, 7.0
    else:
        thrust, flow = 0.0, 0.0
    drag = 0.5 * rho * 0.3 * 0.4 * v * abs(v)
    return [v, (thrust - drag) / m - g, -flow]


# ---- mechanics and robotics -------------------------------------------------------------------------------------------------
@case("projectile-drag", "mechanics", (0, 3), [0, 0, 40, 40], style="np.hypot")
def projectile(t, u):
    x, y, vx, vy = u
    speed = np.hypot(vx, vy)
    return vx, vy, -0.01 * speed * vx, -9.81 - 0.01 * speed * vy


@case("stick-slip-friction", "mechanics", (0, 10), [0.0, 0.0], style="np.sign on velocity", smooth=False)
def friction(t, y):
    x, v = y
    return [v, 3 * np.sin(2 * t) - x - 0.5 * np.sign(v)]


@case("bouncing-penalty", "mechanics", (0, 2), [1.0, 0.0], style="if y < 0: contact force", smooth=False)
def bouncing(t, s):
    y, v = s
    f = -9.81
    if y < 0:
        f += -1e4 * y - 5 * v
    return np.array([v, f])


@case(
    "cart-pole-lqr",
    "robotics",
    (0, 10),
    [0, 0, 0.2, 0],
    (np.array([-1.0, -2.0, -35.0, -8.0]),),
    style="np.dot control, array arg",
)
def cartpole(t, x, K):
    M, m, l, g = 1.0, 0.1, 0.5, 9.81
    u = -np.dot(K, x)
    s, c = np.sin(x[2]), np.cos(x[2])
    D = M + m * s**2
    return np.array(
        [
            x[1],
            (-u * -1 + m * s * (l * x[3] ** 2 - g * c)) / D,
            x[3],
            (-(-u * -1) * c - m * l * x[3] ** 2 * c * s + (M + m) * g * s) / (l * D),
        ]
    )


@case("two-link-arm", "robotics", (0, 5), [0.1, 0.2, 0, 0], style="np.linalg.solve(M, rhs)")
def two_link(t, y):
    q1, q2, w1, w2 = y
    c2, s2 = np.cos(q2), np.sin(q2)
    M = np.array([[3 + 2 * c2, 1 + c2], [1 + c2, 1.0]])
    C = np.array([-s2 * (2 * w1 * w2 + w2**2), s2 * w1**2])
    G = 9.81 * np.array([2 * np.cos(q1) + np.cos(q1 + q2), np.cos(q1 + q2)])
    tau = -0.5 * np.array([w1, w2])
    acc = np.linalg.solve(M, tau - C - G)
    return np.concatenate(([w1, w2], acc))


@case("two-link-inv", "robotics", (0, 5), [0.1, 0.2, 0, 0], style="np.linalg.inv(M) @ rhs, np.matrix style")
def two_link_inv(t, y):
    q, w = y[:2], y[2:]
    M = np.array([[3 + 2 * np.cos(q[1]), 1 + np.cos(q[1])], [1 + np.cos(q[1]), 1.0]])
    h = np.array([-np.sin(q[1]) * (2 * w[0] * w[1] + w[1] ** 2), np.sin(q[1]) * w[0] ** 2])
    return np.r_[w, np.linalg.inv(M) @ (-h - 0.5 * w)]


@case(
    "satellite-quaternion",
    "robotics",
    (0, 20),
    [1, 0, 0, 0, 0.1, 2.0, 0.05],
    style="helper for matrix, np.cross, J inverse of numbers",
)
def satellite(t, y):
    q, w = y[:4], y[4:]
    J = np.diag([1.0, 2.0, 3.0])
    W = np.array([[0, -w[0], -w[1], -w[2]], [w[0], 0, w[2], -w[1]], [w[1], -w[2], 0, w[0]], [w[2], w[1], -w[0], 0]])
    return np.concatenate((0.5 * W.dot(q), np.linalg.inv(J).dot(-np.cross(w, J.dot(w)))))


@case(
    "quadrotor-planar",
    "robotics",
    (0, 5),
    [0, 0, 0.1, 0, 0, 0],
    style="class with __call__, self parameters, min/max saturation",
    smooth=False,
)
class _Quad:
    pass


class Quadrotor:
    def __init__(self, m=0.5, J=0.002, l=0.1):
        self.m, self.J, self.l, self.g = m, J, l, 9.81

    def control(self, s):
        hover = self.m * self.g
        thrust = min(max(hover - 2 * (s[1] - 1) - 1.5 * s[4], 0.0), 2 * hover)
        torque = -0.2 * s[2] - 0.05 * s[5]
        return thrust, torque

    def __call__(self, t, s):
        u1, u2 = self.control(s)
        return [s[3], s[4], s[5], -u1 * np.sin(s[2]) / self.m, u1 * np.cos(s[2]) / self.m - self.g, u2 / self.J]


CASES[-1].fun = Quadrotor()


@case("bicycle-pid", "robotics", (0, 20), [0, 2, 0, 0], style="method of an object, np.arctan2, np.tan", smooth=False)
def _b(t, y): ...


class Car:
    L = 2.5

    def dynamics(self, t, z):
        x, y, th, e = z
        steer = np.clip(-0.1 * y - 0.8 * np.arctan2(np.sin(th), np.cos(th)) - 0.02 * e, -0.5, 0.5)
        return np.array([10 * np.cos(th), 10 * np.sin(th), 10 / self.L * np.tan(steer), y])


CASES[-1].fun = Car().dynamics


@case("dc-motor", "mechatronics", (0, 1), [0, 0, 0], style="named tuple of parameters in a closure")
def _m(t, y): ...
def make_motor(R=1.0, L=0.5, Ke=0.01, J=0.01, b=0.1):
    def motor(t, y):
        th, w, i = y
        V = 12 * np.heaviside(t - 0.1, 1.0)
        return [w, (Ke * i - b * w) / J, (V - R * i - Ke * w) / L]

    return motor


CASES[-1].fun = make_motor()
CASES[-1].smooth = False


# ---- circuits -----------------------------------------------------------------------------------------------------------------
@case("rlc-sine", "circuits", (0, 0.05), [0, 0], (10.0, 1e-2, 1e-5), style="np.sin(2*np.pi*f*t), args")
def rlc(t, y, R, L, C):
    q, i = y
    return [i, (5 * np.sin(2 * np.pi * 50 * t) - R * i - q / C) / L]


@case("diode-rectifier", "circuits", (0, 0.04), [0.0], stiff=True, style="np.exp of diode law")
def diode(t, y):
    v = y[0]
    vs = 5 * np.sin(2 * np.pi * 50 * t)
    i = 1e-9 * (np.exp(np.minimum((vs - v) / 0.05, 40)) - 1)
    return [(i - v / 1000) / 1e-5]


CASES[-1].smooth = False


@case("chua", "circuits", (0, 50), [0.7, 0, 0], style="abs() in a helper lambda", smooth=False)
def chua(t, X):
    x, y, z = X
    f = lambda x: -0.714 * x + 0.5 * (-1.143 + 0.714) * (abs(x + 1) - abs(x - 1))
    return [15.6 * (y - x - f(x)), x - y + z, -28 * y]


@case("buck-pwm", "circuits", (0, 2e-3), [0, 0], style="square wave by scipy.signal-like modulo", smooth=False)
def buck(t, y):
    on = 1.0 if (t * 50e3) % 1.0 < 0.4 else 0.0
    iL, vC = y
    return [(12 * on - vC) / 1e-4, (iL - vC / 2.0) / 1e-4]


# ---- tables, black boxes ---------------------------------------------------------------------------------------------------------
_cs = CubicSpline([0, 1, 2, 3, 4, 5], [0, 1, 0.3, -0.5, 0.2, 0])


@case("driven-cubic-spline", "tables", (0, 5), [0, 0], style="scipy CubicSpline of t", smooth=False)
def spline_driven(t, y):
    return [y[1], _cs(t) - y[0] - 0.1 * y[1]]


_wind = interp1d(
    np.linspace(0, 10, 101), np.sin(np.linspace(0, 10, 101) ** 1.5), kind="linear", fill_value="extrapolate"
)


@case("driven-interp1d", "tables", (0, 10), [0, 0], style="scipy interp1d of t, 101 points", smooth=False)
def interp_driven(t, y):
    return np.array([y[1], float(_wind(t)) - 4 * y[0] - 0.2 * y[1]])


@case("bessel-source", "special functions", (0, 10), [1.0], style="scipy.special.j0(t)")
def bessel_source(t, y):
    return -y + special.j0(t)


@case("erf-pulse", "special functions", (0, 5), [0.0, 1.0], style="scipy.special.erf of state")
def erf_pulse(t, y):
    return [special.erf(y[1]) - y[0], -y[1] + np.cos(t)]


@case("lambert-implicit", "black boxes", (0, 3), [1.0], style="scipy.optimize inside the right-hand side")
def implicit_law(t, y):
    from scipy.optimize import brentq

    i = brentq(lambda i: 0.1 * i + 0.026 * np.log(1 + i / 1e-3) - abs(y[0]), 0, 100)
    return [-i]


CASES[-1].smooth = False


@case("scipy-linalg-solve", "black boxes", (0, 5), [1.0, 0.0], style="scipy.linalg.solve with state matrix")
def la_solve(t, y):
    M = np.array([[2 + np.cos(y[0]), 0.3], [0.3, 1.0]])
    return lin_solve(M, np.array([y[1], -y[0]]))


try:
    from numba import njit

    @njit
    def _numba_vdp(t, y):
        out = np.empty(2)
        out[0] = y[1]
        out[1] = 5.0 * (1 - y[0] ** 2) * y[1] - y[0]
        return out

    case("numba-njit", "compiled", (0, 20), [2.0, 0.0], style="@njit function")(_numba_vdp)
except ImportError:
    pass


@case("kuramoto", "physics", (0, 20), np.linspace(0, 6, 12) ** 1.3, style="np.subtract.outer, np.mean")
def kuramoto(t, th):
    w = np.linspace(-1, 1, 12)
    return w + 2.0 * np.mean(np.sin(np.subtract.outer(th, th)), axis=0) * -1 * -1


@case("duffing", "physics", (0, 50), [1, 0], style="** 3, np.cos(t)")
def duffing(t, y):
    return [y[1], y[0] - y[0] ** 3 - 0.3 * y[1] + 0.5 * np.cos(1.2 * t)]


@case("henon-heiles", "physics", (0, 100), [0, 0.1, 0.35, 0], style="tuple unpack")
def henon(t, y):
    return y[2], y[3], -y[0] - 2 * y[0] * y[1], -y[1] - y[0] ** 2 + y[1] ** 2


@case(
    "schrodinger-split",
    "physics",
    (0, 1),
    np.r_[np.exp(-(np.linspace(-3, 3, 16) ** 2)), np.zeros(16)],
    style="real and imaginary halves, np.diff",
)
def schrod(t, y):
    re, im = y[:16], y[16:]

    def lap(a):
        return np.diff(np.concatenate([[0.0], a, [0.0]]), n=2) / 0.4**2

    return np.concatenate([-0.5 * lap(im), 0.5 * lap(re)])


@case(
    "pleiades",
    "orbits",
    (0, 3),
    [3, 3, -1, -3, 2, -2, 2, 3, -3, 2, 0, 0, -4, 4, 0, 0, 0, 0, 0, 1.75, -1.5, 0, 0, 0, -1.25, 1, 0, 0],
    style="loops with continue, dy = np.zeros(28)",
)
def pleiades(t, y):
    dy = np.zeros(28)
    dy[:14] = y[14:]
    for i in range(7):
        sx = sy = 0.0
        for j in range(7):
            if j == i:
                continue
            r = ((y[i] - y[j]) ** 2 + (y[i + 7] - y[j + 7]) ** 2) ** 1.5
            sx += (j + 1) * (y[j] - y[i]) / r
            sy += (j + 1) * (y[j + 7] - y[i + 7]) / r
        dy[14 + i] = sx
        dy[21 + i] = sy
    return dy


@case("battery-lookup", "tables", (0, 3000), [0.9, 0.0], style="np.searchsorted table look-up on state", smooth=False)
def battery(t, y):
    soc, v1 = y
    soc_grid = np.linspace(0, 1, 11)
    ocv = np.array([3.0, 3.3, 3.45, 3.5, 3.55, 3.6, 3.68, 3.77, 3.88, 4.02, 4.2])
    i = np.searchsorted(soc_grid, soc) - 1
    v = ocv[i] + (ocv[i + 1] - ocv[i]) * (soc - soc_grid[i]) / 0.1
    current = 2.0 * v / 3.7
    return [-current / (3600 * 2.5), (current * 0.02 - v1) / 50]


@case(
    "try-isnan-guard",
    "robust style",
    (0, 5),
    [1.0, 0.0],
    style="if np.isnan(y).any(): raise; np.asarray(y, dtype=float)",
)
def guarded(t, y):
    y = np.asarray(y, dtype=float)
    if np.isnan(y).any():
        raise ValueError("nan")
    return np.array([y[1], -y[0]], dtype=float)
