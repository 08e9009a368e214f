"""The files that ``livens init`` writes. They run as they are."""

from __future__ import annotations

SYSTEM = """\
# A pendulum in Cartesian coordinates. Run it with: livens run {file}
# Everything after a # is a comment. Numbers may be expressions such as 2*pi.

system:
  coordinates: x y                      # the velocity of x is called v_x
  parameters: {{m: 1.0, l: 1.0, g: 9.81}} # change one for a run with: --set l=2
  let:                                  # names for expressions that are used more than once
    r2: x**2 + y**2
  kinetic: m/2*(v_x**2 + v_y**2)
  potential: m*g*y
  constraints:                          # each of them stays 0
    length of the rod: (r2 - l**2)/2
  # dissipation: 0.1/2*(v_x**2 + v_y**2)  # its derivative by a velocity is the friction on that coordinate
  # forces: {{x: 0.5*sin(2*t)}}             # applied forces, on any of the coordinates

start: {{x: -l, y: 0, v_x: 0, v_y: 0}}    # velocities may be left out if they are 0
# project: true                         # move the start to the nearest point that fulfils the constraints

scheme: livens-em                       # see: livens list schemes
h: 1e-3                                 # step size
t_end: 10
every: 1                                # store every so many steps
# out: pendulum.h5                      # result file; if not given, named like this file
"""

PROBLEM = """\
# A ready problem with other values. Run it with: livens run {file}
# Everything after a # is a comment. Numbers may be expressions such as 2*pi.

problem: double-four-bar                # see: livens list problems
options:                                # change one for a run with: --set speed=3
  speed: 2

scheme: livens-em                       # see: livens list schemes
h: 1e-3                                 # step size
t_end: 10
every: 1                                # store every so many steps
# out: four-bar.h5                      # result file; if not given, named like this file
"""
