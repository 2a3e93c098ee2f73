"""Counts at standstill: found where a hole edge vibrates, and not where a vehicle rolls."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.false_counts import find_false_counts

T = np.arange(0.0, 12.0, 0.002)
P = np.pi / 20
WHEELS = ("fl", "fr", "rl", "rr")


def rolling(speeds=(1.0, 1.05, 0.97, 1.02)):
    """Stands for 4 s, moves off, stops at 10 s; wheels of slightly different speed."""
    pace = np.interp(T, [0.0, 4.0, 7.0, 10.0, 12.0], [0.0, 0.0, 6.0, 0.0, 0.0])
    angle = np.cumsum(pace) * 0.002
    return {w: np.floor((0.3 + k * angle) / P) for w, k in zip(WHEELS, speeds)}, pace


def log_of(counts, **more):
    channels = {w: Channel(w, T, n, "1") for w, n in counts.items()}
    return Experiment(channels | {k: Channel(k, T, v, "m/s") for k, v in more.items()}, "drive")


def test_rolling_wheels_count_no_false_edges():
    counts, _ = rolling()
    found = find_false_counts(log_of(counts), WHEELS)
    assert not any(mask.any() for mask in found.false.values()) and len(found.findings) == 0
    crawling, _ = rolling((0.02, 0.021, 0.019, 0.02))
    assert len(find_false_counts(log_of(crawling), WHEELS).findings) == 0


@pytest.mark.parametrize(("toggles", "words"), [(True, "it goes up and down"), (False, "it goes on")])
def test_a_vibrating_edge_is_found_and_named(toggles, words):
    counts, pace = rolling()
    beat = (np.arange(len(T)) // 20) % 2  # every 40 ms
    shaking = (T > 1.0) & (T < 3.0)
    added = np.where(shaking, beat, 0.0)
    if not toggles:
        added = np.cumsum(np.abs(np.diff(added, prepend=0.0)))
    true = counts["rl"].copy()
    counts["rl"] = true + added
    for still, witness in (({}, "'fl', 'fr', 'rr'"), ({"speed": 0.1}, "'speed'")):
        found = find_false_counts(log_of(counts, speed=0.34 * pace), WHEELS, still=still)
        changed = np.flatnonzero(np.diff(added)) + 1
        assert np.flatnonzero(found.false["rl"]).tolist() == changed.tolist()
        assert not any(found.false[w].any() for w in WHEELS if w != "rl")
        (finding,) = found.findings
        assert (finding.channel, finding.kind, finding.severity) == ("rl", "false count", "warning")
        assert finding.t_start == pytest.approx(1.0, abs=0.05) and finding.t_end == pytest.approx(3.0, abs=0.05)
        for word in (words, witness, f"it counts {len(changed)} edges at standstill"):
            assert word in finding.message


def test_all_wheels_may_shake_where_a_speed_tells():
    counts, pace = rolling()
    shaken = {
        w: n + np.where(T < 3.0, (np.arange(len(T)) // (15 + k)) % 2, 0.0) for k, (w, n) in enumerate(counts.items())
    }
    found = find_false_counts(log_of(shaken, speed=0.34 * pace), WHEELS, still={"speed": 0.1})
    assert {f.channel for f in found.findings} == set(WHEELS)
    assert all((T[mask] < 3.001).all() for mask in found.false.values())  # the last goes back where shaking ends


def test_without_a_witness_it_is_refused():
    counts, _ = rolling()
    with pytest.raises(DataError, match="nothing tells whether the machine stands"):
        find_false_counts(log_of(counts), ("fl",))
    with pytest.raises(DataError, match="there is no channel 'sped'"):
        find_false_counts(log_of(counts), WHEELS, still={"sped": 0.1})
