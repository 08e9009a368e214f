"""Slider-crank with a motor: reaction forces and energy balance."""

import livens as lv
from livens import math as m

mb = lv.Multibody(gravity=[0, 0, -9.81])
crank = mb.rod("crank", a=[0, 0, 0], b=[0.14, 0, 0.14], mass=1)
rod = mb.rod("rod", a=crank.b, b=[0.62, 0, 0], mass=2)
slider = mb.box("slider", at=rod.b, size=[0.1, 0.05, 0.05], mass=0.5)
hinge = mb.revolute("hinge", mb.ground, crank, at=[0, 0, 0], axis="y")
mb.revolute("pin", crank, rod, at=crank.b, axis="y")
mb.spherical("wrist", rod, slider, at=rod.b)
mb.prismatic("guide", mb.ground, slider, axis="x")
mb.motor(hinge, torque=lambda t, angle, rate: 0.5 * m.sin(3 * t) - 0.1 * rate)
mb.initial(hinge, rate=3)
print(mb.check())
run = mb.simulate(t_end=3, h=1e-3)
print(f"largest force in the pin: {abs(run['pin.force']).max():.1f} N")
assert run.summary.max_energy_drift < 1e-11
