"""What several tests need: reference solutions and measured orders."""

import json
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture
def reference():
    """Exact solutions, by the name of their file."""

    def read(name):
        return json.loads((DATA / f"ref_{name}.json").read_text())

    return read


def measured_order(steps, errors):
    """The slope of the error over the step size, by least squares in logarithms."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]
