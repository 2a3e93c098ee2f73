"""Arguments with which every public class, and every function on values alone, works: a part of `public_calls`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

import veridyn as vd
from veridyn.model.point_parts import Point, RigidBody

d, e, s, m, f, w = vd.dynamics, vd.elements, vd.signals, vd.model, vd.filters, vd.manoeuvres
i, x = vd.estimators, vd.files
T = 0.01 * np.arange(300)
Q, QD, QDD = np.sin(3 * T), 3 * np.cos(3 * T), -9 * np.sin(3 * T)


def values(p: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Arguments of classes whose objects carry values, and of functions on values alone."""
    three, eye = [0.0, 0.0, 1.0], np.eye(3)
    k = np.zeros((4, 3))
    first, second = vd.Marker("rod", (0.0, 0.0, 0.0)), vd.Marker("ground", (1.0, 0.0, 0.0))
    wrench = np.zeros((len(T), 6))
    t10 = 0.01 * np.arange(10)
    return {
        "BaseMotion": {"omega": k, "omega_dot": k, "acceleration": k, "velocity": k},
        "Element": {"kind": "damper", "on": {"hinge": 1.0}, "value": 1.0, "name": "a", "unit": "", "typical": 1.0},
        "Experiment": {"channels": p["log"].channels, "name": "a", "notes": {"a": "b"}},
        "Joint": {
            "name": "hinge",
            "a": "ground",
            "b": "rod",
            "kind": "turning",
            "coordinates": ("hinge",),
            "ratio": 1.0,
            "length": 0.0,
        },
        "Link": {"name": "rod", "inertia": np.ones(10), "frames": {"tip": vd.spatial.Placement()}, "label": "r"},
        "Machine": {
            "name": "a",
            "links": p["robot"].links,
            "joints": p["robot"].joints,
            "elements": p["robot"].elements,
            "sensors": p["robot"].sensors,
            "gravity": (0.0, -9.81, 0.0),
            "dimension": 2,
        },
        "Marker": {"body": "rod", "at": (0.0, 0.0, 0.0), "axis": (0.0, 0.0, 1.0), "side": (1.0, 0.0, 0.0)},
        "Motion": {
            "t": T,
            "q": p["motion"].q,
            "qd": p["motion"].qd,
            "qdd": p["motion"].qdd,
            "forces": p["motion"].forces,
            "wrenches": {"rod": wrench},
            "signals": {"a": T},
        },
        "ProcessNoise": {"force": 1.0, "position": 0.0},
        "Sensor": {
            "name": "a",
            "kind": "coordinate",
            "on": "hinge",
            "sigma": 1e-3,
            "rate": 100.0,
            "quantum": 0.0,
            "delay": 0.0,
        },
        "Observer": {
            "machine": p["robot"],
            "method": "ekf",
            "settings": vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1.0), step=0.01),
        },
        "Method": {"name": "RK4", "step": 0.01},
        "Evaluator": {"machine": p["arm"], "parameters": p["arm"].parameters.values},
        "ConstantKind": {},
        "LawTable": {"at": (0.0, 1.0, 2.0), "values": (0.0, 1.0, 3.0)},
        "ElementKind": {"symbol": "k", "turning": "N*m", "sliding": "N", "doc": "a"},
        "asymmetric": {"on": "hinge"},
        "bump_stop": {"on": "hinge", "gap": 0.1, "value": 1.0, "name": "a"},
        "coulomb_along": {"on": "hinge", "middle": 0.0, "half": 1.0},
        "cubic": {"on": {"hinge": 1.0}},
        "dc_motor": {"on": "hinge", "signal": "u", "resistance": 1.0, "inductance": 0.1, "emf": 0.2},
        "dead_zone": {"on": "hinge", "gap": 0.1},
        "drive_gain": {"on": "hinge", "signal": "u"},
        "law": {"on": "hinge", "formula": "sin(c)", "unit": "N*m", "typical": 1.0},
        "lugre": {"on": "hinge", "deflection": 0.1, "time": 0.1},
        "maxwell": {"on": "hinge", "time": 0.1},
        "relaxation": {"on": "hinge", "length": 0.1, "signal": "u"},
        "stribeck": {"on": "hinge", "speed": 0.1},
        "tanh_friction": {"on": "hinge", "speed": 0.1},
        "strut": {"kind": "spring", "a": first, "b": second},
        "table": {"on": "hinge", "at": [0.0, 1.0, 2.0], "values": [0.0, 1.0, 3.0]},
        "tyre": {"wheel": vd.Marker("rod", (0.0, 0.0, 0.0), (0.0, 1.0, 0.0)), "constants": {"radius": 0.3}},
        **{n: {"on": "hinge"} for n in ("coulomb", "damper", "drag", "motor_inertia", "offset", "spring")},
        "Capsule": {"body": "rod", "start": (0.0, 0.0, 0.0), "end": (1.0, 0.0, 0.0), "radius": 0.1},
        "Clearance": {"body": "rod", "other": "ground", "distance": 0.1},
        "Collision": {"capsules": (i.Capsule("rod", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.1),), "pairs": ()},
        "DriveRange": {"low": -1.0, "high": 1.0, "speed": 2.0, "force": 10.0},
        "Likelihood": {"frequency": 0.5},
        "Limits": {"actuators": p["limits"]},
        "MadeMotions": {"sources": [p["motion"]], "make": lambda motion: motion},
        "Noise": {"covariance": np.eye(1)},
        "NoiseModel": {"news": np.eye(1), "coefficients": np.zeros((1, 1, 1))},
        "Trial": {"motion": p["motion"], "pose": p["pose"], "plate": wrench},
        "GeoOrigin": {"latitude": 0.8, "longitude": 0.2, "height": 500.0},
        "degrees_of_minutes": {"value": [4800.0]},
        "enu_of": {"latitude": [0.8], "longitude": [0.2], "height": [500.0], "origin": x.GeoOrigin(0.8, 0.2)},
        "geodetic_of": {"enu": [three], "origin": x.GeoOrigin(0.8, 0.2)},
        "Belief": {"x": np.zeros(1), "P": np.eye(1), "t": 0.0},
        **{
            n: {
                "states": ("x",),
                "outputs": ("y",),
                "f": p["still"].f,
                "h": p["still"].h,
                "Q": np.eye(1),
                "R": np.eye(1),
            }
            for n in ("Continuous", "Discrete")
        },
        "Measurements": {"t": T[:5], "values": Q[:5, None], "names": ("y",)},
        "Stream": {"settings": f.LinearKF(), "system": p["still"], "start": p["belief"]},
        "ParameterGuess": {"value": 1.0, "sigma": 0.1},
        "Virtual": {"name": "a", "kind": "coordinate", "on": "hinge"},
        "CommandLog": {
            "log": vd.Experiment.from_arrays(T, {"command.hinge": Q}, {"command.hinge": "rad"}),
            "coordinates": ("hinge",),
        },
        "Commanded": {"command": p["wave"], "duration": 1.0, "rate": 100.0, "q": [0.0], "qd": [0.0]},
        "Driven": {"duration": 0.1, "rate": 100.0, "q": [0.3], "qd": [0.0]},
        "Imperfections": {"by_pattern": {"*": w.Imperfection(noise=0.1)}},
        "Prescribed": {"reference": p["wave"], "duration": 1.0, "rate": 100.0},
        "Steered": {"duration": 1.0, "rate": 100.0, "speed": lambda t: 10.0, "steer": lambda t: 0.01},
        "Tracking": {"reference": p["wave"], "duration": 1.0, "rate": 100.0, "kp": [10.0], "kd": [1.0]},
        "Attachment": {"body": "rod", "placement": vd.spatial.Placement()},
        "Body": {"name": "1", "antecedent": "ground", "joint": "turning"},
        "CarDescription": {"values": dict(p["car"].car.values)},
        "Channel": {"name": "a", "t": T, "values": Q, "unit": "rad"},
        "Controller": {"name": "a", "kind": "pd", "on": "hinge", "rate": 100.0, "constants": {"kp": 1.0, "kd": 0.1}},
        "Drive": {"name": "a", "coordinate": "hinge"},
        "Force": {"name": "a", "at": "tip", "value": (0.0, 0.0, 1.0)},
        "Loop": {"name": "a", "joint": "turning", "first": m.Attachment("rod"), "second": m.Attachment("ground")},
        "ParameterSet": {n.name: getattr(p["robot"].parameters, n.name) for n in fields(p["robot"].parameters)},
        "Pose": {"t": T[:4], "rotation": np.tile(eye, (4, 1, 1)), "position": k},
        "PriorValue": {"value": 1.0, "sigma": 0.1},
        "Tie": {"to": "a"},
        "Torque": {"name": "a", "body": "rod", "value": 1.0},
        "Transmission": {"motors": ("m",), "joints": ("hinge",), "matrix": np.eye(1)},
        "Uncertainty": {"names": ("a",), "covariance": np.eye(1)},
        "car_machine": {"name": "small", "given": {"mass": 900.0, "front": 1.0, "rear": 1.4, "front_stiffness": 15.0}},
        "machine_of_points": {
            "points": [Point("o", (0.0, 0.0), fixed=True), Point("a", (1.0, 0.0))],
            "bodies": [RigidBody("rod", {"o": (0.0, 0.0), "a": (1.0, 0.0)}, mass=1.0, centre=(0.5, 0.0), inertia=0.1)],
            "gravity": (0.0, -9.81),
        },
        "Butterworth": {"cutoff": 5.0, "order": 4},
        "FourierTrajectory": {
            "centre": np.zeros(1),
            "sine": np.ones((1, 2)),
            "cosine": np.ones((1, 2)),
            "frequency": 0.2,
        },
        "JointLimits": {"low": [-1.0], "high": [1.0], "speed": [2.0], "acceleration": [8.0]},
        "PulseReader": {"wheel": p["wheel"]},
        "SampledTrajectory": {"t": t10, "q": np.zeros((10, 1))},
        "SplineTrajectory": {"points": np.zeros((8, 1)), "frequency": 0.2},
        "averaged": {"channels": Q, "rate": 100.0, "frequency": 1.0},
        "count_of_rounded": {
            "angle": m.Channel("angle", T, 2.0 * np.pi / 20.0 * np.floor(T / 0.05), "rad"),
            "wheel": p["wheel"],
        },
        "dft_filter": {"x": Q, "rate": 100.0, "harmonics": 3},
        "edges_of_intervals": {"start": 0.0, "intervals": [0.1, 0.2]},
        "fourier_fit": {"x": Q, "t": T, "frequency": 0.5, "harmonics": 2},
        "moved_to_base": {"read": vd.BaseMotion(k, k, k), "unit": p["place"]},
        "zero_phase": {"x": Q, "rate": 100.0, "butterworth": s.Butterworth(5.0)},
        "Placement": {"rotation": eye, "position": three},
        "from_centre": {"mass": 1.0, "centre": three, "about_centre": eye},
        **{n: {"angle": 0.3} for n in ("rot_x", "rot_y", "rot_z")},
        "rotation_of": {"quaternion": np.array([1.0, 0.0, 0.0, 0.0])},
        "rotation_to_axis": {"axis": three},
        "rpy": {"roll": 0.1, "pitch": 0.2, "yaw": 0.3},
    }
