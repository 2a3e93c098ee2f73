"""A formulation that a machine or a study chooses is honoured or refused by name: verbs, and every kind of study."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import CapabilityError
from veridyn.estimators import explain, identify_fleet, replay, with_payload
from veridyn.files.machine.write import model_text
from veridyn.model.experiment import Channel
from veridyn.model.single_track import PriorValue, car_machine
from veridyn.studies.config.observe import CarStudyFile
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.run.car import study_car
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.machine import own_formulation, study_machine
from veridyn.studies.run.observer import observed_machine
from veridyn.studies.run.simulate import car_setup

T = np.arange(400) / 100.0
CAR = car_machine("car", {"mass": 1500.0, "front": 1.2, "rear": 1.4, "front_stiffness": PriorValue(15.0, 3.0)})
STILL = vd.Motion(T[:3], *(np.zeros((3, 3)) for _ in range(3)))
DRIVE = vd.Experiment({"speed": Channel("speed", T, np.ones(400), "m/s")}, "drive")
OF_JOINTS: dict[str, Callable[[], object]] = {
    "motion": lambda: vd.motion(CAR, DRIVE),
    "inverse_dynamics": lambda: vd.inverse_dynamics(CAR, STILL),
    "forward_dynamics": lambda: vd.dynamics.forward_dynamics(CAR, STILL),
    "regressor": lambda: vd.regressor(CAR, STILL),
    "base_parameters": lambda: vd.base_parameters(CAR),
    "mass_matrix": lambda: vd.dynamics.mass_matrix(CAR, np.zeros(3)),
    "energy": lambda: vd.dynamics.energy(CAR, STILL),
    "integrate": lambda: vd.dynamics.integrate(CAR, T, np.zeros(3), np.zeros(3)),
    "evaluator": CAR.evaluator,
    "replay": lambda: replay(CAR, STILL),
    "explain": lambda: explain(CAR, "front_stiffness"),
    "with_payload": lambda: with_payload(CAR, "car"),
    "identify_fleet": lambda: identify_fleet(CAR, {"one": DRIVE}),
    "tree": lambda: CAR.with_formulation("tree"),
    "natural": lambda: CAR.with_formulation("natural"),
    "save_urdf": lambda: vd.files.save_urdf(CAR, "car.urdf"),
}


@pytest.mark.parametrize("verb", OF_JOINTS)
def test_what_is_made_of_joints_is_refused_of_a_car(verb: str) -> None:
    with pytest.raises(CapabilityError, match="formulation single_track has no") as caught:
        OF_JOINTS[verb]()
    assert caught.value.instead


def pendulum() -> vd.Machine:
    """A rod that a motor turns, with an encoder; both formulations carry it."""
    inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))
    rod = vd.Link(name="rod", inertia=inertia)
    hinge = vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    encoder = vd.Sensor("encoder", "coordinate", "hinge", 1e-3)
    return vd.Machine.build([rod], [hinge], name="pendulum", dimension=2, sensors=[encoder])


def test_no_machine_of_bodies_becomes_a_car() -> None:
    with pytest.raises(CapabilityError, match="described by bodies and joints"):
        pendulum().with_formulation("single_track")


def test_forces_do_not_depend_on_the_formulation() -> None:
    q, qd, qdd = (f(3.0 * T)[:, None] for f in (np.sin, np.cos, lambda x: -np.sin(x)))
    motion = vd.Motion(T, q, 3.0 * qd, 9.0 * qdd)
    tree, natural = (vd.inverse_dynamics(pendulum().with_formulation(f), motion) for f in ("tree", "natural"))
    # I q̈ + m g c cos q, about the hinge: 0.6 kg·m² and 9.81 N·m.
    np.testing.assert_allclose(tree, 0.6 * motion.qdd + 9.81 * np.cos(q), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(natural, tree)


REST = {
    "identify": "log: {time: t, columns: {q.hinge: q, force.hinge: f}}\ntraining: [{file: log.csv}]\n",
    "observe": "log: {file: log.csv, time: t, columns: {encoder: q}}\n",
    "simulate": "duration: 0.05\nrate: 100\n",
    "excite": "",
}
LOGGED = "log: {file: log.csv, columns: {speed: v, steer: q, yaw_rate: f}}\n"
DRIVEN = {
    "identify": LOGGED,
    "observe": LOGGED,
    "simulate": "duration: 0.05\nrate: 100\ninputs: {formulas: {speed: 20, steer: 0.01}}\n",
}


def chosen(kind: str, loaded: Loaded) -> str:
    """The formulation in which a study computes, or gives back what it found."""
    if isinstance(loaded.study, CarStudyFile):
        return study_car(loaded).formulation
    if kind == "observe":
        made = observed_machine(loaded)[0]
        return made.formulation if isinstance(made, vd.Machine) else "natural"
    if kind == "simulate" and own_formulation(loaded, ("model",), loaded.study.model) == "single_track":
        return car_setup(loaded).machine.formulation
    study_machine(loaded, ("model",), loaded.study.model)
    return own_formulation(loaded, ("model",), loaded.study.model)


@pytest.mark.parametrize("key", [None, "tree", "natural", "single_track"])
@pytest.mark.parametrize("described", ["tree", "natural", "single_track"])
@pytest.mark.parametrize("kind", REST)
def test_a_study_honours_a_formulation_or_refuses_it(
    tmp_path: Path, kind: str, described: str, key: str | None
) -> None:
    machine = CAR if described == "single_track" else pendulum().with_formulation(described)
    (tmp_path / "model.yaml").write_text(model_text(machine), encoding="utf-8")
    own = "" if key is None else f", formulation: {key}"
    of_a_car = kind in DRIVEN and "single_track" in (key, described) and key in (None, "single_track")
    rest = DRIVEN[kind] if of_a_car else REST[kind]
    text = f"veridyn: 1\nkind: {kind}\nmodel: {{file: model.yaml{own}}}\n{rest}"
    if kind == "excite":
        text += (
            "motion: {frequency: 0.5}\nlimits: {coordinates: {hinge: {range: [-1, 1], speed: 1, acceleration: 2}}}\n"
        )
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    loaded = load_study(tmp_path / "study.yaml", kind)
    wanted = key or described
    carried = described != "single_track" if wanted != "single_track" else described == "single_track" and of_a_car
    if carried:
        assert chosen(kind, loaded) == wanted
        return
    with pytest.raises(CapabilityError):
        chosen(kind, loaded)


@pytest.mark.parametrize("key", ["", ", formulation: tree"])
def test_an_identified_machine_is_in_its_own_formulation_again(tmp_path: Path, key: str) -> None:
    (tmp_path / "model.yaml").write_text(model_text(pendulum().with_formulation("natural")), encoding="utf-8")
    q = 0.8 * np.sin(3.0 * T) + 0.3 * np.sin(7.0 * T)
    qdd = -0.8 * 9.0 * np.sin(3.0 * T) - 0.3 * 49.0 * np.sin(7.0 * T)
    rows = np.column_stack([T, q, 0.6 * qdd + 9.81 * np.cos(q)])
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header="t [s],q [rad],f [N*m]", comments="")
    study = f"veridyn: 1\nkind: identify\nmodel: {{file: model.yaml{key}}}\nchecks: false\nsignals: {{lowpass: none}}\n"
    log = "log: {time: 't [s]', columns: {q.hinge: 'q [rad]', force.hinge: 'f [N*m]'}}\n"
    (tmp_path / "study.yaml").write_text(f"{study}{log}training: [{{file: log.csv}}]\n", encoding="utf-8")
    fit = run_identify(load_study(tmp_path / "study.yaml")).study.fit
    assert fit.formulation == fit.machine().formulation == ("tree" if key else "natural")
    assert any("joint coordinates of its tree" in note for note in fit.notes) is not bool(key)
