"""Try the oldest and the newest dependencies on every Python found: ``make matrix``, ``python packaging/matrix.py --python 3.12``.

For each interpreter from 3.11 on and each end of what pyproject.toml allows, uv makes an environment with veridyn and its dependencies
alone (`lowest-direct` takes the floors as they are stated). There the ten lines of the README run, then tests of every room that need
nothing but pytest. A table says what was installed and what failed; the exit code is 1 where something did.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from check import PREPARE, ROOT, ten_lines

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ENDS = {"oldest": "lowest-direct", "newest": "highest"}
TOOLS = ("pytest>=9", "hypothesis>=6.135", "jsonschema>=4.23", "pandas>=2.2")
# One or two quick files of each room, without other engines.
TESTS = (
    "tests/spatial/test_algebra.py",
    "tests/symbolic/test_lowering.py",
    "tests/signals/test_butterworth.py",
    "tests/files/test_units.py",
    "tests/files/test_yaml_reader.py",
    "tests/files/machine/test_load.py",
    "tests/files/machine/test_schema.py",
    "tests/studies/config/test_study.py",
    "tests/observe/filters/test_methods.py",
)


def floors() -> list[str]:
    """The names of the dependencies that pyproject.toml states."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return [line.split(">=")[0].replace(".", "-") for line in stated]


def interpreter(version: str) -> str | None:
    """Where an interpreter of this version is, as uv finds it, or among those of pyenv; nothing is downloaded."""
    asked = ["uv", "python", "find", "--no-project", "--no-python-downloads", version]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    if found.stdout.strip():
        return found.stdout.strip()
    # uv gives up at the first shim of pyenv that leads nowhere, because its version is installed and not switched on.
    installed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return max(map(str, installed.glob(f"{version}.*/bin/python")), default=None)


def attempt(python: str, resolution: str, base: Path) -> tuple[str, str, float]:
    """What was installed, what failed ("" where nothing did), and the seconds."""
    begun = time.perf_counter()
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    place = base / "env"
    inside = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    (base / "ten.py").write_text(PREPARE + "\n" + ten_lines(), encoding="utf-8")
    steps = {
        "environment": ["uv", "venv", "--quiet", "--python", python, str(place)],
        "installation": ["uv", "pip", "install", "--quiet", "--python", str(inside), "--resolution", resolution, str(ROOT)],
        "tools": ["uv", "pip", "install", "--quiet", "--python", str(inside), *TOOLS],
        "ten lines": [str(inside), str(base / "ten.py")],
        "tests": [str(inside), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *TESTS],
    }  # fmt: skip
    for name, command in steps.items():
        cwd = ROOT if name == "tests" else base
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
            return installed(inside), f"{name}\n{tail}", time.perf_counter() - begun
    return installed(inside), "", time.perf_counter() - begun


def installed(python: Path) -> str:
    """Versions of the dependencies in an environment."""
    listed = subprocess.run(
        ["uv", "pip", "list", "--python", str(python), "--format", "freeze"],
        capture_output=True,
        text=True,
        check=False,
    )
    have = dict(line.split("==") for line in listed.stdout.splitlines() if "==" in line)
    return ", ".join(f"{name} {have[name]}" for name in floors() if name in have)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="+", default=PYTHONS, help="versions; those that are not found are named")
    parser.add_argument("--end", nargs="+", choices=[*ENDS], default=[*ENDS])
    given = parser.parse_args()
    if shutil.which("uv") is None:
        raise SystemExit("uv is not installed: python -m pip install uv")
    failed = 0
    for version in given.python:
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: not found here")
            continue
        for end in given.end:
            with tempfile.TemporaryDirectory() as made:
                have, wrong, spent = attempt(python, ENDS[end], Path(made))
            failed += bool(wrong)
            print(
                f"Python {version}, {end}: {'FAILED: ' + wrong if wrong else 'passed'} ({spent:.0f} s; {have})",
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
