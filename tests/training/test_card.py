"""Launches on a GPU through a driver that only writes down what it is asked. A GPU is not needed."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from studies.small_arm import small_arm
from veridyn.errors import DeviceError
from veridyn.mechanics.tree.dynamics.differentiable import machine_function
from veridyn.training import card
from veridyn.training.card import CardProgram, Driver, card_blocks, card_kernel, card_parts
from veridyn.training.launch import Call


class Library:
    """As much of CUDA's driver as is called."""

    def __init__(self, refuse: str = "") -> None:
        self.refuse, self.calls = refuse, []

    def __getattr__(self, name: str):
        def call(*arguments) -> int:
            self.calls.append((name, arguments))
            if name == "cuModuleLoadData":
                assert arguments[1].value.startswith(b".version")
            if name == "cuGetErrorString":
                arguments[1]._obj.value = b"out of memory"
            if name == "cuModuleGetFunction":
                arguments[0]._obj.value = 77
            if name == "cuLaunchKernel":
                self.launched = ctypes.cast(arguments[9][0], ctypes.POINTER(ctypes.c_int64))[0]
            return 2 if name == self.refuse else 0

        return call


def test_a_launch_is_one_kernel_of_all_sets_on_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    own = Driver(library)
    monkeypatch.setattr(card, "driver", lambda: own)
    k = card_kernel(Call(machine_function(small_arm(), "inverse"), None, False))
    program = CardProgram(k, own.load(k.text, k.name, 0), 0)
    program.run(np.array([5, 0, 0, 8, 300, card_blocks(300)], dtype=np.int64), 4, 99)
    _, given = next(c for c in library.calls if c[0] == "cuLaunchKernel")
    assert given[0].value == 77 and [x.value for x in given[1:7]] == [12, 1, 1, 128, 1, 1] and given[8].value == 99
    assert library.launched == 5
    assert sum(c[0] == "cuCtxPushCurrent_v2" for c in library.calls) == sum(
        c[0] == "cuCtxPopCurrent_v2" for c in library.calls
    )
    assert (card_blocks(300), card_parts(300)) == (3, 10)


def test_what_the_driver_refuses_is_named() -> None:
    with pytest.raises(DeviceError, match=r"cuInit.*\n.*2: out of memory"):
        Driver(Library("cuInit"))


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    card.driver.cache_clear()
    monkeypatch.setattr(card, "LIBRARIES", ("libnothing.so.1",))
    with pytest.raises(DeviceError, match=r"driver is not there.*\n.*libnothing"):
        card.driver()


def test_machines_without_parameters_have_nothing_to_share() -> None:
    f = machine_function(small_arm(), "regressor")
    k = card_kernel(Call(f, (True, True, True, False), False))
    assert "staged" not in k.text and k.arrays == 9
