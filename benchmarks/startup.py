"""How long the first call takes: nothing compiled yet, and from the objects kept on disk. Each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

SCRIPT = """
import time
from benchmarks.subjects import car, motion
from veridyn.mechanics.regressor import regressor
tree = car({dof})
m = motion(tree, 64)
start = time.perf_counter()
regressor(tree, m, engine="compiled")
print(time.perf_counter() - start)
"""


def startup() -> Iterator[tuple[str, float, float]]:
    """(machine, seconds of the first call ever, seconds of the first call of a later process)."""
    for dof in (20, 38):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"VERIDYN_CACHE": folder}
            seconds = [
                float(
                    subprocess.run(
                        [sys.executable, "-c", SCRIPT.format(dof=dof)],
                        env=environment,
                        check=True,
                        capture_output=True,
                        text=True,
                    ).stdout
                )
                for _ in range(4)
            ]
        yield f"{dof}-dof car", seconds[0], min(seconds[1:])
