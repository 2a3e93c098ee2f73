"""What a run was made with: this program, Python, and the libraries whose numbers it rests on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from veridyn.version import __version__

LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "pyarrow", "cvxpy", "clarabel")


def versions() -> dict[str, str]:
    """Name → version; libraries that are not installed are left out."""
    found = {"veridyn": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
