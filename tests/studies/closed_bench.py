"""Closed machines with logs and a study file on disk: drives alone are measured, with noise; forces are those of Pinocchio and a hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from strangers.closed_logs import Stranger, sines
from studies.bench_robot import table
from veridyn.files.machine.write import save_model
from veridyn.machines import delta, palletizer
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Columns = dict[str, np.ndarray]
RATE = 100.0
SECONDS = {"palletizer": 16.0, "delta": 12.0}
MACHINES = {"palletizer": palletizer, "delta": delta}
REACH = {"palletizer": (1.2, 0.4, 0.4), "delta": (0.45, 0.45, 0.45)}
CENTRE = {"palletizer": (0.0, -1.3, 2.9), "delta": (0.5, 0.5, 0.5)}
BASE = {"palletizer": 0.15, "delta": 0.25}  # Hz
ENCODER = {"palletizer": 2e-5, "delta": 2e-5}  # rad, of one sample
TORQUE = {"palletizer": 1.5, "delta": 0.05}  # N*m, of one sample
STUDY = """\
veridyn: 1
kind: identify
name: {name}
model: {{file: model.yaml}}
log:
  time: t [s]
  columns:
{columns}
training: [training.csv]
validation: [validation.csv]
signals: {{lowpass: 8}}
"""


@lru_cache
def moved(name: str, seed: int) -> Motion:
    """All joints of a machine along sums of sines of its drives, and the exact forces these take."""
    machine = MACHINES[name]()
    t = np.arange(0.0, SECONDS[name], 1.0 / RATE)
    rng = np.random.default_rng(seed)
    drives = sines(t, np.array(CENTRE[name]), np.array(REACH[name]), BASE[name], 5, rng)
    return Stranger(machine, {**machine.assembly.guess, **machine.assembly.hold}).motion(t, *drives)


def recording(name: str, seed: int) -> Columns:
    """Columns of one log: positions and forces of the drives alone, with noise."""
    return measured(name, moved(name, seed), np.random.default_rng(1000 + seed))


def measured(name: str, m: Motion, rng: np.random.Generator) -> Columns:
    """A motion as it is logged."""
    machine = MACHINES[name]()
    own = [machine.coordinates.index(c) for c in machine.actuated_coordinates]
    assert m.forces is not None
    out = {"t": m.t}
    out |= {machine.coordinates[k]: m.q[:, k] + ENCODER[name] * rng.normal(size=len(m)) for k in own}
    out |= {f"tau_{machine.coordinates[k]}": m.forces[:, k] + TORQUE[name] * rng.normal(size=len(m)) for k in own}
    return out


def believed(name: str, prior: float = 1.1) -> Machine:
    """What the study is told of the machine: its geometry, and parameters that are all off by a factor."""
    machine = MACHINES[name]()
    return machine.with_parameters(prior * machine.parameters.values)


@dataclass
class ClosedBench:
    """A folder that holds model, logs and study; changed before it is written."""

    folder: Path
    name: str = "palletizer"
    prior: float = 1.1
    training: Columns = field(default_factory=dict)
    validation: Columns = field(default_factory=dict)
    study: str = ""

    def __post_init__(self) -> None:
        self.training = self.training or recording(self.name, 1)
        self.validation = self.validation or recording(self.name, 2)
        drives = MACHINES[self.name]().actuated_coordinates
        lines = [f"    q.{c}: {c} [rad]\n    force.{c}: tau_{c} [N*m]" for c in drives]
        self.study = self.study or STUDY.format(name=self.name, columns="\n".join(lines))

    def write(self) -> Path:
        save_model(believed(self.name, self.prior), self.folder / "model.yaml")
        for part in ("training", "validation"):
            (self.folder / f"{part}.csv").write_text(table(getattr(self, part)), encoding="utf-8")
        path = self.folder / "study.yaml"
        path.write_text(self.study, encoding="utf-8")
        return path
