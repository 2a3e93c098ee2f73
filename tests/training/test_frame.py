"""XLA's call frames, built here word by word: version and traits are answered, and a call on the processor fills its result."""

from __future__ import annotations

import numpy as np

from batch_machines import states
from studies.small_arm import small_arm
from veridyn.mechanics.tree.dynamics.differentiable import machine_function
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.training import frame
from veridyn.training.host import PART, host_program
from veridyn.training.launch import Call


def words(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_version_and_traits_are_answered() -> None:
    answer, made = words(48, 40, 0, -1, -1, 0), np.zeros(frame.FRAME_WORDS, dtype=np.int64)
    asked = words(32, frame.METADATA, 0, answer.ctypes.data)
    made[frame.EXTENSION] = asked.ctypes.data
    assert frame.card_handler(made.ctypes.data) == 0
    assert answer[frame.VERSION] >> 32 == frame.OLDEST_MINOR and answer[frame.VERSION] & 0xFFFFFFFF == 0
    assert answer[frame.TRAITS] == frame.CAPTURED
    api = words(*range(11))
    made[frame.API] = api.ctypes.data
    assert frame.host_handler(made.ctypes.data) == 0
    assert answer[frame.VERSION] == frame.API_VERSION and answer[frame.TRAITS] == 0


def test_a_call_fills_its_result() -> None:
    machine, samples = small_arm(), PART + 5
    m, call = states(machine, samples), Call(machine_function(machine, "inverse"), None, False)
    program, out = host_program(call), np.full((1, samples, 2), np.nan)
    given = [x[None].copy() for x in (m.q, m.qd, m.qdd)] + [machine.parameters.values[None, None].copy()]
    held, buffers = [], []
    for x in (*given, out):
        lengths = words(*x.shape)
        held += [lengths, words(48, 0, 12, x.ctypes.data, 3, lengths.ctypes.data)]
        buffers.append(held[-1].ctypes.data)
    plan = frame.frame_plan(4, 1, call.summed, PART, program.plan.ctypes.data, len(program.plan))
    value = words(plan.ctypes.data)
    scalar = words(5, value.ctypes.data)
    lists = [words(*buffers[:4]), words(buffers[4]), words(scalar.ctypes.data)]
    made = np.zeros(frame.FRAME_WORDS, dtype=np.int64)
    for place, own in zip((frame.READ, frame.WRITTEN, frame.ATTRIBUTES), lists, strict=True):
        made[place] = own.ctypes.data
    assert frame.host_handler(made.ctypes.data) == 0
    np.testing.assert_allclose(out[0], inverse_dynamics(machine, m), atol=1e-12)
