"""The door to a GPU: what is missing is named, and launches have the arguments that kernels expect. A GPU is not needed."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from numpy_processor import NumpyProcessor
from veridyn.errors import DeviceError
from veridyn.symbolic.expression import Graph
from veridyn.symbolic.gpu import Gpu, open_gpu, require_memory
from veridyn.symbolic.gram_ptx import SHARED_BYTES, gram_plan


class CudaError(RuntimeError):
    pass


class Recorder:
    """A kernel that remembers how it was launched."""

    ptr = 1

    def __init__(self) -> None:
        self.launches: list = []

    def __call__(self, grid, block, arguments, shared_mem=0) -> None:
        self.launches.append((grid, block, arguments, shared_mem))


def fake_cupy(devices=1, capability=(9, 0), error: Exception | None = None) -> SimpleNamespace:
    """As much of CuPy as opening and launching touch; arrays are NumPy's."""
    kernels: list[Recorder] = []
    allowed: list[tuple] = []

    def count() -> int:
        if error is not None:
            raise error
        return devices

    class Module:
        def load(self, text: bytes) -> None:
            assert text.startswith(b".version")

        def get_function(self, name: str) -> Recorder:
            kernels.append(Recorder())
            return kernels[-1]

    runtime = SimpleNamespace(
        getDeviceCount=count,
        CUDARuntimeError=CudaError,
        memGetInfo=lambda: (1000, 2000),
        getDeviceProperties=lambda number: {
            "name": b"A card", "major": capability[0], "minor": capability[1], "multiProcessorCount": 132,
        },
    )  # fmt: skip
    driver = SimpleNamespace(funcSetAttribute=lambda *given: allowed.append(given))
    cuda = SimpleNamespace(runtime=runtime, driver=driver, function=SimpleNamespace(Module=Module))
    pool = SimpleNamespace(free_bytes=lambda: 24)
    arrays = {name: getattr(np, name) for name in ("asarray", "ascontiguousarray", "atleast_2d", "zeros")}
    return SimpleNamespace(
        cuda=cuda, get_default_memory_pool=lambda: pool, asnumpy=np.asarray, kernels=kernels, allowed=allowed, **arrays
    )


@pytest.fixture(autouse=True)
def _no_gpu_is_remembered():
    open_gpu.cache_clear()
    yield
    open_gpu.cache_clear()


@pytest.mark.parametrize(
    ("cupy", "said"),
    [
        (None, r"device 'cuda': a GPU was asked for, and CuPy is not installed.*\n.*veridyn\[gpu\]"),
        (fake_cupy(error=CudaError("cudaErrorNoDevice")), r"CUDA does not answer.*\n.*cudaErrorNoDevice"),
        (fake_cupy(devices=0), r"this machine has none"),
        (fake_cupy(capability=(6, 1)), r"A card: this GPU is too old.*\n.*7\.0 or newer, found 6\.1"),
    ],
)
def test_a_gpu_that_is_missing_is_named(cupy, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(DeviceError, match=said):
        open_gpu()


def test_a_gpu_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    gpu = open_gpu()
    assert (gpu.name, gpu.capability, gpu.multiprocessors) == ("A card", (9, 0), 132)
    assert open_gpu() is gpu and gpu.free_bytes() == 1024


def test_too_little_memory_is_refused_with_numbers() -> None:
    with pytest.raises(DeviceError, match=r"too little memory for a test.*\n.*3\.00 GB free, found 2\.00 GB"):
        require_memory(NumpyProcessor(free=2 * 10**9), 3 * 10**9, "a test")
    require_memory(NumpyProcessor(free=3 * 10**9), 3 * 10**9, "a test")


def test_a_launch_has_the_arguments_of_the_kernel() -> None:
    cupy = fake_cupy()
    gpu, g = Gpu(cupy), Graph()
    a, p = g.inputs_named("ap")
    inputs, outputs = np.zeros((1, 300)), np.zeros((2, 310))
    gpu.program(g, [a * p, a + p], ["a"], ["p"])(inputs, np.array([2.0]), outputs[:, :300], 300)
    grid, block, given, _ = cupy.kernels[0].launches[0]
    assert grid == (3,) and block == (128,)
    assert given[1].shape == (1,) and given[1].itemsize == 8 and given[1].tobytes() == np.float64(2.0).tobytes()
    assert [int(x) for x in given[3:]] == [300, 310, 300, 300] and all(x.dtype == np.uint32 for x in given[3:])
    gpu.program(g, [a * p, a + p], ["a"], ["p"], sets=True)(inputs, np.ones((3, 1)), outputs, 300)
    assert [int(x) for x in cupy.kernels[1].launches[0][2][3:]] == [300, 310, 300, 100]


def test_gram_matrices_need_matrix_units() -> None:
    with pytest.raises(DeviceError, match="no matrix units for double precision"):
        Gpu(fake_cupy(capability=(7, 5))).gram(gram_plan([(0, 3)]), 128)


def test_tasks_are_spread_over_the_multiprocessors() -> None:
    cupy = fake_cupy()
    plan = gram_plan([(0, 59), (59, 20)])
    sums = Gpu(cupy).gram(plan, 2**19)
    sums.add(np.zeros((79, 2**19)), 2**19)
    grid, block, given, shared = cupy.kernels[0].launches[0]
    assert (
        grid[0] == len(plan.tasks)
        and abs(grid[0] * grid[1] - 2 * 132) <= 1
        and block == (512,)
        and shared == SHARED_BYTES
    )
    assert int(given[5]) % 16 == 0 and cupy.allowed == [(1, 8, SHARED_BYTES)]
    assert [G.shape for G in sums.matrices()] == [(59, 59), (20, 20)]
