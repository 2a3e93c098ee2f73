"""Functions that only compiled code calls are not compiled for themselves.

numba optimises every function together with all it calls, and makes machine code of it, before it is linked into its callers: what lies
deep in a tree of calls is worked on once for each level above it. What no Python program calls needs neither, since it is optimised again
in its callers. What is needed of numba for this is not public: with another version than those it was tried with, functions are compiled
as numba does it, which takes longer.

No public option does the same. ``inline="always"`` and ``forceinline=True`` write a function out at every call, so that code grows with the
number of ways through a tree of calls: 31 functions in six levels, each calling three, take more than 100 s; as numba does it 7.6 s, and
linked 3.8 s, with the same speed of what is made.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, Literal

import numba

TRIED = ("0.68",)  # versions of numba


def linked_options() -> dict[str, Any]:
    """The options with which numba makes no machine code of a function but in its callers; none where that was not tried."""
    return {"pipeline_class": _pipeline()} if numba.__version__.rpartition(".")[0] in TRIED else {}


def _only_link(library: Any) -> None:
    """Let a library be linked into others, and neither optimised nor made machine code of."""

    def finish() -> None:
        library._finalize_dynamic_globals()
        library._verify_declare_only_symbols()
        library._finalized = True

    library._optimize_final_module = lambda: None
    library._finalize_final_module = finish


@cache
def _pipeline() -> type[Any]:
    """numba's compiler with a last pass of its own: LLVM's code of a function for its callers, and something that cannot be called."""
    from numba.core import compiler, compiler_machinery, typed_passes

    @compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
    class LinkedLowering(typed_passes.NativeLowering):
        """In place of numba's own lowering."""

        _name = "linked_lowering"

        def run_pass(self, state: Any) -> Literal[True]:
            state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
            state.library.enable_object_caching()
            _only_link(state.library)
            state.flags.no_compile = True
            super().run_pass(state)
            made, make = state["cr"], importlib.import_module("numba._dynfunc").make_function
            name = made.fndesc.qualname.split(".")[-1]
            stand_in = make(made.fndesc.lookup_module(), name, "in its callers only", 0, made.env, (state.library,))
            state.targetctx.insert_user_function(stand_in, made.fndesc, [state.library])
            state.reload_init.extend(state.library._reload_init)
            state["cr"] = made._replace(cfunc=stand_in)
            return True

    class Linked(compiler.CompilerBase):
        """numba's compiler with that pass."""

        def define_pipelines(self) -> list[Any]:
            made: Any = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
            own = typed_passes.NativeLowering
            made.passes = [(LinkedLowering if one is own else one, told) for one, told in made.passes]
            made.finalize()
            return [made]

    return Linked
