"""On the processor: arrays of any strides, sets and samples, and sums that do not depend on the number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from batch_machines import states
from studies.small_arm import small_arm
from veridyn.mechanics.tree.dynamics.differentiable import machine_function
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.training.host import PART, host_parts, host_program
from veridyn.training.launch import Call, common_size, packed, row

SAMPLES = 2 * PART + 37
MACHINE = small_arm()
STATES = states(MACHINE, SAMPLES, 3)


def run(wanted, parameters: np.ndarray, arrays: list[np.ndarray], outs: list[np.ndarray], threads: int = 1) -> None:
    """A call on arrays (sets, samples, columns)."""
    call = Call(machine_function(MACHINE, "inverse"), wanted, parameters.shape[1] != 1)
    size = common_size([x.shape for x in (*arrays, parameters)])
    reads = [*arrays[:3], parameters, *arrays[3:]]
    rows = [row(x.ctypes.data, x.strides, x.shape, size) for x in reads]
    for k, x in enumerate(outs):
        summed = k == call.summed
        strides = (x.strides[0], x.strides[2], x.strides[1]) if summed else x.strides
        shape = (x.shape[0], x.shape[2], x.shape[1]) if summed else x.shape
        rows.append(row(x.ctypes.data, strides, shape, size))
    host_program(call).run(packed(rows, size[1], host_parts(size[1])), size[0], threads)


@pytest.mark.parametrize("kind", ["shared", "own", "sets"])
@pytest.mark.parametrize("layout", ["rows", "columns", "every third"])
def test_outputs_whatever_the_strides(kind: str, layout: str) -> None:
    def laid(x: np.ndarray) -> np.ndarray:
        if layout == "columns":
            return np.asfortranarray(x)[None]
        return x[None] if layout == "rows" else np.repeat(x, 3, axis=0)[::3][None]

    p = MACHINE.parameters.values
    values = {"shared": p[None, None], "own": np.linspace(0.9, 1.1, SAMPLES)[None, :, None] * p}
    values["sets"] = np.array([[[1.0]], [[1.3]]]) * p
    given = values[kind]
    out = np.full((len(given), SAMPLES, 2), np.nan)
    run(None, given, [laid(x) for x in (STATES.q, STATES.qd, STATES.qdd)], [out])
    D = regressor(MACHINE, STATES)
    np.testing.assert_allclose(
        out, np.einsum("nrp,snp->snr", D, np.broadcast_to(given, (len(given), SAMPLES, 24))), atol=1e-11
    )


def test_the_sum_over_samples_is_the_same_with_any_number_of_threads() -> None:
    weights = np.random.default_rng(4).normal(size=(1, SAMPLES, 2))
    arrays = [x[None] for x in (STATES.q, STATES.qd, STATES.qdd)]
    found = []
    for threads in (1, 3):
        outs = [np.empty((1, SAMPLES, 2)) for _ in range(3)]
        outs.append(np.empty((1, 24, host_parts(SAMPLES))))
        run((True,) * 4, MACHINE.parameters.values[None, None], [*arrays, weights], outs, threads)
        found.append(outs)
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    expected = np.einsum("nrp,nr->p", regressor(MACHINE, STATES), weights[0])
    np.testing.assert_allclose(found[0][-1][0].sum(-1), expected, rtol=1e-10, atol=1e-9)
    step = np.zeros((1, 2))
    step[0, 1] = 1e-6
    ends = [
        inverse_dynamics(
            MACHINE, states(MACHINE, SAMPLES, 3).__class__(STATES.t, STATES.q + s * step, STATES.qd, STATES.qdd)
        )
        for s in (1, -1)
    ]
    slope = ((ends[0] - ends[1]) / 2e-6 * weights[0]).sum(-1)
    np.testing.assert_allclose(found[0][0][0, :, 1], slope, rtol=1e-6, atol=1e-5)
