"""Public URDFs through `new`, `excite`, `simulate` and `identify` with the answers that `new` writes: verdicts, seconds, and coverage.

``python -m benchmarks.urdfs`` prints the table of docs/urdf.md. For each robot a motion is designed once, and every seed draws new noise
of the sensors. A true value is inside where it lies within two stated deviations; values of all parameters and seeds of a robot are
pooled. The truth is the model of the simulation; elements that `new` adds to a model without any (damper, dry friction, offset) are truly
zero.
"""

from __future__ import annotations

import argparse
import json
import sysconfig
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from veridyn.cli.new import StudyKind, _written
from veridyn.report.verdict import verdict
from veridyn.studies.config.study import load_study
from veridyn.studies.run.estimation import IdentifyRun
from veridyn.studies.run.excite import excitation
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.simulate import simulate_study
from veridyn.studies.run.simulation_records import write_logs

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
TESTED = {
    "panda": ("arm with a gripper", "panda_description/urdf/panda.urdf"),
    "ur5": ("arm", "ur_description/urdf/ur5_robot.urdf"),
    "talos_left_arm": ("arm, dry friction", "talos_data/robots/talos_left_arm.urdf"),
    "kinova": ("arm", "kinova_description/robots/kinova.urdf"),
    "so101": ("gripper on a desk arm", "so_arm_description/urdf/so101.urdf"),
    "allegro": ("hand", "allegro_hand_description/urdf/allegro_left_hand.urdf"),
    "finger_edu": ("finger", "finger_edu_description/robots/finger_edu.urdf"),
    "solo12": ("quadruped", "solo_description/robots/solo12.urdf"),
    "go1": ("quadruped", "go1_description/urdf/go1.urdf"),
    "bolt": ("biped", "bolt_description/robots/bolt.urdf"),
    "simple_humanoid": ("humanoid", "simple_humanoid_description/urdf/simple_humanoid.urdf"),
    "tiago": ("mobile manipulator", "tiago_description/robots/tiago_no_hand.urdf"),
}
SIGMAS = 2.0


@dataclass(frozen=True)
class Row:
    """One robot: what `identify` says at the first seed, processor seconds of each step, and errors in deviations over all seeds."""

    robot: str
    kind: str
    coordinates: int
    parameters: int
    grade: str
    exit_code: int
    excite_s: float
    simulate_s: float
    identify_s: float
    seeds: int
    share_inside: float
    rms_sigmas: float
    lowpass: float

    def line(self) -> str:
        """The row of the Markdown table."""
        return (
            f"| {self.robot} | {self.kind} | {100.0 * self.share_inside:.1f} % | {self.seeds} | {self.grade}, {self.exit_code} | "
            f"{self.coordinates} | {self.parameters} | {self.excite_s:.0f} / {self.simulate_s:.0f} / {self.identify_s:.0f} |"
        )


HEAD = (
    "| robot | kind | inside 2σ | seeds | verdict, exit code | joints | base parameters | excite / simulate / identify, CPU s |\n"
    "|---|---|---|---|---|---|---|---|"
)


def run_robot(name: str, seeds: Sequence[int], folder: Path) -> Row:
    """One robot through all steps in a folder; errors of every base parameter at every seed."""
    kind, file = TESTED[name]
    model = ROBOTS / file
    excite_s, trajectory = _designed(model, folder)
    study = folder / "simulate.yaml"
    study.write_text(_written(model, [trajectory], study, "auto", False, None, StudyKind.simulate), encoding="utf-8")
    off: list[np.ndarray] = []
    first: tuple[IdentifyRun, float, float] | None = None
    for seed in seeds:
        log, truth, simulate_s = _simulated(study, seed, folder)
        identify = folder / f"identify-{seed}.yaml"
        text = _written(model, [log], identify, "auto", False, None, StudyKind.identify)
        # Checks look for mistakes and change no estimate: the first seed carries them all out.
        identify.write_text(text if first is None else text + "checks: false\n", encoding="utf-8")
        begin = time.process_time()
        run = run_identify(load_study(identify, "identify"))
        if first is None:
            first = run, simulate_s, time.process_time() - begin
        off.append(errors_in_sigmas(run, truth))
    assert first is not None
    run, simulate_s, identify_s = first
    every = np.concatenate(off)
    return Row(
        robot=name,
        kind=kind,
        coordinates=run.machine.n,
        parameters=run.study.fit.base.count,
        grade=verdict(run.study).grade,
        exit_code=int(bool(run.missed)),
        excite_s=excite_s,
        simulate_s=simulate_s,
        identify_s=identify_s,
        seeds=len(seeds),
        share_inside=float((np.abs(every) < SIGMAS).mean()),
        rms_sigmas=float(np.sqrt((every**2).mean())),
        lowpass=float("nan") if run.lowpass is None else run.lowpass,
    )


def _designed(model: Path, folder: Path) -> tuple[float, Path]:
    study, trajectory = folder / "excite.yaml", folder / "trajectory.csv"
    study.write_text(_written(model, [], study, "auto", False, None, StudyKind.excite), encoding="utf-8")
    begin = time.process_time()
    trajectory.write_text(excitation(load_study(study, "excite")).table(), encoding="utf-8")
    return time.process_time() - begin, trajectory


def _simulated(study: Path, seed: int, folder: Path) -> tuple[Path, dict[str, float], float]:
    """The log of one seed, and the true parameters."""
    own = study.with_name(f"simulate-{seed}.yaml")
    own.write_text(study.read_text(encoding="utf-8").replace("seed: 1\n", f"seed: {seed}\n"), encoding="utf-8")
    begin = time.process_time()
    run = simulate_study(load_study(own, "simulate"))
    seconds = time.process_time() - begin
    kept = _Folder(folder / f"log-{seed}")
    kept.folder.mkdir()
    names = write_logs(kept, run.machine, run.log, run.truth, "csv")  # pyright: ignore[reportArgumentType]
    return kept.folder / names[0], {row.name: row.truth for row in run.parameters}, seconds


@dataclass(frozen=True)
class _Folder:
    """What writing logs needs of a run."""

    folder: Path


def errors_in_sigmas(run: IdentifyRun, truth: dict[str, float]) -> np.ndarray:
    """(estimate − truth)/σ of every base parameter."""
    fit = run.study.fit
    true = fit.base.reduce(np.array([truth.get(name, 0.0) for name in run.machine.parameters.names]))
    return (fit.values - true) / fit.sigma


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    """Run the robots and print the table as Markdown; ``--json FILE`` keeps the numbers."""
    parser = argparse.ArgumentParser(description="Public URDFs through new, excite, simulate and identify.")
    parser.add_argument("--seeds", type=int, default=20, help="how many logs of each robot (default 20)")
    parser.add_argument("--first-seed", type=int, default=1, help="the seed of the first log (default 1)")
    parser.add_argument("--robots", nargs="*", choices=list(TESTED), default=list(TESTED), help="some of them")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    print(HEAD, flush=True)
    for name in chosen.robots:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(
                run_robot(name, range(chosen.first_seed, chosen.first_seed + chosen.seeds), Path(folder).resolve())
            )
        print(rows[-1].line(), flush=True)
        if chosen.json:
            chosen.json.write_text(json.dumps([asdict(r) for r in rows], indent=1), encoding="utf-8")
    return rows


if __name__ == "__main__":
    main()
