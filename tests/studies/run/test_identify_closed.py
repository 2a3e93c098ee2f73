"""Closed machines from logs of their drives to judged parameters; the logs are Pinocchio's and a hand's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from strangers.closed_logs import Stranger, sines
from studies.bench_robot import table
from studies.closed_bench import MACHINES, RATE, STUDY, TORQUE, ClosedBench, measured, moved
from veridyn.errors import FileError, VeridynError
from veridyn.files.machine.write import save_model
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.papers.hexapod.machine import LEGS, hexapod, truth
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals
from veridyn.studies.config.study import load_study
from veridyn.studies.run.estimation import IdentifyRun
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.recordings import margin_of

# Without a filter on the equations the noise of the torques stays white, so that deviations hold to the letter.
WHITE = ("{lowpass: 8}", "{lowpass: 8}\nsampling: {filter: none}")


def run(folder: Path, *changes: tuple[str, str], name: str = "palletizer") -> IdentifyRun:
    bench = ClosedBench(folder, name)
    for old, new in changes:
        assert old in bench.study
        bench.study = bench.study.replace(old, new)
    return run_identify(load_study(bench.write()))


@pytest.mark.parametrize(("name", "count"), [("palletizer", 25), pytest.param("delta", 40, marks=pytest.mark.slow)])
def test_parameters_and_noise_floor(tmp_path: Path, name: str, count: int) -> None:
    """All parameters within three deviations, errors on the other motion those of the torque sensors."""
    found = run(tmp_path, WHITE, name=name)
    fit = found.study.fit
    truth = fit.base.reduce(MACHINES[name]().parameters.values)
    off = np.abs(fit.values - truth) / fit.sigma
    print(name, "largest", off.max().round(2), "rms", np.sqrt(np.mean(off**2)).round(2))
    assert fit.base.count == count and (off < 3.0).all()
    for r in found.study.check.rows:
        print(r.row, r.rms, "noise", TORQUE[name])
        # 5 % for the finite log (√(2/1500) = 3.6 %) and for parameters that are not exact.
        assert r.rms == pytest.approx(TORQUE[name], rel=0.08)
    assert found.suspicions == () and found.closing is not None
    assert found.closing.given == MACHINES[name]().actuated_coordinates
    assert found.study.whiteness and found.omitted


@pytest.mark.parametrize("logs", [4, pytest.param(8, marks=pytest.mark.slow)])
def test_deviations_hold_over_many_logs(tmp_path: Path, logs: int) -> None:
    """Draws of all noise along one motion: errors over deviations are 1 rms, and none leans to one side."""
    motion, machine, scores = moved("palletizer", 1), MACHINES["palletizer"](), []
    for seed in range(logs):
        folder = tmp_path / str(seed)
        folder.mkdir()
        bench = ClosedBench(folder, training=measured("palletizer", motion, np.random.default_rng(200 + seed)))
        bench.study = bench.study.replace(*WHITE) + "checks: false\n"
        fit = run_identify(load_study(bench.write())).study.fit
        scores.append((fit.values - fit.base.reduce(machine.parameters.values)) / fit.sigma)
    rms, lean = np.sqrt(np.mean(np.square(scores))), np.sqrt(np.mean(np.mean(scores, axis=0) ** 2))
    print(f"errors over deviations: rms {rms:.3f}, rms of their means {lean:.3f}, by chance {1 / np.sqrt(logs):.3f}")
    assert abs(rms - 1.0) < 0.15 * np.sqrt(8 / logs)
    assert lean < 2.0 / np.sqrt(logs)  # parameters are correlated, so that their means are, too


@pytest.mark.slow
def test_a_hexapod_from_its_legs(tmp_path: Path) -> None:
    """Six lengths and six forces: all 24 parameters of paper 002, by Pinocchio's forces with 1 N of noise."""
    machine, rng = truth(), np.random.default_rng(3)
    home = closed_home(machine)
    stranger = Stranger(machine, dict(zip(machine.coordinates, home.tolist(), strict=True)))
    save_model(hexapod(), tmp_path / "model.yaml")
    t = np.arange(0.0, 8.0, 0.01)
    for name, seed in (("training", 1), ("validation", 2)):
        m = stranger.motion(t, *sines(t, home[stranger.own], np.full(6, 0.05), 0.25, 5, np.random.default_rng(seed)))
        assert m.forces is not None
        columns = {"t": t} | {
            c: m.q[:, k] + 1e-6 * rng.normal(size=len(t)) for c, k in zip(LEGS, stranger.own, strict=True)
        }
        columns |= {f"f_{c}": m.forces[:, k] + rng.normal(size=len(t)) for c, k in zip(LEGS, stranger.own, strict=True)}
        (tmp_path / f"{name}.csv").write_text(table(columns))
    listed = "\n".join(f"    q.{c}: {c} [m]\n    force.{c}: f_{c} [N]" for c in LEGS)
    study = tmp_path / "study.yaml"
    study.write_text(STUDY.format(name="hexapod", columns=listed).replace(*WHITE))
    found = run_identify(load_study(study))
    fit = found.study.fit
    off = np.abs(fit.values - fit.base.reduce(machine.parameters.values)) / fit.sigma
    print(
        "largest",
        off.max().round(2),
        "rms",
        np.sqrt(np.mean(off**2)).round(2),
        [round(r.rms, 3) for r in found.study.check.rows],
    )
    assert fit.base.count == 24 and (off < 3.0).all() and found.suspicions == ()
    assert all(r.rms == pytest.approx(1.0, rel=0.08) for r in found.study.check.rows)


@pytest.mark.parametrize(
    "estimator",
    ["robust", "consistent", *(pytest.param(e, marks=pytest.mark.slow) for e in ("ols", "map", "gauss_markov"))],
)
def test_estimators(tmp_path: Path, estimator: str) -> None:
    found = run(
        tmp_path, WHITE, ("name: palletizer", f"name: palletizer\nchecks: false\nestimator: {{name: {estimator}}}")
    )
    fit = found.study.fit
    truth = fit.base.reduce(MACHINES["palletizer"]().parameters.values)
    assert (np.abs(fit.values - truth) < 4.0 * fit.sigma).all()
    for r in found.study.check.rows:
        assert r.rms == pytest.approx(TORQUE["palletizer"], rel=0.08)
    if estimator == "consistent":
        assert fit.feasibility is not None and fit.feasibility.feasible
        assert fit.feasibility.cost_percent < 1.0
    assert found.omitted == ("Everything: the study says checks: false.",)


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        ("{name: iv}", r"estimator, Instrumental \(line \d+\): instruments need a motion without noise"),
        ("{name: likelihood}", r"estimator.settings \(line \d+\): Likelihood needs the setting 'frequency'"),
    ],
)
def test_estimators_that_cannot_say_so(tmp_path: Path, estimator: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        run(tmp_path, ("name: palletizer", f"name: palletizer\nestimator: {estimator}"))


def test_maximum_likelihood_on_whole_periods(tmp_path: Path) -> None:
    """The delta's motion has five harmonics of 0.25 Hz, three periods of them: BIC finds five, and parameters within their deviations."""
    raw = ("{lowpass: 8}", "{lowpass: none, trim: 0}\nsampling: {filter: none}\nchecks: false")
    chosen = ("name: delta", "name: delta\nestimator: {name: likelihood, settings: {frequency: 0.25, highest: 8}}")
    fit = run(tmp_path, raw, chosen, name="delta").study.fit
    assert "3 periods of 400 samples averaged; 5 harmonics by BIC" in fit.notes
    assert (np.abs(fit.values - fit.base.reduce(MACHINES["delta"]().parameters.values)) < 3.0 * fit.sigma).all()


def test_passive_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(VeridynError, match="'q3' is a passive joint of a closed loop"):
        run(tmp_path, ("name: palletizer", "name: palletizer\nrows: [q1, q3]"))


def test_actuated_rows_are_all_there_are(tmp_path: Path) -> None:
    for rows in ("actuated", "all"):
        (tmp_path / rows).mkdir()
    both = [
        run(tmp_path / rows, ("name: palletizer", f"name: p\nchecks: false\nrows: {rows}"))
        for rows in ("actuated", "all")
    ]
    np.testing.assert_array_equal(both[0].study.fit.values, both[1].study.fit.values)


def test_a_log_in_blocks_is_the_same_log(tmp_path: Path) -> None:
    sampling = Sampling(filter=Butterworth(8.0), decimate=5)
    margin = margin_of(Signals(rate=RATE, lowpass=8.0), sampling, RATE)
    said = f"{{lowpass: 8, trim: 0}}\nchecks: false\nsampling: {{trim: {margin}, decimate: 5}}"
    bench = ClosedBench(tmp_path)
    bench.study = bench.study.replace("{lowpass: 8}", said)
    whole = run_identify(load_study(bench.write()))
    (tmp_path / "model.yaml").unlink()
    bench.study = bench.study.replace("  columns:", "  block: 1000\n  columns:")
    parts = run_identify(load_study(bench.write()))
    np.testing.assert_allclose(parts.study.fit.values, whole.study.fit.values, rtol=1e-4, atol=1e-5)


def test_friction_on_the_drives_from_the_study(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        ("{file: model.yaml}", "{file: model.yaml, elements: [{kind: offset, on: actuated}]}"),
        ("name: palletizer", "name: p\nchecks: false"),
    )
    assert [n for n in found.study.fit.names if n.startswith("off")] == ["off_q1", "off_q2", "off_q4"]
    with pytest.raises(FileError, match="model"):
        run(tmp_path, ("{file: model.yaml}", "{file: none.yaml}"))
