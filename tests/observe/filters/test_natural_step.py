"""Compiled steps behind the doors: chosen and refused by name, the same faults, and every caller in memory of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from observe import textbook
from observe.builders import start_of, system_of
from veridyn.errors import ModelError, VeridynError
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.filters.filter import Passing
from veridyn.observe.filters.ukf import UKF
from veridyn.observe.measurements import Status
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.result import Belief
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer
from veridyn.observe.streaming.stream import Stream
from veridyn.observe.system import System
from veridyn.papers.fourbar import MODEL_START, TUNED, wrong_fourbar

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
