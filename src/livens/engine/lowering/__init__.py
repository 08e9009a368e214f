"""Loops written in a small part of Python and compiled by LLVM alone, in a second where Numba takes a minute.

What can be written: functions of whole numbers, numbers and arrays, all with annotations; assignments, ``for`` over
``range``, ``while``, ``if``, and calls of other such functions. Arrays are flat, and ``array + i`` is what begins at
entry i of an array. Nothing is checked while it runs.
"""
