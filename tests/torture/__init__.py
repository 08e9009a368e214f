"""Stress tests of `make torture`: kills, fuzzed input, long runs, dead centres, a busy machine.

``python -m torture`` (with this folder's parent on the path) runs everything and prints its figures, ``--scale 0.01`` a
hundredth of it, ``--only kills,files`` some parts. Every part is a module with a function ``run(seed, first, count)``
that returns `Findings`; what happens is determined by the seed and the number of the case, so that a fault can be
looked at again with ``--only PART --seed SEED --first NUMBER --count 1``.
"""
