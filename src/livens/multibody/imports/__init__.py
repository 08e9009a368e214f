"""Import of robot descriptions (URDF, SDF, MJCF) as mechanisms, with loop closures and couplings as exact constraints.

- `robot_description`: links, joint dofs, loop closures, tendons and actuators, common to all formats
- `joint_composition`, `inertia_regrouping`: several dofs between two links; links without inertia about an axis
- `to_multibody`, `tendons`, `actuators`: conversion to bodies, joints, couplings and forces
- `import_notes`: notes on ignored or changed content

Unsupported content raises an error if it changes the passive motion of the robot; otherwise it is listed in
``mb.import_warnings``.
"""
