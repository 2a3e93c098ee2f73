"""Compiled expressions: machine code for this host that turns arrays of inputs into arrays of outputs.

LLVM is imported when it is first asked: much of the package compiles nothing.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.symbolic.cache import Stored, key_of, load_or_make, remembered
from veridyn.symbolic.emit_llvm import BLOCK, emit, place_stride
from veridyn.symbolic.expression import Graph, Number, live
from veridyn.symbolic.sources import source_digest

if TYPE_CHECKING:
    import llvmlite.binding as llvm
Label = TypeVar("Label")
Addresses = NDArray[np.unsignedinteger] | Sequence[int]
_SIGNATURE = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 5, ctypes.c_int64)


@dataclass(frozen=True)
class Host:
    """LLVM's name for the processor, its features, its triple, and how many doubles one vector register holds."""

    triple: str
    cpu: str
    features: str
    width: int

    @property
    def signature(self) -> str:
        """What a compiled object depends on besides its program."""
        import llvmlite

        return f"{self.triple}|{self.cpu}|{self.features}|{self.width}|llvmlite {llvmlite.__version__}"

    def target_machine(self, effort: int = 2) -> llvm.TargetMachine:
        """LLVM's compiler for this host; `effort` from 0, which takes the least time, to 3."""
        import llvmlite.binding as llvm

        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=effort, reloc="default", codemodel="jitdefault", jit=True
        )


@cache
def start_llvm() -> None:
    """Make LLVM ready, once for each process."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def this_host(width: int | None = None) -> Host:
    """The machine this runs on; `width` overrides how many doubles are worked on at once (1, 2, 4, 8, 16)."""
    import llvmlite.binding as llvm

    start_llvm()
    found = llvm.get_host_cpu_features()
    features = found.flatten()
    natural = 8 if found.get("avx512f") else 4 if found.get("avx") else 2
    chosen = width or natural
    if chosen >= 8 and found.get("avx512f"):
        features += ",-prefer-256-bit"
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, chosen)


def compile_object(text: str, host: Host | None = None, effort: int = 2) -> bytes:
    """LLVM text to machine code for a host; see :meth:`Host.target_machine`."""
    import llvmlite.binding as llvm

    start_llvm()
    machine = (host or this_host()).target_machine(effort)
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return machine.emit_object(module)


def loaded(code: bytes, name: str, signature: Callable[[int], Callable[..., None]]) -> Callable[..., None]:
    """A function of some machine code, ready to call; the interpreter's lock is free while it runs."""
    import llvmlite.binding as llvm

    start_llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), this_host().target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    function = signature(engine.get_function_address(name))
    # The code lives as long as its function.
    function.engine = engine  # pyright: ignore[reportFunctionMemberAccess]
    return function


def made_once(
    what: str, program: Callable[[], str], host: Host, name: str, signature: Callable[[int], Callable[..., None]]
) -> Callable[..., None]:
    """A function of an LLVM program, compiled where no process before has done so; `what` is unlike for unlike programs."""

    def make() -> Callable[..., None]:
        text = program()
        stored = load_or_make(key_of(text, host.signature), lambda: Stored(compile_object(text, host), {}))
        return loaded(stored.code, name, signature)

    return remembered(f"{what} {host.signature}", make)


@dataclass(eq=False)
class Kernel:
    """Machine code in memory, called on arrays. Safe to call from several threads; the GIL is free while it runs.

    `inputs` name the arrays over samples and `parameters` the scalars, both in the order of the calls; `outputs` counts what comes out.
    """

    code: bytes
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: int
    places: int
    block: int = BLOCK
    _local: threading.local = field(init=False, repr=False, default_factory=threading.local)

    def __post_init__(self) -> None:
        self.function = loaded(self.code, "kernel", _SIGNATURE)

    @property
    def address(self) -> int:
        """Where its machine code begins, for other machine code that calls it; see :class:`~veridyn.symbolic.emit_llvm.Program`."""
        function: Any = self.function
        return int(ctypes.cast(function, ctypes.c_void_p).value or 0)

    def work_address(self) -> int:
        """This thread's work array, made once: the address of its first aligned place."""
        if not hasattr(self._local, "work"):
            self._local.work = np.empty(self.places * place_stride(self.block) + 8)
        address = self._local.work.ctypes.data
        return address + (-address) % 64

    def run(
        self, columns: Sequence[Array], parameters: Array, addresses: Addresses, samples: int, far: bool = False
    ) -> None:
        """Write outputs to addresses with room for `samples`, rounded up to a full block of 64, each.

        `columns` are 1-D arrays, one for each input, any stride. `addresses` are those of the first element of each output, in the
        order of the kernel's program. `far` outputs are written past the caches, where every address is a multiple of 64 bytes.
        """
        if samples:
            self.prepared(columns, parameters, addresses, samples, far)()

    def prepared(
        self, columns: Sequence[Array], parameters: Array, addresses: Addresses, samples: int, far: bool = False
    ) -> Callable[[], None]:
        """The same as a function that can be called again and again on the same memory, by the thread that made it."""
        columns = [c if c.strides[0] % 8 == 0 else np.ascontiguousarray(c) for c in columns]
        pointers = np.array([c.ctypes.data for c in columns], dtype=np.uintp)
        strides = np.array([c.strides[0] // 8 for c in columns], dtype=np.int64)
        return self.prepared_at(pointers, strides, parameters, addresses, samples, far, columns)

    def prepared_at(
        self,
        pointers: NDArray[np.uintp],
        strides: NDArray[np.int64],
        parameters: Array,
        addresses: Addresses,
        samples: int,
        far: bool = False,
        memory: object = None,
    ) -> Callable[[], None]:
        """The same with the address of each input's first sample and the doubles between two; `memory` is kept as long as the function."""
        out = np.ascontiguousarray(addresses, dtype=np.uintp)
        values = np.ascontiguousarray(parameters, dtype=np.float64)
        arguments = (
            0,
            samples,
            samples,
            pointers.ctypes.data,
            strides.ctypes.data,
            values.ctypes.data,
            out.ctypes.data,
            self.work_address(),
            int(far and not (out % 64).any()),
        )
        held = (memory, pointers, strides, values, out)

        def call(held: object = held) -> None:
            self.function(*arguments)

        return call


class Single:
    """A kernel of one sample a call, with its buffers: write `inputs`, call, read `outputs`."""

    def __init__(self, kernel: Kernel, parameters: Array) -> None:
        self.kernel = kernel
        self.inputs = np.zeros(max(1, len(kernel.inputs)))
        self.outputs = np.zeros(max(1, kernel.outputs))
        self._parameters = np.ascontiguousarray(parameters, dtype=np.float64)
        self._work = np.zeros(kernel.places * place_stride(kernel.block) + 8)
        self._pointers = self.inputs.ctypes.data + 8 * np.arange(len(self.inputs), dtype=np.uintp)
        self._strides = np.zeros(len(self.inputs), dtype=np.int64)
        self._out = self.outputs.ctypes.data + 8 * np.arange(len(self.outputs), dtype=np.uintp)
        arrays = (self._pointers, self._strides, self._parameters, self._out, self._work)
        self._arguments = (0, 1, 1, *(a.ctypes.data for a in arrays), 0)

    def call(self) -> None:
        self.kernel.function(*self._arguments)


def formula_kernel(
    module: str,
    words: Sequence[str],
    formula: Callable[[Graph], Mapping[Label, Number]],
    samples: Collection[str],
    apart: bool = False,
) -> tuple[Kernel, tuple[Label, ...]]:
    """The kernel of a formula, one sample a call, and the labels of its outputs in their order: from memory, from disk, or made now.

    `words` tell formulas of a `module` apart. What the formula reads is in `samples`, or is a parameter. `apart`: no output lies where
    something is read, so that nothing is copied before.
    """
    target, sources = this_host(1), source_digest(module)
    key = key_of(*words, *(["apart"] if apart else []), target.signature, sources or "")

    def make() -> Stored:
        graph = Graph()
        found = formula(graph)
        used = set(live(graph, found.values()))
        names = [name for name, node in graph.inputs.items() if node in used]
        read, parameters = ([n for n in names if (n in samples) == wanted] for wanted in (True, False))
        program = emit(graph, list(found.values()), read, parameters, target.width, 1, lanes=apart)
        labels = list(found)
        description = {"labels": [labels[k] for k in program.order], "places": program.places}
        return Stored(compile_object(program.text, target), description | {"samples": read, "parameters": parameters})

    def load() -> tuple[Kernel, tuple[Label, ...]]:
        stored = load_or_make(key, make) if sources else make()  # sources were edited: not kept
        d = stored.description
        kernel = Kernel(stored.code, tuple(d["samples"]), tuple(d["parameters"]), len(d["labels"]), d["places"], 1)
        return kernel, tuple(d["labels"])

    return remembered(key, load)


def padded(samples: int) -> int:
    """Samples rounded up to full blocks."""
    return -(-samples // BLOCK) * BLOCK
