"""What a study file of kind simulate runs, against MuJoCo and Pinocchio integrating the same machines."""

from itertools import count
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import veridyn as vd
from strangers.mujoco_trees import MujocoTree
from strangers.pinocchio_oracle import PinModel
from studies.arm_simulation import ARM, FREE, LED, PUSHED, STEERED, frictionless, written
from veridyn.errors import CapabilityError, DataWarning, FileError, ModelError
from veridyn.files.machine.load import load_model
from veridyn.papers.hexapod.machine import FRICTION, TRUTH
from veridyn.signals.trajectory import FourierTrajectory
from veridyn.simulate.simulator import Steered
from veridyn.studies.config.study import load_study
from veridyn.studies.run.simulate import CarSetup, SimulateRun, car_setup, simulate_study

SALOON = "veridyn: 2\nname: saloon\ncar: {mass: 1200, front: 1.1, rear: 1.5}\n"


def run(folder: Path, text: str) -> SimulateRun:
    return simulate_study(load_study(written(folder, text)), clock=map(float, count()).__next__)


def smooth(folder: Path, text: str) -> str:
    return text.replace(str(ARM), str(frictionless(folder)))


def stacked(done: SimulateRun, order: str, names: tuple[str, ...] = ("q1", "q2", "q3")) -> np.ndarray:
    return np.column_stack([done.truth[f"{order}.{n}"].values for n in names])


def test_a_driven_arm_moves_as_in_mujoco(tmp_path: Path) -> None:
    text = ARM.read_text(encoding="utf-8")
    dampers = "\n".join(line for line in text.splitlines() if "coulomb" not in line) + "\n"
    written(tmp_path, dampers, "damped.yaml")
    pushes = "inputs: {formulas: {force.q1: 8*sin(3*t), force.q2: -20 + 5*t, force.q3: 4*cos(5*t)}}\n"
    begin = "start: {coordinates: {q2: -0.8, q3: 1.2}, rates: {q1: 1, q3: -2}}\n"
    done = run(tmp_path, FREE.replace(str(ARM), "damped.yaml") + pushes + begin)
    engine = MujocoTree(load_model(tmp_path / "damped.yaml"), 2.5e-4)
    q, qd = engine.run(
        done.t, [0, -0.8, 1.2], [1, 0, -2], lambda t: [8 * np.sin(3 * t), -20 + 5 * t, 4 * np.cos(5 * t)]
    )
    # MuJoCo holds forces over a step of 0.25 ms, which is of second order
    assert stacked(done, "q") == pytest.approx(q, abs=2e-7)
    assert stacked(done, "qd") == pytest.approx(qd, abs=2e-6)
    assert np.ptp(q, axis=0).min() > 0.1 and "energy_drift" not in done.figures


def test_a_free_arm_moves_as_pinocchio_integrates_it_and_keeps_its_energy(tmp_path: Path) -> None:
    done = run(tmp_path, smooth(tmp_path, FREE) + "start: {coordinates: {q2: 0.4}, rates: {q1: 2}}\n")
    model = PinModel(load_model(frictionless(tmp_path)))
    q, v, h, steps = np.array([0.0, 0.4, 0.0]), np.array([2.0, 0.0, 0.0]), 1e-3, 10

    def rate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return pin.aba(model.model, model.data, q, v, np.zeros(3))

    found = [q]
    for _ in range(50 * steps):
        k1v, k1 = v, rate(q, v)
        k2v, k2 = v + h / 2 * k1, rate(q + h / 2 * k1v, v + h / 2 * k1)
        k3v, k3 = v + h / 2 * k2, rate(q + h / 2 * k2v, v + h / 2 * k2)
        k4v, k4 = v + h * k3, rate(q + h * k3v, v + h * k3)
        q = q + h / 6 * (k1v + 2 * k2v + 2 * k3v + k4v)
        v = v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        found.append(q)
    assert stacked(done, "q") == pytest.approx(np.array(found)[::steps], abs=1e-8)
    f = done.figures
    assert done.conservative and f["energy_drift_percent"] < 1e-4
    assert (f["duration"], f["samples"], f["channels"], f["real_time_factor"]) == (0.5, 51, 6, 0.5)


def test_a_coarser_integration_tells_how_far_to_trust_the_finer(tmp_path: Path) -> None:
    """RK4 is of fourth order, the trapezoidal rule of second: half the step leaves a sixteenth, or a quarter, of the difference."""
    text = (
        smooth(tmp_path, FREE)
        + "start: {coordinates: {q2: 0.4}, rates: {q1: 2}}\nintegrator: {name: RK4, step: STEP}\n"
    )
    found = [run(tmp_path, text.replace("STEP", str(h))).figures["coarser_difference"] for h in (1e-2, 5e-3)]
    assert found[0] / found[1] == pytest.approx(16.0, rel=0.15)
    pushed = [run(tmp_path, PUSHED.replace("0.01}", f"{h}}}")).figures["coarser_difference"] for h in (0.01, 0.005)]
    assert pushed[0] / pushed[1] == pytest.approx(4.0, rel=0.15)
    assert "coarser_difference" not in run(tmp_path, text.replace("STEP", "0.01, check: false")).figures


def test_a_motion_made_exactly_asks_for_the_forces_of_pinocchio(tmp_path: Path) -> None:
    done = run(tmp_path, smooth(tmp_path, LED))
    series = FourierTrajectory([0, -0.5, 0], [[0.3, 0], [0.2, 0.1], [0.4, 0]], [[0, 0], [0, 0], [0, 0.2]], 0.5).at(
        done.t
    )
    model = PinModel(load_model(frictionless(tmp_path)))
    forces = [pin.rnea(model.model, model.data, *x) for x in zip(*series)]
    assert stacked(done, "force") == pytest.approx(np.array(forces), abs=1e-9)
    assert stacked(done, "qdd") == pytest.approx(series[2], abs=1e-12)
    assert done.settings["integrator"] == "none: inverse dynamics" and done.errors is None


def test_sensors_do_what_the_study_says(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        LED.replace("duration: 0.5", "duration: 8")
        + "sensors: {q.q1: {noise: 0.01, bias: 0.5}, q.*: {quantum: 0.001}, force.q2: {noise: 0.3}, qd.q1: {rate: 30}}\n",
    )
    assert done.log.names == ("q.q1", "q.q2", "q.q3", "qd.q1", "force.q2")
    r = done.readings
    assert r["q.q1"]["mean_error"] == pytest.approx(0.5, abs=4 * 0.01 / np.sqrt(801))
    assert np.sqrt(r["q.q1"]["rms"] ** 2 - r["q.q1"]["mean_error"] ** 2) == pytest.approx(0.01, rel=0.1)
    assert 0.9e-3 / np.sqrt(12) < r["q.q2"]["rms"] < 1.1e-3 / np.sqrt(12)
    assert r["force.q2"]["rms"] == pytest.approx(0.3, rel=0.1) and r["qd.q1"]["samples"] == 241
    result = done.result("x", 0)
    assert set(result.inputs) == {"study", "model"} and "q.q1" in done.summary()
    truth = {p.name: p.truth for p in result.parameters}
    assert truth["M3"] == 3.0 and truth["fs_q1"] == 5.0


def test_a_crane_swings_as_its_own_equations_say_and_stays_on_its_rail(tmp_path: Path) -> None:
    """Two degrees of freedom in closed form, integrated by SciPy: trolley m, rope of mass r and length l, load M."""
    from scipy.integrate import solve_ivp

    done = run(tmp_path, PUSHED.replace("{step: 0.01}", "{step: 0.002}"))
    m, r, l, M, g = 80.0, 3.0, 6.0, 250.0, 9.81

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        _, a, xd, ad = y
        push = 120.0 * np.sin(2.0 * np.pi * 0.2 * t) * (t <= 2.0) - 40.0 * xd
        s = l * (M + r / 2.0)
        A = [[m + r + M, s * np.cos(a)], [s * np.cos(a), l * l * (M + r / 3.0)]]
        return np.array([xd, ad, *np.linalg.solve(A, [push + s * ad * ad * np.sin(a), -s * g * np.sin(a)])])

    wanted = solve_ivp(rate, (0, 1), [0.5, 0.1, 0, 0], "DOP853", done.t, rtol=1e-10, atol=1e-12).y.T
    # the trapezoidal rule at 2 ms: of second order
    assert stacked(done, "q", ("x", "swing")) == pytest.approx(wanted[:, :2], abs=2e-6)
    assert done.figures["constraint_error"] < 1e-10 and done.log.names == ("travel", "tilt")
    assert done.parameters == () and set(done.result("c", 0).inputs) == {"study", "model"}


def test_an_absurd_amplitude_is_reported(tmp_path: Path) -> None:
    """Forty radians of amplitude at 0.5 Hz are up to 126 rad/s."""
    with pytest.warns(
        DataWarning, match=r"coordinate 'q1': it moves too fast\.\nExpected up to 60 rad/s, found 125"
    ) as told:
        run(tmp_path, LED.replace("q1: [0.3]", "q1: [40]").replace("duration: 0.5", "duration: 1"))
    assert len(told) == 1


ROD = """
veridyn: 2
name: arm
gravity: [0, 0]
points: {O: {at: [0, 0], fixed: true}, P: {at: [0, -2]}}
bodies: {rod: {bar: [O, P], length: 2, mass: 3}}
coordinates: {swing: {of: [O, P], from: [0, -1]}}
loads: {motor: {kind: drive, on: swing}}
"""


def test_an_absurd_amplitude_in_natural_coordinates_is_reported(tmp_path: Path) -> None:
    """Twelve radians of amplitude at 1 Hz are up to 75 rad/s, and 151 m/s at the end of a rod of 2 m."""
    written(tmp_path, ROD, "rod.yaml")
    study = "veridyn: 1\nkind: simulate\nmodel: {file: rod.yaml}\nduration: 0.5\nrate: 400\nsensors: {q.swing: {}}\n"
    with pytest.warns(DataWarning, match="it moves too fast") as told:
        run(tmp_path, study + "motion: {fourier: {frequency: 1, sine: {swing: [12]}}}\n")
    said = "\n".join(str(w.message) for w in told)
    assert "coordinate 'swing': it moves too fast.\nExpected up to 60 rad/s, found 75.4 rad/s" in said
    assert "Expected up to 20 m/s, found 15" in said
    assert len(told) == 3


def test_a_led_crane_is_where_it_is_told_to_be(tmp_path: Path) -> None:
    written(tmp_path, ROD, "rod.yaml")
    study = """
veridyn: 1
kind: simulate
model: {file: rod.yaml}
motion: {fourier: {frequency: 1, sine: {swing: [0.5]}}}
duration: 0.5
"""
    with pytest.raises(FileError, match="'arm' has no sensors, so there is no log"):
        run(tmp_path, study)
    done = run(tmp_path, study + "sensors: {q.swing: {}, load.*: {noise: 0.1}}\n")
    wanted = -3.0 * 4.0 / 3.0 * (2.0 * np.pi) ** 2 * 0.5 * np.sin(2.0 * np.pi * done.t)  # m l²/3 θ̈
    assert done.truth["load.motor"].values == pytest.approx(wanted, abs=1e-9)
    assert done.log.names == ("q.swing", "load.motor")


def test_limits_and_warnings(tmp_path: Path) -> None:
    rough = "integrator: {name: RK4, step: 0.1}\nrate: 10\nduration: 2\nstart: {coordinates: {q2: 0.4}}\n"
    text = smooth(tmp_path, FREE).replace("duration: 0.5\nrate: 100\n", "") + rough
    limits = "{energy_drift_percent: 0.01, constraint_error: 1, tracking_error: 1, coarser_difference: 1e-6}"
    done = run(tmp_path, text + f"accept: {limits}\n")
    assert any("drift of the energy" in m for m in done.missed) and len(done.missed) == 4
    assert any("a coarser integration differs by up to" in w for w in done.warnings)
    assert any("the energy drifts by" in w for w in done.warnings)
    fast = run(tmp_path, LED + "sensors: {q.*: {rate: 1000}}\n")
    assert any("read at 1000 Hz and the truth is known at 100 Hz" in w for w in fast.warnings)


def test_a_free_base_falls(tmp_path: Path) -> None:
    box = """
veridyn: 2
name: box
base: free
gravity: [0, 0, -9.81]
bodies:
  - {name: box, inertia: {mass: 2, centre: [0, 0, 0], about_centre: {XX: 1, YY: 2, ZZ: 2.5}}}
"""
    written(tmp_path, box, "box.yaml")
    study = "veridyn: 1\nkind: simulate\nmodel: {file: box.yaml}\nduration: 1\nrate: 20\n"
    more = "start: {base: {position: [0, 0, 5], velocity: [1, 0, 3], omega: [0, 0, 2]}}\n"
    done = run(tmp_path, study + more)
    t = done.t
    assert done.truth["base.position.z"].values == pytest.approx(5 + 3 * t - 9.81 / 2 * t**2, abs=1e-9)
    assert done.truth["base.rotation.xy"].values == pytest.approx(-np.sin(2 * t), abs=1e-8)
    assert done.conservative and done.figures["energy_drift_percent"] < 1e-4 and "base.omega.z" in done.log


def test_a_linkage_runs_round_and_stays_closed(tmp_path: Path) -> None:
    study = """
veridyn: 1
kind: simulate
model: {file: "veridyn:linkage.yaml"}
inputs: {formulas: {force.q1: 4*sin(9*t)}}
start: {rates: {q1: 9}}
duration: 0.5
rate: 100
integrator: {rtol: 1e-9, atol: 1e-10}
"""
    done = run(tmp_path, study)
    assert done.figures["constraint_error"] < 1e-12 and done.log.names == ("q.q1", "force.q1")
    assert not done.conservative and {"q.q2", "qdd.q3"} <= set(done.truth)
    page = done.summary()
    assert "linkage" in page and done.settings["drive"] == "inputs"


def test_a_delta_robot_follows_what_its_controller_asks(tmp_path: Path) -> None:
    study = """
veridyn: 1
kind: simulate
model: {file: "veridyn:delta.yaml"}
motion: {fourier: {frequency: 1, centre: {q1: 0.43, q2: 0.43, q3: 0.43}, sine: {q1: [0.2], q2: [-0.1], q3: [0.1]}, start: 0.1}}
controller: {bandwidth: 8}
duration: 0.3
rate: 100
"""
    done = run(tmp_path, study)
    f = done.figures
    assert f["tracking_error"] < 1e-3 and f["constraint_error"] < 1e-12 and done.errors.shape == (31, 3)
    # the feed-forward is the closed machine's inverse dynamics: what the feedback adds is little
    exact = run(tmp_path, study.replace("controller: {bandwidth: 8}\n", ""))
    fast = np.abs(exact.truth["qd.q1"].values) > 0.5
    assert done.truth["force.q1"].values[fast] == pytest.approx(exact.truth["force.q1"].values[fast], abs=0.02)


def test_a_hexapod_is_simulated_with_what_its_file_leaves_open(tmp_path: Path) -> None:
    """Its friction has no value in the file, and ties spread what the study gives."""
    legs = "{" + ", ".join(f"l{k}: 0.9831" for k in range(1, 7)) + "}"
    study = f"""
veridyn: 1
kind: simulate
model: {{file: "veridyn:hexapod.yaml"}}
motion: {{fourier: {{frequency: 1, centre: {legs}, sine: {{l1: [0.02], l4: [-0.03]}}, start: 0.05}}}}
controller: {{bandwidth: 6}}
duration: 0.1
rate: 100
"""
    with pytest.raises(ModelError, match="these parameters have no value: ra, rb"):
        run(tmp_path, study)
    known = "{" + ", ".join(f"{name}: {TRUTH[name]}" for name in FRICTION) + "}"
    done = run(tmp_path, study.replace('hexapod.yaml"', f'hexapod.yaml", known: {known}'))
    assert done.figures["tracking_error"] < 1e-4 and done.figures["constraint_error"] < 1e-12
    rows = {p.name: p.truth for p in done.parameters}
    assert rows["ra_4"] == rows["ra"] == TRUTH["ra"] and done.log.names[0] == "q.l1"


def setup(folder: Path, text: str) -> CarSetup:
    written(folder, SALOON, "car.yaml")
    return car_setup(load_study(written(folder, text)))


def test_speed_steering_and_bank_over_time(tmp_path: Path) -> None:
    text = STEERED.replace("speed: 20", "bank: 0.02*step(t - 1), speed: 20 - t")
    drive = setup(tmp_path, text + "start: {rates: {yaw_rate: 0.1}}\nintegrator: {step: 0.01}\n").drive
    speed, bank = drive.speed, drive.bank
    assert callable(speed) and callable(bank) and speed(3.0) == 17.0 and (bank(0.9), bank(1.1)) == (0.0, 0.02)
    assert drive.start == (0.0, 0.1) and drive.step == 0.01 and (drive.duration, drive.rate) == (4.0, 25.0)


def test_the_slope_of_a_table_of_speeds_is_known_at_its_ends(tmp_path: Path) -> None:
    """v = 20 − 0.5 t: an acceleration of −0.5 m/s² from the first sample to the last."""
    t = np.arange(5.0)
    rows = np.column_stack([t, 20.0 - 0.5 * t])
    np.savetxt(tmp_path / "speeds.csv", rows, delimiter=",", header="t [s],v [m/s]", comments="")
    table = "file: speeds.csv, time: 't [s]', columns: {speed: 'v [m/s]'}"
    text = STEERED.replace("{speed: 20, ", "{").replace("inputs: {", f"inputs: {{{table}, ")
    setup(tmp_path, text)
    run = simulate_study(load_study(written(tmp_path, text)))
    np.testing.assert_allclose(run.truth["ax"].values, -0.5, rtol=1e-9)
    with pytest.raises(FileError, match="a speed that jumps"):
        setup(tmp_path, text.replace("inputs: {", "inputs: {between: hold, "))


def test_its_log_is_that_of_the_verb(tmp_path: Path) -> None:
    setup(tmp_path, STEERED)
    run = simulate_study(load_study(written(tmp_path, STEERED + "seed: 7\n")))
    drive = Steered(4.0, 25.0, speed=20.0, steer=lambda t: 0.05 * np.sin(0.9 * t))
    log = vd.simulate(load_model(tmp_path / "car.yaml"), drive, rng=np.random.default_rng(7))
    assert set(run.log.names) == set(log.names)
    for name in log.names:
        np.testing.assert_allclose(run.log[name].values, log[name].values, rtol=1e-9, atol=1e-12)


def test_a_machine_of_joints_is_no_car(tmp_path: Path) -> None:
    text = STEERED.replace("{file: car.yaml}", "{file: 'veridyn:crane.yaml', formulation: single_track}")
    with pytest.raises(CapabilityError, match="no car of a few numbers"):
        setup(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("speed: 20, ", "", "driven by its speed, and nothing says what it is"),
        ("speed: 20", "speed: 20, ax: 1", "'ax' is no input of this machine"),
        ("rate: 25", "rate: 25\nmotion: {file: motion.csv}", "has no bodies and joints"),
        ("rate: 25", "rate: 25\nstart: {coordinates: {x: 1}}", "starts at the origin, heading east"),
        ("rate: 25", "rate: 25\nstart: {rates: {speed: 1}}", "no 'speed' to start with(.|\n)*lateral_speed"),
        ("rate: 25", "rate: 25\nintegrator: {name: LSODA}", "a drive is integrated by RK4"),
        ("{file: car.yaml}", "{file: car.yaml, priors: forget}", "has no bodies and joints"),
        ("{file: car.yaml}", "{file: lorry.yaml}", "there is no such file"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        setup(tmp_path, STEERED.replace(old, new))
