"""Payload studies: the example, whose torques Pinocchio made, and a real arm with a real load; settings of controllers, of which the same
body is read back from each with SciPy's rotations."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from studies.payload_log import CENTRE, EXAMPLE, FOLDER, GAINS, INERTIA, MASS, RUNS, table
from veridyn.errors import FileError
from veridyn.files.archive import save
from veridyn.identify.controller_load import controller_settings, principal_axes
from veridyn.spatial.inertia import broken_law, from_centre
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.result import collected_warnings
from veridyn.studies.run.payload import PayloadRun, run_payload

DATA = os.environ.get("VERIDYN_DATA", "")
LOAD = from_centre(MASS, CENTRE, INERTIA)
TOOL_MASS, TOOL_CENTRE = 2.5, np.array([0.01, -0.02, 0.06])
TOOL_INERTIA = np.array([[0.012, 0.002, -0.001], [0.002, 0.009, 0.0015], [-0.001, 0.0015, 0.014]])


def study(folder: Path, **changes: str) -> Path:
    """The example beside its files, with some of its lines replaced."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for name in (*RUNS, "payload_model.yaml"):
        text = text.replace(name, str(FOLDER / name))
    for old, new in changes.items():
        line = next(x for x in text.splitlines() if x.strip().startswith(old + ":"))
        text = text.replace(line, new)
    file = folder / "study.yaml"
    file.write_text(text + "checks: false\n", encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> PayloadRun:
    return run_payload(load_study(study(tmp_path_factory.mktemp("payload"))))


def test_the_logs_of_the_example_are_what_their_program_writes() -> None:
    for number, name in enumerate(RUNS):
        assert (FOLDER / name).read_text(encoding="utf-8") == table(name, number)


def test_the_example_finds_its_load(done: PayloadRun) -> None:
    """Gains, mass and all ten parameters within their deviations (99.9 %), a body that can be, and a budget that adds up."""
    x = done.load
    print(x.summary())
    assert abs(x.mass - MASS) < 3.3 * x.mass_sigma and x.mass_sigma < 0.01
    off = x.free - LOAD
    assert off @ np.linalg.solve(x.covariance, off) < chi2(10).ppf(0.999)
    assert broken_law(x.values) is None and x.has_inertia
    assert np.linalg.norm(list(x.mass_budget.values())) == pytest.approx(x.mass_sigma, rel=1e-6)
    assert done.empty is not None
    fit = done.empty.study.fit
    at = [fit.names.index(f"K{k}") for k in range(1, 5)]
    assert (np.abs(fit.values[at] - GAINS) < 3.3 * fit.sigma[at]).all()
    assert fit.estimator == "instrumental variables" and not done.missed and not done.payload.unexcited
    assert done.figures["payload_mass"] == x.mass


def test_a_mass_alone_and_a_machine_from_a_fit(done: PayloadRun, tmp_path: Path) -> None:
    """The empty machine's fit in place of its runs, and a centre that is known: the mass is the true one within its deviation.

    The deviation of the known load, 0.1 %, is not in the fit of the runs but in that of the study.
    """
    assert done.empty is not None
    save(done.empty.study.fit, tmp_path / "fit.json")
    text = study(tmp_path).read_text(encoding="utf-8")
    start, end = text.index("  empty:"), text.index("  estimate:")
    text = text[:start] + text[end:]
    text = text.replace("estimate: all", f"estimate: mass\n  centre: {CENTRE.tolist()}")
    text = text.replace(f"file: {FOLDER / 'payload_model.yaml'}", "fit: fit.json")
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    x = run_payload(load_study(tmp_path / "study.yaml")).load
    assert abs(x.mass - MASS) < 3.3 * x.mass_sigma
    assert x.mass_only and not x.has_inertia and x.centre == pytest.approx(CENTRE) and (x.centre_sigma == 0.0).all()


def test_the_scale_of_measured_torques_is_in_the_deviation(tmp_path: Path) -> None:
    """Torques 3 % too large weigh a load 3 % too large; told that each may be off by 2 %, the mass has between 1 and 2 % for it."""
    model = (FOLDER / "payload_model.yaml").read_text(encoding="utf-8")
    (tmp_path / "model.yaml").write_text("\n".join(x for x in model.splitlines() if "drive_gain" not in x))

    def weighed(scale: float, sigma: str) -> PayloadRun:
        columns = {
            f"signal.i{k}": f'    force.q{k}: {{column: i{k}, unit: A, times: "{scale * g} N*m/A"}}'
            for k, g in enumerate(GAINS, 1)
        }
        file = study(tmp_path, **columns, estimate=sigma, model="model: {file: model.yaml}")
        lines = [x for x in file.read_text(encoding="utf-8").splitlines() if "load: {body" not in x]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return run_payload(load_study(file))

    plain, large = weighed(1.0, ""), weighed(1.03, "")
    assert large.load.free == pytest.approx(1.03 * plain.load.free, rel=1e-9)
    assert "exact" in plain.payload.gains
    x = weighed(1.0, "  gain_sigma: 0.02").load
    assert x.free == pytest.approx(plain.load.free, rel=1e-9)
    assert 0.01 * x.mass < x.mass_budget["drive gains as given"] < 0.02 * x.mass
    assert np.linalg.norm(list(x.mass_budget.values())) == pytest.approx(x.mass_sigma, rel=1e-6)
    assert plain.load.mass_sigma < x.mass_sigma


def test_a_verdict_that_is_asked_for_is_a_limit(tmp_path: Path) -> None:
    """The loaded runs are all fitted, so that the load is not validated."""
    file = study(tmp_path, accept="accept: {verdict: fair}\nvalidation: none")
    run = run_payload(load_study(file))
    assert run.payload.verdict.grade == "not validated" and run.verdict.grade == "poor"
    assert run.missed == ("verdict: not validated, and at least fair is accepted (accept.verdict).",)


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="VERIDYN_DATA is not set: no real logs")
def test_a_real_arm_weighs_a_real_load() -> None:
    """A UR10e with 2.805 kg: gains from one half of the run, the load from the other, within two deviations; none above 0.1 kg."""
    loaded = load_study(EXAMPLE.with_name("ur10e_payload.yaml"))
    with collected_warnings():
        x = run_payload(replace(loaded, study=loaded.study.model_copy(update={"checks": False}))).load
    print(x.summary())
    assert abs(x.mass - 2.805) < 2.0 * x.mass_sigma and x.mass_sigma < 0.1


def refused(loaded: Loaded) -> str:
    with pytest.raises(FileError) as error:
        run_payload(loaded)
    return str(error.value)


def test_bad_input_is_named_with_its_line(tmp_path: Path) -> None:
    """Bodies, loads, gains and deviations that do not fit, each with its place in the file."""
    said = refused(load_study(study(tmp_path, body="  body: hnd")))
    assert "payload.body (line 9): there is no body 'hnd'" in said and "Did you mean 'hand'" in said
    loaded = load_study(study(tmp_path))
    runs = loaded.study.payload.empty
    known = runs[1].load
    assert known is not None

    def with_empty(*runs: object) -> Loaded:
        payload = loaded.study.payload.model_copy(update={"empty": tuple(runs)})
        return replace(loaded, study=loaded.study.model_copy(update={"payload": payload}))

    said = refused(with_empty(runs[0]))
    assert "the drive gains K1, K2, K3, K4 are estimated, and no run carries a known load" in said
    odd = known.model_copy(update={"inertia": (0.1, 0.0, 0.0, 0.0, 0.0, 0.0)})
    said = refused(with_empty(runs[0], runs[1].model_copy(update={"load": odd})))
    assert "payload.empty[2].load" in said and "triangle inequality" in said
    apart = [runs[1].model_copy(update={"share": share}) for share in ((0.0, 0.5), (0.5, 1.0))]
    assert "one known load with a deviation" in refused(with_empty(runs[0], *apart))
    gone = runs[0].model_copy(update={"file": "nowhere.csv"})
    assert "payload.empty[1].file" in refused(with_empty(gone, runs[1]))


def test_every_controller_gets_the_same_load() -> None:
    """UR in its order, Franka column by column, KUKA with principal axes by A about z, B about y, C about x, lengths in mm."""
    s = controller_settings(TOOL_MASS, TOOL_CENTRE, TOOL_INERTIA)
    xx, yy, zz, xy, xz, yz = s["ur"]["inertia"]
    assert np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) == pytest.approx(TOOL_INERTIA)
    assert s["ur"]["cog"] == pytest.approx(TOOL_CENTRE) and s["ur"]["payload"] == TOOL_MASS
    assert np.reshape(s["franka"]["load_inertia"], (3, 3), order="F") == pytest.approx(TOOL_INERTIA)
    cm, moments = s["kuka"]["CM"], np.array([s["kuka"]["J"][k] for k in "XYZ"])
    R = Rotation.from_euler("ZYX", [cm["A"], cm["B"], cm["C"]], degrees=True).as_matrix()
    assert R @ np.diag(moments) @ R.T == pytest.approx(TOOL_INERTIA, abs=1e-15)
    assert [cm["X"], cm["Y"], cm["Z"]] == pytest.approx(1e3 * TOOL_CENTRE)
    assert s["ur"]["script"].startswith("set_target_payload(2.5, [0.01, -0.02, 0.06], [0.012, 0.009, 0.014, 0.002,")
    assert s["kuka"]["script"].startswith("$LOAD = {M 2.5, CM {X 10.000, Y -20.000, Z 60.000, A ")
    assert s["inertia_known"] and set(s["conventions"]) >= {"ur", "franka", "kuka", "mass", "inertia"}


def test_a_diagonal_inertia_needs_no_turning() -> None:
    moments, angles = principal_axes(np.diag([0.3, 0.1, 0.2]))
    assert moments == pytest.approx([0.3, 0.1, 0.2]) and angles == pytest.approx((0.0, 0.0, 0.0))


@pytest.mark.parametrize("seed", range(8))
def test_principal_axes_are_right_handed_and_near_the_frame(seed: int) -> None:
    rng = np.random.default_rng(seed)
    turned = Rotation.random(random_state=seed).as_matrix()
    J = turned @ np.diag(rng.uniform(0.1, 1.0, 3)) @ turned.T
    moments, angles = principal_axes(J)
    R = Rotation.from_euler("ZYX", angles, degrees=True)
    assert R.as_matrix() @ np.diag(moments) @ R.as_matrix().T == pytest.approx(J, abs=1e-12)
    assert R.magnitude() <= np.radians(62.9)  # no frame is further than this from one of the 24 ways to name axes


def test_an_unknown_inertia_is_zero_and_named() -> None:
    s = controller_settings(TOOL_MASS, TOOL_CENTRE, None)
    assert not s["inertia_known"] and s["ur"]["inertia"] == [0.0] * 6
