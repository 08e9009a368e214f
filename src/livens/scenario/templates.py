"""Templates of scenario files, written by ``livens init``; they can be run unchanged."""

from __future__ import annotations

SYSTEM = """\
# A pendulum in Cartesian coordinates. Run it with: livens run {file}
# Everything after a # is a comment. Numbers may be expressions such as 2*pi.

system:
  coordinates: x y                      # the velocity of x is v_x
  parameters: {{m: 1.0, l: 1.0, g: 9.81}} # change one for a run with: --set l=2
  let:                                  # names for expressions that are used more than once
    r2: x**2 + y**2
  kinetic: m/2*(v_x**2 + v_y**2)
  potential: m*g*y
  constraints:                          # each expression is zero
    length of the rod: (r2 - l**2)/2
  # dissipation: 0.1/2*(v_x**2 + v_y**2)  # Rayleigh function: its velocity derivatives are the friction forces
  # forces: {{x: 0.5*sin(2*t)}}             # applied forces, on any of the coordinates

initial: {{x: -l, y: 0, v_x: 0, v_y: 0}}    # initial values; velocities are 0 by default
# project: true                         # project the initial values onto the constraints

scheme: livens-em                       # see: livens list schemes
h: 1e-3                                 # step size
t_end: 10
every: 1                                # store every n-th step
# out: pendulum.h5                      # result file; default: named like this file
"""

PROBLEM = """\
# A built-in problem with other values. Run it with: livens run {file}
# Everything after a # is a comment. Numbers may be expressions such as 2*pi.

problem: double-four-bar                # see: livens list problems
options:                                # change one for a run with: --set speed=3
  speed: 2

scheme: livens-em                       # see: livens list schemes
h: 1e-3                                 # step size
t_end: 10
every: 1                                # store every n-th step
# out: four-bar.h5                      # result file; default: named like this file
"""

MECHANISM = """\
# A slider-crank with a motor. Run it with: livens run {file}
# Points and axes are given in the reference configuration. Numbers may be expressions such as 45*deg or 3*mm.

gravity: [0, 0, -9.81]
parameters: {{c: 0.5}}                     # change one for a run with: --set c=1

bodies:                                 # rod, box, plate, cylinder, ring, sphere, particle; body for any inertia
  crank: {{shape: rod, a: [0, 0, 0], b: [0.14, 0, 0.14], mass: 1}}
  rod: {{shape: rod, a: crank.b, b: [0.62, 0, 0], mass: 2}}
  slider: {{shape: box, at: rod.b, size: [0.1, 0.05, 0.05], mass: 0.5}}

joints:
  hinge: {{type: revolute, between: [ground, crank], at: [0, 0, 0], axis: y}}
  pin: {{type: revolute, between: [crank, rod], at: crank.b, axis: y}}
  wrist: {{type: spherical, between: [rod, slider], at: rod.b}}
  guide: {{type: prismatic, between: [ground, slider], axis: x}}

forces:
  motor: {{type: motor, joint: hinge, torque: c*sin(3*t) - 0.1*rate}}

initial:                                  # known initial values; the others are solved for
  hinge: {{angle: 45*deg, rate: 3}}

sensors:
  tip: {{point: rod.b, relative_to: crank}}

h: 1e-3                                 # step size
t_end: 3
# velocity_level: true                  # enforce constraints at velocity level too (lie-ggl)
"""
