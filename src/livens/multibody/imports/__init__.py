"""Robots from files: URDF and MJCF as mechanisms, with closed loops and couplings as exact constraints.

What a file says that is not taken over is refused if it would change the motion of the robot by itself, and else listed
in ``mb.notes``; nothing is left out without a word.
"""
