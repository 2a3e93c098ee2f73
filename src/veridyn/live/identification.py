"""An identification followed as it converges: parameters with deviations that shrink as samples come in.

Equations of each block go into R factors that merge (:mod:`veridyn.identify.regression.factor`), so the estimate after any number of
samples is that of weighted least squares on all of them, and no sample is kept.

Filters and derivatives reach `reach` samples to either side, so a block is made once that many samples came after it. Blocks lie end to
end: each sample enters one block, but for those at the two ends of a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, nan
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError, VeridynError
from veridyn.files.archive import save
from veridyn.identify.base import BaseParameters, base_parameters
from veridyn.identify.estimator import fit_of
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.logged import motion
from veridyn.identify.regression.factor import RowFactors
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.live.arrivals import SampleColumns, channel_units, columns_of
from veridyn.live.machine import tree_picture
from veridyn.live.session import Pace, Replay, Session
from veridyn.live.tracker import Layout, Row, Sample, SampleSource, Shown, StampCheck, Tracked, Trouble, refused_stamp
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress
from veridyn.signals.motion import Signals
from veridyn.studies.config.identify import IdentifyFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import Result, fingerprint, new_run, parameter_rows
from veridyn.studies.run.identify import pipeline_of, preparation_of
from veridyn.studies.run.machine import model_path, study_machine
from veridyn.studies.run.recordings import Recordings, margin_of, with_margin

SPARE = 64  # samples beyond the margin of the filters, for interpolation and derivatives
GAP = 20.0  # times the step of the samples, after which they belong to another recording
UPDATE_S = 0.25  # s of samples between estimates
SEPARATED = 1e-6  # of a parameter's group, in typical sizes, that may lie outside what the samples so far excite
TITLE = "weighted least squares"


@dataclass
class BlockBuilder:
    """`size`: samples of a block; `margin`: samples that it carries besides on either side, which its equations leave out again.

    `units`: channel → its unit. Not for two threads at once.
    """

    machine: Machine
    signals: Signals
    size: int
    margin: int
    units: Mapping[str, str]
    _t: list[float] = field(default_factory=list)
    _rows: list[Mapping[str, float]] = field(default_factory=list)

    @property
    def reach(self) -> int:
        return self.margin + SPARE

    @property
    def step(self) -> float:
        return 1.0 / float(self.signals.rate or 1.0)

    def add(self, sample: Sample) -> Motion | None:
        """The motion of the next block, margins included, once it is complete; a DataError where its channels cannot be used.

        After a gap of the samples, what came before it is dropped.
        """
        if self._t and sample.t - self._t[-1] > GAP * self.step:
            self.clear()
        self._t.append(sample.t)
        self._rows.append({n: v for n, v in sample.values.items() if n in self.units})
        if len(self._t) < self.size + 2 * self.reach:
            return None
        start, end = self._t[self.reach], self._t[self.reach + self.size - 1] + self.step
        try:
            whole = motion(self.machine, self._log(), self.signals)
        finally:
            del self._t[: self.size], self._rows[: self.size]
        low, high = (int(np.searchsorted(whole.t, at - 0.5 * self.step)) for at in (start, end))
        low, high = max(low, self.margin), min(high, len(whole) - self.margin)
        return whole[low - self.margin : high + self.margin] if high > low else None

    def clear(self) -> None:
        """Forget the samples that are not part of a block yet."""
        self._t.clear()
        self._rows.clear()

    def _log(self) -> Experiment:
        t, channels = np.array(self._t), {}
        for name, unit in self.units.items():
            values = np.array([row.get(name, np.nan) for row in self._rows])
            there = np.isfinite(values)
            channels[name] = Channel(name, t[there], values[there], unit)
        return Experiment(channels, "samples that came in")


class FitTracker:
    """Follows the base parameters of a machine; a parameter has no value until the samples can separate it."""

    def __init__(
        self,
        machine: Machine,
        rows: Rows,
        sampling: Sampling,
        signals: Signals,
        units: dict[str, str],
        notes: tuple[str, ...] = (),
    ) -> None:
        rate = float(signals.rate or 100.0)
        margin = margin_of(signals, sampling, rate)
        size = sampling.decimate * ceil(max(UPDATE_S * rate, 8) / sampling.decimate)
        self._machine, self._rows = machine, rows
        self._settings = IdentifySettings(sampling=with_margin(sampling, margin), engine="numpy")
        self._builder = BlockBuilder(machine, signals, size, margin, units)
        self.structure = base_parameters(machine, rows=rows)
        self._picture = None
        if machine.base != "free":
            self._picture = tree_picture(machine, closed_home(machine) if machine.closed else np.zeros(machine.n))
        self.factors: RowFactors | None = None
        self.fit: Fit | None = None
        self._check = StampCheck()
        picture = self._picture
        shown = zip(self.structure.names, self.structure.units, strict=True)
        self.layout = Layout(
            machine.name,
            "identification",
            tuple(Shown(name, unit, "parameters") for name, unit in shown),
            segments=() if picture is None else picture.segments,
            trail=None if picture is None else picture.trail,
            notes=(f"{TITLE} on all samples so far, an estimate every {size / rate:.3g} s", *notes),
        )

    def restart(self) -> None:
        self._builder.clear()
        self._check.reset()

    def switch(self, sensor: str, on: bool) -> None:
        """There is nothing to switch: every channel of the study is needed."""

    def take(self, sample: Sample) -> Tracked:
        """The estimate after a sample that completes a block; nothing after others."""
        refused = refused_stamp(self._check, sample.t, self.restart, "; the equations so far are kept.")
        if refused is not None:
            return refused
        alarms = tuple(
            Trouble(f"not finite {n}", f"'{n}' is no number at {sample.t:.6g} s and is bridged.")
            for n, v in sample.values.items()
            if not np.isfinite(v)
        )
        try:
            block = self._builder.add(sample)
            if block is None:
                return Tracked(alarms=alarms)
            new = observation(self._machine, block, self._rows, self._settings)
            self.factors = new if self.factors is None else self.factors.merge(new)
        except VeridynError as error:
            text = f"a block before {sample.t:.6g} s is not used: {str(error).splitlines()[0]}"
            return Tracked(alarms=(*alarms, Trouble("block", text)))
        values, sigma = self._estimate()
        row = Row(float(block.t[-1 - self._builder.margin]), values, sigma, sample.arrived)
        return Tracked(row, block.q[-1 - self._builder.margin], alarms)

    def points(self, pose: Array) -> Array | None:
        return None if self._picture is None else self._picture.points(pose)

    def _estimate(self) -> tuple[Array, Array]:
        """The structure's base parameters and their deviations, NaN for those that cannot be separated yet."""
        assert self.factors is not None
        try:
            self.fit = fit_of(self._machine, solve(self.factors), TITLE)
        except IdentificationError:
            return np.full(self.structure.count, nan), np.full(self.structure.count, nan)
        A = combinations(self.structure, self.fit.base)
        variances = np.einsum("ij,jk,ik->i", A, self.fit.covariance, A)
        return A @ self.fit.values, np.sqrt(np.maximum(variances, 0.0))


def combinations(wanted: BaseParameters, found: BaseParameters) -> Array:
    """A (wanted, found) with χ_wanted = A χ_found; NaN rows where the directions that were found do not contain a wanted one."""
    scale = wanted.parameters.typical
    K, F = wanted.matrix * scale, found.matrix * scale
    A: Array = np.array(np.linalg.lstsq(F.T, K.T, rcond=None)[0].T, dtype=np.float64)
    missing = np.linalg.norm(K - A @ F, axis=1) > SEPARATED * np.linalg.norm(K, axis=1)
    A[missing] = nan
    return A


def identification_session(
    loaded: Loaded[Any],
    pace: float,
    source: Callable[[SampleColumns], SampleSource] | None,
    token: str,
    out: Path,
    progress: Progress,
) -> Session:
    """The session of a study of kind identify: its training logs replayed, or samples that arrive."""
    study: IdentifyFile = loaded.study
    machine = study_machine(loaded, ("model",), study.model, "unknown")
    notes = (
        ()
        if study.estimator.name == "wls"
        else (f"the study asks for {study.estimator.name}: veridyn identify runs that",)
    )
    how = preparation_of(study)
    if source is not None and (how.rate is None or "auto" in (how.lowpass, how.decimate)):
        at = ("signals", "rate" if how.rate is None else "lowpass")
        what = "samples that arrive cannot be waited for to choose this."
        hint = "Set signals.rate, signals.lowpass and sampling.decimate; a replay of the log tells which."
        raise loaded.error_at(at, what, "numbers", "auto", hint)
    progress("reading the logs", 0.0, None)
    work = pipeline_of(loaded, machine, Recordings(loaded), progress=progress).start().logs
    _, lowpass = work.lowpass()
    sampling = replace(work.samplings(work.motions(lowpass)[0], [], lowpass)[0], drop={}, trim=0)
    logs = work.training_pieces
    units = {n: c.unit for n, c in logs[0].channels.items()}
    if source is not None:
        units = channel_units(loaded, study.log)
    tracker = FitTracker(machine, study.rows, sampling, work.signals(lowpass), units, notes)

    def keep() -> str:
        return str(_saved(loaded, tracker, out))

    if source is not None:
        return Session(tracker, source(columns_of(loaded, study.log, (), token)), save=keep)
    own = Pace(pace)
    name = ", ".join(log.name for log in logs)
    return Session(tracker, Replay(name, recorded_samples(logs), own), pace=own, save=keep)


def recorded_samples(logs: list[Experiment]) -> list[Sample]:
    """The samples of some logs one after the other, on one clock that goes on; channels are in SI already."""
    found: list[Sample] = []
    for log in logs:
        stamps = np.unique(np.concatenate([c.t for c in log.channels.values()]))
        shift = 0.0 if not found else found[-1].t + 1.0 - float(stamps[0])
        rows: list[dict[str, float]] = [{} for _ in stamps]
        for name, c in log.channels.items():
            for k, value in zip(np.searchsorted(stamps, c.t).tolist(), c.values.tolist(), strict=True):
                rows[k][name] = value
        found += [Sample(t + shift, row, 0.0) for t, row in zip(stamps.tolist(), rows, strict=True)]
    return found


def _saved(loaded: Loaded[Any], tracker: FitTracker, out: Path) -> Path:
    """A run folder with the fit of all samples so far."""
    fit = tracker.fit
    if fit is None:
        raise DataError("there is no estimate to save yet.", where="live page", hint="Wait for more samples.")
    rows = parameter_rows(fit.names, fit.units, fit.values, fit.sigma, fit.relative_sigma, fit.priors)
    study = loaded.study
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(model_path(loaded, ("model",), study.model))}
    assert tracker.factors is not None
    figures = {"equations": float(tracker.factors.samples), "base_parameters": float(len(fit.names))}
    run = new_run(out, f"{study.name}-live", whole=True)
    try:
        save(fit, run.folder / "fit.json")
        run.write_result(Result(study.name, study.seed, False, inputs, figures, rows, {}, fit.notes))
        return run.finish()
    except BaseException:
        run.discard()
        raise
