"""C sources through gcc into functions that Python can call: what a controller's tool chain would make of them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from veridyn.mechanics.tree.dynamics.codegen import CSource

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-fPIC", "-shared")


def need_gcc() -> str:
    """The compiler, or a visible skip."""
    found = shutil.which("gcc")
    if found is None:
        pytest.skip("gcc is not installed")
    return found


def name_of(source: CSource) -> str:
    """The function's name, from the header that its code includes."""
    return source.code.split('#include "', 1)[1].split('.h"', 1)[0]


def compile_c(source: CSource, folder: Path, outputs: int) -> Callable[[Sequence[ArrayLike]], NDArray[np.float64]]:
    """A function from the input arrays, in order, to the last argument's `outputs` numbers; those beyond them must stay as they are."""
    gcc, name = need_gcc(), name_of(source)
    (folder / f"{name}.h").write_text(source.header, encoding="utf-8")
    (folder / f"{name}.c").write_text(source.code, encoding="utf-8")
    library = folder / f"{name}.so"
    command = [gcc, *STRICT, f"{name}.c", "-o", str(library), "-lm"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = None

    def call(inputs: Sequence[ArrayLike]) -> NDArray[np.float64]:
        given = [np.array(x, dtype=np.float64).ravel() for x in inputs]
        out = np.full(outputs + 4, np.nan)
        function(*[ctypes.c_void_p(x.ctypes.data) for x in (*given, out)])
        assert np.isnan(out[outputs:]).all()
        return out[:outputs]

    return call
