"""Reference solutions and measured orders for the tests."""

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from browsing import MISSING

DATA = Path(__file__).parent / "data"

# How long an example takes, or is looked for, is no claim: on a busy machine it may be any time.
# CI takes the same examples every time: whether a change passes does not depend on luck. Elsewhere they are drawn anew.
settings.register_profile(
    "no-clock", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="CI" in os.environ
)
settings.load_profile("no-clock")


@pytest.fixture
def reference():
    """Exact solutions, by the name of their file."""

    def read(name):
        return json.loads((DATA / f"ref_{name}.json").read_text())

    return read


def measured_order(steps, errors):
    """The slope of the error over the step size, by least squares in logarithms."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


def pytest_configure(config):
    """Shells let programs in the background ignore Ctrl-C, and their children too: tests that send it would hang."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config):
    """The last line of the output says if pages were not tested."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    missing = sum(MISSING in str(report.longrepr) or "playwright" in str(report.longrepr) for report in skipped)
    if missing and not hasattr(config, "workerinput"):
        reporter.write_line(f"There is no browser: {missing} tests of pages were skipped.")
