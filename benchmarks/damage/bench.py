"""A log whose damage is scored: a model, a table, and both doors, the API and ``veridyn identify``."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

import veridyn as vd
from benchmarks.damage.kinds import Table
from studies.bench_robot import table as text_of
from veridyn.identify.diagnosis.fit_check import Diagnose
from veridyn.identify.diagnosis.judge import in_detail
from veridyn.identify.pipeline.recording import plain
from veridyn.identify.regression.sampling import Sampling, with_dead_zones
from veridyn.identify.regression.sampling_rule import default_sampling
from veridyn.model.machine import Machine
from veridyn.studies.config.identify import IdentifyFile
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.run.identify import pipeline_of, run_identify
from veridyn.studies.run.recordings import Recordings

Level = Literal["fast", "full", "off", "cli"]
NOTHING = np.empty(0)
STUDY = """\
veridyn: 1
kind: identify
model: {file: model.yaml}
log:
  time: t [s]
  columns:
COLUMNS
training: [log.csv]
validation: none
"""


class Finding(Protocol):
    """One of ``fit.findings``, ranked from 1 on; `alternatives`: causes and places that the log cannot tell from it."""

    @property
    def cause(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def alternatives(self) -> Sequence[tuple[str, str]]: ...


@dataclass(frozen=True, eq=False)
class Answer:
    """What a door answered: parameters with deviations, None where the log was refused, all that was said, and the findings of the fit."""

    names: tuple[str, ...] | None
    values: np.ndarray
    sigma: np.ndarray
    said: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    fit: vd.Fit | None = None


@dataclass(frozen=True, eq=False)
class Bench:
    """A `machine` and a log of it, `table`; `quiet`: the same log without noise, which needs to be known only where a score asks.

    `signals` and `sampling` are what the API is given, its defaults where they are None, `study` the end of a study file. Damage is drawn
    from `seed`. `fixed`: signals by
    which logs with and without noise are compared, where those that the API chooses by default would depend on the noise.
    """

    name: str
    machine: Machine
    table: Table
    seed: int
    quiet: Table | None = None
    signals: vd.Signals | None = None
    sampling: Sampling | None = None
    study: str = ""
    fixed: vd.Signals | None = None
    _good: dict[Level, Answer] = field(default_factory=dict)

    def log(self, quiet: bool = False) -> Table:
        """A copy of the log, which may be damaged."""
        given = self.table if not quiet or self.quiet is None else self.quiet
        return {k: v.copy() for k, v in given.items()}

    def good(self, level: Level) -> Answer:
        """Of the undamaged log."""
        if level not in self._good:
            self._good[level] = self.identified(self.log(), self.machine, level)
        return self._good[level]

    @cached_property
    def units(self) -> Mapping[str, str]:
        """Of the columns but the clock."""
        unit = {"q": "rad", "force": "N*m", "q_motor": "rad", "force_motor": "N*m", "signal": "A"}
        return {k: unit[k.partition(".")[0]] for k in self.table if k != "t"}

    def identified(self, x: Table, machine: Machine, level: Level) -> Answer:
        """The answer of the API, or of the command line."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                fit = self._by_study(x, machine) if level == "cli" else self.fitted(x, machine, level)[0]
            except vd.VeridynError as error:
                return Answer(None, NOTHING, NOTHING, (str(error),))
        found: tuple[Finding, ...] = tuple(getattr(fit, "findings", ()))
        return Answer(fit.names, fit.values, fit.sigma, tuple(str(w.message) for w in told), found, fit)

    def fitted(self, x: Table, machine: Machine, level: Diagnose = "off") -> tuple[vd.Fit, vd.Motion]:
        signals = self.signals
        if level == "off":
            signals = replace(signals or vd.Signals(), inspection="off")
        motion = vd.motion(machine, self.experiment(x), signals)
        return vd.identify(
            machine, motion, settings=vd.IdentifySettings(sampling=self.sampling), diagnose=level
        ), motion

    def experiment(self, x: Table) -> vd.Experiment:
        """The channels of a table, with their units."""
        values = {k: v for k, v in x.items() if k != "t"}
        return vd.Experiment.from_arrays(x["t"], values, dict(self.units), "bench")

    def _by_study(self, x: Table, machine: Machine) -> vd.Fit:
        """What ``veridyn identify`` makes of files in a folder of their own, before it writes its report."""
        with tempfile.TemporaryDirectory() as place:
            return run_identify(self._files(x, machine, Path(place))).study.fit

    def _files(self, x: Table, machine: Machine, folder: Path) -> Loaded[IdentifyFile]:
        """A study of a log, in files."""
        vd.save_model(machine, folder / "model.yaml")
        (folder / "log.csv").write_text(text_of(x), encoding="utf-8")
        listed = [f"    {k}: {k} [{unit}]" for k, unit in self.units.items()]
        text = STUDY.replace("COLUMNS", "\n".join(listed)) + self.study
        (folder / "study.yaml").write_text(text, encoding="utf-8")
        return load_study(folder / "study.yaml", "identify")

    def prepared(self, x: Table, machine: Machine, level: Level) -> tuple[vd.Fit, list[vd.Motion], Sampling]:
        """The fit of a log, the motions it was made from, and how their samples become equations; without any check of the log."""
        if level != "cli":
            same = self if self.fixed is None else replace(self, signals=self.fixed)
            fit, motion = same.fitted(x, machine)
            how = with_dead_zones(self.sampling or default_sampling(machine, [motion]), machine, [motion])
            return fit, [motion], in_detail(machine, [motion], [r.row for r in fit.rows], how)
        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = self._files(x, machine, Path(place))
            work = pipeline_of(loaded, machine, Recordings(loaded)).start().logs
            _, lowpass = work.lowpass()
            training, validation = work.motions(lowpass)
            how, _ = work.samplings(training, validation, lowpass)
            motions = plain(training)
            return (
                vd.identify(machine, motions, settings=vd.IdentifySettings(sampling=how), diagnose="off"),
                motions,
                how,
            )
