"""Compiler for loops in a small subset of Python: `@lowered` functions are translated to LLVM.

Supported: functions of integers, floats, booleans, vectors of four, flat arrays and `Struct` objects, all annotated;
assignments, ``for`` over ``range``, ``while``, ``if``, comparisons with ``in`` a tuple, and calls of other lowered
functions. The first assignment of a variable fixes its type. ``array + i`` is the part of an array that starts at
entry i. There are no bounds checks; ``//`` and ``%`` of integers round down as in Python.
"""
