"""The logs of a study on their way to equations: mended, filtered at a cut-off, cut into shares, and sampled.

A row leaves out samples in spans of time, at speeds that are not asked for, and of joints at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, DataWarning, Fault, IdentificationWarning, ModelError, warn
from veridyn.identify.cutoff import Cutoff, candidates, propose_cutoff
from veridyn.identify.diagnosis.delays import Delays, without_delays
from veridyn.identify.diagnosis.plausible import measured_rates
from veridyn.identify.logged import Logged, logged_at, motion
from veridyn.identify.payload import carrying
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.regression.sampling_rule import EQUATIONS_PER_PARAMETER, SamplingRule, independent_step
from veridyn.inference.finding import Mistake
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.conditioning import trimmed_ends
from veridyn.signals.mend import Mended, Mending, mended
from veridyn.signals.motion import Signals
from veridyn.signals.outliers import runs
from veridyn.signals.resample import uniform_rate
from veridyn.spatial.inertia import from_centre
from veridyn.studies.config.identify import IdentifyFile
from veridyn.studies.config.log import LoadSettings, RecordingSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.machine import model_path
from veridyn.studies.run.recordings import Chained, Recordings, Streamed, Taken, margin_of, taken, with_margin

Mask = NDArray[np.bool_]
REST_S = 1.0  # s: a joint that moves less for longer stands still (chosen)
REST_SPEED_SHARE = 0.01  # of its largest speed: slower than this is rest (chosen)
REPORTED_REST_SHARE = 0.2  # of the samples at rest: more is reported (chosen)


@dataclass(frozen=True, eq=False)
class RecordedMotion:
    """A motion and the recording it was taken from."""

    motion: Motion
    settings: RecordingSettings


def plain(parts: Sequence[RecordedMotion]) -> list[Motion]:
    return [part.motion for part in parts]


def dropped(
    parts: Sequence[RecordedMotion], rows: Sequence[str], resting: Sequence[Mapping[str, Mask]]
) -> dict[str, Mask]:
    """Row → mask over all motions of the samples that it leaves out, by spans of time, by speed and at rest."""
    odd = [r for part in parts for r in part.settings.drop if r not in rows]
    if odd:
        raise DataError(f"'{odd[0]}' is not one of the rows.", where="drop", expected=", ".join(rows))
    by_speed = [wrong_speed(part) for part in parts]
    named = {r for part in parts for r in part.settings.drop} | {c for masks in resting for c in masks if c in rows}
    dropping = rows if any(mask.any() for mask in by_speed) else named
    out = {}
    for row in dropping:
        masks = []
        for part, wrong, still in zip(parts, by_speed, resting, strict=True):
            t, mask = part.motion.t, wrong | still.get(row, False)
            for start, end in part.settings.drop.get(row, ()):
                mask |= (t >= start) & (t <= end)
            masks.append(mask)
        out[row] = np.concatenate(masks)
    return out


def wrong_speed(part: RecordedMotion) -> Mask:
    """Samples slower or faster than those asked for."""
    low, high = part.settings.speeds
    speed = np.linalg.norm(part.motion.qd, axis=1)
    if (low, high) == (0.0, 1.0) or not len(speed):
        return np.zeros(len(speed), dtype=bool)
    slow, fast = np.quantile(speed, (low, high))
    # A sample at the bound belongs to the slower share.
    return ~((speed <= fast) & ((speed > slow) | (low == 0.0)))


def resting(machine: Machine, m: Motion) -> dict[str, Mask]:
    """Coordinate with an equation of its own → mask of the samples in which it has been at rest for a second or more, or will be."""
    rate, out = 1.0 / float(np.median(np.diff(m.t))) if len(m) > 1 else 1.0, {}
    for k, c in ((k, machine.coordinates[k]) for k in machine.independent):
        still = np.abs(m.qd[:, k]) < REST_SPEED_SHARE * float(np.abs(m.qd[:, k]).max(initial=0.0))
        mask = np.zeros(len(m), dtype=bool)
        for a, b in runs(still, max(2, round(REST_S * rate))):
            mask[a : b + 1] = True
        if mask.any():
            out[c] = mask
    return out


def warn_of_rest(machine: Machine, parts: Sequence[RecordedMotion]) -> None:
    """Joints that rest for much of the training logs, by name."""
    share: dict[str, float] = {}
    total = sum(len(part.motion) for part in parts)
    for part in parts:
        for c, mask in resting(machine, part.motion).items():
            share[c] = share.get(c, 0.0) + float(mask.sum()) / total
    much = {c: x for c, x in share.items() if x > REPORTED_REST_SHARE}
    if much:
        expected = f"at most {100 * REPORTED_REST_SHARE:.0f} % of the samples"
        found = ", ".join(f"{c} {100 * x:.0f} %" for c, x in much.items())
        hint = "Friction may be anything there: say values: {standstill: drop}, or sampling: {dead_zone: 0.05}."
        warn(DataWarning, Fault("joints stand still in spans of a second and more.", "training", expected, found, hint))


@dataclass
class Preparing:
    """The logs of a study on their way to motions; `mended` are its logs, in the order they are numbered.

    `closed`: the motion of each piece of them, at the cut-off asked for last, before ends are cut off.
    """

    loaded: Loaded[IdentifyFile]
    machine: Machine
    recorded: Recordings
    progress: Progress
    mended: list[Mended] = field(default_factory=list)
    rate: float = 0.0
    closed: list[Logged] = field(default_factory=list)
    _last: tuple[float | None, tuple[list[RecordedMotion], list[RecordedMotion]]] | None = None

    def __post_init__(self) -> None:
        study = self.loaded.study
        self.model_file = model_path(self.loaded, ("model",), study.model)
        clock, values = study.clock.model_dump(exclude={"delays"}), study.values.model_dump(exclude={"standstill"})
        how = Mending(**clock, **values)
        faults = []
        for log in self.recorded.logs:
            try:
                self.mended.append(mended(log, how))
            except DataError as error:
                faults += [
                    replace(f, where=f"{log.name}, {f.where}" if f.where != log.name else f.where) for f in error.faults
                ]
        if faults:
            raise DataError(faults)
        pieces = [p for log in self.mended for p in log.pieces]
        if not any(len(piece.channels) for piece in pieces):
            what, expected = (
                "the study names no column of its log.",
                "channel: column [unit], such as q.JOINT: q1 [rad]",
            )
            raise self.loaded.error_at(("log", "columns"), what, expected=expected, found="none")
        self.rate = study.signals.rate if study.signals.rate != "auto" else max(_rate(p) for p in pieces)

    def signals(self, lowpass: float | None, rates: bool | None = None) -> Signals:
        s = self.loaded.study.signals
        measured = s.measured_rates if rates is None else rates
        # Gaps have been dealt with where the log was mended, and what was found has been reported there.
        return Signals(
            rate=self.rate,
            lowpass=lowpass,
            order=s.order,
            derivative=s.derivative,
            measured_rates=measured,
            trim=0.0,
            interpolation=s.interpolation,
            max_gap=1e9,
            inspection="off",
        )

    def lowpass(self) -> tuple[Cutoff | None, float | None]:
        """What was tried, and the cut-off of the positions."""
        study = self.loaded.study
        if study.signals.lowpass == "none":
            return None, None
        if study.signals.lowpass != "auto":
            return None, study.signals.lowpass
        tried = self._candidates()

        def sampling(cutoff: float) -> Sampling:
            return self.samplings(self.motions(cutoff)[0], [], cutoff)[0]

        cutoff = propose_cutoff(
            self.machine, lambda f: plain(self.motions(f)[0]), sampling, tried, study.rows, self.progress
        )
        usual = candidates(self.rate, study.signals.candidates)
        if cutoff.proposed in (usual[0], usual[-1]):
            what = "the best cut-off is the first or last of those tried, so a better one may lie beyond."
            found = f"{cutoff.proposed:g} Hz of {tried[0]:g} to {tried[-1]:g} Hz"
            hint = "Name others in signals.candidates, or set the cut-off."
            warn(IdentificationWarning, Fault(what, "signals.lowpass", found=found, hint=hint))
        return cutoff, cutoff.proposed

    def _candidates(self) -> tuple[float, ...]:
        """Cut-offs to try: those of the study, or the usual ones; of these, where equations pass the same filter, all that leave enough."""
        study = self.loaded.study
        tried = candidates(self.rate, study.signals.candidates)
        if study.signals.candidates or study.sampling.filter != "same" or study.sampling.decimate != "auto":
            return tried
        order = study.sampling.order or study.signals.order
        samples = sum(len(part.motion) for part in self.motions(tried[-1])[0])
        most = samples / EQUATIONS_PER_PARAMETER / self.rule(None).combinations
        return tuple(f for f in tried if independent_step(Butterworth(f, order), self.rate) <= most) or tried[-1:]

    def motions(self, lowpass: float | None) -> tuple[list[RecordedMotion], list[RecordedMotion]]:
        """Training and validation motions, each with the recording it was taken from."""
        if self._last is not None and self._last[0] == lowpass:
            return self._last[1]
        self.closed = [at(lowpass) for at in self._pieces]
        pieces = iter(self.closed)
        whole = [[self._trimmed(next(pieces).motion, lowpass) for _ in log.pieces] for log in self.mended]
        training, validation = (
            [
                RecordedMotion(m, item.settings)
                for k, item in enumerate(items)
                for m in self._taken(whole, item, (name, k))
            ]
            for name, items in (("training", self.recorded.training), ("validation", self.recorded.validation))
        )
        self._last = lowpass, (training, validation)
        return training, validation

    @cached_property
    def _pieces(self) -> list[Callable[[float | None], Logged]]:
        """The motion of each piece of the logs as a function of the cut-off."""
        how = self.signals(None)
        return [logged_at(self.machine, p, how) for log in self.mended for p in log.pieces]

    @property
    def given(self) -> tuple[str, ...]:
        """The coordinates that the motions were made from: all of an open machine."""
        return self.closed[0].given

    def _taken(self, whole: Sequence[Sequence[Motion]], item: Taken, at: tuple[str, int]) -> list[Motion]:
        found = [m for m in taken(whole[item.log], item.settings) if len(m) > 20]
        if not found:
            spans = ", ".join(f"{m.t[0]:.6g} to {m.t[-1]:.6g} s" for m in whole[item.log])
            raise self.loaded.error_at(at, "nothing of this log lies in the span taken.", found=f"a log of {spans}")
        return found if item.settings.load is None else self._loaded(found, item.settings.load, at)

    def _loaded(self, motions: list[Motion], load: LoadSettings, at: tuple[str, int]) -> list[Motion]:
        """Motions with the wrench that a known load puts on its body."""
        ten = from_centre(load.mass, load.centre, load.inertia)
        with self.loaded.placing((*at, "load"), ModelError):
            return [carrying(self.machine, m, load.body, ten) for m in motions]

    def _trimmed(self, m: Motion, lowpass: float | None) -> Motion:
        settings = self.loaded.study.signals
        passed = None if lowpass is None else Butterworth(lowpass, settings.order)
        low, high = trimmed_ends(m, settings.trim, passed, self.rate)
        if low + high >= len(m):
            raise DataError("nothing is left of a piece after its ends are cut off.", where="signals.trim")
        return m[low : len(m) - high]

    def samplings(
        self, training: Sequence[RecordedMotion], validation: Sequence[RecordedMotion], lowpass: float | None
    ) -> tuple[Sampling, Sampling]:
        sampling = self.rule(lowpass).of(plain(training))
        rows = [self.machine.rows[r] for r in self.machine.select_rows(self.loaded.study.rows)]
        still = self.loaded.study.values.standstill == "drop"
        still_masks = [
            [resting(self.machine, part.motion) if still else {} for part in parts] for parts in (training, validation)
        ]
        return (
            replace(sampling, drop=dropped(training, rows, still_masks[0])),
            replace(sampling, drop=dropped(validation, rows, still_masks[1])),
        )

    @cached_property
    def _unfiltered(self) -> SamplingRule:
        """What the study leaves to be chosen of its sampling, but for the filter."""
        study, s = self.loaded.study, self.loaded.study.sampling
        return SamplingRule(
            machine=self.machine,
            rows=study.rows,
            rate=self.rate,
            decimate=s.decimate,
            dead_zone=s.dead_zone,
            trim=s.trim,
        )

    def rule(self, lowpass: float | None) -> SamplingRule:
        """The same behind the filter that the study asks for, where positions pass this low-pass (Hz)."""
        study, s = self.loaded.study, self.loaded.study.sampling
        cutoff = lowpass if s.filter == "same" else None if s.filter == "none" else s.filter
        if cutoff is None:
            return self._unfiltered
        return self._unfiltered.behind(Butterworth(cutoff, s.order or study.signals.order))

    def few_equations(self, training: Sequence[RecordedMotion], how: Sampling, lowpass: float | None) -> Fault | None:
        """That the filter of the equations leaves too few independent ones for each parameter, so that more are kept."""
        return self.rule(lowpass).few_equations(sum(len(part.motion) for part in training), how)

    def streamed(
        self, lowpass: float | None, how: Sampling, later: Sampling
    ) -> tuple[Sequence[Motion], Sequence[Motion], Sampling, Sampling]:
        """Motions that are made block by block, and the samplings that leave the margins of the blocks out."""
        signals = replace(self.signals(lowpass), max_gap=None)  # a gap in the middle of a long log is refused
        margin = margin_of(signals, how, self.rate)
        size = -(-(self.loaded.study.log.block or 1) // how.decimate) * how.decimate
        both = []
        for items in (self.recorded.training, self.recorded.validation):
            parts = [
                Streamed(self.machine, self.recorded.files[i.log], signals, margin, size, *i.rows, self.recorded.scaled)
                for i in items
                if i.rows is not None
            ]
            both.append(Chained(tuple(parts)))
        return both[0], both[1], with_margin(how, margin), with_margin(later, margin)

    def moved(self, parts: Sequence[RecordedMotion], late: Delays) -> list[RecordedMotion]:
        shifted = without_delays(self.machine, plain(parts), late.kept)
        return [replace(part, motion=m) for part, m in zip(parts, shifted, strict=True)]

    def odd_rates(self, lowpass: float | None) -> list[Mistake]:
        """Measured speeds that are not those of the positions, where there are any."""
        names = self.machine.coordinates
        found: dict[str, Mistake] = {}
        for log in self.mended:
            piece = log.pieces[0]
            have = [c for c in names if f"qd.{c}" in piece]
            if have:
                own, other = (motion(self.machine, piece, self.signals(lowpass, rates)) for rates in (False, True))
                keep = [names.index(c) for c in have]
                own, other = (Motion(m.t, m.q[:, keep], m.qd[:, keep], m.qdd[:, keep]) for m in (own, other))
                found |= {s.fault.where: s for s in measured_rates(own, other, have)}
        return list(found.values())


def _rate(log: Experiment) -> float:
    """The rate of a log: that of its fastest channel, rounded to what its clock can mean."""
    rates = []
    for c in log.channels.values():
        try:
            rates.append(uniform_rate(c.t))
        except DataError:
            rates.append(float(f"{c.rate:.3g}"))
    return max(rates)
