"""The calibration of stated deviations: its quick form with a fixed seed, its bands, and its door."""

from __future__ import annotations

import json
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from benchmarks.calibration import DEMO, OWN, VARIANCE, TimeLeft, _within, calibrate, main, outcomes, table
from benchmarks.calibration_cases import CASES, Outcome
from benchmarks.calibration_demos import DEMOS
from benchmarks.calibration_machines import drawn_car, drawn_hexapod, drawn_humanoid

from veridyn.errors import Fault, IdentificationError
from veridyn.papers.hexapod.machine import TRUTH
from veridyn.spatial.inertia import broken_law

QUICK = [
    "ols, equal noise",
    "wls",
    "wls, hac, first-order noise",
    "map",
    "map, hac, first-order noise",
    "gauss_markov, first-order noise",
    "iv, noisy accelerations",
    "likelihood, whole periods",
    "known values to 10 %",
    "payload, gains to 2 %",
]


def normal(sigma: float, bias: float = 0.0, far: float = 0.0):
    """A case whose true deviation is 1: stated as `sigma`, with a bias, and a share of errors ten times as large."""

    def run(rng: np.random.Generator) -> Outcome:
        errors = rng.normal(size=8) * np.where(rng.random(8) < far, 10.0, 1.0) + bias
        return Outcome(errors, np.full(8, sigma))

    return run


def test_what_is_stated_right_is_within_and_what_is_not_is_found() -> None:
    right = calibrate("right", normal(1.0), 200, 0)
    assert right.within and right.inside_one_sigma == pytest.approx(0.683, abs=0.04)
    assert right.mean_z2 == pytest.approx(1.0, abs=0.1) and right.sigma_over_spread == pytest.approx(1.0, abs=0.05)
    for wrong in (normal(0.8), normal(1.25), normal(1.0, bias=0.8), normal(1.0, far=0.05)):
        assert not calibrate("wrong", wrong, 200, 0).within
    biased = calibrate("biased", normal(1.0, bias=0.8), 200, 0)
    assert biased.largest_bias == pytest.approx(0.8, abs=0.25)
    assert OWN.bands == {"inside_one_sigma": (0.64, 0.72), "inside_two_sigma": (0.93, 0.97), "mean_z2": (0.8, 1.25)}


def test_a_demonstration_has_a_bound_on_the_bias_of_each_parameter() -> None:
    """Of 40 parameters two, and no more, may have |mean z| above .7, and none above 1.1; the spread stays that of a true deviation."""

    def case(*biases: float):
        offset = np.concatenate([biases, np.zeros(40 - len(biases))])

        def run(rng: np.random.Generator) -> Outcome:
            return Outcome(rng.normal(size=40) * np.sqrt(1.0 - 0.3 * (offset > 0.0)) + offset, np.ones(40))

        return run

    assert calibrate("none", case(), 40, 1, form=DEMO).within
    few = calibrate("few", case(0.9, 0.9), 40, 1, form=DEMO)
    assert few.within and few.share_unbiased == pytest.approx(0.95) and few.most_biased in ("0", "1")
    assert not calibrate("many", case(*[0.95] * 6), 40, 1, form=DEMO).within
    assert not calibrate("one", case(1.6), 40, 1, form=DEMO).within


def test_every_standard_error_of_a_short_form_is_four_times_allowed() -> None:
    """The bands of a short form are those of the full one and four standard errors of its own runs, or of independent normal errors."""
    short = calibrate("short", normal(1.0), 10, 2)
    for name, (low, high) in OWN.bands.items():
        one = np.sqrt(VARIANCE[name] / short.parameters / 10)
        assert low - 4.0 * one < getattr(short, name) < high + 4.0 * one
    exact = {name: np.full(10, sum(OWN.bands[name]) / 2.0) for name in OWN.bands}
    assert _within(exact, 10, 8, OWN)
    for name, (_, high) in OWN.bands.items():
        one = np.sqrt(VARIANCE[name] / 8 / 10)
        assert _within(exact | {name: np.full(10, high + 3.99 * one)}, 10, 8, OWN)
        assert not _within(exact | {name: np.full(10, high + 4.01 * one)}, 10, 8, OWN)
        assert not _within(exact | {name: np.full(200, high + 1e-9)}, 200, 8, OWN)


def test_machines_are_drawn_anew_and_are_physically_consistent() -> None:
    names = ("arm", "car", "car, Table 4", "humanoid", "hexapod", "fourbar")
    assert list(DEMOS) == [f"demo {name}" for name in names]
    cars, robots = ([draw(np.random.default_rng(k)) for k in (0, 1)] for draw in (drawn_car, drawn_humanoid))
    assert cars[0].chassis != cars[1].chassis and cars[0].suspension.square != cars[1].suspension.square
    for robot in robots:
        assert all(broken_law(x) is None for x in robot.parameters.values.reshape(-1, 10))
    legs = drawn_hexapod(np.random.default_rng(0))
    assert set(legs) == set(TRUTH) and legs["M_E"] != TRUTH["M_E"] and legs["r3"] != TRUTH["r3"]
    assert legs["XX_E"] / TRUTH["XX_E"] == pytest.approx(legs["M_E"] / TRUTH["M_E"])


@pytest.mark.parametrize("name", QUICK)
def test_estimators_under_their_assumptions(name: str) -> None:
    """Six machines a case, seed 7, in the bands of 200 runs widened by four standard errors; the full form is benchmarks.calibration."""
    found = calibrate(name, CASES[name], 6, 7)
    print(table([found])[-1])
    assert found.within and found.failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in QUICK])
def test_the_others_take_longer(name: str) -> None:
    pytest.importorskip("cvxpy")
    found = calibrate(name, CASES[name], 24, 7)
    print(table([found])[-1])
    assert found.within


def test_the_door(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "4", "--seed", "3", "--case", "wls", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["seed"] == 3 and content["quick"] is True
    keys = {"inside_one_sigma", "inside_two_sigma", "mean_z2", "largest_bias", "sigma_over_spread"}
    assert keys <= set(content["cases"][0]) and content["cases"][0]["runs"] == 4
    assert main(["--runs", "2", "--case", "wls"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("| case | runs |")


def test_runs_that_excite_different_parameters_are_aligned_by_name() -> None:
    def run(rng: np.random.Generator) -> Outcome:
        names = ("a", "b", "c") if rng.random() < 0.5 else ("c", "a")
        return Outcome(rng.normal(size=len(names)), np.ones(len(names)), names)

    found = calibrate("some", run, 100, 0, form=DEMO)
    assert found.parameters == 3 and found.within
    assert 0.1 < found.unstated < 0.25  # "b" is missing in every other run


def test_kept_runs_are_taken_up_again(tmp_path: Path) -> None:
    """Stopped after three of five runs, in the middle of a line: the same five, of which the kept ones are not run again."""
    file, count = tmp_path / "runs.jsonl", 0

    def run(rng: np.random.Generator) -> Outcome:
        nonlocal count
        count += 1
        x = rng.standard_normal()
        if x < -1.0:
            raise IdentificationError(Fault("it failed."))
        return Outcome(np.array([x, 1.0]), np.array([1.0, np.nan]), ("a", "b"), x**2)

    whole = outcomes("case", run, 8, 1)
    outcomes("another", run, 1, 1, keep=file)
    outcomes("case", run, 4, 1, keep=file)
    file.write_text(file.read_text()[:-9])
    count = 0
    again = outcomes("case", run, 8, 1, keep=file)
    assert count == 5 and any(isinstance(one, str) for one in whole)
    for one, other in zip(whole, again, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            assert one == other
            continue
        assert one.names == other.names and one.joint == other.joint
        np.testing.assert_array_equal(one.errors, other.errors)
        np.testing.assert_array_equal(one.sigma, other.sigma)


def test_progress_shows_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the first of two cases is a quarter of all; where no terminal is, lines come half a minute apart."""
    meter = TimeLeft(2)
    meter("one", 3.0, 6.0)
    assert capsys.readouterr().err == ""
    meter.begin -= 60.0
    meter.last -= 60.0
    meter("one", 3.0, 6.0)
    assert capsys.readouterr().err == "one: 3 of 6 runs; 25 % of all, 3 min left\n"
    meter.end_case("| one |")
    assert meter.done == 1 and capsys.readouterr().err == "| one |\n"


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--case", "nonsense"])
    assert "there is no case 'nonsense'; there are: ols" in capsys.readouterr().err


def test_workers_of_dask_change_nothing() -> None:
    """The runs of a case on threads, and on a local cluster of dask: the same numbers."""
    from distributed import Client, LocalCluster

    def numbers(executor: Executor | None) -> dict[str, object]:
        found = asdict(calibrate("wls", CASES["wls"], 3, 5, executor=executor))
        return {key: value for key, value in found.items() if key not in ("case", "most_biased", "joint", "seconds")}

    alone = numbers(None)
    with ThreadPoolExecutor(3) as pool:
        assert numbers(pool) == pytest.approx(
            alone, rel=1e-9, nan_ok=True
        )  # figures of dry friction, which this case has none of
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        assert numbers(client.get_executor(pure=False)) == pytest.approx(alone, rel=1e-9, nan_ok=True)
