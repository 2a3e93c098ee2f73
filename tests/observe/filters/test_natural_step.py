"""Compiled steps behind the doors: chosen and refused by name, the same faults, and every caller in memory of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from observe import textbook
from observe.builders import start_of, system_of
from observe.test_machine_sets import MACHINES, spun
from strangers.natural_mechanisms import random_mechanism
from strangers.walks import CRANE, SPATIAL
from veridyn.errors import ModelError, VeridynError
from veridyn.machines import crane, spatial
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.filter import Passing
from veridyn.observe.filters.methods import EKF, FILTERS, UKF
from veridyn.observe.filters.run import run, smooth
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.result import Belief, Estimates
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer
from veridyn.observe.streaming.stream import Stream
from veridyn.observe.system import System
from veridyn.papers.fourbar import MODEL_START, PRINTED, TUNED, wrong_fourbar

Array = np.ndarray
CASE = textbook.oscillator()
HOW = ObserveSettings(model_error="off", process_noise=TUNED, start=MODEL_START[0], rates={"phi": 0.0})


def observer(engine: str, **more: object) -> Observer:
    return Observer(wrong_fourbar(), EKF(engine=engine), replace(HOW, **more))


def encoder(k: int) -> float:
    return np.pi / 2 + 0.3 * np.sin(0.02 * k)


def test_an_observer_takes_every_plain_step_by_machine_code() -> None:
    compiled, python = observer("compiled"), observer("python")
    for k in range(60):
        a, b = (o.step(0.005 * k, np.array([encoder(k)])) for o in (compiled, python))
        assert a.values == pytest.approx(b.values, rel=1e-12, abs=1e-12)
        assert a.sigma == pytest.approx(b.sigma, rel=1e-10, abs=1e-12)
        assert a.status == b.status == {"encoder": Status.USED} and a.messages == b.messages == ()
    assert compiled._stream._passing.by_reference == 0
    assert python._stream._passing.by_reference == 60


def test_observers_side_by_side_do_not_disturb_each_other() -> None:
    alone = observer("compiled")
    expected = [alone.step(0.005 * k, [encoder(k)]).belief for k in range(20)]
    one, other = observer("compiled"), observer("compiled")
    for k in range(20):
        found = one.step(0.005 * k, [encoder(k)]).belief
        other.step(0.005 * k, [encoder(7 * k)])
        assert np.array_equal(found.x, expected[k].x) and np.array_equal(found.P, expected[k].P)


def test_a_belief_that_was_handed_out_never_changes() -> None:
    o = observer("compiled")
    step = o.step(0.0, [encoder(0)])
    x, P = step.belief.x.copy(), step.belief.P.copy()
    for k in range(1, 5):
        o.step(0.005 * k, [encoder(k)])
    assert np.array_equal(step.belief.x, x) and np.array_equal(step.belief.P, P)


def test_a_step_of_a_stream_tells_all_that_the_reference_does() -> None:
    system, q, qd = ObserverSetup(settings=HOW).system(wrong_fourbar())
    streams = [Stream(EKF(gate=0.99, engine=engine), system, system.belief(q, qd)) for engine in ("compiled", "python")]
    for k in range(10):
        a, b = (s.step(0.005 * k, {"encoder": encoder(k) + (k == 7)}) for s in streams)
        assert a.status == b.status
        for part, names in {"prediction": "xPF", "correction": ("dx", "P", "innovations", "variances", "K")}.items():
            for name in names:
                x, y = getattr(getattr(a, part), name), getattr(getattr(b, part), name)
                assert np.abs(x - y).max() <= 1e-12 * max(1.0, np.abs(y).max())
        assert a.correction.nis == pytest.approx(b.correction.nis, rel=1e-9, abs=1e-12)
        assert a.correction.log_likelihood == pytest.approx(b.correction.log_likelihood, rel=1e-12)
        assert a.correction.dof == b.correction.dof and np.abs(a.H - b.H).max() < 1e-12


def overflow(engine: str) -> str:
    """What an observer says whose force walks without measure while its sensor is silent."""
    o = Observer(wrong_fourbar(), EKF(engine=engine), replace(HOW, process_noise=replace(TUNED, force=1e308)))
    with pytest.raises(VeridynError) as error:
        list(map(o.step, 0.25 * np.arange(12.0), ({},) * 12))
    return str(error.value)


def test_faults_are_those_of_the_reference() -> None:
    assert "the prediction is no longer finite at" in overflow("compiled")
    assert overflow("compiled") == overflow("python")


def test_engines_are_refused_by_name() -> None:
    expected = r"EKF.engine: the value is not valid(.|\n)*'auto' or 'compiled' or 'python'(.|\n)*'fast'"
    with pytest.raises(ModelError, match=expected):
        EKF(engine="fast")
    with pytest.raises(ModelError, match=r"there is no compiled step of this filter on this system(.|\n)*Discrete"):
        Stream(EKF(engine="compiled"), system_of(EKF, CASE), start_of(CASE))
    with pytest.raises(ModelError, match=r"UKF has no setting 'engine'"):
        UKF(engine="compiled")  # pyright: ignore[reportCallIssue]


@dataclass(frozen=True, repr=False)
class Own(EKF):
    """A filter of somebody's own that predicts otherwise."""

    def predict(self, system: System, belief: Belief, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        x, P, F = super().predict(system, belief, u, t, dt)
        return x, 1.01 * P, F


def test_a_filter_that_predicts_otherwise_is_not_compiled() -> None:
    system, _, _ = ObserverSetup(settings=HOW).system(wrong_fourbar())
    assert Own().compiled_step(system) is None
    with pytest.raises(ModelError, match="there is no compiled step of this filter"):
        Passing(Own(engine="compiled"), system)


KINDS = ("linear", "error_ekf", "error_ekf_force", "ekf")
AGREED = 1e-12  # of the largest number of each field over the log: orders of summation differ, and so the last digits
FIELDS = ("x", "P", "x_predicted", "P_predicted", "F", "H", "K", "innovations", "innovation_variances", "nis")


@cache
def machine(name: str) -> Machine:
    return {"fourbar": wrong_fourbar, "crane": crane, "spatial": spatial}[name]()


def settings(name: str, kind: str, **more: object) -> ObserverSetup:
    if name == "fourbar":
        chosen = ObserverSetup(
            FILTERS[kind](),
            ObserveSettings(
                model_error="off",
                process_noise=PRINTED if kind == "error_ekf" else TUNED,
                start=MODEL_START[0],
                rates={"phi": -1.0},
            ),
        )
    else:
        chosen = {"crane": CRANE, "spatial": SPATIAL}[name].setup(kind)
    return chosen.replaced(**more)


def prepared(name: str, how: ObserverSetup) -> tuple[System, Belief]:
    """The system as the filter sees it, and where it starts."""
    system, q, qd = how.system(machine(name))
    return how.seen(system, q), system.belief(q, qd, t=-0.013)


def readings(
    system: System, start: Belief, count: int, seed: int = 0, inputs: np.ndarray | None = None
) -> Measurements:
    """What the sensors would read of the machine left to itself under the inputs, with noise; the filter starts elsewhere.

    Steps differ, some are longer than the integration's, and some readings are missing, not finite, wild or a turn further.
    """
    rng, m, u = np.random.default_rng(seed), len(system.outputs), np.zeros((count, 0)) if inputs is None else inputs
    t = np.cumsum(rng.choice([0.003, 0.01, 0.034], size=count))
    sigma, x = np.sqrt(np.diag(system.sensor_noise(0.0))), start.x
    x = system.add(x, 0.3 * np.sqrt(start.P) * rng.normal(size=len(start.P)))
    values, before = np.empty((count, m)), 0.0
    for k in range(count):
        x = system.move(x, u[k - 1] if k else u[0], before, t[k] - before)
        values[k], before = system.sense(x, u[k], t[k]) + sigma * rng.normal(size=m), float(t[k])
    flags = np.where(rng.random((count, m)) < 0.15, Status.MISSING, Status.USED).astype(np.int8)
    wild = rng.random((count, m))
    values[wild < 0.04] = np.nan
    values[wild > 0.96] += 2.0 * np.pi
    flags[count // 2] = Status.MISSING
    return Measurements(t, values, system.outputs, flags, u)


def agree(a: Estimates, b: Estimates, within: float = AGREED) -> None:
    assert np.array_equal(a.status, b.status) and np.array_equal(a.dof, b.dof)
    for name in (*FIELDS, "log_likelihood"):
        x, y = getattr(a, name), getattr(b, name)
        assert np.array_equal(np.isnan(x), np.isnan(y)), name
        size = max(float(np.nanmax(np.abs(y), initial=0.0)), 1e-300)
        assert np.nanmax(np.abs(x - y), initial=0.0) <= within * size, (name, np.nanmax(np.abs(x - y)) / size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["fourbar", "crane", "spatial"])
def test_a_whole_log_agrees_with_the_reference(name: str, kind: str) -> None:
    system, start = prepared(name, settings(name, kind))
    log = readings(system, start, 80 if name == "fourbar" else 40)
    compiled = run(EKF(gate=0.999, engine="compiled"), system, log, start)
    agree(compiled, run(EKF(gate=0.999, engine="python"), system, log, start))
    counts = compiled.counts()
    for what in ("used", "missing", "not_finite"):
        assert any(found[what] for found in counts.values()), what


@pytest.mark.parametrize("kind", ["linear", "ekf"])
def test_noise_of_each_reading(kind: str) -> None:
    """Readings with deviations of their own, then readings without any: the sensors' noise is theirs again."""
    system, start = prepared("crane", settings("crane", kind))
    log = readings(system, start, 40, seed=5)
    own = np.sqrt(np.diag(system.sensor_noise(0.0)))
    rng = np.random.default_rng(6)
    sigma = np.where(rng.random(log.values.shape) < 0.5, own * 10.0 ** rng.uniform(-1.0, 1.0, log.values.shape), np.nan)
    sigma[25:] = np.nan
    noisy = replace(log, sigma=sigma)
    found = [run(EKF(engine=engine), system, noisy, start) for engine in ("compiled", "python")]
    agree(*found)
    plain = run(EKF(engine="compiled"), system, log, start)
    assert np.abs(found[0].P[20] / plain.P[20] - 1.0).max() > 0.05
    same = replace(log, sigma=np.broadcast_to(own, log.values.shape))
    agree(run(EKF(engine="compiled"), system, same, start), plain)


def test_what_a_gate_refuses_is_the_same() -> None:
    system, start = prepared("crane", settings("crane", "ekf"))
    log = readings(system, start, 60, seed=3)
    wild = log.values.copy()
    wild[30:40, 0] += 1.0
    log = replace(log, values=wild)
    found = [run(EKF(gate=0.99, engine=engine), system, log, start) for engine in ("compiled", "python")]
    agree(*found)
    assert (found[0].status == Status.OUTLIER).sum() >= 5
    free = [run(EKF(gate=None, engine=engine), system, log, start) for engine in ("compiled", "python")]
    agree(*free)
    assert not (free[0].status == Status.OUTLIER).any()


def test_inputs_that_change_from_reading_to_reading() -> None:
    how = settings("crane", "ekf", unknown=(), inputs=("motor",))
    system, start = prepared("crane", how)
    push = 20.0 * np.sin(np.arange(50.0))[:, None]
    push[20:25] = push[20]
    log = readings(system, start, 50, inputs=push)
    agree(*(run(EKF(engine=engine), system, log, start) for engine in ("compiled", "python")))


def test_an_angle_counts_the_short_way_round() -> None:
    bars = wrong_fourbar()
    turning = replace(bars, sensors=tuple(replace(i, turns=True, bias_sigma=0.01) for i in bars.sensors))
    how = ObserverSetup(
        settings=ObserveSettings(model_error="off", process_noise=TUNED, start=MODEL_START[0], rates={"phi": 9.0})
    )
    system, q, qd = how.system(turning)
    start = system.belief(q, qd, t=0.0)
    log = readings(system, start, 60)
    log = replace(log, values=log.values + 2.0 * np.pi * np.arange(-30, 30)[:, None])
    found = [run(EKF(gate=0.999, engine=engine), system, log, start) for engine in ("compiled", "python")]
    agree(*found)
    assert (found[0].status == Status.USED).sum() > 40


@pytest.mark.parametrize("dimension", [2, 3])
def test_everything_that_can_act(dimension: int) -> None:
    """Springs, dampers, forces and torques that turn with their bodies, one of them an input, on chains of random joints."""
    for seed in range(3):
        rng = np.random.default_rng(40 + seed)
        posed = random_mechanism(rng, dimension).mechanism
        sensors = (Sensor("angle", "coordinate", "theta", 0.01, turns=True), Sensor("way", "rate", "s", 0.02))
        sensors += (Sensor("gyroscope", "gyroscope", "b2", 0.1),)
        natural = machine_of_mechanism(replace(posed, sensors=sensors))
        how = ObserverSetup(
            settings=ObserveSettings(
                model_error="off",
                process_noise=ProcessNoise(acceleration=0.1, start=1e-3, start_rate=1e-2),
                unknown=(),
                inputs=("motor",),
            )
        )
        assert len(natural_system(natural).forces.active)
        system, q, qd = how.system(natural)
        start = system.belief(q, qd, t=0.0)
        log = readings(system, start, 8, seed, inputs=rng.normal(size=(8, 1)))
        agree(*(run(EKF(gate=0.999, engine=engine), system, log, start) for engine in ("compiled", "python")), 1e-11)


def test_a_smoother_goes_back_over_the_same_numbers() -> None:
    system, start = prepared("crane", settings("crane", "ekf"))
    log = readings(system, start, 30)
    a, b = (
        smooth(run(EKF(gate=0.999, engine=engine), system, log, start), system) for engine in ("compiled", "python")
    )
    for x, y in ((a.x, b.x), (a.P, b.P)):  # the smoother inverts covariances of these numbers: some digits go
        assert np.abs(x - y).max() <= 1e-9 * np.abs(y).max()


@pytest.mark.parametrize(("name", "text", "spin"), MACHINES)
def test_sets_of_coordinates_that_take_over(name: str, text: str, spin: float) -> None:
    """The reference does the steps into another set, machine code the rest, in every set."""
    natural, rates = spun(name, text, spin)
    how = ObserverSetup(
        settings=ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(acceleration=1e-4, start=0.01, start_rate=0.05),
            rates=rates,
            unknown=(),
            step=2e-3,
        )
    )
    system, q, qd = how.system(natural)
    start = system.belief(q, qd, t=0.0)
    log = readings(system, start, 40)
    found = run(EKF(gate=0.999, engine="compiled"), system, log, start)
    agree(
        found, run(EKF(gate=0.999, engine="python"), system, log, start), 1e-10
    )  # changes of set amplify the last digits
    assert len(np.unique(found.x[:, -1])) > 1
    step, belief, at = Passing(EKF(gate=0.999, engine="compiled"), system), replace(start, P=np.diag(start.P)), 0.0
    for k, t in enumerate(log.t.tolist()):
        belief = step(belief, np.zeros(0), t, log.values[k], log.flags[k], np.zeros(0)).belief
        at = t
    assert belief.t == at and belief.x == pytest.approx(found.x[-1], abs=1e-12)
    changes = int((np.diff(found.x[:, -1], prepend=0.0) != 0.0).sum())
    assert 0 < step.by_reference <= 2 * changes + 2
