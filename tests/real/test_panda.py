"""A Franka Panda with joint torque sensors, on its jittering clock, against the published identification.

Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca: Dynamic identification of the Franka Emika Panda robot, RA-L 4(4), 2019.
"""

import csv
import itertools
from math import pi

import numpy as np
import pytest

import veridyn as vd
from real_logs import folder
from veridyn.errors import IdentificationWarning

JOINTS = [f"q{k}" for k in range(1, 8)]
# Modified Denavit-Hartenberg parameters (α, d, r), the paper's table I.
GEOMETRY = [
    (0.0, 0.0, 0.333),
    (-pi / 2, 0.0, 0.0),
    (pi / 2, 0.0, 0.316),
    (pi / 2, 0.0825, 0.0),
    (-pi / 2, -0.0825, 0.384),
    (pi / 2, 0.0, 0.0),
    (pi / 2, 0.088, 0.0),
]
BODIES = [
    vd.model.Body(str(k), "ground" if k == 1 else str(k - 1), placement=vd.spatial.MDH(alpha=alpha, d=d, r=r))
    for k, (alpha, d, r) in enumerate(GEOMETRY, 1)
]
FRICTION = [
    element for c in JOINTS for element in (vd.elements.damper(c), vd.elements.coulomb(c), vd.elements.offset(c))
]
# The torques of the sixth joint are a tenth larger than the other rows, with this model, would have them.
SCALE = "force of 'q6': it seems to be off by a factor beside the others"
# Dry friction of the seventh turns 27 ± 6 ms late, and so does that of the fourth to sixth, by 7 to 33 ms. That is friction that yields, or
# a delay: of the fifth the smooth part is too small to tell, and both are named; that of the seventh is likelier to be late.
# The cables of this arm act as springs of some tenths of a N*m/rad, and its friction is richer than two terms.
pytestmark = [
    pytest.mark.filterwarnings("ignore:force of 'q[4-7]'. it is late against the positions"),
    # With one equation in ten, and all this taken into the model, forces are 3.3 ± 1.1 ms late together, and the second joint yields by
    # .27 ± .05 mrad/(N*m): 2 dlogL of 164 and 143. Torques go through a filter, and gears yield; that much in one joint alone is doubtful.
    pytest.mark.filterwarnings("ignore:forces. measured forces are late against the positions, all by one delay"),
    pytest.mark.filterwarnings("ignore:joint 'q2'. its position differs from the link's"),
    pytest.mark.filterwarnings("ignore:joint 'q[1-7]'. .*the model does not have"),
    pytest.mark.filterwarnings("ignore:model.gravity. gravity seems to point another way"),  # by 0.35°, as floors do
]
PANDA = vd.Machine.of_bodies(BODIES, name="panda", gravity=(0.0, 0.0, -9.81), elements=FRICTION)


@pytest.fixture(scope="module")
def log():
    """Positions and torques. Each file is one column, the seven joints of a sample one below the other."""
    files = {
        part: np.loadtxt(folder("panda") / f"exciting_traj_{part}.txt") for part in ("positions", "time", "torques")
    }
    q, tau = files["positions"].reshape(-1, 7), files["torques"].reshape(-1, 7)
    values = {f"q.{c}": q[:, k] for k, c in enumerate(JOINTS)} | {f"force.{c}": tau[:, k] for k, c in enumerate(JOINTS)}
    units = {name: "rad" if name.startswith("q.") else "N*m" for name in values}
    return vd.Experiment.from_arrays(files["time"], values, units, "panda")


def moved(log, cutoff):
    """On a uniform clock of 1 kHz, bridging its four gaps of up to 9 ms, and through the low-pass."""
    return vd.motion(PANDA, log, vd.Signals(rate=1000.0, lowpass=cutoff, max_gap=0.01))


def sampling(cutoff, trim=0):
    return vd.estimators.Sampling(filter=vd.signals.Butterworth(cutoff), decimate=10, trim=trim)


def errors(motion, how):
    """In percent: of the fit on all samples, and of the fit on the first 70 % on the last 30 %."""
    cut = int(0.7 * len(motion))
    whole = vd.validate(
        vd.identify(PANDA, motion, settings=vd.IdentifySettings(sampling=how), diagnose="off"),
        motion,
        settings=vd.IdentifySettings(sampling=how),
    )
    other = vd.validate(
        vd.identify(PANDA, motion[:cut], settings=vd.IdentifySettings(sampling=how), diagnose="off"),
        motion[cut:],
        settings=vd.IdentifySettings(sampling=how),
    )
    return 100.0 * whole.relative_error, 100.0 * other.relative_error


def test_the_clock_is_found_out(log):
    found = vd.signals.inspect(log)
    print(found.summary())
    kinds = {finding.kind for finding in found}
    assert {"gap", "jitter"} <= kinds
    with pytest.raises(vd.errors.DataError, match=r"4 gap\(s\) without a sample"):
        vd.motion(PANDA, log)


@pytest.mark.filterwarnings(
    "ignore:sampling.decimate"
)  # one equation in ten, as elsewhere in this file; deviations are not looked at
def test_43_inertial_and_21_friction_base_parameters_are_found_and_named(log):
    closed = vd.base_parameters(vd.Machine.of_bodies(BODIES, name="panda"))
    assert closed.source == "by the closed rules" and closed.count == 43
    # The second combination of the paper's table III: J2xx − J2yy + J3yy + 0.632 c3z m3 + 0.0998 m3 + 0.1067 (m4 + … + m7).
    assert "XX2R = XX2 - YY2 + YY3 + 0.632*MZ3 + 0.099856*M3 + 0.10666225*M4" in closed.relations()[1]
    with pytest.warns(IdentificationWarning, match=SCALE):
        fit = vd.identify(PANDA, moved(log, 10.0), settings=vd.IdentifySettings(sampling=sampling(10.0)))
    print(fit.summary())
    assert len(fit.values) == 64
    assert fit.names[:43] == closed.names
    assert set(fit.names[43:]) == {element.parameter_name for element in FRICTION}
    assert fit.base.relations() == closed.relations()
    assert fit.base.gap > 1e6


def test_errors_at_ten_hertz(log):
    """Nothing is trimmed: the ends of the log, where filters know less, are in. The published fit has 1.41 %."""
    whole, other = errors(moved(log, 10.0), sampling(10.0))
    print(f"panda, 10 Hz: {whole:.3f} % on all samples, {other:.3f} % on the last 30 % by the fit on the first 70 %")
    assert whole <= 1.6
    assert other <= 1.8


@pytest.mark.parametrize(
    "cutoffs",
    [(5.0, 10.0, 20.0, 40.0), pytest.param((2.0, 3.0, 5.0, 8.0, 10.0, 15.0, 20.0, 30.0, 40.0), marks=pytest.mark.slow)],
    ids=["four", "nine"],
)
def test_errors_over_the_cutoff(log, cutoffs):
    """The held-out error has its least where the motion ends and the noise begins; half a second is left out at each end."""
    curve = {}
    for cutoff in cutoffs:
        curve[cutoff] = errors(moved(log, cutoff), sampling(cutoff, trim=500))
        print(f"panda, {cutoff:4.0f} Hz: {curve[cutoff][0]:7.3f} % all, {curve[cutoff][1]:7.3f} % held out")
    best = min(curve, key=lambda cutoff: curve[cutoff][1])
    assert 2.0 <= best <= 10.0
    for low, high in itertools.pairwise(c for c in cutoffs if c >= 10.0):
        assert curve[low][0] < curve[high][0] and curve[low][1] < curve[high][1]
    assert all(abs(other - whole) < 0.25 * whole for whole, other in curve.values())


@pytest.mark.filterwarnings(
    "ignore:sampling.decimate"
)  # one equation in ten, as elsewhere in this file; deviations are not looked at
def test_gravity_is_the_published_one(log):
    """The first moments that carry most of the load, beside the paper's table III (column of the classic least squares).

    2 % is asked for: the paper's two columns, this one and the reverse-engineered one, differ by 1.1 to 3.4 % in these.
    """
    with (folder("panda") / "published_coefficients_tableIII.csv").open(encoding="utf-8") as stream:
        table = {row["coefficient"]: float(row["pi_CLS"]) for row in csv.DictReader(stream)}
    with pytest.warns(IdentificationWarning, match=SCALE):
        fit = vd.identify(PANDA, moved(log, 10.0), settings=vd.IdentifySettings(sampling=sampling(10.0)))
    found = dict(zip(fit.names, fit.values, strict=True))
    for name, start in (("MY2R", "c2y m2"), ("MX4R", "c4x m4"), ("MY4R", "0.384m5")):
        published = next(value for key, value in table.items() if key.startswith(start))
        print(f"panda, {name}: {found[name]:.4f} kg*m, published {published:.4f}")
        assert found[name] == pytest.approx(published, rel=0.02)


def test_a_friction_ladder_of_eight_seconds_behind_the_low_pass(log):
    """80 equations of each row are 40 blocks of two, whatever the margins of the filter are."""
    run = moved(log, 5.0)[1000:9000]
    how = vd.estimators.Sampling(filter=vd.signals.Butterworth(5.0), decimate=100)
    ladder = vd.estimators.friction_ladder(
        PANDA, run, settings=vd.IdentifySettings(sampling=how), on=["q4", "q7"], terms=("stribeck", "quadratic")
    )
    print(ladder.summary())
    assert ladder.blocks == 40 and not ladder.note
    assert all(np.isfinite(s.sigma_percent) and s.sigma_percent > 0.0 for s in ladder.steps if not s.reason)
