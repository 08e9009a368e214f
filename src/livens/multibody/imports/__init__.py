"""Import of robot descriptions (URDF, MJCF) as mechanisms, with loop closures and couplings as exact constraints.

Unsupported content raises an error if it changes the passive motion of the robot; otherwise it is listed in
``mb.import_warnings``.
"""
