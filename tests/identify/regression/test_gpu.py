"""Row factors by tiles: those of Householder reflections, also where columns depend on each other. NumPy stands in for the GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
import veridyn.identify.regression.gpu as on_gpu
from batch_machines import MACHINES, arm, measured
from numpy_processor import NumpyProcessor
from strangers.evaluate import evaluate
from veridyn.errors import DeviceError
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.gpu import equation_program, gpu_factors
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.engine import sample_arrays, uniform_values
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.signals.butterworth import Butterworth
from veridyn.symbolic.gpu import open_gpu

SAMPLES = 400
PROGRAM_SAMPLES = 12


def singular_values(R: np.ndarray) -> np.ndarray:
    return np.linalg.svd(R, compute_uv=False)


@pytest.mark.parametrize("name", MACHINES)
def test_factors_are_those_of_the_processor(name: str) -> None:
    """Rows have dependent columns (of 150 of the car 84 can be separated), which a Gram matrix alone would blur to 1e-8."""
    machine = MACHINES[name]()
    samples = stream(machine, measured(machine, SAMPLES), settings=IdentifySettings(engine="numpy"))
    true, found = samples.observe(), gpu_factors(samples, NumpyProcessor())
    for a, b in zip(true.rows, found.rows, strict=True):
        assert (a.row, a.columns, a.samples) == (b.row, b.columns, b.samples)
        assert np.array_equal(b.R, np.triu(b.R))
        np.testing.assert_allclose(b.R.T @ b.R, a.R.T @ a.R, rtol=0, atol=1e-12 * np.abs(a.R.T @ a.R).max())
        exact = singular_values(a.R)
        np.testing.assert_allclose(singular_values(b.R), exact, rtol=0, atol=1e-13 * exact[0])
    a, b = solve(true), solve(found)
    assert a.groups.kept == b.groups.kept
    assert np.abs(a.values - b.values).max() < 1e-8 * np.sqrt(np.diag(a.covariance)).min()


def test_one_pass_where_the_condition_is_safe_and_two_where_it_is_not() -> None:
    machine = arm()
    m = measured(machine, SAMPLES)
    last = machine.with_parameters(
        machine.parameters.known({n: 0.0 for n in machine.parameters.names if n not in ("M7", "ZZ7")})
    )
    for one, passes in ((last, 1), (machine, 2)):
        device = NumpyProcessor()
        gpu_factors(stream(one, m, rows=["q7"], settings=IdentifySettings(engine="numpy")), device)
        assert device.tables == passes


def test_tiles_and_several_motions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = arm()
    motions = [measured(machine, n, seed) for n, seed in ((300, 1), (501, 2))]
    samples = stream(machine, motions, settings=IdentifySettings(engine="numpy"))
    monkeypatch.setattr(on_gpu, "LARGEST_TILE", 128)
    monkeypatch.setattr(on_gpu, "UPLOAD", 200)
    device = NumpyProcessor()
    found = gpu_factors(samples, device)
    assert device.tables == 2 * (2 + 1 + 2 + 2 + 1)  # tiles of 128 in parts of 200, 100; 200, 200, 101: twice
    for a, b in zip(samples.observe().rows, found.rows, strict=True):
        assert a.samples == b.samples
        np.testing.assert_allclose(b.R.T @ b.R, a.R.T @ a.R, atol=1e-12 * np.abs(a.R.T @ a.R).max())


def test_samples_are_left_out_as_on_the_processor() -> None:
    machine = arm()
    m = measured(machine, SAMPLES)
    forces = m.forces.copy()
    forces[100:150, 2] = np.nan
    m = replace(m, forces=forces)
    how = Sampling(decimate=2, dead_zone={"q1": 0.2}, trim=7, drop={"q4": np.arange(SAMPLES) % 5 == 0})
    samples = stream(machine, m, settings=IdentifySettings(sampling=how, engine="numpy"))
    for a, b in zip(samples.observe().rows, gpu_factors(samples, NumpyProcessor()).rows, strict=True):
        assert a.samples == b.samples
        np.testing.assert_allclose(b.R.T @ b.R, a.R.T @ a.R, atol=1e-12 * np.abs(a.R.T @ a.R).max())


def test_identify_on_a_gpu_gives_the_same_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu, "open_gpu", NumpyProcessor)
    machine = arm()
    m = measured(machine, SAMPLES)
    white, card = vd.IdentifySettings(covariance="white"), vd.IdentifySettings(covariance="white", device="cuda")
    true, found = vd.identify(machine, m, settings=white), vd.identify(machine, m, settings=card)
    assert found.names == true.names
    np.testing.assert_allclose(found.values, true.values, atol=1e-8 * true.sigma.min())
    np.testing.assert_allclose(found.sigma, true.sigma, rtol=1e-8)


def test_a_noise_that_is_searched_is_the_same_but_for_where_the_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu, "open_gpu", NumpyProcessor)
    machine = arm()
    m = measured(machine, SAMPLES)
    true, found = vd.identify(machine, m), vd.identify(machine, m, settings=vd.IdentifySettings(device="cuda"))
    np.testing.assert_allclose(found.values, true.values, atol=1e-8 * true.sigma.min())
    np.testing.assert_allclose(found.sigma, true.sigma, rtol=0.01)  # a hundredth of a deviation decides nothing


def test_methods_that_need_single_equations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu, "open_gpu", NumpyProcessor)
    m = measured(arm(), SAMPLES)
    for method, covariance in (("robust", "white"), ("wls", "hac")):
        with pytest.raises(DeviceError, match=r"device 'cuda': this method passes over single equations"):
            vd.identify(arm(), m, method, vd.IdentifySettings(device="cuda", covariance=covariance))


def test_what_is_done_on_the_processor_only_is_refused_all_at_once() -> None:
    machine = arm()
    how = Sampling(filter=Butterworth(5.0), along={"q1": {"q2": "s"}})
    m = replace(measured(machine, SAMPLES), signals={"s": np.ones(SAMPLES)})
    with pytest.raises(DeviceError, match=r"2 faults:(.|\n)*sampling.filter(.|\n)*sampling.along"):
        gpu_factors(stream(machine, m, settings=IdentifySettings(sampling=how, engine="numpy")), NumpyProcessor())


def test_too_little_memory_is_named() -> None:
    machine = arm()
    m = measured(machine, SAMPLES)
    with pytest.raises(DeviceError, match="too little memory for tiles of 128 samples"):
        gpu_factors(stream(machine, m, settings=IdentifySettings(engine="numpy")), NumpyProcessor(free=10**4))


def test_a_gpu_that_is_missing_is_an_error_by_name() -> None:
    try:
        open_gpu()
    except DeviceError:
        with pytest.raises(DeviceError, match="a GPU was asked for"):
            vd.identify(arm(), measured(arm(), SAMPLES), settings=vd.IdentifySettings(device="cuda"))
    else:
        pytest.skip("there is a GPU here")


@pytest.mark.parametrize("name", MACHINES)
def test_rows_are_those_of_the_streamed_blocks(name: str) -> None:
    machine = MACHINES[name]()
    known = machine.parameters.known({machine.parameters.names[3]: 0.5})
    machine = machine.with_parameters(known)
    m = measured(MACHINES[name](), PROGRAM_SAMPLES)
    plan = stream(machine, m, settings=IdentifySettings(engine="numpy")).plan
    program = equation_program(plan, m)
    names = [n for n in program.samples if not n.startswith("y.")]
    given = dict(zip(names, sample_arrays(tree_of(machine), m, names), strict=True))
    given |= {n: m.forces[:, int(n[2:]) - len(machine.rows) + machine.n] for n in program.samples if n.startswith("y.")}
    given |= dict(
        zip(
            program.parameters,
            uniform_values(tree_of(machine), machine.parameters.values, program.parameters),
            strict=True,
        )
    )
    values = [np.broadcast_to(x, PROGRAM_SAMPLES) for x in evaluate(program.graph, program.outputs, given)]
    (job,) = plan.jobs(m)
    (block,) = plan.blocks(job)
    for k, A in enumerate(block.equations):
        first, count = program.sets[k]
        whole = np.zeros((PROGRAM_SAMPLES, len(plan.columns[k]) + 1))
        place = {c: i for i, c in enumerate((*plan.columns[k], -1))}
        whole[:, [place[c] for c in program.entries[k]]] = np.array(values[first : first + count]).T
        np.testing.assert_allclose(whole, A, rtol=1e-11, atol=1e-11)


def test_goals_go_column_by_column() -> None:
    machine = MACHINES["arm"]()
    m = measured(machine, PROGRAM_SAMPLES)
    program = equation_program(stream(machine, m, settings=IdentifySettings(engine="numpy")).plan, m)
    every = [c for own in program.entries for c in own]
    ordered = [every[k] for k in program.goals]
    assert sorted(program.goals) == list(range(len(every))) and ordered[-7:] == [-1] * 7
    assert ordered[:-7] == sorted(ordered[:-7])
