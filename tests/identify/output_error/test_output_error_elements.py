"""Output error of machines whose elements have states and constants of their own, and of a log from which least squares starts badly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from identify import wheel_rig
from identify.undiagnosed import identify
from identify.wheel_rig import CARRIAGE, LENGTH, SPIN, STIFFNESS, rig
from veridyn.errors import DataError, IdentificationError
from veridyn.files.access import shipped
from veridyn.identify.output_error.output_error import OutputError
from veridyn.mechanics.system.integrate import Inputs, Method, integrate
from veridyn.model.elements.element import Element, coulomb
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

HOW = OutputError(constants=("tyre.C_KAPPA", "tyre.SIGMA_KAPPA"), substeps=2)


def log(rng: np.random.Generator | None = None, noise: float = 0.0) -> Motion:
    """The first 3 s of the rig's log."""
    return wheel_rig.log(rng, noise)[:300]


def guessed() -> Machine:
    """The rig with a mass, an inertia, a stiffness and a relaxation length that are 20 to 40 % wrong, all else known."""
    machine = rig(stiffness=9000.0, length=0.55, carriage=32.0, spin=0.42)
    p = machine.parameters
    return machine.with_parameters(p.known([n for n in p.names if n not in ("M_carriage", "ZZ_wheel")]))


@pytest.fixture(scope="module")
def found() -> vd.Fit:
    """From positions with noise of 1 mm and 1 mrad; the log is that of equations written by hand."""
    return identify(guessed(), log(np.random.default_rng(11), 1e-3), HOW)


def test_stiffness_and_relaxation_of_a_tyre_are_found_within_three_deviations(found: vd.Fit) -> None:
    assert found.constants is not None
    assert np.abs((found.values - [CARRIAGE, SPIN]) / found.sigma).max() < 3.0
    off = (found.constants.values - [STIFFNESS, LENGTH]) / found.constants.sigma
    assert np.abs(off).max() < 3.0
    assert (found.constants.sigma < [0.005 * STIFFNESS, 0.01 * LENGTH]).all()  # and the deviations say something
    assert "tyre.SIGMA_KAPPA: 0.4" in found.summary()


def test_the_identified_machine_has_the_constants_and_their_covariance(found: vd.Fit, tmp_path) -> None:
    assert found.constants is not None
    machine = found.machine()
    assert {c.name: c.value for c in machine.constants}["tyre.C_KAPPA"] == found.constants.values[0]
    known = machine.uncertainty
    assert known is not None and known.names == ("M_carriage", "ZZ_wheel", "tyre.C_KAPPA", "tyre.SIGMA_KAPPA")
    assert known.sigma == pytest.approx([*found.sigma, *found.constants.sigma])
    assert known.covariance[2, 0] == found.constants.cross[0, 0] != 0.0
    again = vd.load(vd.save(found, tmp_path / "fit.json"))
    assert again.constants is not None and again.constants.names == found.constants.names
    assert np.array_equal(again.constants.values, found.constants.values)
    assert np.array_equal(again.constants.cross, found.constants.cross)
    vd.save_model(machine, tmp_path / "rig.yaml")
    read = vd.load_model(tmp_path / "rig.yaml").uncertainty
    assert read is not None and read.names == known.names
    assert read.covariance == pytest.approx(known.covariance, rel=1e-12)


def test_exact_positions_give_exact_constants() -> None:
    """The integrators differ by some 1e-7 m, a ten-thousandth of the noise above, whose deviations are up to 0.3 %."""
    fit = identify(guessed(), log(), replace(HOW, substeps=4))
    assert fit.constants is not None
    assert fit.constants.values == pytest.approx([STIFFNESS, LENGTH], rel=1e-4)
    assert fit.values == pytest.approx([CARRIAGE, SPIN], rel=1e-4)


def test_constants_alone_where_every_parameter_is_known(tmp_path) -> None:
    machine = rig(stiffness=9000.0, length=0.55)
    known = machine.with_parameters(machine.parameters.known(machine.parameters.names))
    fit = identify(known, log(np.random.default_rng(12), 1e-3), HOW)
    assert fit.constants is not None and len(fit.values) == 0
    assert np.abs((fit.constants.values - [STIFFNESS, LENGTH]) / fit.constants.sigma).max() < 3.0
    uncertainty = fit.machine().uncertainty
    assert uncertainty is not None and uncertainty.names == HOW.constants
    assert vd.load(vd.save(fit, tmp_path / "fit.json")).constants is not None
    with pytest.raises(IdentificationError, match="no estimated parameter"):
        identify(known, log(), "oe")


def test_a_spring_and_damper_in_series_on_a_pendulum() -> None:
    """Another law with a state: stiffness, which is linear, and fading time, which is not, beside a dry friction."""

    def made(stiffness: float, time: float) -> Machine:
        elements = [
            Element(kind="maxwell", on={"q1": 1.0}, value=stiffness, constants={"time": time}),
            coulomb("q1", 0.1),
        ]
        ten = from_centre(1.0, (0.3, 0.0, 0.0), 0.02 * np.eye(3))
        return Machine.of_bodies([Body("1", placement=MDH(alpha=np.pi / 2))], inertia={"1": ten}, elements=elements)

    t = 0.01 * np.arange(400)
    push = 2.5 * np.sin(5.0 * t) + 1.5 * np.sin(14.0 * t)
    inputs = Inputs(lambda time, q, qd: [float(np.interp(time, t, push))])
    truth = made(4.0, 0.3)
    method = Method("RK4", step=0.0025, friction_speed=0.05)
    motion = integrate(truth, t, [-1.5], [0.0], inputs, method=method).motion
    noisy = replace(motion, q=motion.q + 1e-3 * np.random.default_rng(5).normal(size=motion.q.shape), signals={})
    fit = identify(made(3.0, 0.45), noisy, OutputError(constants=("km_q1.time",), substeps=2))
    assert fit.constants is not None
    assert abs(fit.constants.values[0] - 0.3) < 3.0 * fit.constants.sigma[0] < 0.03
    off = fit.values - fit.base.reduce(truth.parameters.values)
    assert np.abs(off / fit.sigma).max() < 3.5


@pytest.mark.filterwarnings("ignore:row 'swing'")
def test_a_poor_least_squares_start_gives_way_to_the_machines_own_values() -> None:
    """The crane with its own coarse sensors: least squares finds a small part of its mass, and a simulation from there runs away."""
    machine = vd.load_model(shipped("veridyn:crane.yaml"))
    rng = np.random.default_rng(3)
    t = 0.02 * np.arange(1000)
    push = 120.0 * np.sin(0.9 * t) + 80.0 * np.sin(2.3 * t + 1.0)
    inputs = Inputs(lambda time, q, qd: [float(np.interp(time, t, push)), 0.0])
    exact = integrate(machine, t, [0.5, 0.1], [0.0, 0.0], inputs, method=Method("RK4", step=0.02)).motion
    q = exact.q + rng.normal(size=exact.q.shape) * [0.002, 0.01]
    qd = np.gradient(q, 0.02, axis=0)
    log = replace(exact, q=q, qd=qd, qdd=np.gradient(qd, 0.02, axis=0))
    guess = machine.with_parameters(machine.parameters.values * (1.0 + 0.15 * rng.uniform(-1.0, 1.0)))
    said: list[tuple[str, float]] = []
    weight = {"swing": 1.0}  # no force acts there, so the data do not tell how well it is zero
    fit = identify(guess, log, "oe", progress=lambda task, done, total: said.append((task, done)))
    least = identify(guess, log, "wls", settings=vd.IdentifySettings(sigma=weight))
    truth = fit.base.reduce(machine.parameters.values)
    total = fit.names.index("M_trolleyR")
    assert least.values[total] < 0.3 * truth[total]
    assert np.abs((fit.values - truth) / fit.sigma).max() < 3.5
    steps = [done for task, done in said if task == "output error"]
    assert steps == sorted(steps) and len(steps) >= 8  # told before every simulation
    with pytest.raises(IdentificationError, match="cannot be simulated with the parameters that the estimate starts"):
        identify(guess, log, OutputError(start="data"))
    with pytest.raises(IdentificationError) as error:
        identify(guess, log, OutputError(iterations=2))
    (fault,) = error.value.faults
    assert fault.where == "OutputError" and "2 iterations" in fault.what and "errors of x" in fault.found


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(
        IdentificationError, match=r"there is no constant 'tyre.C_KAPA'[\s\S]*Did you mean 'tyre.C_KAPPA'"
    ):
        identify(guessed(), log(), OutputError(constants=("tyre.C_KAPA",)))
    with pytest.raises(IdentificationError, match="a constant is named twice"):
        identify(guessed(), log(), OutputError(constants=("tyre.C_KAPPA", "tyre.C_KAPPA")))
    with pytest.raises(DataError, match=r"elements with a state of their own are not simulated[\s\S]*Use OutputError"):
        identify(guessed(), log(), vd.estimators.Instrumental(law=lambda t, q, qd: 0.0 * q))
    stiff = rig(length=1e-4)
    known = stiff.with_parameters(stiff.parameters.known([n for n in stiff.parameters.names if n != "ZZ_wheel"]))
    with pytest.raises(IdentificationError, match=r"cannot be simulated[\s\S]*more substeps where a law is stiff"):
        identify(known, log()[:100], "oe")
