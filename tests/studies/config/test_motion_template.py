"""Limits of a URDF that can be meant are kept; others are guessed, and say so.

The study file that `new` writes without a log designs a motion, and says what it guessed. The study file that `new --kind simulate`
writes runs as it is, along a table or along a guessed motion.
"""

from pathlib import Path

import numpy as np
import pytest

from veridyn.errors import FileError, ModelError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.files.yaml_reader import plain_yaml
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.studies.config.motion_template import (
    drive_limit_lines,
    excite_template,
    force_sizes,
    guessed_efforts,
    guessed_limits,
    guessed_noise,
    simulate_mechanism_template,
    simulate_template,
)
from veridyn.studies.config.study import load_study
from veridyn.studies.run.excite import excitation
from veridyn.studies.run.simulate import simulate_study

LINK = (
    '<link name="{n}"><inertial><origin xyz="0.2 0 0"/><mass value="{m}"/>'
    '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = '<joint name="{n}" type="{k}"><parent link="{p}"/><child link="{c}"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>{more}</joint>'


def robot(folder: Path) -> Path:
    """A joint with limits, one with those of nobody, one without ends, and a slide, in a row."""
    limits = (
        '<limit lower="-1" upper="0.5" velocity="1.5" effort="40"/>',
        '<limit lower="-10" upper="10" velocity="1000" effort="1000"/>',
        '<limit velocity="1" effort="2"/><dynamics friction="1.9"/>',
        '<limit lower="0" upper="0.04" velocity="0.2" effort="100"/>',
    )
    kinds = ("revolute", "revolute", "continuous", "prismatic")
    text = '<robot name="four"><link name="l0"/>'
    text += "".join(LINK.format(n=f"l{k + 1}", m=2.0 / (k + 1)) for k in range(4))
    text += "".join(JOINT.format(n=f"j{k + 1}", k=kinds[k], p=f"l{k}", c=f"l{k + 1}", more=limits[k]) for k in range(4))
    file = folder / "four.urdf"
    file.write_text(text + "</robot>")
    return file


def test_what_the_file_says_is_kept_where_it_can_be_meant(tmp_path: Path) -> None:
    file = robot(tmp_path)
    one, two, three, slide = guessed_limits(load_urdf(file), file)
    assert (one.low, one.high, one.speed, one.guessed) == (-1.0, 0.5, 1.5, ("acceleration",))
    assert (two.low, two.high, two.speed) == pytest.approx((-np.pi, np.pi, 2.0))
    assert two.guessed == ("acceleration", "range", "speed")
    assert (three.low, three.high) == pytest.approx((-np.pi, np.pi)) and "range" in three.guessed
    assert (slide.low, slide.high, slide.speed, slide.acceleration) == pytest.approx((0.0, 0.04, 0.2, 0.8))
    usable, rest = guessed_efforts(load_urdf(file), file)
    assert usable == {"j1": 40.0, "j2": 1000.0, "j4": 100.0} and rest == {"j3": 2.0}


@pytest.mark.parametrize(
    ("limit", "within"),
    [
        ((2.0, 12.0), (2.0, 2.0 + 2 * np.pi)),
        ((-10.0, 10.0), (-np.pi, np.pi)),
        ((-1.0, 0.5), (-1.0, 0.5)),
        (None, (-1.0, 1.0)),
    ],
)
def test_commands_stay_within_the_range_of_the_file(
    limit: tuple[float, float] | None, within: tuple[float, float], tmp_path: Path
) -> None:
    text = "" if limit is None else f'<limit lower="{limit[0]}" upper="{limit[1]}" velocity="1" effort="2"/>'
    kind = "continuous" if limit is None else "revolute"
    file = tmp_path / "one.urdf"
    file.write_text(
        f'<robot name="one"><link name="a"/><link name="b"/><joint name="j" type="{kind}"><parent link="a"/><child link="b"/>'
        f"{text}</joint></robot>"
    )
    (line,) = drive_limit_lines(load_urdf(file, "fixed", impossible="keep"), file)
    found = plain_yaml(line, "line").values["j"]["range"]
    assert found == pytest.approx(within, abs=5e-4)  # printed with four digits
    assert ("guessed: range" in line) == (limit != (-1.0, 0.5))


def test_machines_with_loops_move_about_the_pose_they_are_assembled_in() -> None:
    machine = load_model("veridyn:palletizer.yaml")
    limits = guessed_limits(machine, Path("palletizer.yaml"))
    assert [x.name for x in limits] == [machine.coordinates[k] for k in machine.independent]
    assert all(x.high - x.low == pytest.approx(2.0) for x in limits)
    assert force_sizes(machine, limits) == {}


def test_noise_is_two_percent_of_what_the_model_predicts(tmp_path: Path) -> None:
    """Static moments of the first joint alone, by Σ m g r cos q with all other joints straight, are of the same size."""
    file = robot(tmp_path)
    machine = load_urdf(file)
    limits = guessed_limits(machine, file)
    sizes = force_sizes(machine, limits)
    straight = Motion(np.zeros(1), *np.zeros((3, 1, 4)))
    held = abs(inverse_dynamics(machine, straight)[0, 0])
    assert 0.2 * held < sizes["j1"] < 3.0 * held
    noise = guessed_noise(machine, sizes)
    assert noise["j1"] == pytest.approx(0.02 * sizes["j1"], rel=0.05)  # two digits
    assert guessed_noise(machine, {"j1": 100.0, "j2": 1e-6, "j3": 1.0, "j4": 1e-3}) == pytest.approx(
        {"j1": 2.0, "j2": 0.1, "j3": 0.1, "j4": 2e-5}
    )


def test_it_is_read_back_and_its_motion_keeps_the_limits(tmp_path: Path) -> None:
    file, study = robot(tmp_path), tmp_path / "motion.yaml"
    text = excite_template(file, load_urdf(file), study)
    assert "efforts that the dry friction of the model uses up: j3" in text
    assert sum("guessed" in line for line in text.splitlines()[1:]) == 7
    study.write_text(text.replace("search: {starts: 4}", "search: {starts: 1, iterations: 5}"))
    loaded = load_study(study, "excite")
    assert loaded.study.limits.force == {"j1": 40.0, "j2": 1000.0, "j4": 100.0}
    assert list(loaded.study.noise.sigma) == ["j1", "j2", "j3", "j4"]
    plan = excitation(loaded).plan
    _, q, qd, _ = plan.samples()
    for k, (low, high, speed) in enumerate(
        ((-1.0, 0.5, 1.5), (-3.1416, 3.1416, 2.0), (-3.1416, 3.1416, 1.0), (0, 0.04, 0.2))
    ):
        assert low - 1e-3 <= q[:, k].min() and q[:, k].max() <= high + 1e-3
        assert abs(qd[:, k]).max() <= speed * 1.001


def test_a_model_without_values_or_limits_gets_guesses_and_no_noise(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(
        "veridyn: 2\nname: bare\nbodies:\n  - {name: a, antecedent: ground, joint: turning, coordinate: q1}\n"
    )
    machine = load_model(tmp_path / "model.yaml")
    text = excite_template(tmp_path / "model.yaml", machine, tmp_path / "study.yaml")
    assert "# noise: {sigma: {joint: 0.1, …}}" in text
    (tmp_path / "study.yaml").write_text(text)
    assert load_study(tmp_path / "study.yaml", "excite").study.limits.actuators["q1"].range == (-1.0, 1.0)


def test_a_free_base_is_refused(tmp_path: Path) -> None:
    file = robot(tmp_path)
    with pytest.raises(ModelError, match=r"whose base is held[\s\S]*--base fixed"):
        excite_template(file, load_urdf(file, "free"), tmp_path / "study.yaml")


def test_a_guessed_motion_keeps_ranges_and_speeds(tmp_path: Path) -> None:
    file, study = robot(tmp_path), tmp_path / "simulate.yaml"
    study.write_text(simulate_template(file, load_urdf(file), None, study))
    run = simulate_study(load_study(study, "simulate"))
    for joint, low, high, speed in (("j1", -1.0, 0.5, 1.5), ("j4", 0.0, 0.04, 0.2)):
        q, qd = run.truth[f"q.{joint}"].values, run.truth[f"qd.{joint}"].values
        assert low < q.min() and q.max() < high and np.ptp(q) > 0.1 * (high - low)
        assert np.abs(qd).max() < speed
    assert run.readings["q.j4"]["rms"] == pytest.approx(1e-6, rel=0.2)
    off = run.readings["force.j1"]
    assert 0.002 < off["rms"] / off["measured_rms"] < 0.2


def test_a_table_of_a_motion_is_followed(tmp_path: Path) -> None:
    file, study = robot(tmp_path), tmp_path / "simulate.yaml"
    t = 0.01 * np.arange(300)
    table = np.column_stack([t, *(0.01 * np.sin((k + 2) * t) + 0.01 for k in range(4))])
    head = "time [s]," + ",".join(f"q.j{k} [{'m' if k == 4 else 'rad'}]" for k in range(1, 5))
    np.savetxt(tmp_path / "motion.csv", table, delimiter=",", header=head, comments="")
    study.write_text(simulate_template(file, load_urdf(file), tmp_path / "motion.csv", study))
    run = simulate_study(load_study(study, "simulate"))
    np.testing.assert_allclose(run.truth["q.j2"].values, table[:, 2], atol=1e-9)
    np.savetxt(tmp_path / "other.csv", table[:, :2], delimiter=",", header="time [s],x", comments="")
    with pytest.raises(FileError, match=r"not the table of a motion[\s\S]*no q.j1"):
        simulate_template(file, load_urdf(file), tmp_path / "other.csv", study)


def test_a_mechanism_moves_as_its_loads_say(tmp_path: Path) -> None:
    machine, study = load_model("veridyn:crane.yaml"), tmp_path / "simulate.yaml"
    from veridyn.files.access import resolved

    text = simulate_mechanism_template(resolved(Path("veridyn:crane.yaml")), machine, study)
    study.write_text(text.replace("duration: 20", "duration: 0.5"))
    loaded = load_study(study, "simulate")
    assert loaded.study.model.file == "veridyn:crane.yaml" and list(loaded.study.inputs.formulas) == ["motor"]
    assert simulate_study(loaded).figures["duration"] == pytest.approx(0.5)


def test_rotors_that_are_identified_are_excited(tmp_path: Path) -> None:
    """A transmission of a URDF: `new` proposes the same rotors for the motion as for the identification, and forces stay limited."""
    file = robot(tmp_path)
    gear = '<transmission name="t{k}"><joint name="j{k}"/><actuator name="m{k}"/></transmission>'
    text = file.read_text().replace("</robot>", "".join(gear.format(k=k) for k in (1, 2)) + "</robot>")
    file.write_text(text)
    machine, study = load_urdf(file), tmp_path / "motion.yaml"
    written = excite_template(file, machine, study)
    assert [line.split("}")[0] + "}" for line in written.splitlines() if "kind: inertia" in line and "    - {" in line][
        :2
    ] == [f"    - {{kind: inertia, on: j{k}, value: 0}}" for k in (1, 2)]
    study.write_text(written.replace("harmonics: 5", "harmonics: 1").replace("starts: 4", "starts: 1, iterations: 2"))
    plan = excitation(load_study(study, "excite")).plan
    assert {"Ia_j1", "Ia_j2"} <= set(plan.base.parameters.names) and "force of j1" in plan.used
