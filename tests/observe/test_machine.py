"""A mechanism as filters see it: F and H are derivatives, corrections close it, noise is a covariance, bad settings are named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar
from veridyn.errors import DataError, ModelError
from veridyn.machines import spatial
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.filter import ErrorModel
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.system import check_jacobian

ENCODER = Sensor("encoder", "coordinate", "phi", 0.02)
IMU = Marker("rod", (4.0, 0.5))
SENSORS = (
    ENCODER,
    Sensor("tacho", "rate", "phi", 0.1, bias_sigma=0.1),
    Sensor("gyro", "gyroscope", "rod", 0.01),
    Sensor("imu", "accelerometer", IMU, 0.5),
    Sensor("gps", "position", "2", 0.05),
)
NO = np.zeros(0)


def four(error_model: ErrorModel = "exact", **more):
    machine = machine_of_mechanism(replace(fourbar(), sensors=SENSORS))
    noise = ProcessNoise(force=100.0, acceleration=0.1)
    given = {"process_noise": noise, "start": {"phi": 0.8}, "rates": {"phi": 1.5}} | more
    return machine_system(machine, ObserveSettings(model_error="off", **given), error_model)


@pytest.mark.parametrize("which", ["four-bar", "spatial"])
def test_f_and_h_are_the_derivatives(which: str) -> None:
    """Both with all sensors, over changes that solve the position and velocity problems; central differences."""
    if which == "four-bar":
        system, q, qd = four()
    else:
        given = {"shoulder": 0.7, "elbow": -1.3, "base_b": 0.1}, {"shoulder": 0.5, "elbow": -0.4, "base_b": 0.3}
        system, q, qd = machine_system(
            spatial(),
            ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0), start=given[0], rates=given[1]),
        )
    x = system.belief(q, qd).x
    x[2 * len(q) : 2 * len(q) + system.f] = 3.0
    zero, scales = np.zeros(len(system.states)), np.full(len(system.states), 0.02)

    def at(d):
        return system.add(x, d)

    found = check_jacobian(
        lambda d: system.sense(at(d), NO, 0.0),
        lambda d: system.sense_and_jacobian(at(d), NO, 0.0)[1],
        zero,
        scales=scales,
        outputs=system.outputs,
        states=system.states,
    )
    assert found.error < 1e-6
    for dt in (0.005, 0.025):  # the second in three steps
        moved = system.move(x, NO, 0.0, dt)
        found = check_jacobian(
            lambda d, dt=dt, moved=moved: system.subtract(system.move(at(d), NO, 0.0, dt), moved),
            lambda d, dt=dt: system.move_and_jacobian(at(d), NO, 0.0, dt)[1],
            zero,
            scales=scales,
            states=system.states,
        )
        assert found.error < 1e-6


def test_a_correction_solves_positions_then_velocities_then_accelerations() -> None:
    system, q, qd = four()
    c = system.model.system.constraints
    x = system.add(system.belief(q, qd).x, np.array([0.4, -2.0, 30.0, 0.01]))
    new_q, new_qd, force, bias = system.split(x)
    qdd = system.instant(x, NO).qdd
    assert np.abs(c.values(new_q)).max() < 1e-9
    assert np.abs(c.jacobian(new_q) @ new_qd).max() < 1e-9
    assert np.abs(c.jacobian(new_q) @ qdd + c.jacobian_rate(new_q, new_qd) @ new_qd).max() < 1e-9
    assert (force[0], bias[0]) == (30.0, 0.01)
    assert system.subtract(x, system.belief(q, qd).x) == pytest.approx([0.4, -2.0, 30.0, 0.01])


def test_the_thesis_integrator_and_its_noise() -> None:
    system, q, qd = four(
        process_noise=ProcessNoise(position=2.0, acceleration=3.0), error_model="integrator", unknown=()
    )
    x = system.belief(q, qd).x
    F = system.move_and_jacobian(x, NO, 0.0, 0.01)[1]
    assert F[:2, :2] == pytest.approx(np.array([[1.0, 0.01], [0.0, 1.0]]))  # (54)
    Q = system.noise(x, NO, 0.0, 0.01)
    assert Q[:2, :2] == pytest.approx(np.array([[0.02 + 1e-6, 1.5e-4], [1.5e-4, 0.03]]))


def test_the_forward_error_model_is_the_derivative_of_the_step_to_first_order() -> None:
    """Against the exact F, which central differences confirm: its error falls with Δt², that of the integrator with Δt."""
    gaps = []
    for dt in (4e-3, 2e-3):
        F = {}
        for model in ("exact", "forward", "integrator"):
            system, q, qd = four(error_model=model, rates={"phi": 3.0})
            F[model] = system.move_and_jacobian(system.belief(q, qd).x, NO, 0.0, dt)[1]
        gaps.append([np.abs(F["exact"] - F[m]).max() for m in ("forward", "integrator")])
    (forward, integrator), (finer, coarse) = gaps
    assert forward / finer == pytest.approx(4.0, rel=0.1)
    assert integrator / coarse == pytest.approx(2.0, rel=0.1) and coarse > 20.0 * finer


def test_noise_of_walking_forces_is_a_covariance_and_adds_up_over_steps() -> None:
    system, q, qd = four(process_noise=ProcessNoise(force=50.0))
    x = system.belief(q, qd).x
    Q = system.noise(x, NO, 0.0, 0.01)
    assert np.linalg.eigvalsh(Q[:3, :3])[0] > 0.0
    half = system.noise(x, NO, 0.0, 0.005)
    middle, F = system.move_and_jacobian(x, NO, 0.0, 0.005)[0], None
    later = system.noise(middle, NO, 0.005, 0.005)
    F = system.move_and_jacobian(middle, NO, 0.005, 0.005)[1]
    whole = F @ half @ F.T + later
    assert np.abs(whole - Q)[:3, :3].max() < 1e-2 * np.abs(Q).max()


def test_loads_come_with_the_measurements() -> None:
    system, q, qd = four(inputs=("motor",), unknown=())
    x = system.belief(q, qd).x
    quiet, pushed = (system.instant(x, np.array([m])).qdd[-1] for m in (0.0, 100.0))
    assert pushed > quiet + 1.0
    with pytest.raises(DataError, match="there is no load 'engine'"):
        four(inputs=("engine",))


def test_an_angle_modulo_a_turn() -> None:
    machine = machine_of_mechanism(replace(fourbar(), sensors=(replace(ENCODER, turns=True),)))
    system, _, _ = machine_system(machine, ObserveSettings())
    assert system.residual(np.array([0.1]), np.array([6.2]))[0] == pytest.approx(0.1 - 6.2 + 2 * np.pi)


def test_what_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="force: that of 'phi' is not usable"):
        four(process_noise=ProcessNoise(force=-1.0))
    with pytest.raises(ModelError, match="position: there is no 'psi' here"):
        four(process_noise=ProcessNoise(position={"psi": 1.0}))
    with pytest.raises(ModelError, match="it has no sensors"):
        machine_system(machine_of_mechanism(fourbar()), ObserveSettings())
    with pytest.raises(ModelError, match=r"ObserveSettings\.step: the value is not valid"):
        four(step=0.0)
    with pytest.raises(DataError, match="cannot reach this pose"):
        four(start={"1.x": 7.0})
    contradiction = replace(
        fourbar(), bodies=(*fourbar().bodies[:2], replace(fourbar().bodies[2], points={"2": (0, 0), "B": (25, 0)}))
    )
    with pytest.raises(ModelError, match="they contradict each other"):
        machine_system(machine_of_mechanism(replace(contradiction, sensors=SENSORS[:1])), ObserveSettings())
