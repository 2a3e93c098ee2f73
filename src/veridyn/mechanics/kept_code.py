"""Machine code that numba made, kept in veridyn's own store of objects and loaded by the next process.

numba's file cache is not used: its index files are pickles, and it unpickles whatever lies in its folder. Here a pickle is read only after
the store has found its tag right. What is needed of numba for this is not public; where a version lacks it, functions are compiled in
each process, which costs time, not the result.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import compiler, config, serialize

from veridyn.errors import Fault
from veridyn.symbolic.cache import Stored, folder, keep, key_of, load
from veridyn.symbolic.sources import note_sources, source_digest
from veridyn.symbolic.trust import refuse

SETTINGS = (
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
)  # of numba, by its environment


def keep_code(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Let a compiled function find its machine code on disk, and leave it there."""
    result = getattr(compiler, "CompileResult", None)
    needed = ((dispatcher, "_cache"), (result, "_reduce"), (result, "_rebuild"), (serialize, "dumps"))
    if all(hasattr(owner, name) for owner, name in needed):  # a dispatcher has no _cache where NUMBA_DISABLE_JIT is set
        dispatcher._cache = KeptCode(function)


class KeptCode:
    """The cache of one function, as numba's dispatcher asks for it; an object of the store for each signature.

    The name of an object is a digest of the function, the signature, the processor, the versions of all compilers, and of all sources
    that the function can depend on. A closure has values that stand in no source: its code is not kept.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function: Any = function
        self._enabled = True
        note_sources(function.__module__)

    @property
    def cache_path(self) -> str | None:
        place = folder()
        return None if place is None else str(place)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Called before a function is compiled afresh, as after a change of a global value: from now on the sources do not stand for it."""
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
        function, code = self._function, self._function.__code__
        sources = source_digest(function.__module__)
        if not self._enabled or sources is None or function.__closure__ is not None:
            return None
        settings = [repr(getattr(config, name, None)) for name in SETTINGS]
        versions = [numba.__version__, llvmlite.__version__, np.__version__, str(sys.implementation.cache_tag)]
        where = [function.__module__, function.__qualname__, str(code.co_firstlineno)]
        own = hashlib.sha256(code.co_code).hexdigest()
        return key_of("numba", sources, *where, own, *versions, *settings, repr(codegen.magic_tuple()), repr(sig))
