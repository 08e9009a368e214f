"""Builder methods of `livens.Multibody`, one module for each kind of component.

- `base`, `bodies`: registered components and checks of their arguments; rigid bodies.
- `joints`, `constraints`, `couplings`: joints, constraints of points, couplings of joint coordinates.
- `point_forces`, `joint_forces`, `forces`: forces between points and in joints, inputs; bushings and loads.
- `control`, `contacts`: controllers and sensors; compliant contacts and contact groups.
- `beams`, `plates`, `joint_space`, `robot_files`: flexible bodies; joint-space dynamics; URDF, SDF and MJCF files.
"""
