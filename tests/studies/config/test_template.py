from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.bench_robot import Bench, robot, table
from studies.closed_bench import ClosedBench
from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.machines import palletizer
from veridyn.model.graph import Body
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.studies.config.guessing import pick
from veridyn.studies.config.study import load_study, parse_study
from veridyn.studies.config.template import template
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.machine import study_machine


def written(folder: Path, header: str | None, machine: Machine | None = None):
    bench = Bench(folder)
    bench.write()
    if header is not None:
        body = table(bench.training).split("\n", 1)[1]
        (folder / "training.csv").write_text(header + "\n" + body)
    text = template(folder / "model.yaml", machine or robot(), [folder / "training.csv"], folder / "new.yaml")
    return parse_study(plain_yaml(text, "new.yaml")), text


def test_columns_are_matched_by_number_and_marked_as_guesses(tmp_path: Path) -> None:
    study, text = written(tmp_path, None)
    assert {k: c.column for k, c in study.log.columns.items()} == {
        **{f"q.q{k}": f"q{k}" for k in (1, 2, 3)},
        **{f"qd.q{k}": f"qd{k}" for k in (1, 2, 3)},
        **{f"force.q{k}": f"tau{k}" for k in (1, 2, 3)},
    }
    assert study.log.columns["force.q2"].unit == "N*m"
    assert text.count("unit guessed") == 10  # nine columns and the clock
    assert study.training[0].share == (0.0, 0.7) and study.validation[0].share == (0.7, 1.0)
    assert study.model.file == "model.yaml"


def test_what_was_written_runs_as_it_is(tmp_path: Path) -> None:
    _, text = written(tmp_path, None)
    (tmp_path / "new.yaml").write_text(text.replace("lowpass: auto", "lowpass: 8"))
    found = run_identify(load_study(tmp_path / "new.yaml"))
    assert found.suspicions == () and found.missed == ()


@pytest.mark.parametrize(
    ("header", "column", "unit"),
    [
        ("time [ms],pos.0 [deg],pos.1 [deg],pos.2 [deg],v0,v1,v2,torque_0,torque_1,torque_2", "pos.0", "deg"),
        (
            "stamp,angle_q1,angle_q2,angle_q3,speed_q1,speed_q2,speed_q3,effort_q1,effort_q2,effort_q3",
            "angle_q1",
            "rad",
        ),
        ("t,position[1],position[2],position[3],vel[1],vel[2],vel[3],tau[1],tau[2],tau[3]", "position[1]", "rad"),
    ],
)
def test_other_ways_to_name_columns(tmp_path: Path, header: str, column: str, unit: str) -> None:
    study, _ = written(tmp_path, header)
    assert len(study.log.columns) == 9
    assert study.log.columns["q.q1"].column == column and study.log.columns["q.q1"].unit == unit


def test_what_is_not_found_is_said(tmp_path: Path) -> None:
    study, text = written(tmp_path, "t,q1,b,c,d,e,f,tau1,h,k")
    assert list(study.log.columns) == ["q.q1", "force.q1"]
    assert "lock: [q2, q3] # guessed: 2 joints have no column" in text
    assert "# columns not used: b, c, d, e, f, h, k" in text


def test_friction_is_proposed_where_the_model_has_none(tmp_path: Path) -> None:
    study, _ = written(tmp_path, None, Machine.of_bodies([Body("1")]))
    assert [e.kind for e in study.model.elements] == ["damper", "coulomb", "offset"]
    assert list(study.log.columns) == ["q.q1", "qd.q1", "force.q1"]


def test_a_log_in_several_files(tmp_path: Path) -> None:
    raw = Bench(tmp_path).training
    np.savetxt(tmp_path / "run_time.txt", raw["t"])
    np.savetxt(tmp_path / "run_positions.txt", np.column_stack([raw[f"q{k}"] for k in (1, 2, 3)]).ravel())
    np.savetxt(tmp_path / "run_torques.txt", np.column_stack([raw[f"tau{k}"] for k in (1, 2, 3)]).ravel())
    files = [tmp_path / f"run_{part}.txt" for part in ("time", "positions", "torques")]
    study = parse_study(plain_yaml(template(tmp_path / "model.yaml", robot(), files, tmp_path / "new.yaml")))
    assert study.log.parts["run_positions"].interleaved
    assert study.log.columns["force.q3"].column == "force3"
    assert study.training[0].files["run_time"] == "run_time.txt"
    with pytest.raises(FileError, match="none of these files is a clock"):
        template(tmp_path / "model.yaml", robot(), files[1:], tmp_path / "new.yaml")


def test_a_table_without_header_lists_its_columns(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    text = table(Bench(tmp_path).training).split("\n", 1)[1]
    (tmp_path / "training.csv").write_text(text)
    study = parse_study(
        plain_yaml(template(tmp_path / "model.yaml", robot(), [tmp_path / "training.csv"], tmp_path / "n.yaml"))
    )
    assert study.log.header == tuple(f"c{k}" for k in range(1, 11))
    assert study.log.time == "c1 [s]"


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("t,q1,q2,q4,tau_q1,tau_q2,tau_q4", ("q1", "q2", "q4", "tau_q1")),  # numbers of the model
        (
            "t,pos.0,pos.1,pos.2,torque_0,torque_1,torque_2",
            ("pos.0", "pos.1", "pos.2", "torque_0"),
        ),  # drives counted alone
    ],
)
def test_of_a_machine_with_loops_the_drives_are_looked_for(
    tmp_path: Path, header: str, columns: tuple[str, ...]
) -> None:
    bench = ClosedBench(tmp_path)
    bench.write()
    log = tmp_path / "training.csv"
    log.write_text(header + "\n" + log.read_text().split("\n", 1)[1])
    text = template(tmp_path / "model.yaml", palletizer(), [log], tmp_path / "new.yaml")
    study = parse_study(plain_yaml(text, "new.yaml"))
    found = {channel: c.column for channel, c in study.log.columns.items()}
    assert tuple(found[channel] for channel in ("q.q1", "q.q2", "q.q4", "force.q1")) == columns
    assert set(found) == {f"{kind}.{c}" for kind in ("q", "force") for c in ("q1", "q2", "q4")}
    assert study.rows == "actuated" and "need no column (any that is measured is compared): q3, q5" in text


def test_encoders_of_passive_joints_and_friction_of_motors(tmp_path: Path) -> None:
    bench = ClosedBench(tmp_path)
    bench.training["q.q3"] = bench.training["q4"]
    bench.write()
    own = palletizer()
    bare = own.without_elements(own.element_names)
    text = template(tmp_path / "model.yaml", bare, [tmp_path / "training.csv"], tmp_path / "new.yaml")
    study = parse_study(plain_yaml(text, "new.yaml"))
    assert study.log.columns["q.q3"].column == "q.q3"
    assert [e.on for e in study.model.elements] == ["actuated"] * 3


def test_q1_is_no_part_of_q10() -> None:
    assert pick("q", 1, "q1", False, ["angle_q10", "angle_q11", "angle_q1"]) == (
        "angle_q1",
        "guessed by the name in it",
    )
    assert pick("q", 1, "q1", False, ["angle_q10"]) is None
    assert pick("q", 1, "q1", False, ["angle_q1", "q.q1"]) == ("q.q1", "")


def test_two_parts_with_columns_of_one_name_and_a_clock_each(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write()
    raw = bench.training
    for part, kind in (("positions", "q"), ("torques", "tau")):
        rows = np.column_stack([1e3 * raw["t"], *(raw[f"{kind}{k}"] for k in (1, 2, 3))])
        head = "time;" + ";".join(f"{part}_joint_{k}" if part == "x" else f"{kind}_{k}" for k in (1, 2, 3))
        np.savetxt(tmp_path / f"{part}.txt", rows, delimiter=";", header=head, comments="")
    files = [tmp_path / f"{part}.txt" for part in ("positions", "torques")]
    text = template(tmp_path / "model.yaml", robot(), files, tmp_path / "new.yaml")
    study = parse_study(plain_yaml(text, "new.yaml"))
    assert study.log.parts["torques"].time == "time [ms]"
    assert study.log.columns["force.q2"].column == "tau_2"
    (tmp_path / "new.yaml").write_text(text.replace("lowpass: auto", "lowpass: 8"))
    assert run_identify(load_study(tmp_path / "new.yaml")).suspicions == ()
    for part in ("positions", "torques"):
        (tmp_path / f"{part}.txt").write_text((tmp_path / f"{part}.txt").read_text().replace("tau_", "q_"))
    columns = parse_study(
        plain_yaml(template(tmp_path / "model.yaml", robot(), files, tmp_path / "new.yaml"))
    ).log.columns
    assert columns["q.q2"].column == "positions/q_2"  # the other part has a column of the same name


def test_a_log_without_a_clock_is_written_with_its_rate_or_asks_for_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write()
    log = tmp_path / "training.csv"
    log.write_text("\n".join(" ".join(row.split(",")[1:]) for row in log.read_text().splitlines()) + "\n")
    text = template(tmp_path / "model.yaml", robot(), [log], tmp_path / "new.yaml", rate=200.0)
    study = parse_study(plain_yaml(text, "new.yaml"))
    assert study.log.rate == 200.0 and len(study.log.columns) == 9
    asking = template(tmp_path / "model.yaml", robot(), [log], tmp_path / "new.yaml")
    (tmp_path / "new.yaml").write_text(asking)
    with pytest.raises(FileError, match="give the rate of a log without a clock"):
        run_identify(load_study(tmp_path / "new.yaml"))


def test_joints_without_a_column_are_locked_in_one_line(tmp_path: Path) -> None:
    study, text = written(tmp_path, "t,q1,q2,a,qd1,qd2,b,tau1,tau2,c")
    assert study.model.lock == {"q3": 0.0} and text.count("lock:") == 1
    assert "guessed: 1 joint has no column" in text and "not found, and needed" not in text
    (tmp_path / "new.yaml").write_text(text)
    loaded = load_study(tmp_path / "new.yaml")
    assert study_machine(loaded, ("model",), loaded.study.model).coordinates == ("q1", "q2")
    (tmp_path / "b").mkdir()
    moved, text = written(tmp_path / "b", "t,q1,q2,a,qd1,qd2,b,tau1,tau2,tau3")  # its force is measured: it moves
    assert not moved.model.lock and "# not found, and needed: q.q3" in text


def test_a_log_of_next_to_nothing_is_refused_and_gaps_are_cut(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write()
    head, *rows = table(bench.training).splitlines()
    width = head.count(",")
    model, out = tmp_path / "model.yaml", tmp_path / "new.yaml"
    (tmp_path / "nan.csv").write_text("\n".join([head, rows[0], *(r.split(",")[0] + "," * width for r in rows[1:])]))
    with pytest.raises(
        FileError, match=r"nan.csv, log: there are next to no rows .*\n.*at least 20 in a row, found 1 at most"
    ):
        template(model, robot(), [tmp_path / "nan.csv"], out)
    (tmp_path / "gap.csv").write_text("\n".join([head, *rows[:50], rows[50].split(",")[0] + "," * width, *rows[51:]]))
    text = template(model, robot(), [tmp_path / "gap.csv"], out)
    assert parse_study(plain_yaml(text)).values.missing == "cut" and "guessed: 9 of " in text


@pytest.mark.parametrize("header", [False, True], ids=["without a header", "with one that says nothing"])
def test_the_kind_is_found_in_the_name_of_the_file(tmp_path: Path, header: bool) -> None:
    raw = Bench(tmp_path).training
    files = []
    for name, symbol in (("pos", "q"), ("vel", "qd"), ("tor", "tau")):
        files.append(tmp_path / f"{name}_read_data.csv")
        columns = np.column_stack([raw[f"{symbol}{k}"] for k in (1, 2, 3)])
        np.savetxt(files[-1], columns, delimiter=",", header="J1,J2,J3" if header else "", comments="")
    study = parse_study(
        plain_yaml(template(tmp_path / "model.yaml", robot(), files, tmp_path / "new.yaml", rate=100.0))
    )
    assert set(study.log.columns) == {f"{kind}.q{k}" for kind in ("q", "qd", "force") for k in (1, 2, 3)}
    assert study.log.columns["force.q2"].column == ("tor_read_data/J2" if header else "force2")
    alone = template(tmp_path / "model.yaml", robot(), files[:1], tmp_path / "new.yaml", rate=100.0)
    if not header:
        assert "q.q3: q3 [rad]" in alone and "header: [q1, q2, q3]" in alone
    else:
        assert "q.q3: J3 [rad]" in alone and "not found, and needed: force.q1" in alone


def test_names_of_motors_are_asked_for_where_there_is_a_transmission(tmp_path: Path) -> None:
    geared = replace(
        robot(), transmission=Transmission(("m2", "m3"), ("q2", "q3"), np.array([[0.1, 0.0], [0.05, 0.1]]))
    )
    _, text = written(tmp_path, "t,a,b,c,qd1,qd2,qd3,g,h,k", geared)
    missing = next(line for line in text.splitlines() if "not found, and needed" in line)
    assert "q.q1, q_motor.m2, (or q.q2), q_motor.m3, (or q.q3)" in missing and "force_motor.m2" in missing
