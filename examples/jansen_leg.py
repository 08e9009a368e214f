"""Theo Jansen's leg: eleven bars, one degree of freedom, driven by a crank."""

import numpy as np

import livens as lv

# joints of the leg for one position of the crank, from the published lengths
LENGTHS = dict(a=38.0, b=41.5, c=39.3, d=40.1, e=55.8, f=39.4, g=36.7, h=65.7, i=49.0, j=50.0, k=61.9, l=7.8, m=15.0)
s = {name: value / 100 for name, value in LENGTHS.items()}


def meet(p, r_p, q, r_q, side):
    """Return the intersection of two circles on one side of the line from p to q."""
    p, q = np.array(p, float), np.array(q, float)
    along = (q - p) / np.linalg.norm(q - p)
    x = (r_p**2 - r_q**2 + np.linalg.norm(q - p) ** 2) / (2 * np.linalg.norm(q - p))
    return p + x * along + side * np.sqrt(r_p**2 - x**2) * np.array([-along[1], along[0]])


pivot, axle = np.array([0.0, 0.0]), np.array([s["a"], s["l"]])
pin = axle + s["m"] * np.array([1.0, 0.0])
top = meet(pivot, s["b"], pin, s["j"], 1)
low = meet(pivot, s["c"], pin, s["k"], -1)
back = meet(pivot, s["d"], top, s["e"], 1)
knee = meet(back, s["f"], low, s["g"], -1)
foot = meet(knee, s["h"], low, s["i"], -1)

leg = lv.Multibody(gravity=[0, -9.81], planar=True)
BARS = {
    "crank": (axle, pin), "j": (pin, top), "k": (pin, low), "b": (pivot, top), "c": (pivot, low), "d": (pivot, back),
    "e": (top, back), "f": (back, knee), "g": (low, knee), "h": (knee, foot), "i": (low, foot),
}  # fmt: skip
bars = {name: leg.rod(name, a=list(a), b=list(b), mass=1.0) for name, (a, b) in BARS.items()}
drive = leg.revolute("axle", leg.ground, bars["crank"], at=list(axle))
JOINTS = {
    tuple(pivot): ["b", "c", "d"], tuple(pin): ["crank", "j", "k"], tuple(top): ["b", "j", "e"],
    tuple(low): ["c", "k", "g", "i"], tuple(back): ["d", "e", "f"], tuple(knee): ["f", "g", "h"],
    tuple(foot): ["h", "i"],
}  # fmt: skip
for number, (point, names) in enumerate(JOINTS.items()):
    first, *others = ([leg.ground] if point == tuple(pivot) else []) + [bars[name] for name in names]
    for other in others:
        leg.revolute(f"pin {number} of {other.name}", first, other, at=list(point))
leg.drive(drive, rate=2 * np.pi, name="motor")
print("degrees of freedom before the drive: 1, after:", leg.check().mobility)
run = leg.simulate(t_end=1.0, h=2e-3)
path, torque = run["h.b"], run["motor.torque"]
print(f"step length {np.ptp(path[:, 0]):.3f} m, step height {np.ptp(path[:, 1]):.3f} m")
print(f"torque of the motor between {torque.min():.1f} and {torque.max():.1f} N m")
assert run.summary.max_constraint < 1e-12
run.animate("jansen-leg.html", frames=120)
