"""A UR10e, whose joint torques are known as motor currents only: fitted on Fourier runs, tested on a point-to-point run."""

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from real_logs import folder
from veridyn.errors import IdentificationWarning
from veridyn.files.machine.urdf import load_urdf

FOURIER = ("ur-20_02_10-30sec_12harm.csv", "ur-20_02_12-40sec_12harm.csv")
POINT_TO_POINT = "ur-20_01_17-ptp_10_points.csv"
GAINS = (14.87, 13.26, 11.13, 10.62, 11.03, 11.47)  # N*m/A, published for this arm
MOVING = 0.05  # rad/s
CUTOFF = 5.0  # Hz
LIMITS = (8.0, 5.0, 4.0, 4.0, 7.0)  # percent, joints 1 to 5
# Deviations are not looked at here: every sample behind the filter is an equation. Currents have three spikes, which are bridged.
pytestmark = [
    pytest.mark.filterwarnings("ignore:sampling.decimate"),
    pytest.mark.filterwarnings("ignore:.*channel 'signal.i[15]'. . spike"),
    # Friction of its strain wave gears grows with the load, by some 6 % of it, which Coulomb's and viscous friction do not have.
    pytest.mark.filterwarnings("ignore:joint '.*'. .*the model does not have"),
]


@pytest.fixture(scope="module")
def arm():
    """The geometry of its URDF; every inertia estimated, with motor inertias, friction and known drive gains."""
    drawn = load_urdf(folder("ur10e") / "ur10e.urdf")
    elements = []
    for k, c in enumerate(drawn.coordinates, 1):
        elements += [vd.elements.damper(c), vd.elements.coulomb(c), vd.elements.offset(c), vd.elements.motor_inertia(c)]
        elements.append(vd.elements.drive_gain(c, f"i{k}", GAINS[k - 1], f"K{k}"))
    links = [replace(link, inertia=None) for link in drawn.links]
    machine = vd.Machine.build(links, drawn.joints, name="UR10e", elements=elements)
    return machine.with_parameters(machine.parameters.known([f"K{k}" for k in range(1, 7)]))


# Their currents are some 15 ms behind the positions, or drift by what a few minutes of warming up do to friction.
WRISTS_ARE_LATE = pytest.mark.filterwarnings("ignore:force of 'wrist_[123]_joint'. it (is late against|seems to drift)")


def moved(machine, name):
    """Columns without header: t, q1–6, q̇1–6, i1–6, and what is not used. Times step by 10 or 12 ms."""
    q, i = [f"q.{c}" for c in machine.coordinates], [f"signal.i{k}" for k in range(1, 7)]
    columns = ["t", *q, *[""] * 6, *i, *[""] * 12]
    units = {"t": "s"} | dict.fromkeys(q, "rad") | dict.fromkeys(i, "A")
    log = vd.load_log(folder("ur10e") / name, columns, units)
    return vd.motion(machine, log, vd.Signals(rate=100.0, lowpass=CUTOFF))


def sampling(machine):
    """One second off each end; each row leaves out its samples below 0.05 rad/s, where friction is not sign(q̇)."""
    return vd.estimators.Sampling(
        filter=vd.signals.Butterworth(CUTOFF), dead_zone=dict.fromkeys(machine.coordinates, MOVING), trim=100
    )


def test_spikes_of_currents_are_bridged_as_those_of_forces_are(arm):
    """Currents stand for forces here; elsewhere a spike of a signal may be an impact, and is kept."""
    with pytest.warns(vd.errors.DataWarning, match=r"channel 'signal.i1': 3 spike\(s\)[\s\S]*bridged"):
        run = moved(arm, FOURIER[0])
    assert any(note.startswith("repaired: 3 spike(s) of channel 'signal.i1'") for note in run.notes or ())


def test_point_to_point_is_predicted_from_fourier_runs(arm):
    with pytest.warns(
        IdentificationWarning, match=r"joint 'elbow_joint': its friction grows with the load of its gear"
    ):
        fit = vd.identify(
            arm, [moved(arm, name) for name in FOURIER], settings=vd.IdentifySettings(sampling=sampling(arm))
        )
    test = moved(arm, POINT_TO_POINT)
    check = vd.validate(fit, test, settings=vd.IdentifySettings(sampling=sampling(arm)))
    # The currents as they were recorded hold noise that no model has; the same fit, told beside them.
    raw = vd.validate(
        fit,
        test,
        settings=vd.IdentifySettings(sampling=vd.estimators.Sampling(dead_zone=sampling(arm).dead_zone, trim=100)),
    )
    print(f"UR10e: {len(fit.values)} base parameters, condition {fit.condition:.0f}")
    for row, plain, trained in zip(check.rows, raw.rows, fit.rows, strict=True):
        print(
            f"{row.row:20} {100 * row.relative_error:6.2f} % on the {100 * row.samples / len(test):.0f} % that move "
            f"(fit {100 * trained.relative_error:.2f} %; against unfiltered currents {100 * plain.relative_error:.2f} %)"
        )
    for row, limit in zip(check.rows, LIMITS, strict=False):
        assert 100.0 * row.relative_error <= limit, row.row
    assert all(0.3 < row.samples / len(test) < 0.7 for row in check.rows)


def test_drive_gains_without_a_known_load_are_refused_with_the_reason(arm):
    free = arm.with_parameters(arm.parameters.estimated([f"K{k}" for k in range(1, 7)]))
    run = moved(arm, FOURIER[0])
    with pytest.raises(
        vd.errors.IdentificationError,
        match=r"drive gains K1, K2, K3, K4, K5, K6: [\s\S]*nothing fixes their size.\nDrive gains need a load that is known",
    ):
        vd.identify(free, run, settings=vd.IdentifySettings(sampling=sampling(arm)))


@WRISTS_ARE_LATE
def test_another_set_of_gains_fits_too_which_is_why_they_must_be_known(arm):
    """Gains half as large make every parameter half as large and change no relative error at all."""
    half = arm.with_parameters(arm.parameters.known({f"K{k}": gain / 2 for k, gain in enumerate(GAINS, 1)}))
    run = moved(arm, FOURIER[0])
    one, other = (
        vd.identify(machine, run, settings=vd.IdentifySettings(sampling=sampling(arm))) for machine in (arm, half)
    )
    assert other.values == pytest.approx(one.values / 2, rel=1e-6, abs=1e-9 * np.abs(one.values).max())
    assert [r.relative_error for r in other.rows] == pytest.approx([r.relative_error for r in one.rows], rel=1e-9)


@WRISTS_ARE_LATE
@pytest.mark.slow
def test_a_friction_ladder_finds_friction_that_depends_on_load(arm):
    """As harmonic drives have it, in the two joints that carry the arm; a run of another kind is predicted with a third less error."""
    runs, test = [moved(arm, name) for name in FOURIER], moved(arm, POINT_TO_POINT)
    how = sampling(arm)
    ladder = vd.estimators.friction_ladder(arm, runs, settings=vd.IdentifySettings(sampling=how), standard_errors=2.0)
    entered = {(s.term, s.on) for s in ladder.entered}
    assert {("load", "shoulder_lift_joint"), ("load", "elbow_joint")} <= entered
    plain = vd.validate(
        vd.identify(arm, runs, settings=vd.IdentifySettings(sampling=how), diagnose="off"),
        test,
        settings=vd.IdentifySettings(sampling=how),
    )
    fit = vd.identify(
        ladder.machine, [ladder.with_loads(m) for m in runs], settings=vd.IdentifySettings(sampling=how), diagnose="off"
    )
    check = vd.validate(fit, ladder.with_loads(test), settings=vd.IdentifySettings(sampling=how))
    print(ladder.summary(), 100.0 * plain.relative_error, 100.0 * check.relative_error)
    assert check.relative_error < 0.67 * plain.relative_error


def test_a_friction_ladder_of_eight_seconds_behind_the_low_pass(arm):
    """The margins of the filter are nearly as long as the log, blocks of its equations are not. What the whole logs show most of all,
    friction of the shoulder that depends on its load, enters."""
    run = moved(arm, FOURIER[0])[300:1100]
    how = vd.estimators.Sampling(
        filter=vd.signals.Butterworth(CUTOFF), dead_zone=dict.fromkeys(arm.coordinates, MOVING)
    )
    on = ["shoulder_lift_joint", "elbow_joint"]
    ladder = vd.estimators.friction_ladder(
        arm, run, settings=vd.IdentifySettings(sampling=how), on=on, terms=("stribeck", "load")
    )
    print(ladder.summary())
    assert 20 <= ladder.blocks < 40 and f"{ladder.blocks} blocks, where 40 were asked for" in ladder.note
    assert ("load", "shoulder_lift_joint") in {(s.term, s.on) for s in ladder.entered}
    assert all(np.isfinite(s.sigma_percent) and s.sigma_percent > 0.0 for s in ladder.steps if not s.reason)
