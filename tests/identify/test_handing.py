"""Work handed to executors: in order, not too far ahead, and the same fit on threads and on a cluster."""

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from studies.small_arm import log_of, small_arm
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.handing import handed
from veridyn.identify.sampling import Sampling
from veridyn.signals.motion import Signals, motion


class Slow:
    """An executor that works only when it is asked for a result."""

    def __init__(self):
        self.given, self.cancelled = [], 0

    def submit(self, work, job):
        self.given.append(job)
        outer = self

        class Later(Future):
            def result(self, timeout=None):
                return work(job)

            def cancel(self):
                outer.cancelled += 1
                return True

        return Later()


def test_results_come_in_order_and_jobs_are_made_when_there_is_room():
    slow, made = Slow(), []

    def jobs():
        for k in range(10):
            made.append(k)
            yield k

    results = handed(slow, lambda k: k * k, jobs(), ahead=3)
    assert next(results) == 0
    assert made == [0, 1, 2]
    assert list(results) == [k * k for k in range(1, 10)]
    assert slow.cancelled == 0


def test_what_was_handed_out_in_vain_is_called_back():
    slow = Slow()

    def work(k):
        if k == 1:
            raise ValueError("no")
        return k

    with pytest.raises(ValueError, match="no"):
        list(handed(slow, work, range(10), ahead=4))
    assert slow.cancelled == len(slow.given) - 2


def test_threads_give_the_same():
    with ThreadPoolExecutor(2) as pool:
        assert list(handed(pool, lambda k: k + 1, range(300))) == list(range(1, 301))


def recorded():
    machine, rng = small_arm(), np.random.default_rng(4)
    return machine, [motion(machine, log_of(machine, rng, f"run {k}", 3.0), Signals(lowpass=20.0)) for k in range(2)]


@pytest.mark.parametrize("estimator", ["wls", "robust", "iv"])
def test_a_cluster_gives_the_same_fit(estimator):
    """Dask in this process, on two threads: its executor takes each block, and the sums are made in the same order."""
    distributed = pytest.importorskip("distributed", reason="dask (the extra 'cluster') is a cluster as executor")
    machine, motions = recorded()
    method = Instrumental(reference="measured") if estimator == "iv" else estimator
    how = {"method": method, "sampling": Sampling(block=64)}
    alone = identify(machine, motions, **how)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        there = identify(machine, motions, executor=client.get_executor(), **how)
    assert there.values == pytest.approx(alone.values, rel=1e-12)
    assert there.sigma == pytest.approx(alone.sigma, rel=1e-9)
