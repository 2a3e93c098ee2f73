"""Repeated runs: each has the generator that its number has, whoever runs it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from benchmarks.repeated import repeated


def drawn(rng: np.random.Generator) -> float:
    return float(rng.normal())


def alone() -> list[float]:
    return [drawn(child) for child in np.random.default_rng(3).spawn(300)]


def test_one_after_the_other_with_progress() -> None:
    said: list[tuple[str, float, float | None]] = []
    found = list(repeated(drawn, 300, np.random.default_rng(3), progress=lambda *s: said.append(s), task="draws"))
    assert found == alone() and len(set(found)) == 300
    assert said[0] == ("draws", 0.0, 300.0) and said[-1] == ("draws", 300.0, 300.0)


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_threads_change_nothing(threads: int) -> None:
    """More runs than are handed out at once, on any number of threads: the same numbers in the same order."""
    with ThreadPoolExecutor(threads) as pool:
        assert list(repeated(drawn, 300, np.random.default_rng(3), executor=pool)) == alone()


def test_a_dask_cluster_changes_nothing() -> None:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        found = list(repeated(drawn, 300, np.random.default_rng(3), executor=client.get_executor(pure=False)))
    assert found == alone()


def test_some_of_them_alone() -> None:
    assert list(repeated(drawn, 300, np.random.default_rng(3), only=[7, 250])) == [alone()[7], alone()[250]]
