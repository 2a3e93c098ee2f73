"""NVIDIA's assembler, where it is installed: from the wheel of the test extra, or on the path."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Assembled:
    """Registers of a thread, and bytes that did not fit them."""

    registers: int
    spilled: int


def assembler() -> str:
    """The program, or a skip that says what is missing."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or []) if spec else []:
        for found in sorted(Path(place).glob("*/bin/ptxas")):
            return str(found)
    found = shutil.which("ptxas")
    if found is None:
        pytest.skip("ptxas is not installed (pip install nvidia-cuda-nvcc-cu12)")
    return found


def assemble(text: str, folder: Path, target: str = "sm_90") -> Assembled:
    """What the assembler says of some PTX; its complaints are the failure."""
    (folder / "kernel.ptx").write_text(text)
    command = [assembler(), "-v", f"-arch={target}", "-o", str(folder / "kernel.cubin"), str(folder / "kernel.ptx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    registers, spilled = (
        re.search(r"Used (\d+) registers", done.stderr),
        re.search(r"(\d+) bytes spill st", done.stderr),
    )
    assert registers is not None and spilled is not None
    return Assembled(int(registers[1]), int(spilled[1]))
