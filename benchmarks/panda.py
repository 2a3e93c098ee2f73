"""A Franka Panda's log: the study from files to report with its stages, and regressor and solve beside FIGAROH on the same samples.

Data: Gaz and others, RA-L 4(4), 2019, in the folder that VERIDYN_DATA names; without it this part of the benchmark says that it is skipped.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import pi
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import veridyn as vd
from benchmarks.clock import best_of
from benchmarks.subjects import PinModel
from strangers.random_trees import random_inertia
from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

JOINTS = [f"q{k}" for k in range(1, 8)]
TABLE = ((0, 0, 0.333), (-1, 0, 0), (1, 0, 0.316), (1, 0.0825, 0), (-1, -0.0825, 0.384), (1, 0, 0), (1, 0.088, 0))


@dataclass(frozen=True)
class Comparison:
    """Seconds of the regressor and of the solve, base parameters found, and the residual ‖r‖/‖y‖, for both."""

    samples: int
    regressor: tuple[float, float]
    solve: tuple[float, float]
    count: tuple[int, int]
    residual: tuple[float, float]

    @property
    def total(self) -> tuple[float, float]:
        return self.regressor[0] + self.solve[0], self.regressor[1] + self.solve[1]


def lines() -> Iterator[str]:
    """What `make bench` says of the Panda."""
    root = os.environ.get("VERIDYN_DATA", "")
    folder = Path(root) / "panda"
    if not root or not folder.is_dir():
        yield "- Panda study and the comparison with FIGAROH: skipped, VERIDYN_DATA names no folder with a panda in it."
        return
    stages, total, size = study()
    told = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in stages.items())
    yield f"- Panda study from files to report (a page of {size / 1e6:.1f} MB), one thread: {total:.1f} s: {told}."
    machine, motion = arm(), moved(folder)
    if importlib.util.find_spec("figaroh") is None:
        yield "- Comparison with FIGAROH: skipped, figaroh is not installed."
        return
    c = compared(machine, motion)
    yield (
        f"- Panda, {c.samples:,} samples of its log, inertia, friction and offsets, one thread: FIGAROH builds its regressor in "
        f"{c.regressor[1]:.2f} s and finds and solves {c.count[1]} base parameters in {c.solve[1]:.2f} s; veridyn streams "
        f"regressor and factors in {c.regressor[0]:.3f} s and solves {c.count[0]} in {1e3 * c.solve[0]:.1f} ms: "
        f"{c.total[1] / c.total[0]:.0f} times as fast. Residuals: {100 * c.residual[0]:.4f} % and {100 * c.residual[1]:.4f} %."
    )


def study() -> tuple[dict[str, float], float, int]:
    """Seconds of each stage of ``veridyn identify examples/studies/panda.yaml``, of all of it, and the size of its page.

    A stage is what the study reports as its task; what comes before the first is the reading of the study file.
    """
    from veridyn.report.identification import identification_page
    from veridyn.report.preparation import study_sections
    from veridyn.studies.config.study import load_study
    from veridyn.studies.run.identify import run_identify

    clock = _Stages()
    loaded = load_study(Path(__file__).resolve().parent.parent / "examples" / "studies" / "panda.yaml", "identify")
    done = run_identify(loaded, clock)
    clock("making the page", 0.0, None)
    result = done.result("panda", 0, ())
    page = identification_page(done.study, result, "veridyn identify panda.yaml", study_sections(done))
    clock("done", 0.0, None)
    spent = {name: seconds for name, seconds in clock.spent.items() if seconds >= 0.05}
    return spent, sum(clock.spent.values()), len(page.encode())


class _Stages:
    """A progress meter that adds up the time between reports under the task that was last reported."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._task, self._since = "reading the study", time.perf_counter()

    def __call__(self, task: str, done: float, total: float | None) -> None:
        now = time.perf_counter()
        self.spent[self._task] = self.spent.get(self._task, 0.0) + now - self._since
        self._task, self._since = task, now


def arm() -> Machine:
    """The published geometry with viscous and dry friction and an offset at each joint."""
    bodies = [
        vd.model.Body(
            str(k), "ground" if k == 1 else str(k - 1), placement=vd.spatial.MDH(alpha=turns * pi / 2, d=d, r=r)
        )
        for k, (turns, d, r) in enumerate(TABLE, 1)
    ]
    friction = [
        element for c in JOINTS for element in (vd.elements.damper(c), vd.elements.coulomb(c), vd.elements.offset(c))
    ]
    return Machine.of_bodies(bodies, name="panda", gravity=(0.0, 0.0, -9.81), elements=friction)


def moved(folder: Path, cutoff: float = 10.0) -> Motion:
    """The log on a uniform clock of 1 kHz through a low-pass."""
    q, tau = (np.loadtxt(folder / f"exciting_traj_{p}.txt").reshape(-1, 7) for p in ("positions", "torques"))
    values = {f"q.{c}": q[:, k] for k, c in enumerate(JOINTS)} | {f"force.{c}": tau[:, k] for k, c in enumerate(JOINTS)}
    units = {name: "rad" if name.startswith("q.") else "N*m" for name in values}
    log = vd.Experiment.from_arrays(np.loadtxt(folder / "exciting_traj_time.txt"), values, units, "panda")
    return vd.motion(arm(), log, vd.Signals(rate=1000.0, lowpass=cutoff, max_gap=0.01))


def compared(machine: Machine, motion: Motion) -> Comparison:
    """Ordinary least squares by both on the same samples: FIGAROH stores the regressor, veridyn never does."""
    streamed = best_of(lambda: observation(machine, motion, settings=IdentifySettings(engine="compiled")))
    observed = observation(machine, motion, settings=IdentifySettings(engine="compiled"))
    solving = best_of(lambda: solve(observed, "none"))
    ours = solve(observed, "none")
    assert motion.forces is not None
    size = float(np.linalg.norm(motion.forces))
    built, found, count, residual = _figaroh(machine, motion)
    return Comparison(
        len(motion),
        (streamed.cpu, built),
        (solving.cpu, found),
        (len(ours.values), count),
        (_residual(ours) / size, residual / size),
    )


def _residual(s: Solution) -> float:
    return s.sigma * float(np.sqrt(s.freedom))


def _figaroh(machine: Machine, motion: Motion) -> tuple[float, float, int, float]:
    """Seconds of the regressor and of base parameters with their solution, how many there are, and the norm of the residual."""
    from figaroh.tools.qrdecomposition import QRDecomposer
    from figaroh.tools.regressor import RegressorBuilder, RegressorConfig, build_regressor_reduced, get_index_eliminate

    rng = np.random.default_rng(0)  # FIGAROH wants a mass on each link; its regressor does not depend on it
    inertia = {b.name: random_inertia(rng) for b in machine.links}
    model = PinModel(Machine.of_bodies(tree_of(machine).bodies, gravity=machine.gravity, inertia=inertia)).model
    robot = SimpleNamespace(model=model, data=model.createData())
    builder = RegressorBuilder(robot, RegressorConfig(has_friction=True, has_joint_offset=True))
    start = time.process_time()
    W = builder.build_basic_regressor(motion.q, motion.qd, motion.qdd, {"act_idxv": list(range(model.nv))})
    built = time.process_time() - start
    assert motion.forces is not None
    tau = motion.forces.T.ravel()
    names = {f"p{k}": 0.0 for k in range(W.shape[1])}
    start = time.process_time()
    idle, kept = get_index_eliminate(W, names)
    W_e = build_regressor_reduced(W, idle)
    W_b, _, _, phi = QRDecomposer().double_decomposition(tau, W_e, kept)[:4]
    found = time.process_time() - start
    return built, found, len(phi), float(np.linalg.norm(tau - W_b @ phi))
