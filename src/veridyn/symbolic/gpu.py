"""Programs on a GPU: CuPy holds the memory and launches the PTX of :mod:`veridyn.symbolic.emit_ptx`; no CUDA compiler is needed.

A GPU that is asked for and is not there is an error by name; nothing falls back to the processor.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DeviceError
from veridyn.symbolic.emit_ptx import THREADS, PtxKernel, emit_ptx
from veridyn.symbolic.expression import Graph, Number
from veridyn.symbolic.gram_ptx import SHARED_BYTES, SIDE, STAGE_SAMPLES, WARPS, GramPlan, gram_kernel

Program = Callable[[Any, Any, Any, int], None]  # inputs (k, ·), parameters (p,) or (sets, p), outputs (m, ·), samples
OLDEST = (7, 0)  # compute capability that the kernels need
OLDEST_MATRIX, OLDEST_WIDE = (8, 0), (9, 0)  # that has matrix units for doubles, and the wide instructions of them
MAX_SHARED_ATTRIBUTE = 8  # of a kernel: bytes of shared memory a launch may ask for
LONGEST_CHUNK = 4096  # samples of one task
BLOCKS_EACH = 2  # tasks of a multiprocessor at least: shorter ones where there would be fewer
INSTALL = "Install the extra: pip install 'veridyn[gpu]' (CuPy for CUDA 12), or cupy-cuda13x for CUDA 13."


class GramSum(Protocol):
    """Sums of products of all columns of a table with one another, set by set."""

    def add(self, table: Any, samples: int) -> None: ...
    def matrices(self) -> list[Array]: ...


class Processor(Protocol):
    """Where programs run and arrays lie. `xp` is its array module, NumPy or one that behaves like it."""

    name: str
    xp: Any

    def free_bytes(self) -> int: ...
    def host(self, array: Any) -> Array: ...
    def program(
        self,
        graph: Graph,
        outputs: Sequence[Number],
        samples: Sequence[str],
        parameters: Sequence[str],
        *,
        goals: Sequence[int] | None = None,
        sets: bool = False,
    ) -> Program: ...
    def gram(self, plan: GramPlan, tile: int) -> GramSum: ...


class Gpu:
    """One NVIDIA GPU through CuPy."""

    def __init__(self, cupy: Any, number: int = 0) -> None:
        self.xp = cupy
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        self.name = properties["name"].decode()
        self.capability = (int(properties["major"]), int(properties["minor"]))
        self.multiprocessors = int(properties["multiProcessorCount"])

    def free_bytes(self) -> int:
        """Memory that can still be taken, what CuPy keeps for later included."""
        return int(self.xp.cuda.runtime.memGetInfo()[0]) + int(self.xp.get_default_memory_pool().free_bytes())

    def host(self, array: Any) -> Array:
        return np.asarray(self.xp.asnumpy(array), dtype=np.float64)

    def load(self, text: str, name: str, shared: int = 0) -> Any:
        """A kernel of some PTX, assembled by the driver, which keeps what it has assembled."""
        module = self.xp.cuda.function.Module()
        module.load(text.encode())
        function = module.get_function(name)
        if shared:
            self.xp.cuda.driver.funcSetAttribute(function.ptr, MAX_SHARED_ATTRIBUTE, shared)
        return function

    def program(
        self,
        graph: Graph,
        outputs: Sequence[Number],
        samples: Sequence[str],
        parameters: Sequence[str],
        *,
        goals: Sequence[int] | None = None,
        sets: bool = False,
    ) -> Program:
        """A call that fills outputs; with `sets` of parameters, sample s uses set s // (samples / sets)."""
        kernel = emit_ptx(graph, outputs, samples, parameters, by_value=not sets, goals=goals)
        return _launcher(self, kernel, self.load(kernel.text, kernel.name))

    def gram(self, plan: GramPlan, tile: int) -> GramSum:
        """Gram matrices of tables (columns, tile)."""
        if self.capability < OLDEST_MATRIX:
            what = "this GPU has no matrix units for double precision, which least squares on a GPU needs."
            found = ".".join(map(str, self.capability))
            raise DeviceError(
                what, where=self.name, expected="compute capability 8.0 or newer", found=found, hint="Use device='cpu'."
            )
        return _GpuGram(self, plan, tile)


def _launcher(gpu: Gpu, kernel: PtxKernel, function: Any) -> Program:
    xp = gpu.xp

    def run(inputs: Any, parameters: Any, outputs: Any, count: int) -> None:
        per_set = count
        if kernel.by_value:
            values = np.ascontiguousarray(np.atleast_1d(parameters) if kernel.parameters else np.zeros(1), np.float64)
            given: Any = values.view(f"V{values.nbytes}")  # one object of that size, which CuPy passes by value
        else:
            given = xp.ascontiguousarray(xp.atleast_2d(xp.asarray(parameters, dtype=np.float64)))
            per_set = max(1, count // len(given))
        strides = (_stride(inputs), _stride(outputs))
        arguments = (inputs, given, outputs, *(np.uint32(x) for x in (*strides, count, per_set)))
        function((-(-count // THREADS),), (THREADS,), arguments)

    return run


def _stride(array: Any) -> int:
    """Doubles from one row to the next of an array whose rows lie together; an empty one has none."""
    return int(array.strides[0]) // 8 if array.shape[0] > 1 else int(array.shape[1])


class _GpuGram:
    """Sums in patches, one set of patches for each chunk of a tile's samples, added up at the end in a fixed order."""

    def __init__(self, gpu: Gpu, plan: GramPlan, tile: int) -> None:
        xp, self.gpu, self.plan = gpu.xp, gpu, plan
        self.kernel = gpu.load(gram_kernel(wide=gpu.capability >= OLDEST_WIDE), "gram", SHARED_BYTES)
        self.tasks = xp.asarray(plan.tasks)
        even = min(LONGEST_CHUNK, -(-tile * len(plan.tasks) // (BLOCKS_EACH * gpu.multiprocessors)))
        self.chunk = -(-even // STAGE_SAMPLES) * STAGE_SAMPLES
        self.sums = xp.zeros((-(-tile // self.chunk), len(plan.patches), SIDE, SIDE))

    def add(self, table: Any, samples: int) -> None:
        numbers = (_stride(table), samples, self.chunk, len(self.plan.patches))
        self.kernel(
            (len(self.plan.tasks), -(-samples // self.chunk)),
            (32 * WARPS,),
            (table, self.tasks, self.sums, *(np.uint32(x) for x in numbers)),
            shared_mem=SHARED_BYTES,
        )

    def matrices(self) -> list[Array]:
        return self.plan.matrices(self.gpu.host(self.sums.sum(axis=0)))


@cache
def open_gpu() -> Gpu:
    """The GPU of this machine, or a :class:`~veridyn.errors.DeviceError` that says what is missing."""
    try:
        cupy: Any = importlib.import_module("cupy")
    except ImportError as error:
        what = "a GPU was asked for, and CuPy is not installed."
        raise DeviceError(what, where="device 'cuda'", found=f"{error}", hint=INSTALL) from None
    try:
        found = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        what = "a GPU was asked for, and CUDA does not answer."
        hint = "Look whether nvidia-smi lists a GPU here, or use device='cpu'."
        raise DeviceError(
            what, where="device 'cuda'", expected="an NVIDIA GPU with its driver", found=f"{error}", hint=hint
        ) from None
    if not found:
        raise DeviceError(
            "a GPU was asked for, and this machine has none.", where="device 'cuda'", hint="Use device='cpu'."
        )
    gpu = Gpu(cupy)
    if gpu.capability < OLDEST:
        shown = ".".join(map(str, gpu.capability))
        raise DeviceError(
            "this GPU is too old.", where=gpu.name, expected="compute capability 7.0 or newer", found=shown
        )
    return gpu


def require_memory(processor: Processor, needed: int, what: str) -> None:
    """Refuse work that does not fit the memory of a device, before any of it is taken."""
    free = processor.free_bytes()
    if needed > free:
        text = f"the device has too little memory for {what}."
        hint = "Give fewer samples in one call, or end other programs that use the GPU."
        raise DeviceError(
            text, where=processor.name, expected=f"{needed / 1e9:.2f} GB free", found=f"{free / 1e9:.2f} GB", hint=hint
        )
