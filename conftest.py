"""Modules that are not collected: those that need an optional dependency that is not installed."""

import importlib.util

#: Files whose import needs a package of an extra, by package.
NEEDED = {"gymnasium": ["src/livens/run/bridges/gym/environments.py"]}

collect_ignore = [
    path for package, paths in NEEDED.items() if importlib.util.find_spec(package) is None for path in paths
]
