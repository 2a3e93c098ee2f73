"""Machine code of numba's functions kept on disk for the next process, in veridyn's own store of objects.

numba's file cache is not used: its index files are pickles, and it unpickles whatever lies in its folder. Here a pickle is read only after
the store has found its tag right. What is needed of numba for this is not public; where a version lacks it, functions are compiled in each
process, which costs time, not the result.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import compiler, config, serialize

from veridyn.errors import Fault
from veridyn.mechanics.code_digest import code_digest
from veridyn.symbolic.cache import Stored, folder, keep, key_of, load
from veridyn.symbolic.sources import source_meaning
from veridyn.symbolic.trust import refuse

COMPILING = ("veridyn.mechanics.compiled", "veridyn.mechanics.kept_code")  # how code is made and kept
# of numba, by its environment
SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")


def keep_code(dispatcher: Any, function: Callable[..., Any], fields_of: Callable[[type], dict[str, Any]]) -> None:
    """Let a compiled function find its machine code on disk, and leave it there; `fields_of` gives the fields of a class of records."""
    result = getattr(compiler, "CompileResult", None)
    needed = ((dispatcher, "_cache"), (result, "_reduce"), (result, "_rebuild"), (serialize, "dumps"))
    if all(hasattr(owner, name) for owner, name in needed):  # a dispatcher has no _cache where NUMBA_DISABLE_JIT is set
        dispatcher._cache = KeptCode(function, fields_of)


class KeptCode:
    """The cache of one function, as numba's dispatcher asks for it; an object of the store for each signature.

    The name of an object is a digest of the function and of all that it calls, of the signature, the processor, the versions of all
    compilers, and of how this package uses them. A function that refers to what cannot be described is an error. A
    closure is made again and again, with other values: its code is not kept.
    """

    def __init__(self, function: Callable[..., Any], fields_of: Callable[[type], dict[str, Any]]) -> None:
        self._function: Any = function
        self._fields_of = fields_of
        self._enabled = True
        self._made_of: str | None = None

    @property
    def cache_path(self) -> str | None:
        place = folder()
        return None if place is None else str(place)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Called before a function is compiled afresh, as after a change of a global value: what was described no longer stands for it."""
        self.disable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The result of compiling for these types, from disk; None where it is not there."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        stored = None if key is None else load(key)
        if stored is None:
            return None
        of, reduced = pickle.loads(stored.code)  # noqa: S301  the store has checked who wrote it
        if of != sig:  # two types may have one name
            return None
        return compiler.CompileResult._rebuild(target_context, *reduced)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a result of compiling for these types."""
        key = self._key(sig, data.codegen)
        if key is None:
            return
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        if data.lifted or data.library.has_dynamic_globals:
            what = "the machine code of this function cannot be kept on disk."
            found = "a pointer, or an array too large to be a constant, among its global names"
            refuse(Fault(what, name, found=found, hint="Hand it over as an argument."))
            return
        keep(key, Stored(serialize.dumps((sig, data._reduce())), {"function": name}))

    def _key(self, sig: Any, codegen: Any) -> str | None:
        function = self._function
        if not self._enabled or function.__closure__ is not None or not source_meaning(function.__module__):
            return None
        self._made_of = self._made_of or code_digest(function, self._fields_of)
        settings = [repr(getattr(config, name, None)) for name in SETTINGS]
        versions = [numba.__version__, llvmlite.__version__, np.__version__, str(sys.implementation.cache_tag)]
        where = [function.__module__, function.__qualname__, *(source_meaning(name) for name in COMPILING)]
        return key_of("numba", self._made_of, *where, *versions, *settings, repr(codegen.magic_tuple()), repr(sig))
