import hashlib
import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strangers.random_trees import random_motion, random_open_machine
from veridyn.errors import DataError, FileError
from veridyn.files.archive import load, save
from veridyn.files.machine.write_parts import differences
from veridyn.identify.base import base_parameters
from veridyn.identify.estimate import identify
from veridyn.identify.result import Fit, ReplaySettings
from veridyn.identify.settings import TWO_SIGMA_BELOW_TEN, IdentifySettings
from veridyn.inference.error_measures import RowReport
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.graph import Body
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

REPORTS = ("row", "samples", "rms", "measured_rms", "sigma")


def make(seed=1, **changes):
    rng = np.random.default_rng(seed)
    ten = from_centre(2.1, (0.2, 0.03, -0.1), np.diag([0.011, 0.03, 0.031]))
    bodies = [Body("1", placement=MDH(alpha=0.3)), Body("2", "1", placement=MDH(0.1, 0.2, 0.3, 0.4, 0.5, 0.6))]
    machine = Machine.of_bodies(
        bodies, name="two", inertia={"1": ten}, elements=[damper("q1", 1 / 3), coulomb({"q1": 1.0, "q2": -1.0})]
    )
    machine = machine.with_parameters(machine.parameters.known(["h_q1"]))
    q, qd, qdd = rng.standard_normal((3, 60, 2))
    motion = Motion(np.arange(60) / 10, q, qd, qdd)
    phi = np.where(
        np.isfinite(machine.parameters.values),
        machine.parameters.values,
        rng.uniform(0.1, 1.0, len(machine.parameters)),
    )
    forces = inverse_dynamics(machine, motion, parameters=phi) + 0.01 * rng.standard_normal((60, 2))
    fit = identify(
        machine,
        replace(motion, forces=forces),
        settings=IdentifySettings(acceptance=TWO_SIGMA_BELOW_TEN),
        diagnose="off",
    )
    return replace(fit, **changes) if changes else fit


@pytest.fixture
def saved(tmp_path):
    return save(make(), tmp_path / "fit.json")


def same(a: Fit, b: Fit) -> None:
    for name in ("estimator", "residual_sigma", "condition", "condition_scaled", "acceptance", "notes", "removed"):
        assert getattr(a, name) == getattr(b, name), name
    assert (a.names, a.units) == (b.names, b.units)
    for name in ("values", "covariance", "sigma", "relative_sigma", "standard", "priors"):
        assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True), name
    for x, y in zip(a.rows, b.rows, strict=True):
        assert np.array_equal(
            [getattr(x, r) for r in REPORTS[1:]], [getattr(y, r) for r in REPORTS[1:]], equal_nan=True
        )
        assert x.row == y.row
    for name in ("columns", "dead", "source"):
        assert getattr(a.base, name) == getattr(b.base, name)
    assert np.array_equal(a.base.gap, b.base.gap)
    assert np.array_equal(a.base.matrix, b.base.matrix)
    assert np.array_equal(a.base.singular_values, b.base.singular_values)
    p, r = a.described.parameters, b.described.parameters
    assert (p.names, p.units, p.states, dict(p.ties)) == (r.names, r.units, r.states, dict(r.ties))
    assert np.array_equal(p.values, r.values, equal_nan=True) and np.array_equal(p.typical, r.typical)
    assert differences(a.described, b.described) == () and a.formulation == b.formulation
    assert a.summary() == b.summary()


def edited(path, change):
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def refused(path):
    with pytest.raises(FileError) as caught:
        load(path)
    return str(caught.value)


def test_what_is_loaded_is_what_was_saved_to_the_last_bit(saved):
    same(make(), load(saved))
    assert sorted(p.name for p in saved.parent.iterdir()) == ["fit.json", "fit.npz"]


def test_numbers_that_are_not_finite_come_back(tmp_path):
    rows = (RowReport("q1", 3, float("nan"), 0.0, float("inf")),)
    odd = make(rows=rows, residual_sigma=float("-inf"), removed=("fs_q1_q2",), notes=("σ, a note\nin two lines",))
    found = load(save(odd, tmp_path / "odd.json"))
    assert np.isnan(found.rows[0].rms) and found.rows[0].sigma == np.inf and found.residual_sigma == -np.inf
    assert found.removed == ("fs_q1_q2",) and found.notes == odd.notes
    assert "NaN" not in (tmp_path / "odd.json").read_text(encoding="utf-8")  # any JSON reader can read it


def test_equal_fits_give_equal_files(tmp_path):
    a, b = save(make(), tmp_path / "fit.json"), save(make(), (tmp_path / "b").with_suffix(".json"))
    assert a.with_suffix(".npz").read_bytes() == b.with_suffix(".npz").read_bytes()


def test_the_json_file_can_be_read_by_people(saved):
    content = json.loads(saved.read_text(encoding="utf-8"))
    assert content["kind"] == "fit" and content["names"] == list(make().names)
    assert content["values"] == list(make().values)
    assert content["model"].startswith("veridyn: 2\nname: two\n")
    with np.load(saved.with_suffix(".npz"), allow_pickle=False) as arrays:
        assert np.array_equal(arrays["covariance"], make().covariance)


def test_nothing_is_written_over_unasked(saved):
    before = saved.read_bytes(), saved.with_suffix(".npz").read_bytes()
    with pytest.raises(FileError, match=r"fit\.json, it exists already(.|\n)*overwrite=True"):
        save(make(2), saved)
    saved.unlink()
    with pytest.raises(FileError, match=r"fit\.npz, it exists already"):
        save(make(2), saved)
    assert not saved.exists() and saved.with_suffix(".npz").read_bytes() == before[1]
    same(make(2), load(save(make(2), saved, overwrite=True)))


def test_another_suffix_and_a_stranger_base_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"a name that ends in \.json, found fit\.npz"):
        save(make(), tmp_path / "fit.npz")
    other = Machine.of_bodies([Body("1"), Body("2", "1")])
    with pytest.raises(DataError, match="not those of its tree"):
        save(make(base=base_parameters(other)), tmp_path / "fit.json")
    assert not list(tmp_path.iterdir())


def test_a_missing_file_names_its_neighbours(saved):
    assert "Did you mean 'fit.json'?" in refused(saved.with_name("fitt.json"))
    assert "no such file" in refused(saved.parent / "nowhere" / "fit.json")


@pytest.mark.parametrize("keep", [0, 1, 200, -3])
def test_a_file_that_was_cut_off_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    assert "it is not JSON, or its end is missing" in refused(saved)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[" * 100_000, b"[1, 2]", b"{}", b'"text"'])
def test_garbage_is_refused(saved, content):
    saved.write_bytes(content)
    assert "fit.json" in refused(saved)


def test_other_versions_and_kinds_are_refused_with_both_versions(saved):
    text = refused(edited(saved, lambda c: c.update(format=2, veridyn="9.9")))
    assert "Expected format 1, kind 'fit', found format 2, kind 'fit'." in text and "written by veridyn 9.9" in text
    assert "kind 'run'" in refused(edited(saved, lambda c: c.update(format=1, kind="run")))


def test_every_fault_of_the_json_is_told_at_once(saved):
    def spoil(content):
        content["values"][1] = "much"
        content["rows"][0]["samples"] = 1.5
        content["colour"] = "red"
        del content["gap"]

    text = refused(edited(saved, spoil))
    assert "4 faults" in text
    for place in ("values.1:", "rows.0.samples:", "colour:", "gap:"):
        assert place in text


def test_arrays_that_are_missing_or_not_their_own_are_refused(saved, tmp_path):
    beside = saved.with_suffix(".npz")
    whole = beside.read_bytes()
    beside.write_bytes(whole[:-1])
    assert "'fit.npz' is not the file that was saved with it." in refused(saved)
    beside.unlink()
    assert "'fit.npz' cannot be read" in refused(saved) and "Keep both files together" in refused(saved)
    (tmp_path / "other").mkdir()
    save(make(2), tmp_path / "other" / "fit.json")
    beside.write_bytes((tmp_path / "other" / "fit.npz").read_bytes())
    assert "belongs to another result" in refused(saved)
    assert "a file beside it" in refused(edited(saved, lambda c: c["arrays"].update(file="../fit.npz")))


def rewritten(path, **arrays):
    """The NPZ file with some arrays replaced (None: left out), and the JSON file told of it."""
    beside = path.with_suffix(".npz")
    with np.load(beside) as archive:
        content = {n: archive[n] for n in archive.files} | arrays
    np.savez(beside, **{n: a for n, a in content.items() if a is not None})
    digest = hashlib.sha256(beside.read_bytes()).hexdigest()
    return edited(path, lambda c: c["arrays"].update(sha256=digest))


def test_arrays_of_another_shape_or_kind_are_refused(saved):
    text = refused(
        rewritten(
            saved,
            covariance=np.eye(2),
            columns=None,
            dead=np.array([999]),
            matrix=make().base.matrix.astype(np.float32),
        )
    )
    assert "4 faults" in text
    assert "array 'covariance' does not fit" in text and "there is no array 'columns'" in text
    assert "array 'dead' names parameters that do not exist" in text and "float32" in text


def test_columns_of_other_parameters_do_not_pass(saved):
    columns = np.array(make().base.columns)[::-1]
    assert "its names are not those" in refused(rewritten(saved, columns=columns))


def test_a_pickle_is_never_opened(saved):
    beside = saved.with_suffix(".npz")
    for content in (pickle.dumps({"covariance": 1}), b"PK\x03\x04 nonsense"):
        beside.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        assert "no NPZ file of numbers" in refused(edited(saved, lambda c, d=digest: c["arrays"].update(sha256=d)))
    assert "it holds Python objects" in refused_with_objects(saved)


def refused_with_objects(path):
    beside = path.with_suffix(".npz")
    np.savez(beside, covariance=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    digest = hashlib.sha256(beside.read_bytes()).hexdigest()
    return refused(edited(path, lambda c: c["arrays"].update(sha256=digest)))


def spoiled(path, content: bytes):
    path.with_suffix(".npz").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return refused(edited(path, lambda c: c["arrays"].update(sha256=digest)))


def test_a_damaged_stream_with_a_valid_digest_is_refused(saved):
    whole = saved.with_suffix(".npz").read_bytes()
    for at in range(60, 400, 40):
        data = bytearray(whole)
        data[at] ^= 0xFF
        text = spoiled(saved, bytes(data))
        assert "fit.json, arrays, 'fit.npz'" in text and ("damaged" in text or "header" in text)


def test_a_matrix_that_is_no_covariance_is_refused(saved):
    good = make().covariance
    negative, turned, crossed, open_ = good.copy(), good.copy(), good.copy(), good.copy()
    negative[1, 1] *= -1.0
    turned[0, 1] += np.sqrt(good[0, 0] * good[1, 1])
    crossed[0, 1] = crossed[1, 0] = 2.0 * np.sqrt(good[0, 0] * good[1, 1])
    open_[0, 1] = open_[1, 0] = np.nan
    for wrong, found in (
        (negative, "found the variance -"),
        (turned, "not symmetric"),
        (crossed, "correlations with the eigenvalue -"),
        (open_, "not finite"),
    ):
        text = refused(rewritten(saved, covariance=wrong))
        assert "array 'covariance' is no covariance" in text and found in text
    unknown = good.copy()
    unknown[0] = unknown[:, 0] = np.nan  # a variance that nobody knows is none of these
    assert np.isnan(load(rewritten(saved, covariance=unknown)).covariance[0]).all()


def test_a_model_that_is_spoiled_is_told_with_its_line(saved):
    text = refused(edited(saved, lambda c: c.update(model=c["model"].replace("antecedent: 1", "antecedent: 7"))))
    assert "the model inside fit.json" in text and "'7'" in text


def test_removed_names_must_exist(saved):
    text = refused(edited(saved, lambda c: c.update(removed=["fs_q1_q3"])))
    assert "'fs_q1_q3' is removed, but is no parameter" in text and "Did you mean 'fs_q1_q2'?" in text


@pytest.mark.parametrize("estimator", ["map", "consistent"])
def test_what_an_estimator_decides_beyond_the_base_comes_back(estimator: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    machine = random_open_machine(rng, bodies=2, kinds=("turning",))
    motion = random_motion(rng, machine, 200, wrenches=False)
    forces = inverse_dynamics(machine, motion)
    motion = replace(motion, forces=forces + 0.05 * rng.normal(size=forces.shape))
    fit = identify(machine, motion, estimator)
    again = load(save(fit, tmp_path / "fit.json"))
    for name in ("standard_values", "standard_covariance", "prior_share", "posterior_mean"):
        before, after = getattr(fit, name), getattr(again, name)
        assert (before is None) == (after is None)
        assert before is None or np.array_equal(before, after, equal_nan=True)
    assert again.feasibility == fit.feasibility and np.array_equal(again.standard, fit.standard)


def test_the_formulation_of_a_machine_comes_back(tmp_path: Path) -> None:
    """A fit of a machine in natural coordinates gives one in natural coordinates; a key that older versions wrote is taken."""
    ten = from_centre(2.0, (0.5, 0.0, 0.0), np.diag([0.01, 0.1, 0.1]))
    rod, hinge = Link(name="rod", inertia=ten), Joint(name="hinge", a="ground", b="rod", actuated=True)
    pendulum = Machine.build([rod], [hinge], dimension=2, formulation="natural")
    t = 0.01 * np.arange(200)
    q, qd, qdd = (x[:, None] for x in (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)))
    fit = identify(pendulum, Motion(t, q, qd, qdd, forces=0.6 * qdd + 9.81 * np.cos(q)), diagnose="off")
    file = save(fit, tmp_path / "fit.json")
    for again in (load(file), load(edited(file, lambda c: c.update(described=False)))):
        same(fit, again)
        assert fit.formulation == again.machine().formulation == "natural" and again.described.formulation == "tree"


def test_how_a_fit_simulates_comes_back_and_is_checked(tmp_path: Path) -> None:
    """A loaded fit by output error is judged as the one that was saved; a control law is a program, and stays behind."""
    chosen = ReplaySettings(hold="zero", friction_speed=0.0, substeps=3, outputs=("q2",))
    file = save(make(replay_settings=chosen), tmp_path / "fit.json")
    assert load(file).replay_settings == chosen and np.isinf(chosen.horizon)
    assert load(save(make(), tmp_path / "plain.json")).replay_settings is None
    closed = replace(chosen, law=lambda t, q, qd: q)
    assert load(save(make(replay_settings=closed), tmp_path / "closed.json")).replay_settings is None
    file.write_text(file.read_text(encoding="utf-8").replace('"substeps": 3', '"substeps": 0'), encoding="utf-8")
    with pytest.raises(FileError, match=r"replay\.substeps: Input should be greater than or equal to 1"):
        load(file)
