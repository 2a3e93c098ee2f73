"""The quick run of the measurement, and what it counts: a clean log alarms or not, a damaged sample is named or not."""

import json

import numpy as np
from benchmarks.samples import DAMAGED_KINDS, DAMAGES, KINDS, alarms, clean_log, main, named


def test_a_quick_run_prints_and_keeps_its_numbers(tmp_path, capsys) -> None:
    kept = tmp_path / "samples.json"
    found = main(["--quick", "--seed", "5", "--json", str(kept)])
    assert json.loads(kept.read_text()) == json.loads(json.dumps(found))
    printed = capsys.readouterr().out
    assert "of 20 clean logs" in printed and all(damage.name in printed for damage in DAMAGES)
    assert found["alarmed"] <= 1  # 0.1 expected at one log in two hundred
    for damage in DAMAGES:
        assert set(found["power"][damage.name]) == set(DAMAGED_KINDS)


def test_gross_damage_is_named_on_every_kind_of_noise_that_has_no_tails() -> None:
    spike = DAMAGES[0]
    for kind in ("white", "force", "coloured", "exact"):
        assert all(named(np.random.default_rng([seed, 3]), kind, spike, 200.0) for seed in range(5))


def test_logs_hold_the_kinds_they_say() -> None:
    log, kinds = clean_log(np.random.default_rng(0), machine=False)
    assert set(kinds) == set(log.channels) and set(kinds.values()) <= set(KINDS)
    log, kinds = clean_log(np.random.default_rng(0), machine=True)
    assert set(kinds.values()) == {"q", "qd", "force"} and alarms(log) == []
