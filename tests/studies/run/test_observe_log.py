"""Pauses of a log are told; what else is wrong with one is in tests/cli/test_damaged_observer.py.

Study files on vehicles' logs: counts of holes, flags, places on the Earth, and a receiver that is late.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.crane_log import TEXT, crane_log, written
from veridyn.errors import FileError
from veridyn.files.machine.write import save_model
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.measurements import Status
from veridyn.report.observed import observed_page
from veridyn.spatial.inertia import from_centre
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.run.observe_log import beside, derived
from veridyn.studies.run.observed import ObserveRun
from veridyn.studies.run.observer import observe_study

P = np.pi / 20
BODY = from_centre(10.0, [0.0, 0.0, 0.0], np.diag([1.0, 1.0, 1.85]))


def wheels() -> Machine:
    sensors = [Sensor(f"angle_{w}", "coordinate", w, 0.0, quantum=P) for w in ("left", "right")]
    sensors += [Sensor(f"tacho_{w}", "rate", w, 1.0) for w in ("left", "right")]
    return Machine.of_bodies(
        [Body("left"), Body("right")], name="wheels", inertia={"left": BODY, "right": BODY}, sensors=sensors
    )


def sled() -> Machine:
    place = Marker("chassis", (0.0, 0.0, 0.8))
    sensors = [
        Sensor("gps", "position", place, 0.02),
        Sensor("speed", "velocity", place, 0.1),
        Sensor("gyro", "gyroscope", "chassis", 2e-4),
        Sensor("acc", "accelerometer", "chassis", 0.5),
    ]
    body = from_centre(1000.0, [0.0, 0.0, 0.0], np.diag([300.0, 800.0, 1000.0]))
    return Machine.of_bodies(
        [Body("chassis", None, "fixed")], name="sled", base="free", inertia={"chassis": body}, sensors=sensors
    )


def study(folder: Path, machine: Machine, log: str, columns: dict[str, np.ndarray], more: str = "") -> Loaded:
    """A study file with its model and a table of these columns."""
    save_model(machine, folder / "model.yaml", overwrite=True)
    rows = np.column_stack(list(columns.values()))
    cells = [",".join("" if np.isnan(x) else f"{x:.9g}" for x in row) for row in rows]
    (folder / "log.csv").write_text("\n".join([",".join(columns), *cells]) + "\n", encoding="utf-8")
    text = f"veridyn: 1\nkind: observe\nmodel: {{file: model.yaml}}\nlog:\n  file: log.csv\n  time: 'time [s]'\n{log}\n{more}\n"
    (folder / "study.yaml").write_text(text, encoding="utf-8")
    return load_study(folder / "study.yaml")


WHEELS = """
  columns:
    angle_left: nl [1]
    angle_right: nr [1]
    tacho_left: wl [rad/s]
    tacho_right: wr [rad/s]
    tacho_right.available: ok [1]
  pulses:
    angle_left: {holes: 40}
    angle_right: {holes: 40, signed: false}
"""


def rolled() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Both wheels stand for a second, the right one's edge vibrates, and move off; columns and true angles."""
    rng, t = np.random.default_rng(1), np.arange(1500) * 0.002
    w = np.clip(2.0 * (t - 1.0), 0.0, None)
    q = 0.05 + np.cumsum(w) * 0.002
    n = np.floor(q / P)
    shaken = n + np.cumsum((t > 0.2) & (t < 0.7) & (np.arange(1500) % 25 == 0))
    noise = rng.standard_normal((2, 1500))
    columns = {"time": t, "nl": n, "nr": shaken, "wl": w + noise[0], "wr": w + noise[1], "ok": (t < 2.0).astype(float)}
    return columns, q


def test_counts_and_flags_of_a_study(tmp_path: Path) -> None:
    columns, q = rolled()
    more = "filter: {step: 0.002}\nstart: {coordinates: {left: 0.05, right: 0.05}}\n"
    more += "process_noise: {force: 0.05, start: 0.03, start_rate: 0.01}"
    run = observe_study(study(tmp_path, wheels(), WHEELS, columns, more))
    o, e = run.observation, run.observation.estimates
    for name in ("left", "right"):
        off = np.abs(o.state(name) - np.interp(o.t, columns["time"], q))
        assert off.max() < P and off[o.t > 2.0].max() < 0.03  # ten false edges would be ten times P
    k = e.outputs.index("tacho_right")
    assert (e.status[o.t > 2.0 - 1e-9, k] == Status.MISSING).all() and (e.status[o.t < 1.99, k] == Status.USED).all()
    counted = [x for x in run.warnings if "at standstill" in x]
    assert len(counted) == 1 and "'angle_right'" in counted[0] and "it goes on until" in counted[0]
    edges = e.outputs.index("angle_left")
    # The first edges contradict a start that is too sure, and count little.
    assert np.isin(e.status[:, edges], (Status.USED, Status.OUTLIER)).sum() == int(q[-1] / P) - 1


def test_a_receiver_that_is_late_is_named(tmp_path: Path) -> None:
    rng, t = np.random.default_rng(2), np.arange(4000) * 0.01
    rate, ahead = 0.3 * np.sin(0.6 * t) + 0.2 * np.sin(1.4 * t), 0.9 * np.sin(0.8 * t)
    yaw, speed = np.cumsum(rate) * 0.01, 8.0 + np.cumsum(ahead) * 0.01
    vx, vy = speed * np.cos(yaw), speed * np.sin(yaw)
    x, y = np.cumsum(vx) * 0.01, np.cumsum(vy) * 0.01
    late = np.maximum(np.arange(4000) - 20, 0)
    slow = np.where(np.arange(4000) % 10, np.nan, 1.0)
    columns = {
        "time": t,
        "lat": 36.72 + y[late] / 110960.0 * slow,
        "lon": -4.42 + x[late] / 89350.0 * slow,
        "h": 11.0 * slow,
    }
    columns |= {"vx": vx[late] * slow, "vy": vy[late] * slow, "vz": 0.0 * slow}
    columns |= {"wx": 0.0 * t, "wy": 0.0 * t, "wz": rate, "ax": ahead, "ay": speed * rate, "az": 9.81 + 0.0 * t}
    for name in ("vx", "vy", "ax", "ay", "az"):
        columns[name] = columns[name] + 0.1 * rng.standard_normal(4000)
    parts = {
        "speed": ("vx", "vy", "vz", "m/s"),
        "gyro": ("wx", "wy", "wz", "rad/s"),
        "acc": ("ax", "ay", "az", "m/s^2"),
    }
    listed = "".join(
        f"    {s}.{axis}: {name} [{names[3]}]\n"
        for s, names in parts.items()
        for axis, name in zip("xyz", names[:3], strict=True)
    )
    text = f"  empty: none\n  end: 39.0\n  columns:\n{listed}  geodetic:\n"
    places = "    gps: {latitude: 'lat [deg]', longitude: 'lon [deg]', height: 'h [m]', origin: [36.72, -4.42, 11.0]}\n"
    more = "process_noise: {acceleration: 1.0, start: 0.1, start_rate: 10.0}\nfilter: {unknown: []}"
    run = observe_study(study(tmp_path, sled(), text + places, columns, more))
    (warning,) = (w for w in run.warnings if "its clock is" in w)
    seconds = float(warning.split("its clock is ")[1].split(" ")[0])
    assert "sensor 'speed'" in warning and seconds == pytest.approx(0.2, abs=0.03)
    readings = run.observation.readings
    moved = readings.values[:, readings.names.index("gps.x")]
    moved = moved[np.isfinite(moved)]
    assert moved[-1] == pytest.approx(x[late][3900], abs=0.1) and moved[0] == pytest.approx(x[0], abs=1e-2)
    swapped = (
        places.replace("'lat [deg]'", "'no [deg]'")
        .replace("'lon [deg]'", "'lat [deg]'")
        .replace("'no [deg]'", "'lon [deg]'")
    )
    with pytest.raises(FileError, match=r"log.geodetic.gps \(line \d+\): latitude and longitude are exchanged"):
        observe_study(study(tmp_path, sled(), text + swapped, columns, more))
    columns |= {"lat": np.where(np.isnan(slow), np.nan, 3643.2), "lon": np.where(np.isnan(slow), np.nan, -425.2)}
    with pytest.raises(
        FileError, match=r"log.geodetic.gps \(line \d+\): these are degrees and minutes(.|\n)*36.720000"
    ):
        observe_study(study(tmp_path, sled(), text + places, columns, more))


def test_what_does_not_fit_is_named_by_its_line(tmp_path: Path) -> None:
    columns, _ = rolled()
    wrong = (
        WHEELS.replace("angle_left: {holes: 40}", "angel_left: {holes: 40}")
        + "  geodetic: {gps: {latitude: a, longitude: b}}"
    )
    with pytest.raises(
        FileError, match=r"(?s)log.pulses.angel_left \(line 15\).*log.geodetic.gps \(line 17\).*no sensor"
    ):
        observe_study(study(tmp_path, wheels(), wrong, columns))
    odd = WHEELS.replace("tacho_right.available", "tacho.available")
    with pytest.raises(FileError, match=r"'tacho.available' is neither a sensor's output nor a load"):
        observe_study(study(tmp_path, wheels(), odd, columns))
    halves = columns | {"nl": columns["nl"] + 0.5}
    with pytest.raises(FileError, match=r"(?s)log.pulses \(line 14\): it is no count.*'angle_left'"):
        observe_study(study(tmp_path, wheels(), WHEELS, halves))


def test_channels_beside_outputs() -> None:
    outputs = ("gps.x", "gps.y", "angle")
    for name in ("gps.available", "gps.x.available", "angle.available", "angle.sigma", "gps.y.sigma"):
        assert beside(name, outputs)
    for name in ("gps.sigma", ".available", "gsp.available", "angle.sgima"):
        assert not beside(name, outputs)


def test_a_log_without_sections_is_as_it_was(tmp_path: Path) -> None:
    loaded = study(
        tmp_path, wheels(), "  columns: {tacho_left: 'wl [rad/s]'}", {"time": np.arange(3.0), "wl": np.zeros(3)}
    )
    read = Experiment({"tacho_left": Channel("tacho_left", np.arange(3.0), np.zeros(3), "rad/s")}, "log")
    log, findings = derived(loaded, read)
    assert findings == () and log.channels == read.channels


SAMPLES, SPAN = 150, (2.0, 2.5)  # s, of a log at 50 Hz
PLAIN = TEXT.split("accept:")[0].replace("process_noise:\n", 'process_noise:\n  model_error: "off"\n')


def crane(folder: Path, text: str, rows: np.ndarray) -> ObserveRun:
    folder.mkdir(exist_ok=True)
    return observe_study(load_study(written(folder, text, rows)))


def test_withheld_readings_are_compared_and_change_nothing(tmp_path: Path) -> None:
    """The states are those of a log without these readings, and the figures those of its states against the readings."""
    rows = crane_log()[1][:SAMPLES]
    inside = (rows[:, 0] >= SPAN[0]) & (rows[:, 0] <= SPAN[1])
    kept = crane(tmp_path / "withheld", f"{PLAIN}withheld: {{travel: [[{SPAN[0]}, {SPAN[1]}]]}}\n", rows)
    empty = rows.copy()
    empty[inside, 1] = np.nan
    absent = crane(tmp_path / "absent", PLAIN, empty)
    o = absent.observation
    assert kept.observation.state("x") == pytest.approx(o.state("x"), abs=1e-12)
    k = o.states.index("x")
    x, sigma = o.system.reduced(o.estimates.x_predicted)[:, k], np.sqrt(o.estimates.P_predicted[:, k, k])
    error = (1e-3 * np.round(rows[:, 1], 3) - x)[inside]  # the log's millimetres have three decimals
    noise = 0.002  # m, the encoder's
    share = np.mean(np.abs(error) <= 2.0 * np.hypot(sigma[inside], noise))
    assert kept.figures["rms_withheld_travel"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-9)
    assert kept.figures["share_inside_two_sigma_withheld_travel"] == pytest.approx(share)
    assert kept.figures["rejected_travel"] == 0 and absent.figures["rejected_travel"] == inside.sum()
    assert (kept.observation.estimates.status[inside, 0] == Status.WITHHELD).all()
    assert not any("travel" in text for text in kept.warnings) and "rms_withheld_travel" not in absent.figures
    page = observed_page(kept, kept.result("crane", 0), "veridyn observe")
    assert "Withheld readings" in page and "Withheld readings" not in observed_page(
        absent, absent.result("crane", 0), "veridyn observe"
    )


def test_a_sensor_that_is_withheld_all_along_is_not_called_unused(tmp_path: Path) -> None:
    run = crane(tmp_path, f"{PLAIN}withheld: {{tilt: [[0, 10]]}}\n", crane_log()[1][:SAMPLES])
    assert not any("no reading of 'tilt' is used" in text for text in run.warnings)
    assert run.figures["rms_withheld_tilt"] > 0.0


def test_what_cannot_be_withheld_is_refused(tmp_path: Path) -> None:
    text = f"{PLAIN}withheld: {{travle: [[0, 1]], tilt: [[20, 21]]}}\n"
    with pytest.raises(FileError) as refused:
        crane(tmp_path, text, crane_log()[1][:SAMPLES])
    message = str(refused.value)
    assert "'travle' is no sensor that is observed" in message and "Did you mean 'travel'" in message
    assert "no reading of 'tilt' lies from 20 s to 21 s" in message


def test_a_clock_that_counts_from_elsewhere(tmp_path: Path) -> None:
    """Seconds since 1970 with `clock_zero: first` are seconds since the first sample, to the rounding of the clock."""
    rows = crane_log()[1][:SAMPLES]
    later = rows.copy()
    later[:, 0] += 1.6e9
    text = PLAIN.replace("log:\n", "log:\n  clock_zero: first\n")
    assert text != PLAIN
    run, plain = crane(tmp_path / "later", text, later), crane(tmp_path / "plain", PLAIN, rows)
    assert run.observation.t == pytest.approx(plain.observation.t, abs=1e-6)
    assert run.observation.state("x") == pytest.approx(plain.observation.state("x"), abs=1e-6)
