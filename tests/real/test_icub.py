"""An iCub that walks: its mass from the vertical base row, the two normal forces of its feet and its URDF (33.08 kg).

Averaging the foot forces gives 33.6 kg. The row says why that is no accident of the motion: with both feet down the two normal forces
add up to 34 kg, on one foot to less than the URDF's 33.1 kg. What the feet do to each other through the ground leaks into the normal
channels.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import veridyn as vd
from real_logs import folder

ROOT = "M_root_link"
SOLES = {"l_sole": "lf_Fz", "r_sole": "rf_Fz"}


@cache
def icub() -> tuple[vd.Machine, float]:
    """On six joints, so that row base_z is the vertical balance; one unknown, by which all masses and inertias are scaled."""
    machine = vd.model.on_six_joints(vd.files.load_urdf(folder("icub") / "model.urdf", base="free"))
    p = machine.parameters
    total = sum(p[b.parameter("M")] for b in machine.links if b.real)
    zero = {n: 0.0 for n, v in zip(p.names, p.values, strict=True) if v == 0.0}
    ties = {
        n: vd.model.Tie(ROOT, v / p[ROOT]) for n, v in zip(p.names, p.values, strict=True) if v != 0.0 and n != ROOT
    }
    return machine.with_parameters(p.known(zero).tied(ties)), total


@cache
def recorded(run: str) -> vd.Experiment:
    machine, _ = icub()
    table = np.genfromtxt(folder("icub") / f"{run}.csv", delimiter=",", names=True)
    values, units = {}, {}
    for c, kind in zip(machine.coordinates, machine.coordinate_kinds, strict=True):
        name = c.removeprefix("base_")
        source = f"base_pos_{name}" if name in ("x", "y", "z") else c if c.startswith("base_") else f"q_{c}"
        known = source in (table.dtype.names or ())
        value = table[source] if known else np.zeros(len(table))  # the wrists were not recorded
        values[f"q.{c}"] = np.unwrap(value) if c.startswith("base_") and kind == "turning" else value
        units[f"q.{c}"] = "rad" if kind == "turning" else "m"
    for sole, channel in SOLES.items():
        for row in ("fx", "fy", "fz", "mx", "my", "mz"):
            values[f"wrench.{sole}.{row}"] = table[channel] if row == "fz" else np.zeros(len(table))
            units[f"wrench.{sole}.{row}"] = "N" if row[0] == "f" else "N*m"
    return vd.Experiment.from_arrays(table["t"], values, units, f"icub {run}")


def moved(run: str) -> vd.Motion:
    how = vd.Signals(rate=100.0, lowpass=3.0, trim=0.5, max_gap=0.2, interpolation="linear")
    return vd.motion(icub()[0], recorded(run), how)


def mass(motion: vd.Motion, drop: np.ndarray | None = None) -> tuple[float, float]:
    machine, total = icub()
    how = vd.estimators.Sampling(
        filter=vd.signals.Butterworth(3.0), decimate=5, drop={} if drop is None else {"base_z": drop}
    )
    fit = vd.identify(machine, motion, rows=["base_z"], settings=vd.IdentifySettings(sampling=how, covariance="hac"))
    scale = total / machine.parameters[ROOT]
    return float(fit.values[0] * scale), float(fit.sigma[0] * scale)


@pytest.mark.filterwarnings("ignore:.*a quarter turn that was rounded:veridyn.errors.DataWarning")
def test_the_urdf_weighs_33_kg() -> None:
    assert icub()[1] == pytest.approx(33.1, abs=0.05)


@pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")
def test_the_mass_from_walking_is_within_three_percent() -> None:
    motion = moved("walking")
    average = sum(motion.wrenches[s][:, 2].mean() for s in SOLES) / 9.81
    found, sigma = mass(motion)
    off = 100.0 * (found / icub()[1] - 1.0)
    print(
        f"icub, walking: {found:.2f} ± {sigma:.2f} kg, {off:+.2f} % of the URDF; averaging the foot forces gives {average:.2f} kg"
    )
    assert abs(off) < 3.0
    assert average == pytest.approx(33.6, abs=0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")
def test_the_difference_is_in_the_feet_and_not_in_the_motion() -> None:
    """One foot down and both feet down are weighed apart: they differ by four times what the URDF is off."""
    motion = moved("walking")
    left, right = (motion.wrenches[s][:, 2] for s in SOLES)
    share = left / (left + right)
    both = (share > 0.1) & (share < 0.9)
    one = (share < 0.02) | (share > 0.98)
    heavy, light = mass(motion, ~both)[0], mass(motion, ~one)[0]
    print(f"icub, walking: {heavy:.2f} kg on both feet, {light:.2f} kg on one; URDF {icub()[1]:.2f} kg")
    assert heavy > icub()[1] > light
    assert abs(light / icub()[1] - 1.0) < 0.03
    # Accelerations explain none of it: the balance of the URDF's own masses has the weight for its mean.
    own = vd.inverse_dynamics(icub()[0], vd.Motion(motion.t, motion.q, motion.qd, motion.qdd), ["base_z"])
    assert own.mean() / 9.81 == pytest.approx(icub()[1], rel=0.002)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")
def test_standing_weighs_as_much_as_both_feet_do_in_walking() -> None:
    found, sigma = mass(moved("com-sinusoid"))
    print(f"icub, com-sinusoid: {found:.2f} ± {sigma:.2f} kg; averaging gives 34.1 kg")
    assert found == pytest.approx(34.1, abs=0.15)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::veridyn.errors.VeridynWarning")
def test_one_vertical_row_cannot_give_a_humanoid_s_parameters() -> None:
    """Paper 004 has all six rows of the base; this log has one. What is identifiable, and what a prior of 30 % is told by the walk."""
    machine = vd.model.on_six_joints(vd.files.load_urdf(folder("icub") / "model.urdf", base="free"))
    counts = [vd.base_parameters(machine, rows=["base_z"]).count]
    counts += [vd.base_parameters(machine, moved(run), rows=["base_z"]).count for run in ("walking", "com-sinusoid")]
    how = vd.estimators.Sampling(filter=vd.signals.Butterworth(3.0), decimate=5)
    fit = vd.identify(
        machine,
        moved("walking"),
        "map",
        rows=["base_z"],
        settings=vd.IdentifySettings(sampling=how),
    )
    assert fit.prior_share is not None
    told, standard = int((fit.prior_share < 0.5).sum()), np.asarray(fit.standard)
    names = machine.parameters.names
    weight = float(sum(standard[names.index(b.parameter("M"))] for b in machine.links if b.real))
    print(
        f"icub: base parameters of the vertical row {counts}; {told} of {len(standard)} decided by the walk; {weight:.2f} kg"
    )
    assert counts[0] > counts[1] > counts[2] > 20
    assert told < 10  # of more than four hundred: the row tells the mass and little else
    assert weight == pytest.approx(33.6, abs=0.2)
