"""Logs of Pinocchio's machines with structure that their models lack: the physics by other means, and the score on a few of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from benchmarks.calibration_foreign import QUANTUM
from benchmarks.damage.__main__ import main
from benchmarks.damage.bench import Answer
from benchmarks.damage.foreign import FOREIGN_KINDS, WRIST_KINDS, case, clean_bench
from benchmarks.damage.kinds import DAMAGES, Damage, Table, whole
from benchmarks.damage.run import Clean, Job, Line, as_json, lines_of, outcomes
from benchmarks.damage.score import Outcome, damaged, named, visible
from benchmarks.damage.structure import (
    STRIBECK_SPEED,
    asymmetric,
    flexible,
    load_friction,
    payload,
    rotor,
    separate_rotors,
    stribeck,
    tilted,
    warm_up,
)
from benchmarks.damage.untold import CASES, Untold, run
from benchmarks.damage.world import MACHINES, World, machine_of, world
from benchmarks.damage.wrist import coupled_motors, coupling_reversed, gear_reversed, without_coupling
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import veridyn as vd
from veridyn.identify.diagnosis.signature_samples import samples_of

Array = NDArray[np.float64]
ROUNDING = 1e-9  # of torques: two codes in double precision
TABLES = {d.name: d for d in DAMAGES}


@dataclass(frozen=True)
class Found:
    """A finding as a fit has it."""

    cause: str
    place: str
    rank: int
    alternatives: tuple[tuple[str, str], ...] = ()


def forces(x: Table) -> Array:
    return np.stack([v for k, v in x.items() if k.startswith("force")], axis=1)


def torques(w: World) -> Array:
    return forces(w.log(quiet=True))


@pytest.mark.parametrize("name", list(MACHINES))
def test_log_and_model_file_are_of_one_machine(name: str) -> None:
    """Torques of a world against those of veridyn with the true values: no code in common."""
    w, machine = world(name, 1, seconds=0.2), machine_of(name)
    machine = machine.with_parameters(machine.parameters.replacing(dict(w.values)))
    own = vd.inverse_dynamics(machine, vd.Motion(w.t, *w.states))
    if machine.transmission is not None:
        own = machine.transmission.motor_forces(own)
    assert np.allclose(torques(w), own, rtol=0.0, atol=ROUNDING * np.abs(own).max())


def test_friction_is_most_of_what_the_motors_of_the_wrist_give() -> None:
    w = world("wrist", 2, seconds=5.0)
    share = np.std(w.friction @ w.subject.combined, axis=0) / np.std(w.rigid, axis=0)
    assert share.min() > 1.0


def test_a_flexible_joint_follows_its_equations_of_motion() -> None:
    """Motor and link of one joint integrated by SciPy under the torques of the log, with Pinocchio's aba for the links, against the log.

    Rotor and friction are the motor's: Ia φ̈ = τ_m − h φ̇ − fs sign(φ̇) − (φ − q)/c. The piece is 0.1 s long, begins in the state of the log,
    and has no reversal. Torques between samples are cubics, and the speed at first a difference of samples: hence the tolerances.
    """
    w, k, c = world("arm", 3, seconds=1.0), 2, 2e-4
    x = flexible(w, c, (k,), quiet=True)
    start, length, step = 100, 50, w.t[1] - w.t[0]
    phi, end = x["q.q3"], start + length
    q, qd, _ = w.states
    speed = np.gradient(phi, step, edge_order=2)
    signs = np.sign(np.column_stack([qd, speed]))
    assert (signs[start : end + 1] == signs[start]).all()
    given = CubicSpline(w.t, forces(x))
    Ia, h, fs = (w.law(word) for word in ("Ia", "h", "fs"))
    model = w.subject.pin_model(w.values)
    model.armature = np.where(np.arange(4) == k, 0.0, Ia)  # the other rotors move with their links
    data = model.createData()

    def rates(at: float, y: Array) -> Array:
        tau, spring = given(at), (y[8] - y[k]) / c
        links = tau - h * y[4:8] - fs * signs[start, :4]
        links[k] = spring
        motor = (tau[k] - h[k] * y[9] - fs[k] * signs[start, 4] - spring) / Ia[k]
        return np.concatenate([y[4:8], pin.aba(model, data, y[:4], y[4:8], links), [y[9], motor]])

    first = np.concatenate([q[start], qd[start], [phi[start], speed[start]]])
    last = solve_ivp(rates, (w.t[start], w.t[end]), first, rtol=1e-9, atol=1e-12).y[:, -1]
    assert np.allclose(last[:4], q[end], atol=1e-5)
    assert last[8] - last[k] == pytest.approx(phi[end] - q[end, k], rel=0.02)


def test_a_rotor_is_its_inertia_times_the_acceleration_of_its_joint() -> None:
    w = world("arm", 4, seconds=0.5)
    more = forces(rotor(w, 0.3, (2,), True)) - torques(w)
    assert np.allclose(more[:, 2], 0.3 * w.states[2][:, 2]) and np.allclose(np.delete(more, 2, axis=1), 0.0)
    assert np.allclose(torques(w.with_values({"Ia_q3": w.values["Ia_q3"] + 0.3})) - torques(w), more)


def test_friction_that_a_model_lacks_acts_as_it_is_defined() -> None:
    """By hand from speeds and loads, at one joint of an arm without gears, where the load is the rigid torque."""
    w, k = world("arm", 5, seconds=2.0), 1
    v, rigid, before = w.states[1][:, k], w.rigid[:, k], torques(w)[:, k]
    h, fs = w.values["h_q2"], w.values["fs_q2"]
    t = w.t / w.t[-1]
    wanted = {
        load_friction: 0.1 * np.abs(rigid) * np.sign(v),
        warm_up: 0.1 * np.exp(-3.0 * t) * (h * v + fs * np.sign(v)),
        asymmetric: 0.1 * (h * np.abs(v) + fs),
        stribeck: 0.1 * fs * np.sign(v) * np.exp(-((v / STRIBECK_SPEED) ** 2)),
    }
    for law, more in wanted.items():
        assert np.allclose(law(w, 0.1, (k,), True)["force.q2"] - before, more), law.__name__


def test_a_payload_is_carried_from_the_middle_on() -> None:
    """2 kg on the last body: nothing before the middle of the log, and its weight on the lifting joint afterwards."""
    w = world("arm", 6, seconds=1.0)
    more = payload(w, 2.0, (0,), True)["force.q2"] - torques(w)[:, 1]
    half = len(w.t) // 2
    assert not more[:half].any() and np.abs(more[half + 1 :]).min() > 0.0


def test_a_leaning_base_weighs_on_the_vertical_axis() -> None:
    """Upright, gravity gives an axis along it no torque; leaning by a small angle it gives one in proportion."""
    w = world("arm", 7, seconds=0.5)
    small, large = (tilted(w, a, (1,), True)["force.q1"] - torques(w)[:, 0] for a in (0.01, 0.02))
    assert np.abs(small).max() > 0.0 and np.allclose(large, 2.0 * small, rtol=1e-3)


def test_rotors_that_are_one_with_their_bodies_are_left_out() -> None:
    """In worlds whose rotor moves into the moment of the body, torques stay the same for these joints alone."""
    w = world("arm", 8, seconds=0.5)
    same = [
        np.allclose(
            torques(w.with_values({f"Ia_q{k}": 0.0, f"ZZ{k}": w.values[f"ZZ{k}"] + w.values[f"Ia_q{k}"]})), torques(w)
        )
        for k in (1, 2, 3, 4)
    ]
    assert [k for k in range(4) if not same[k]] == separate_rotors(machine_of("arm")) == [2, 3]


def test_models_with_wrong_gears() -> None:
    machine = machine_of("wrist")
    assert machine.transmission is not None and coupled_motors(machine) == [5]
    theta = np.arange(1.0, 7.0)
    joints = machine.transmission.joints_from_motors(theta)
    for wrong, sign in ((without_coupling(machine), 0.0), (coupling_reversed(machine), -1.0)):
        assert wrong.transmission is not None
        other = wrong.transmission.joints_from_motors(theta)
        assert np.allclose(other[:5], joints[:5])
        assert other[5] == pytest.approx(theta[5] / 32.0 - sign * theta[4] / 45.0)  # the file's ratios
    turned = gear_reversed(machine, 3).transmission
    assert turned is not None
    assert np.allclose(turned.joints_from_motors(theta), joints * [1, 1, 1, -1, 1, 1])


def test_every_kind_changes_the_log_or_the_model() -> None:
    for kind in (*FOREIGN_KINDS, *WRIST_KINDS):
        bench, d = case(kind, 2)
        x, machine = damaged(bench, d, 1.0 if d.sizes is None else d.sizes[1])
        changed = any(not np.array_equal(x[k], bench.table[k]) for k in x)
        assert changed or machine.transmission != bench.machine.transmission, kind
        assert x.keys() == bench.table.keys()


def test_a_structure_of_no_size_leaves_the_undamaged_log() -> None:
    for kind in ("rotor inertia missing", "load-dependent friction", "flexible joint", "gravity tilted"):
        bench, d = case(kind, 1)
        x, _ = damaged(bench, d, 0.0)
        quantum = QUANTUM if kind == "flexible joint" else 0.0  # −0.0 and 0.0 may be rounded apart
        assert all(np.allclose(x[k], bench.table[k], atol=quantum + 1e-12) for k in x), kind


def test_damage_of_tables() -> None:
    """Twenty levels of a force, a lag of first order, an encoder that drifts, and a swap from the middle on, each by hand."""
    rng, t = np.random.default_rng(1), np.arange(2000) / 500.0
    ramp = np.linspace(0.0, 1.0, len(t))
    x = {"t": t} | {f"q.q{k}": np.full(len(t), float(k)) for k in (1, 2, 3)} | {"force.q1": ramp.copy()}
    TABLES["torque in steps"].apply(x, 0.05, rng)
    assert len(np.unique(x["force.q1"])) == 21  # from 0 to 1 in steps of 0.05
    x["force.q1"] = ramp.copy()
    TABLES["torque behind a low-pass"].apply(x, 0.1, rng)
    slope = ramp[1] * 500.0
    assert ramp[-1] - x["force.q1"][-1] == pytest.approx(
        0.1 * slope, rel=0.02
    )  # a ramp is late by the time constant, to half a step
    TABLES["positions swapped halfway"].apply(x, 1.0, rng)
    assert x["q.q2"][[0, 999, 1000, -1]].tolist() == [2.0, 2.0, 3.0, 3.0] and x["q.q3"][-1] == 2.0
    TABLES["drifting encoder"].apply(x, 0.5, rng)
    ends = {k: v[-1] - v[999] - (1.0 if k == "q.q2" else -1.0) for k, v in x.items() if k in ("q.q2", "q.q3")}
    assert max(ends.values()) == pytest.approx(0.25, abs=1e-3)


def test_the_first_finding_decides_and_its_joint_counts() -> None:
    d = Damage("rotor", whole, ("rotor",), causes=("rotor",))
    right, other = Found("rotor inertia", "joint q3", 1), Found("delay", "q3", 1)
    assert named(d, [right], [], ("q3",)) and not named(d, [right], [], ("q2",)) and named(d, [right], [], ())
    pair = replace(other, alternatives=(("rotor inertia", "q3"),))
    assert named(d, [pair], [], ("q3",)) and not named(d, [pair], [], ("q1",))  # a pair that cannot be told apart
    assert not named(d, [other, replace(right, rank=2)], ["rotor"], ("q3",))
    assert named(d, [], ["perhaps a rotor"], ()) and not named(d, [], [], ())
    signals = Damage("spike", whole, ("spike",))
    assert named(signals, [other], ["a spike"], ())  # a damage of signals is named by a warning


def test_findings_of_the_undamaged_log_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, d = case("rotor inertia missing", 1)
    old, new = Found("offset", "q1", 1), Found("rotor inertia", "q3", 2)
    plain = bench.good("off")
    answers = {True: (old,), False: (old, new)}

    def identified(_self: object, x: dict[str, Array], *_: object) -> Answer:
        clean = np.array_equal(x["force.q3"], bench.table["force.q3"])
        return replace(plain, findings=answers[clean])

    monkeypatch.setattr(type(bench), "identified", identified)
    (line,) = lines_of(bench, replace(d, sizes=None, places=("q3",)), "fast")
    assert line.outcome.kind == "named" and line.outcome.said == "rotor inertia q3"


def test_a_job_scores_one_kind_of_one_seed() -> None:
    found = outcomes(Job("foreign", "coupling missing", 2, "fast"))
    assert [line.kind for line in found] == ["coupling missing"] and found[0].joints == 3
    assert found[0].outcome.kind in ("named", "warned")


def test_undamaged_logs_are_explained_by_their_models() -> None:
    """Errors of the parameters in their deviations: χ² of the 18 of the geared machine has a mean of 1 and seldom exceeds 2.5."""
    bench, w = clean_bench(4), world("geared", 4)
    answer = bench.identified(bench.log(), bench.machine, "off")
    assert answer.fit is not None
    base = answer.fit.base
    z = (answer.values - base.reduce([w.values[name] for name in base.parameters.names])) / answer.sigma
    assert np.mean(z**2) < 2.5


def test_runs_with_untold_structure_are_wrong_where_errors_say_so() -> None:
    assert set(CASES) == {"rotor", "load friction", "flexibility", "warm-up"}
    found = run("load friction", 2, "off")
    assert found.wrong and found.silently_wrong and found.said == ""
    right = Untold("rotor", 1, 1.0, 3.0, False, "")
    assert not right.wrong and replace(right, worst=5.5).silently_wrong
    assert not replace(right, mean_square=4.0, first=True).silently_wrong


def test_clean_logs_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--foreign", "--clean", "1", "--seed", "3", "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert list(told) == ["clean"] and told["clean"]["seed"] == 3000


def test_lines_of_several_runs_make_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged log that was named, one that was missed, a clean log, and a run that was refused, whose errors are infinite."""
    logs = [
        Line("rust", "arm 1", 1.0, 4, Outcome("named", 0.1, said="rust q2")),
        Line("rust", "arm 3", 1.0, 4, Outcome("silent", 0.1, 5.0)),
    ]
    records: list[dict[str, Any]] = [{"damaged": asdict(x)} for x in logs]
    records += [{"clean": asdict(Clean(3000, "geared 3000", ()))}]
    records += [{"untold": asdict(Untold("rotor", 1, np.inf, np.inf, False, "refused"))}]
    for k, part in enumerate((records[:1], records[1:])):
        (tmp_path / f"{k}.jsonl").write_text("".join(f"{json.dumps(as_json(r))}\n" for r in part), encoding="utf-8")
    main(["--summary", str(tmp_path / "0.jsonl"), str(tmp_path / "1.jsonl")])
    out = capsys.readouterr().out
    assert "2 damaged logs: 50.0 % named, 0.0 % warned, 50.0 % silent" in out
    assert "0 false alarms on 1 clean logs" in out
    assert "seed 1: mean z² inf, worst inf, visible nan: refused" in out


def test_unknown_kinds_are_refused_by_name() -> None:
    with pytest.raises(SystemExit, match="no such kind: rust"):
        main(["--foreign", "--kind", "rust"])


def test_reversals_of_motors_that_turn_two_joints_show_no_drift() -> None:
    """An encoder that drifts turns the sign of a motor's slow speed, not that of a joint's; forces there are those of dry friction.

    Against the size that the diagnosis knows: 4.2 rad of the motor are as many deviations as its own column has, not a hundred.
    """
    bench, d = case("drifting encoder", 9214)
    assert visible(d, 4.2, bench, "fast") < 5.0


def test_what_is_visible_allows_for_the_memory_of_the_noise() -> None:
    """A base that leans, against generalised least squares: δ_⊥ of the log without noise under the covariance a^|i−j| of its noise.

    The true memory of 0.9 and the true size of the noise stand in for those measured in `visible`, of 9,000 samples: 5 % at most.
    """
    bench, d = case("gravity tilted", 1)
    fit, (motion,), how = bench.prepared(bench.log(quiet=True), bench.machine, "fast")
    _, (after,), _ = bench.prepared(*damaged(bench, d, 0.01, quiet=True), "fast")
    subject = MACHINES["arm"]
    rows, every = [r.row for r in fit.rows], replace(how, dead_zone={})
    x, y = (samples_of(fit, [m], rows, every, window=1) for m in (motion, after))
    used = np.stack(
        [how.uses(fit.described, r, motion.qd, np.arange(len(motion)), len(motion), 0) for r in rows], axis=1
    )
    whiten = 1.0 / (subject.noise * np.sqrt(1.0 - 0.9**2))

    def innovations(z: Array) -> Array:
        return (z[1:] - 0.9 * z[:-1]) * (used[1:] * whiten).reshape(len(z) - 1, -1, *[1] * (z.ndim - 2))

    W, change = innovations(y.W).reshape(-1, y.W.shape[2]), innovations(y.y - x.y).ravel()
    left = change - W @ np.linalg.lstsq(W, change, rcond=None)[0]
    assert visible(d, 0.01, bench, "fast") == pytest.approx(np.linalg.norm(left), rel=0.05)
