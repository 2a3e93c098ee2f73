"""A person who lifts a box on a force plate: the mass standing still, the box from the step of the force, and markers with occlusions."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

import veridyn as vd
from real_logs import folder

G = 9.81
FLOOR, TABLE, LIFTED = -0.0676, 0.6803, 0.01  # m: the box's near marker on the floor, on the table, and off the floor
UNITS = {"omega": "rad/s", "acceleration": "m/s^2"}
PELVIS = ("BODY:AILCL", "BODY:AILCR", "BODY:PILCL", "BODY:PILCR")


@cache
def plate() -> tuple[np.ndarray, np.ndarray]:
    with (folder("boxlift_s1") / "S1_SquatLifting_Forceplate.csv").open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    first = next(k for k, r in enumerate(rows) if r and r[0] == "MocapFrame")
    table = np.array([[float(x) for x in r] for r in rows[first + 1 :] if len(r) > 6])
    return table[:, 1], table[:, 3:9]


@cache
def markers() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    with (folder("boxlift_s1") / "S1_SquatLifting_Markers.csv").open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    names = rows[3][2::3]
    table = np.array([[float(x) if x else np.nan for x in r] for r in rows[7:] if len(r) > 6])
    seen = table[:, 2:].reshape(len(table), -1, 3)
    return table[:, 1], {n: seen[:, k] for k, n in enumerate(names)}


def person() -> vd.Machine:
    """One body: standing still, all that a plate can tell is its mass and where its centre is."""
    return vd.Machine.of_bodies(
        [vd.model.Body("person", None, "fixed")], name="person", base="free", gravity=(0.0, 0.0, -G)
    )


def weighed(used: np.ndarray) -> tuple[float, float]:
    """Mass and its deviation from the vertical row of the samples used, at rest."""
    t, wrench = plate()
    machine = person()
    N = len(t)
    zero = np.zeros((N, 3))
    base = vd.BaseMotion(zero, zero, np.tile([0.0, 0.0, G], (N, 1)))
    motion = vd.Motion(t, np.zeros((N, 0)), np.zeros((N, 0)), np.zeros((N, 0)), base, wrenches={"person": wrench})
    asked = machine.with_parameters(
        machine.parameters.known({n: 0.0 for n in machine.parameters.names if n != "M_person"})
    )
    fit = vd.identify(
        asked,
        motion,
        rows=["fz"],
        settings=vd.IdentifySettings(sampling=vd.estimators.Sampling(drop={"fz": ~used}), covariance="hac"),
    )
    return float(fit.values[0]), float(fit.sigma[0])


@cache
def calm() -> np.ndarray:
    """Samples in which nobody moves: within half a second plate and shoulder hardly change, and the box is on the floor."""
    t, wrench = plate()
    _, seen = markers()
    spread = np.array([np.ptp(wrench[max(0, k - 25) : k + 26, 2]) for k in range(len(t))])
    sway = np.array([np.ptp(seen["BODY:SHOULDER"][max(0, k - 25) : k + 26], axis=0).max() for k in range(len(t))])
    return (spread < 25.0) & (sway < 0.02) & (t > 0.5) & (seen["BOX:NEAR"][:, 1] < FLOOR + LIFTED)


def test_the_person_standing_still() -> None:
    t, still = plate()[0], calm()
    first, sigma = weighed(still & (t < 26.0))
    last, _ = weighed(still & (t > 26.0))
    print(f"boxlift: {first:.2f} ± {sigma:.2f} kg before, {last:.2f} kg after the lifts, {still.sum()} calm samples")
    assert first == pytest.approx(last, rel=0.005)
    assert 82.0 < first < 82.6 and sigma < 0.2


def lifted(parts: Sequence[str], cutoff: float = 5.0) -> vd.Fit:
    """The vertical balance of a person of point masses at some markers, and of the box while it is in hand.

    Each mass has the column g + z̈ of its marker. On the floor or on the table the box is no load of the plate: its column is zero,
    as for a body that falls. Around taking up and setting down hands and ground share it, in a way nobody measured: 0.4 s on either
    side are left out.
    """
    t, wrench = plate()
    _, seen = markers()
    where = {p: seen[f"BODY:{p.upper()}"][:, 1] for p in parts} | {"box": seen["BOX:NEAR"][:, 1]}
    bodies = [
        vd.model.Body("plate", None, "fixed"),
        *(vd.model.Body(p, "plate", "sliding", coordinate=p, actuated=False) for p in where),
    ]
    machine = vd.Machine.of_bodies(bodies, name="person and box", base="free", gravity=(0.0, 0.0, -G))
    asked = [f"M_{p}" for p in where]
    machine = machine.with_parameters(
        machine.parameters.known({n: 0.0 for n in machine.parameters.names if n not in asked})
    )
    rows = ("fx", "fy", "fz", "mx", "my", "mz")
    values = {f"q.{p}": z for p, z in where.items()} | {f"wrench.plate.{r}": wrench[:, k] for k, r in enumerate(rows)}
    values |= {
        f"base.{what}.{a}": np.full(len(t), G if (what, a) == ("acceleration", "z") else 0.0)
        for what in UNITS
        for a in "xyz"
    }
    units = {n: "m" for n in values if n.startswith("q.")} | {
        f"wrench.plate.{r}": "N" if r[0] == "f" else "N*m" for r in rows
    }
    units |= {f"base.{what}.{a}": unit for what, unit in UNITS.items() for a in "xyz"}
    log = vd.Experiment.from_arrays(t, values, units, "boxlift")
    with pytest.warns(vd.errors.DataWarning, match=r"'wrench\.plate\.(fz|my)': it drops to zero"):
        motion = vd.motion(machine, log, vd.Signals(lowpass=cutoff, trim=0.5))  # the plate is silent when it starts
    at = np.searchsorted(t, motion.t - 1e-9)
    speed = np.linalg.norm(np.gradient(seen["BOX:NEAR"], 0.01, axis=0), axis=1)[at]
    height = seen["BOX:NEAR"][at, 1]
    in_hand = (height > FLOOR + LIFTED) & ~((np.abs(height - TABLE) < 0.006) & (speed < 0.05))
    motion.qdd[~in_hand, machine.coordinates.index("box")] = -G
    shared = binary_dilation(np.diff(in_hand.astype(int), prepend=0) != 0, iterations=40)
    how = vd.estimators.Sampling(filter=vd.signals.Butterworth(cutoff), decimate=5, drop={"fz": shared}, trim=20)
    return vd.identify(machine, motion, rows=["fz"], settings=vd.IdentifySettings(sampling=how, covariance="hac"))


@pytest.mark.filterwarnings("ignore:boxlift, channel 'q.ankle'. 1 spike")  # 0.4 mm of 20 mm, in one sample
def test_the_box_by_the_step_of_the_force() -> None:
    """Nobody weighed the box for us: two models of the person, at two cutoffs, agree on it and on the person."""
    found = []
    for parts in (("shoulder", "pilcl", "knee"), ("shoulder", "elbow", "wrist", "knee", "ankle", "pilcl", "latr")):
        for cutoff in (3.0, 5.0, 8.0):
            fit = lifted(parts, cutoff)
            box, sigma, person = float(fit.values[-1]), float(fit.sigma[-1]), float(fit.values[:-1].sum())
            print(
                f"boxlift, {len(parts)} markers, {cutoff:g} Hz: box {box:.2f} ± {sigma:.2f} kg, person {person:.2f} kg"
            )
            found.append((box, sigma))
            assert person == pytest.approx(82.2, rel=0.01)
    boxes, sigmas = np.array(found).T
    assert np.ptp(boxes) < 2.0 * sigmas.max() and (boxes > 5.0 * sigmas).all()


def test_occluded_markers_are_bridged_or_named() -> None:
    t, seen = markers()
    measured = np.stack([seen[n] for n in PELVIS], axis=1)
    with pytest.warns(vd.errors.DataWarning, match="markers of 'pelvis'"):
        fit = vd.signals.fit_markers(
            t, measured, vd.signals.marker_cluster(measured), PELVIS, max_gap=0.1, body="pelvis"
        )
    print(
        fit.summary().splitlines()[0], f"; {len(fit.lost)} spans lost, {100 * (1 - fit.valid.mean()):.1f} % of the time"
    )
    known = np.isfinite(fit.residual)
    assert 0.0 < 1.0 - known.mean() < 0.35
    assert np.sqrt(np.nanmean(fit.residual**2)) < 0.01  # skin moves, within a centimetre
    assert len(fit.lost) > 5 and all(b >= a for a, b in fit.lost)
