"""Logs of measured robots, in the folder that VERIDYN_DATA names: a Franka Panda, a KUKA LWR4+ and a UR10e."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import veridyn as vd
from benchmarks.damage.bench import Bench
from benchmarks.damage.kinds import Table
from veridyn.files.machine.urdf import load_urdf
from veridyn.identify.diagnosis.signature_samples import samples_of
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.signals.butterworth import Butterworth
from veridyn.spatial.inertia import INERTIAL

GAINS = (14.87, 13.26, 11.13, 10.62, 11.03, 11.47)  # N*m/A of the UR10e, published for this arm
PIECE = 4000  # samples whose equations are held at once
EXAMPLES = Path(__file__).parents[2] / "examples" / "studies"


def folder(name: str) -> Path:
    """The folder of one robot."""
    path = Path(os.environ.get("VERIDYN_DATA", "")) / name
    if not os.environ.get("VERIDYN_DATA") or not path.is_dir():
        raise SystemExit(f"no logs of '{name}': the variable VERIDYN_DATA names no folder that has them")
    return path


def _bench(
    name: str,
    machine: Machine,
    t: np.ndarray,
    q: np.ndarray,
    measured: dict[str, np.ndarray],
    rate: float,
    cutoff: float,
    seed: int,
) -> Bench:
    """Positions (N, n) and forces or currents on one clock; equations behind a low-pass are kept at the rate at which noise is white."""
    table = {"t": np.asarray(t, dtype=np.float64) - t[0]}
    table |= {f"q.{c}": q[:, k] for k, c in enumerate(machine.coordinates)} | measured
    low = Butterworth(cutoff)
    step = round(1.0 / low.white_gain(rate) ** 2)
    trim = round(rate)
    sampling = Sampling(filter=low, decimate=step, dead_zone=dict.fromkeys(machine.coordinates, 0.05), trim=trim)
    study = (
        f"signals: {{rate: {rate:g}, lowpass: {cutoff:g}}}\n"
        f"sampling: {{dead_zone: 0.05, decimate: {step}, trim: {trim}}}\n"
    )
    signals = vd.Signals(rate=rate, lowpass=cutoff, trim=0.0, max_gap=0.05)  # samples of all damaged logs stay aligned
    bench = Bench(name, machine, table, seed, signals=signals, sampling=sampling, study=study)
    return replace(bench, quiet=_explained(bench))


def _explained(bench: Bench) -> Table:
    """The log with the forces, or currents, of its fit: what is left of it without noise."""
    x = bench.log()
    fit, motion = bench.fitted(x, bench.machine)
    rows = [r.row for r in fit.rows]
    pieces = [motion[k : k + PIECE] for k in range(0, len(motion), PIECE)]
    residual = np.concatenate([samples_of(fit, [m], rows, Sampling(), window=1).misfit(fit.values) for m in pieces])
    gains = {c: e for e in bench.machine.elements if e.kind == "drive_gain" for c in e.on}
    for row, r in zip(rows, residual.T, strict=True):
        name = f"signal.{gains[row].signal}" if row in gains else f"force.{row}"
        x[name] -= np.interp(x["t"], motion.t, r) / (gains[row].value if row in gains else 1.0)
    return x


def _with_friction(drawn: Machine, more: Callable[[str], list[vd.elements.Element]] = lambda _: []) -> Machine:
    """The geometry of a drawing; every inertia and friction is estimated."""
    kinds = (vd.elements.damper, vd.elements.coulomb, vd.elements.offset)
    elements = [e for c in drawn.coordinates for e in (*(kind(c) for kind in kinds), *more(c))]
    return vd.Machine.of_bodies(tree_of(drawn).bodies, name=drawn.name, gravity=drawn.gravity, elements=elements)


def panda(seed: int) -> Bench:
    """Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca (RA-L 2019): joint torques, one column a file, 7 joints one below the other."""
    parts = {k: np.loadtxt(folder("panda") / f"exciting_traj_{k}.txt") for k in ("positions", "time", "torques")}
    machine = _with_friction(vd.load_model(EXAMPLES / "panda_model.yaml"))
    q, tau = (parts[k].reshape(-1, 7) for k in ("positions", "torques"))
    measured = {f"force.{c}": tau[:, k] for k, c in enumerate(machine.coordinates)}
    return _bench("panda", machine, parts["time"], q, measured, 1000.0, 10.0, seed)


def kuka(seed: int) -> Bench:
    """The first of two repeats of one excitation, with joint torque sensors; values of the drawing as priors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vd.errors.DataWarning)  # of the URDF
        drawn = load_urdf(folder("kuka_lwr4") / "kuka_lwr4.urdf")
    inertia = {b.name: [drawn.parameters[b.parameter(s)] for s in INERTIAL] for b in drawn.links if b.real}
    elements = [*drawn.elements, *(vd.elements.offset(c, 0.0) for c in drawn.coordinates)]
    machine = vd.Machine.of_bodies(tree_of(drawn).bodies, name="LWR4+", inertia=inertia, elements=elements)
    with np.load(folder("kuka_lwr4") / "measurements_1.npz") as log:
        t, q, tau = (np.asarray(log[k]) for k in ("times", "positions", "torques"))
    measured = {f"force.{c}": tau[:, k] for k, c in enumerate(machine.coordinates)}
    return _bench("kuka", machine, t, q, measured, 200.0, 5.0, seed)


def ur10e(seed: int) -> Bench:
    """A Fourier run whose torques are known as motor currents, with known drive gains."""
    drawn = load_urdf(folder("ur10e") / "ur10e.urdf")
    number = {c: k for k, c in enumerate(drawn.coordinates, 1)}

    def drive(c: str) -> list[vd.elements.Element]:
        k = number[c]
        return [vd.elements.motor_inertia(c), vd.elements.drive_gain(c, f"i{k}", GAINS[k - 1], f"K{k}")]

    machine = _with_friction(drawn, drive)
    machine = machine.with_parameters(machine.parameters.known([f"K{k}" for k in number.values()]))
    log = np.loadtxt(folder("ur10e") / "ur-20_02_12-40sec_12harm.csv", delimiter=",")
    measured = {f"signal.i{k}": log[:, 12 + k] for k in number.values()}
    return _bench("ur10e", machine, log[:, 0], log[:, 1:7], measured, 100.0, 5.0, seed)


ROBOTS: dict[str, Callable[[int], Bench]] = {"panda": panda, "kuka": kuka, "ur10e": ur10e}
