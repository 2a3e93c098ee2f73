"""Functions and products on an NVIDIA GPU: kernels launched by the driver itself on any stream, on memory that others hold.

Only the driver's library is needed, which assembles the PTX. Kernels live in the device's primary context, which PyTorch and JAX use.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from veridyn.errors import DeviceError
from veridyn.symbolic.cache import key_of, remembered
from veridyn.symbolic.emit_ptx import THREADS
from veridyn.symbolic.strided_ptx import WARP, StridedKernel, emit_strided
from veridyn.training.launch import Call

LIBRARIES = ("libcuda.so.1", "nvcuda.dll")


class Driver:
    """The functions of CUDA's driver that are used, each checked."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.check("cuInit", 0)

    def check(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver; its errors are raised with their names."""
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            said = (text.value or b"").decode()
            raise DeviceError("a call of CUDA's driver failed.", where=name, found=f"{code}: {said}")

    @cache  # noqa: B019  one driver lives as long as the process
    def context(self, device: int) -> ctypes.c_void_p:
        """The primary context of a device."""
        number, context = ctypes.c_int(), ctypes.c_void_p()
        self.check("cuDeviceGet", ctypes.byref(number), device)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        return context

    def load(self, text: str, name: str, device: int) -> int:
        """The handle of a kernel of some PTX."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check("cuCtxPushCurrent_v2", self.context(device))
        try:
            self.check("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(text.encode()))
            self.check("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        finally:
            self.check("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        return int(function.value or 0)

    def launch(self, function: int, launch: np.ndarray, blocks: int, device: int, stream: int) -> None:
        """Run a kernel whose only argument are these integers."""
        given = (ctypes.c_void_p * 1)(launch.ctypes.data)
        one, none = ctypes.c_uint(1), ctypes.c_void_p()
        grid, block = (ctypes.c_uint(blocks), one, one), (ctypes.c_uint(THREADS), one, one)
        self.check("cuCtxPushCurrent_v2", self.context(device))
        try:
            handle = ctypes.c_void_p(function)
            self.check("cuLaunchKernel", handle, *grid, *block, ctypes.c_uint(0), ctypes.c_void_p(stream), given, none)
        finally:
            self.check("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    @property
    def launcher(self) -> int:
        """The address of the function that launches kernels, for compiled code."""
        return int(ctypes.cast(self.library.cuLaunchKernel, ctypes.c_void_p).value or 0)


@cache
def driver() -> Driver:
    """The driver of this machine, or an error by name."""
    for name in LIBRARIES:
        try:
            return Driver(ctypes.CDLL(name))
        except OSError:
            continue
    raise DeviceError(
        "tensors on a GPU were given, and CUDA's driver is not there.",
        expected=" or ".join(LIBRARIES),
        hint="Use the CPU.",
    )


@dataclass(frozen=True, eq=False)
class CardProgram:
    """A call's kernel on one device."""

    kernel: StridedKernel
    function: int
    device: int

    def run(self, launch: np.ndarray, sets: int, stream: int) -> None:
        """Fill the arrays that a launch writes, when the stream comes to it."""
        driver().launch(self.function, launch, sets * int(launch[-1]), self.device, stream)


def card_parts(samples: int) -> int:
    """The partial sums of a set: one for each warp."""
    return -(-samples // WARP)


def card_blocks(samples: int) -> int:
    """The blocks of threads that a set takes."""
    return -(-samples // THREADS)


def card_kernel(call: Call) -> StridedKernel:
    """The PTX of a call."""

    def make() -> StridedKernel:
        f = call.function
        outputs = [list(f.outputs)] if call.wanted is None else f.product(call.wanted)
        shared = -1 if call.own or not f.parameters else call.parameters
        return emit_strided(f.graph, call.inputs, outputs, shared=shared, summed=call.summed)

    return remembered(key_of("training ptx", call.key), make)


def card_program(call: Call, device: int) -> CardProgram:
    """The kernel of a call, assembled by the driver, which keeps what it has assembled."""

    def load() -> CardProgram:
        return CardProgram(kernel, driver().load(kernel.text, kernel.name, device), device)

    kernel = card_kernel(call)
    return remembered(key_of("training card", call.key, str(device)), load)
