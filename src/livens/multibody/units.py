"""Units as plain numbers: ``45 * lv.deg`` is an angle in radians, ``3 * lv.mm`` a length in metres."""

from __future__ import annotations

import math

deg: float = math.pi / 180
mm: float = 1e-3
rpm: float = 2 * math.pi / 60
