"""How long first calls and whole commands take: nothing compiled yet, and from objects kept on disk. Each in a process of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SCRIPT = """
import time
from benchmarks.subjects import car, motion
from veridyn.mechanics.tree.dynamics.inverse import regressor
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


MODEL = Path(__file__).resolve().parent.parent / "examples" / "studies" / "panda_model.yaml"


def commands() -> Iterator[str]:
    """What `make bench` says of commands that need no data: processor seconds, and those of a demonstration with an empty cache, too."""
    shown = min(_spent(["model", "show", str(MODEL)], os.environ) for _ in range(3))
    yield f"- `veridyn model show examples/studies/{MODEL.name}`: {shown:.2f} s of CPU."
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"VERIDYN_CACHE": f"{folder}/cache"}
        demo = ["demo", "arm", "--quick", "--out", folder]
        first, later = _spent(demo, environment), min(_spent(demo, environment) for _ in range(2))
    yield f"- `veridyn demo arm --quick`: {later:.1f} s of CPU, {first:.1f} s on an empty cache."


def _spent(arguments: list[str], environment: os._Environ[str] | dict[str, str]) -> float:
    """Processor seconds of a command of veridyn, those of its process alone."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "veridyn", *arguments], env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
