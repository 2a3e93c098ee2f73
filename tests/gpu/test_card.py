"""On a GPU, where there is one: the same numbers as the processor's, arrays taken where they lie. Skipped elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from batch_machines import MACHINES, arm, measured, states
from veridyn.errors import DeviceError
from veridyn.identify.regression.gpu import gpu_factors
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, mass_matrix
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.symbolic.gpu import open_gpu

try:
    CARD = open_gpu()
except DeviceError as error:
    pytest.skip(f"{error.faults[0].what}", allow_module_level=True)

SAMPLES = 3000


def close(found, expected: np.ndarray, digits: float = 1e-13) -> bool:
    """To rounding, of the largest number."""
    return float(np.abs(CARD.host(found) - expected).max()) < digits * float(np.abs(expected).max())


@pytest.mark.parametrize("name", MACHINES)
def test_batches_are_those_of_the_processor(name: str) -> None:
    machine = MACHINES[name]()
    m = states(machine, SAMPLES)
    assert close(vd.gpu.inverse_dynamics(machine, m), inverse_dynamics(machine, m))
    assert close(vd.gpu.mass_matrix(machine, m), mass_matrix(machine, m.q))
    assert close(vd.gpu.regressor(machine, m), regressor(machine, m))
    assert close(vd.gpu.forward_dynamics(machine, m)[:, -machine.n :], forward_dynamics(machine, m).qdd, 1e-10)
    draws = machine.parameters.values * np.array([[1.0], [1.2]])
    assert close(vd.gpu.inverse_dynamics(machine, m, draws)[1], inverse_dynamics(machine, m, parameters=draws[1]))


@pytest.mark.parametrize("name", MACHINES)
def test_factors_are_those_of_the_processor(name: str) -> None:
    machine = MACHINES[name]()
    samples = stream(machine, measured(machine, SAMPLES), settings=IdentifySettings(engine="numpy"))
    for a, b in zip(samples.observe().rows, gpu_factors(samples).rows, strict=True):
        exact = np.linalg.svd(a.R, compute_uv=False)
        np.testing.assert_allclose(np.linalg.svd(b.R, compute_uv=False), exact, atol=1e-12 * exact[0])


def test_a_fit_with_gaps_and_dropped_samples() -> None:
    machine = arm()
    m = measured(machine, SAMPLES)
    forces = m.forces.copy()
    forces[100:150, 2] = np.nan
    m = replace(m, forces=forces)
    how = Sampling(decimate=2, dead_zone={"q1": 0.2}, trim=7, drop={"q4": np.arange(SAMPLES) % 5 == 0})
    true, found = (
        vd.identify(machine, m, settings=vd.IdentifySettings(sampling=how)),
        vd.identify(machine, m, settings=vd.IdentifySettings(sampling=how, device="cuda")),
    )
    assert np.abs(found.values - true.values).max() < 1e-6 * true.sigma.min()


def test_results_repeat_to_the_last_bit() -> None:
    machine = arm()
    samples = stream(machine, measured(machine, SAMPLES), settings=IdentifySettings(engine="numpy"))
    for a, b in zip(gpu_factors(samples).rows, gpu_factors(samples).rows, strict=True):
        assert np.array_equal(a.R, b.R)


def test_simulations_are_those_of_an_integrator_of_eighth_order() -> None:
    t, m = np.linspace(0.0, 0.1, 3), states(arm(), 50)
    runs = vd.gpu.integrate(arm(), t, 0.3 * m.q, 0.3 * m.qd, steps=20)
    true = vd.dynamics.integrate(arm(), t, 0.3 * m.q[7], 0.3 * m.qd[7]).motion
    assert close(runs.q[:, 7], true.q, 1e-6)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_arrays_of_others_are_taken_where_they_lie(library: str) -> None:
    other = pytest.importorskip(library)
    m = states(arm(), SAMPLES)
    if library == "torch":
        q, qd, qdd = (other.tensor(x, device="cuda") for x in (m.q, m.qd, m.qdd))
        take = other.from_dlpack
    else:
        other.config.update("jax_enable_x64", True)
        q, qd, qdd = (other.numpy.asarray(x) for x in (m.q, m.qd, m.qdd))
        take = other.numpy.from_dlpack
    found = take(vd.gpu.inverse_dynamics(arm(), vd.gpu.DeviceMotion(q=q, qd=qd, qdd=qdd)))
    host = found.cpu().numpy() if library == "torch" else np.asarray(found)
    np.testing.assert_allclose(host, inverse_dynamics(arm(), m), rtol=1e-12, atol=1e-12)


def test_a_batch_is_that_of_the_processor() -> None:
    """Sets of parameters from one start, and starts and constant forces of their own, on both devices."""
    machine, t, m = arm(), np.linspace(0.0, 0.05, 6), states(arm(), 20)
    sets = machine.parameters.values * np.linspace(0.95, 1.05, 20)[:, None]
    forces = np.linspace(-1.0, 1.0, 20 * machine.n).reshape(20, -1)
    for given in (
        {"q": 0.3 * m.q[7], "qd": 0.3 * m.qd[7], "parameters": sets},
        {"q": 0.3 * m.q, "qd": 0.3 * m.qd, "forces": forces},
    ):
        there, here = (vd.dynamics.integrate_many(machine, t, **given, device=device) for device in ("cuda", "cpu"))
        assert there.q.shape == here.q.shape == (20, 6, machine.n)
        np.testing.assert_allclose(there.q, here.q, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(there.qd, here.qd, rtol=0.0, atol=1e-9)
