"""Bags to be read: the same messages in every format that the libraries write."""

import json

import numpy as np

START = 1_700_000_000_123_456_789  # ns since 1970: a stamp whose last digits a double cannot hold
STEP = 10_000_000
LATE = 1_500_000  # ns between a message and its receipt
COUNT = 30


def angle(k):
    return np.array([np.sin(0.1 * k), np.cos(0.2 * k)])


class Messages:
    """Messages of ROS for a bag of version 1 or 2."""

    def __init__(self, first):
        from rosbags.typesys import Stores, get_typestore

        self.first = first
        self.store = get_typestore(Stores.ROS1_NOETIC if first else Stores.ROS2_HUMBLE)
        self.types = self.store.types

    def make(self, kind, *args):
        return self.types[kind](*args)

    def header(self, ns):
        stamp = self.make("builtin_interfaces/msg/Time", ns // 10**9, ns % 10**9)
        return self.make("std_msgs/msg/Header", *([0] if self.first else []), stamp, "frame")

    def packed(self, message):
        kind = message.__msgtype__
        return bytes(
            self.store.serialize_ros1(message, kind) if self.first else self.store.serialize_cdr(message, kind)
        )

    def joints(self, ns, k, names=("elbow", "wrist")):
        q = angle(k)[: len(names)]
        return self.make("sensor_msgs/msg/JointState", self.header(ns), list(names), q, np.zeros(0), 10.0 * q)

    def imu(self, ns, k):
        v = [self.make("geometry_msgs/msg/Vector3", *x) for x in ((0.1 * k, 0.2, 0.3), (0.0, 1.0, 9.81))]
        q = self.make("geometry_msgs/msg/Quaternion", 0.0, 0.0, 0.0, 1.0)
        return self.make(
            "sensor_msgs/msg/Imu", self.header(ns), q, np.eye(3).ravel(), v[0], np.zeros(9), v[1], np.zeros(9)
        )

    def wrench(self, ns, k):
        f, m = (self.make("geometry_msgs/msg/Vector3", float(k), x, 0.0) for x in (2.0, 3.0))
        return self.make(
            "geometry_msgs/msg/WrenchStamped", self.header(ns), self.make("geometry_msgs/msg/Wrench", f, m)
        )

    def fix(self, ns, k):
        status = self.make("sensor_msgs/msg/NavSatStatus", 0, 1)
        place = (48.0 + 1e-5 * k, 11.0, 500.0)
        return self.make("sensor_msgs/msg/NavSatFix", self.header(ns), status, *place, np.zeros(9), 0)

    def odometry(self, ns, k):
        def vector(*x):
            return self.make("geometry_msgs/msg/Vector3", *x)

        q = self.make("geometry_msgs/msg/Quaternion", 0.0, 0.0, 0.0, 1.0)
        pose = self.make("geometry_msgs/msg/Pose", self.make("geometry_msgs/msg/Point", float(k), 0.0, 0.0), q)
        twist = self.make("geometry_msgs/msg/Twist", vector(1.0, 0.0, 0.0), vector(0.0, 0.0, 0.5))
        pose = self.make("geometry_msgs/msg/PoseWithCovariance", pose, np.zeros(36))
        twist = self.make("geometry_msgs/msg/TwistWithCovariance", twist, np.zeros(36))
        return self.make("nav_msgs/msg/Odometry", self.header(ns), "base", pose, twist)

    def number(self, x):
        return self.make("std_msgs/msg/Float64", float(x))

    def word(self, x):
        return self.make("std_msgs/msg/String", x)


def recording(messages):
    """(topic, time of receipt, message) of a short run."""
    for k in range(COUNT):
        ns = START + k * STEP
        at = ns + LATE
        yield "/joint_states", at, messages.joints(ns, k)
        yield "/imu", at, messages.imu(ns, k)
        yield "/ft", at, messages.wrench(ns, k)
        yield "/fix", at, messages.fix(ns, k)
        yield "/odom", at, messages.odometry(ns, k)
        yield "/command", at, messages.number(k)
        yield "/say", at, messages.word("hello")


def ros_1(path, rows=None):
    from rosbags.rosbag1 import Writer

    messages = Messages(True)
    with Writer(path) as writer:
        _fill(writer, messages, recording(messages) if rows is None else rows(messages))
    return path


def ros_2(path, rows=None, storage="sqlite3"):
    from rosbags.rosbag2 import StoragePlugin, Writer

    messages = Messages(False)
    path.parent.mkdir(exist_ok=True)
    with Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()]) as writer:
        _fill(writer, messages, recording(messages) if rows is None else rows(messages))
    return path


def _fill(writer, messages, rows):
    connections = {}
    for topic, at, message in rows:
        if topic not in connections:
            connections[topic] = writer.add_connection(topic, message.__msgtype__, typestore=messages.store)
        writer.write(connections[topic], at, messages.packed(message))


def json_mcap(path, rows, encoding="json", compression="ZSTD"):
    """rows: (topic, time of receipt, message as a mapping)."""
    from mcap.writer import CompressionType, Writer

    with path.open("wb") as stream:
        writer = Writer(stream, compression=CompressionType[compression])
        writer.start()
        channels = {}
        for topic, at, message in rows:
            if topic not in channels:
                schema = writer.register_schema("thing", "jsonschema", b'{"type": "object"}')
                channels[topic] = writer.register_channel(topic, encoding, schema)
            writer.add_message(channels[topic], at, json.dumps(message).encode(), at)
        writer.finish()
    return path
