"""Logs in bags: what rosbags and mcap write is read back by topic and field, on the clock of each topic."""

import shutil
import sqlite3
import sys

import numpy as np
import pytest

from files.log.bags_made import COUNT, LATE, START, STEP, Messages, angle, json_mcap, ros_1, ros_2
from veridyn.errors import DataError, DataWarning, FileError
from veridyn.files.log.bag import load_bag
from veridyn.files.log.load import load_log, survey

pytest.importorskip("rosbags", reason="rosbags (the extra 'logs') reads and writes bags")
pytest.importorskip("mcap", reason="mcap (the extra 'logs') reads and writes MCAP files")

FORMATS = ("ros1", "folder", "db3", "folder of mcap", "mcap")
UNITS = {"/joint_states.position": "rad", "/joint_states.effort": "Nm", "/command": "V"}


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    """One run in every format; a path by format."""
    folder = tmp_path_factory.mktemp("bags")
    first, second, third = (
        ros_1(folder / "run.bag"),
        ros_2(folder / "two" / "run"),
        ros_2(folder / "three" / "run", storage="mcap"),
    )
    return {
        "ros1": first,
        "folder": second,
        "db3": second / "run.db3",
        "folder of mcap": third,
        "mcap": third / "run.mcap",
    }


@pytest.mark.parametrize("kind", FORMATS)
def test_fields_are_named_by_topic_and_joints_by_their_names(bags, kind):
    path = bags[kind]
    wanted = {"q": "/joint_states.position", "force": "joint_states.effort", "base.omega": "/imu.angular_velocity"}
    log = load_log(
        path, {**wanted, "fz": "/ft.wrench.torque.y", "u": "/command.data"}, {"q": "deg", "force": "Nm", "u": "V"}
    )
    assert log.names == (
        *(f"{c}.{j}" for c in ("q", "force") for j in ("elbow", "wrist")),
        *(f"base.omega.{a}" for a in "xyz"),
        "fz",
        "u",
    )
    q = np.array([angle(k) for k in range(COUNT)])
    assert log["q.wrist"].values == pytest.approx(np.radians(q[:, 1]), rel=1e-15)
    assert np.array_equal(log["force.elbow"].values, 10.0 * q[:, 0])
    assert np.array_equal(log["base.omega.x"].values, 0.1 * np.arange(COUNT))
    assert [log[n].unit for n in ("q.elbow", "force.wrist", "base.omega.z", "fz", "u")] == [
        "rad",
        "N*m",
        "rad/s",
        "N*m",
        "V",
    ]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_topic_has_the_clock_of_its_stamps_or_else_of_its_receipt(bags, kind):
    path = bags[kind]
    log = load_bag(path, {"q": "/joint_states.position", "u": "/command.data"}, {"q": "rad", "u": "1"})
    steps = np.arange(COUNT) * STEP
    assert np.array_equal(log["q.elbow"].t, (steps - LATE) * 1e-9)  # to the nanosecond, from the first receipt
    assert np.array_equal(log["u"].t, steps * 1e-9)
    assert log.notes["clock of /joint_states"] == "header stamps"
    assert log.notes["clock of /command"] == "times of receipt: its messages have no stamp"
    assert log.notes["start"] == "1700000000.124956789 s since 1970-01-01 UTC"
    received = load_bag(path, {"q": "/joint_states.position"}, {"q": "rad"}, "received")
    assert np.array_equal(received["q.elbow"].t, steps * 1e-9)
    assert received.notes["clock of /joint_states"] == "times of receipt"


def test_messages_of_known_types_have_units(bags):
    log = load_bag(
        bags["db3"], {"a": "/imu.linear_acceleration", "p": "/fix", "o": "/odom.pose.pose", "v": "/odom.twist.twist"}
    )
    found = {n: log[n].unit for n in log}
    assert found["a.z"] == "m/s^2"
    assert found["p.altitude"] == "m"
    assert (found["p.latitude"], log["p.latitude"].values[0]) == ("rad", pytest.approx(np.radians(48.0)))
    assert found["o.position.x"] == "m"
    assert found["o.orientation.w"] == "1"
    assert found["v.linear.x"] == "m/s"
    assert found["v.angular.z"] == "rad/s"


def test_every_number_is_taken_where_none_is_named_and_the_rest_is_noted(bags):
    path = bags["mcap"]
    units = {**UNITS, "/odom.pose.covariance": "1", "/odom.twist.covariance": "1"}
    log = load_bag(path, units=units)
    assert {"/joint_states.effort.wrist", "/imu.orientation_covariance.8", "/fix.status.status"} <= set(log.names)
    assert log.notes["left out"] == "/odom.child_frame_id, /say.data"
    with pytest.raises(DataError) as caught:
        load_bag(path)
    assert len(caught.value.faults) == 5  # one for each array
    assert (
        "2 channels '/joint_states.effort.…': they have no unit.\nExpected units={'/joint_states.effort': '…'}"
        in str(caught.value)
    )
    assert "channel '/command.data': it has no unit" in str(caught.value)


def test_two_publishers_of_joints_on_one_topic(tmp_path):
    """Each joint has the clock of the messages that name it."""

    def rows(m):
        for k in range(10):
            names = ("elbow", "wrist") if k % 2 else ("finger",)
            yield "/joint_states", START + k * STEP, m.joints(START + k * STEP, k, names)

    log = load_bag(ros_1(tmp_path / "run.bag", rows), {"q": "/joint_states.position"}, {"q": "rad"})
    assert log["q.finger"].t == pytest.approx(np.arange(0, 10, 2) * 0.01, abs=1e-12)
    assert log["q.wrist"].t == pytest.approx(np.arange(1, 10, 2) * 0.01, abs=1e-12)
    assert np.array_equal(log["q.wrist"].values, [angle(k)[1] for k in range(1, 10, 2)])


def test_numbers_without_as_many_names_are_refused(tmp_path):
    def rows(m):
        message = m.joints(START, 0)
        yield "/joint_states", START, m.make(message.__msgtype__, message.header, ["one"], *([np.ones(2)] * 3))

    with pytest.raises(FileError, match=r"'/joint_states.position': it has 2 numbers for 1 names"):
        load_bag(ros_2(tmp_path / "run", rows), {"q": "/joint_states.position"}, {"q": "rad"})


def test_long_arrays_and_bytes_are_refused(tmp_path):
    def rows(m):
        for kind, data in (("Float64MultiArray", np.arange(3.0)), ("Float32MultiArray", np.zeros(100, "f4"))):
            layout = m.make("std_msgs/msg/MultiArrayLayout", [], 0)
            yield f"/{kind}", START, m.make(f"std_msgs/msg/{kind}", layout, data)
        yield "/scan", START, m.make("std_msgs/msg/UInt8MultiArray", layout, np.zeros(4, "u1"))

    path = ros_2(tmp_path / "run", rows)
    log = load_bag(path, {"x": "/Float64MultiArray.data"}, {"x": "1"})
    assert [log[n].values[0] for n in ("x.0", "x.1", "x.2")] == [0.0, 1.0, 2.0]
    with pytest.raises(FileError, match=r"(?s)100 numbers in one message.*raw bytes"):
        load_bag(path, {"x": "/Float32MultiArray.data", "y": "/scan.data"}, {"x": "1"})


def test_stamps_of_a_simulator_keep_their_zero(tmp_path):
    def rows(m):
        for k in range(5):
            yield "/joint_states", START + k * STEP, m.joints(k * STEP, k)
            yield "/command", START + k * STEP, m.number(k)

    path = ros_2(tmp_path / "run", rows)
    log = load_bag(path, {"q": "/joint_states.position"}, {"q": "rad"})
    assert log["q.elbow"].t == pytest.approx(np.arange(5) * 0.01, abs=1e-15)
    assert log.notes["clock of /joint_states"] == "header stamps of a clock of its own"
    with pytest.warns(DataWarning, match=r"topics have clocks that do not agree"):
        load_bag(path, {"q": "/joint_states.position", "u": "/command.data"}, {"q": "rad", "u": "1"})


def test_stamps_that_are_missing_here_and_there_are_told(tmp_path):
    def rows(m):
        for k in range(6):
            yield "/joint_states", START + k * STEP, m.joints(0 if k % 2 else START + k * STEP, k)

    with pytest.warns(DataWarning, match=r"3 of 6 messages have no header stamp, so the times of receipt are used"):
        log = load_bag(ros_1(tmp_path / "run.bag", rows), {"q": "/joint_states.position"}, {"q": "rad"})
    assert np.array_equal(log["q.elbow"].t, np.arange(6) * STEP * 1e-9)


def test_messages_of_json(tmp_path):
    def rows():
        for k in range(8):
            ns = START + k * STEP
            stamp = {"sec": ns // 10**9, "nsec": ns % 10**9}
            yield (
                "/robot",
                ns + LATE,
                {
                    "timestamp": stamp,
                    "names": ["a", "b"],
                    "torque": [k, 2 * k],
                    "imu": {"gz": 0.5 * k},
                    "ok": True,
                    "mode": "x",
                },
            )
            yield "/bare", ns + LATE, {"v": k, "w": None if k < 4 else 1.0}

    path = json_mcap(tmp_path / "run.mcap", rows())
    log = load_bag(
        path, {"force": "/robot.torque", "gz": "/robot.imu.gz", "w": "bare.w"}, {"force": "Nm", "gz": "deg/s", "w": "1"}
    )
    assert log["force.b"].values.tolist() == [2.0 * k for k in range(8)]
    assert np.array_equal(log["gz"].t, (np.arange(8) * STEP - LATE) * 1e-9)
    assert len(log["w"]) == 4
    assert log.notes["clock of /bare"] == "times of receipt: its messages have no stamp"
    with pytest.raises(FileError, match=r"'/robot.mode': it holds no numbers.*\n.*'x'"):
        load_bag(path, {"m": "/robot.mode"}, {"m": "1"})


def test_other_codes_and_unknown_types_are_named(tmp_path):
    path = json_mcap(tmp_path / "run.mcap", [("/a", START, {"v": 1.0})], "protobuf")
    with pytest.raises(FileError, match=r"'/a': its messages are coded as 'protobuf'.\nExpected cdr, ros1 or json"):
        load_bag(path, {"v": "/a.v"}, {"v": "1"})
    path = json_mcap(tmp_path / "odd.mcap", [("/a", START, {"v": 1.0})], "cdr")
    with pytest.raises(FileError, match=r"messages of type 'thing' are not known: no definition of it is in the bag"):
        load_bag(path, {"v": "/a.v"}, {"v": "1"})


def test_all_faults_of_a_request_are_told_at_once(bags):
    path = bags["db3"]
    with pytest.raises(FileError) as caught:
        load_bag(path, {"a": "/say.data", "b": "/nowhere", "c": "/imu.nothing"}, {"d": "m"})
    text = str(caught.value)
    assert "channel '/say.data': it holds words" in text
    assert "there is no channel '/nowhere'.\nKnown: /joint_states" in text
    assert "there is no channel '/imu.nothing'" in text
    assert "`units` names 'd', which is no channel" in text
    with pytest.raises(DataError, match=r"a bag has no such clock.\nExpected 'received', or nothing, found 'stamp'"):
        load_bag(path, time="stamp")


def test_empty_bags_and_topics(tmp_path):
    with pytest.raises(FileError, match=r"the bag is empty"):
        load_bag(ros_1(tmp_path / "run.bag", lambda m: ()))
    with pytest.raises(FileError, match=r"the bag is empty"):
        load_bag(json_mcap(tmp_path / "run.mcap", ()))


@pytest.mark.parametrize("name", ["run.bag", "run.db3", "run.mcap"])
def test_what_is_no_bag_is_refused(tmp_path, name):
    path = tmp_path / name
    for junk in (b"", b"t,q\n0,1\n", bytes(range(256)) * 20):
        path.write_bytes(junk)
        with pytest.raises(FileError, match=r"it is no whole bag|the bag is empty"):
            load_bag(path)
    with pytest.raises(FileError, match=r"does not exist"):
        load_bag(tmp_path / "other.bag")


@pytest.mark.parametrize("kind", ["ros1", "db3", "mcap"])
def test_bags_that_are_cut_off_or_damaged_end_in_an_error_or_in_numbers(bags, tmp_path, kind):
    whole = bags[kind].read_bytes()
    path = tmp_path / bags[kind].name
    rng = np.random.default_rng(3)
    refused = 0
    for k in range(15):
        data = bytearray(whole)
        if k % 3 == 0:
            del data[int(rng.integers(16, len(data) - 16)) :]
        else:
            data[int(rng.integers(16, len(data)))] ^= 1 + int(rng.integers(255))
        path.write_bytes(bytes(data))
        try:
            log = load_bag(path, {"q": "/joint_states.position"}, {"q": "rad"})
        except (FileError, DataError):
            refused += 1
            continue
        assert all(log[name].values.shape == log[name].t.shape for name in log)
    assert refused >= 5


def test_times_of_receipt_that_are_no_whole_numbers_are_refused(bags, tmp_path):
    """A database keeps what it is given, whatever the type of the column; found by a flipped byte."""
    path = tmp_path / "run.db3"
    path.write_bytes(bags["db3"].read_bytes())
    with sqlite3.connect(path) as database:
        database.execute("UPDATE messages SET timestamp = 1.5 WHERE rowid = (SELECT MIN(rowid) FROM messages)")
    database.close()
    with pytest.raises(FileError, match="no whole number of nanoseconds"):
        load_bag(path, {"q": "/joint_states.position"}, {"q": "rad"})


@pytest.mark.parametrize("at", [0, 1])
def test_times_that_64_bits_do_not_hold_are_refused(at, tmp_path):
    """MCAP keeps times of receipt without a sign, JSON keeps numbers of any length; found by a flipped byte."""
    far = (START, {"header": {"stamp": {"sec": 10**12, "nanosec": 0}}, "v": 1.0}) if at else (2**63 + 5, {"v": 1.0})
    path = json_mcap(tmp_path / "run.mcap", [("/a", START, {"v": 0.5}), ("/a", *far)])
    expected = "a header stamp of 10+ ns is no time" if at else "a time of receipt is no whole number of nanoseconds"
    with pytest.raises(FileError, match=expected):
        load_bag(path, {"v": "/a.v"}, {"v": "1"})


def test_a_bag_that_begins_when_64_bits_do_not_hold_is_refused(tmp_path):
    path = json_mcap(tmp_path / "run.mcap", [("/a", 2**64 - 9 + k, {"v": 0.5}) for k in range(3)])
    with pytest.raises(FileError, match="a time of receipt is no whole number of nanoseconds"):
        load_bag(path, {"v": "/a.v"}, {"v": "1"})


def test_a_wrong_byte_in_a_file_with_checksums_is_found(tmp_path):
    path = json_mcap(tmp_path / "run.mcap", [("/a", START + k, {"v": 0.125}) for k in range(3)], compression="NONE")
    data = path.read_bytes()
    assert data.count(b"0.125") == 3
    path.write_bytes(data.replace(b"0.125", b"0.625", 1))
    with pytest.raises(FileError, match=r"it cannot be read to its end.*\n.*[cC][rR][cC]"):
        load_bag(path, {"v": "/a.v"}, {"v": "1"})


def test_a_folder_without_its_database(bags, tmp_path):
    path = shutil.copytree(bags["folder"], tmp_path / "run")
    (path / "run.db3").unlink()
    with pytest.raises(FileError, match=r"it is no whole bag.\nFound Some database files are missing"):
        load_bag(path)


def test_a_survey_lists_channels_units_and_clocks(bags):
    seen = survey(bags["folder"])
    assert "/joint_states.position.elbow" in seen.columns
    assert seen.units["/imu.angular_velocity.x"] == "rad/s"
    assert "/joint_states.position.elbow" not in seen.units  # an angle or a length
    assert len(seen.clocks["/command.data"]) == COUNT


@pytest.mark.parametrize(
    ("missing", "bag", "named"),
    [
        ("mcap.exceptions", "mcap", "mcap"),
        ("rosbags.rosbag1", "mcap", "rosbags"),
        ("apsw", "folder", "rosbags"),  # rosbags brings it
        ("zstandard", "mcap", "mcap"),
    ],
)
def test_without_its_readers_it_says_what_to_install(bags, monkeypatch, missing, bag, named):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(FileError, match=rf"it is a bag, and {named} is not installed.\npip install 'veridyn\[logs\]'"):
        load_bag(bags[bag])


def test_messages_hold_what_was_written():
    """The helper writes what it says: one message through another decoder."""
    m = Messages(False)
    raw = m.packed(m.joints(START, 3))
    assert np.array_equal(m.store.deserialize_cdr(raw, "sensor_msgs/msg/JointState").position, angle(3))


def test_chunks_that_unpack_to_more_than_the_bound_are_not_read(tmp_path, monkeypatch):
    path = json_mcap(tmp_path / "run.mcap", [("/a", START + k, {"v": 0.125}) for k in range(500)])
    assert load_bag(path, units={"/a.v": "m"})["/a.v"].values[0] == 0.125
    monkeypatch.setattr("veridyn.files.access.ALWAYS_ALLOWED_BYTES", 1000)
    monkeypatch.setattr("veridyn.files.access.MAX_RATIO", 1)
    with pytest.raises(FileError, match="unpacks to more than is read"):
        load_bag(path, units={"/a.v": "m"})


def test_an_mcap_file_without_statistics_is_refused(tmp_path):
    """Its times and counts are unknown then; recorders that are stopped leave such files."""
    from mcap.writer import Writer

    path = tmp_path / "run.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream, use_statistics=False)
        writer.start()
        schema = writer.register_schema("thing", "jsonschema", b'{"type": "object"}')
        writer.add_message(writer.register_channel("/arm", "json", schema), 1, b'{"q": 0.1}', 1)
        writer.finish()
    with pytest.raises(FileError, match=r"it has no summary: its recorder was stopped before the end"):
        load_log(path, units={"/arm.q": "rad"})


def test_units_of_a_topic_may_be_given_without_its_slash(bags):
    with_slash = load_log(bags["mcap"], {"q": "/joint_states.position.elbow"}, {"/joint_states": "deg"})["q"]
    without = load_log(bags["mcap"], {"q": "/joint_states.position.elbow"}, {"joint_states": "deg"})["q"]
    assert np.array_equal(with_slash.values, without.values) and without.unit == "rad"
