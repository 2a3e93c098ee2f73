"""From logs to motions and equations: mended, filtered at a cut-off, cut into recordings, and sampled, each by one rule at every door.

    logs = PreparedLogs(machine, recordings, Preparation());  cutoff, lowpass = logs.lowpass();  motions = logs.motions(lowpass)

`Preparation` says what is left to a rule and what is not. Where nothing is said, clocks and values are mended as
:class:`~veridyn.signals.mending.Mending` does, the cut-off of the positions is chosen by held-out blocks of the training logs
(:mod:`veridyn.identify.cutoff`), and equations by :class:`~veridyn.identify.regression.sampling_rule.SamplingRule`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from veridyn.errors import DataError, Fault, IdentificationWarning, ModelError, warn
from veridyn.identify.cutoff import Cutoff, candidates, propose_cutoff
from veridyn.identify.diagnosis.delays import Delays, without_delays
from veridyn.identify.diagnosis.plausible import measured_rates
from veridyn.identify.logged import Logged, logged_at, motion
from veridyn.identify.payload import carrying
from veridyn.identify.pipeline.preparation import Preparation
from veridyn.identify.pipeline.recording import RecordedMotion, Recording, dropped, plain, resting
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.regression.sampling_rule import EQUATIONS_PER_PARAMETER, SamplingRule, independent_step
from veridyn.inference.finding import Mistake
from veridyn.model.coordinates import Rows
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.conditioning import trimmed_ends
from veridyn.signals.mend import Mended, mended
from veridyn.signals.motion import Signals
from veridyn.signals.resample import uniform_rate
from veridyn.spatial.inertia import from_centre


@dataclass(eq=False, kw_only=True)
class PreparedLogs:
    """The logs of `training` and `validation` on their way to motions; `repaired` are the logs, each once, in their order.

    `closed`: the motion of each piece of them, at the cut-off asked for last, before ends are cut off.
    """

    machine: Machine
    training: Sequence[Recording]
    validation: Sequence[Recording]
    how: Preparation = field(default_factory=Preparation)
    rows: Rows = "all"
    progress: Progress = silent
    closed: list[Logged] = field(default_factory=list, init=False)
    _last: tuple[float | None, tuple[list[RecordedMotion], list[RecordedMotion]]] | None = field(
        default=None, init=False
    )

    @cached_property
    def logs(self) -> list[Experiment]:
        """Every log once."""
        every = {id(r.log): r.log for r in (*self.training, *self.validation)}
        return list(every.values())

    @cached_property
    def repaired(self) -> list[Mended]:
        """The logs in pieces that can be filtered; whatever is refused in any of them is raised together."""
        done, faults = list[Mended](), list[Fault]()
        for log in self.logs:
            try:
                done.append(mended(log, self.how.mending))
            except DataError as error:
                named = (f"{log.name}, {f.where}" if f.where != log.name else f.where for f in error.faults)
                faults += [replace(f, where=where) for f, where in zip(error.faults, named, strict=True)]
        if faults:
            raise DataError(faults)
        if not any(len(piece.channels) for log in done for piece in log.pieces):
            what, expected = "the log has no channel.", "channel: column [unit], such as q.JOINT: q1 [rad]"
            raise DataError(Fault(what, "log.columns", expected, "none", at=("log", "columns")))
        return done

    @property
    def training_pieces(self) -> list[Experiment]:
        """The pieces of the logs that are learned from."""
        own = {id(r.log) for r in self.training}
        both = zip(self.logs, self.repaired, strict=True)
        return [piece for log, done in both if id(log) in own for piece in done.pieces]

    @cached_property
    def rate(self) -> float:
        """Hz, of the common clock."""
        return self.how.rate or max(_rate(p) for log in self.repaired for p in log.pieces)

    def signals(self, lowpass: float | None, rates: bool | None = None) -> Signals:
        """Of a log that has been mended: gaps have been dealt with, and what was found has been reported there."""
        return Signals(
            rate=self.rate,
            lowpass=lowpass,
            order=self.how.order,
            derivative=self.how.derivative,
            measured_rates=self.how.measured_rates if rates is None else rates,
            trim=0.0,
            interpolation=self.how.interpolation,
            max_gap=1e9,
            inspection="off",
        )

    def lowpass(self) -> tuple[Cutoff | None, float | None]:
        """What was tried, and the cut-off of the positions."""
        if self.how.lowpass != "auto":
            return None, self.how.lowpass
        tried = self._candidates()

        def sampling(cutoff: float) -> Sampling:
            return self.samplings(self.motions(cutoff)[0], [], cutoff)[0]

        cutoff = propose_cutoff(
            self.machine, lambda f: plain(self.motions(f)[0]), sampling, tried, self.rows, self.progress
        )
        usual = candidates(self.rate, self.how.candidates)
        if cutoff.proposed in (usual[0], usual[-1]):
            what = "the best cut-off is the first or last of those tried, so a better one may lie beyond."
            at_the_end = f"{cutoff.proposed:g} Hz of {tried[0]:g} to {tried[-1]:g} Hz"
            hint = "Name others in signals.candidates, or set the cut-off."
            warn(IdentificationWarning, Fault(what, "signals.lowpass", found=at_the_end, hint=hint))
        return cutoff, cutoff.proposed

    def _candidates(self) -> tuple[float, ...]:
        """Cut-offs to try: those named, or the usual ones; of these, where equations pass the same filter, all that leave enough."""
        tried = candidates(self.rate, self.how.candidates)
        if self.how.candidates or self.how.filter != "same" or self.how.decimate != "auto":
            return tried
        order = self.how.filter_order or self.how.order
        samples = sum(len(part.motion) for part in self.motions(tried[-1])[0])
        most = samples / EQUATIONS_PER_PARAMETER / self.rule(None).combinations
        return tuple(f for f in tried if independent_step(Butterworth(f, order), self.rate) <= most) or tried[-1:]

    def motions(self, lowpass: float | None) -> tuple[list[RecordedMotion], list[RecordedMotion]]:
        """Training and validation motions, each with the recording it was taken from."""
        if self._last is not None and self._last[0] == lowpass:
            return self._last[1]
        self.closed = [at(lowpass) for at in self._pieces]
        pieces = iter(self.closed)
        whole = [[self._trimmed(next(pieces).motion, lowpass) for _ in log.pieces] for log in self.repaired]
        number = {id(log): k for k, log in enumerate(self.logs)}
        training, validation = (
            [RecordedMotion(m, r) for r in recordings for m in self._loaded(r.of(whole[number[id(r.log)]]), r)]
            for recordings in (self.training, self.validation)
        )
        self._last = lowpass, (training, validation)
        return training, validation

    @cached_property
    def _pieces(self) -> list[Callable[[float | None], Logged]]:
        """The motion of each piece of the logs as a function of the cut-off."""
        how = self.signals(None)
        return [logged_at(self.machine, p, how) for log in self.repaired for p in log.pieces]

    @property
    def given(self) -> tuple[str, ...]:
        """The coordinates that the motions were made from: all of an open machine."""
        return self.closed[0].given

    def _loaded(self, motions: list[Motion], r: Recording) -> list[Motion]:
        """Motions with the wrench that the known load of their recording puts on its body."""
        if r.load is None:
            return motions
        ten = from_centre(r.load.mass, r.load.centre, r.load.inertia)
        try:
            return [carrying(self.machine, m, r.load.body, ten) for m in motions]
        except ModelError as error:
            raise ModelError([replace(f, at=(*r.place, "load")) for f in error.faults]) from error

    def _trimmed(self, m: Motion, lowpass: float | None) -> Motion:
        passed = None if lowpass is None else Butterworth(lowpass, self.how.order)
        low, high = trimmed_ends(m, self.how.trim, passed, self.rate)
        if low + high >= len(m):
            raise DataError("nothing is left of a piece after its ends are cut off.", where="signals.trim")
        return m[low : len(m) - high]

    def samplings(
        self, training: Sequence[RecordedMotion], validation: Sequence[RecordedMotion], lowpass: float | None
    ) -> tuple[Sampling, Sampling]:
        """Of training and of validation motions."""
        sampling = self.rule(lowpass).of(plain(training))
        rows = [self.machine.rows[r] for r in self.machine.select_rows(self.rows)]
        still = self.how.standstill == "drop"
        both = (training, validation)
        rests = [[resting(self.machine, part.motion) if still else {} for part in parts] for parts in both]
        first, later = (replace(sampling, drop=dropped(p, rows, r)) for p, r in zip(both, rests, strict=True))
        return first, later

    @cached_property
    def _unfiltered(self) -> SamplingRule:
        """What is left to be chosen of the sampling, but for the filter."""
        return SamplingRule(
            machine=self.machine,
            rows=self.rows,
            rate=self.rate,
            decimate=self.how.decimate,
            dead_zone=self.how.dead_zone,
            trim=self.how.cut,
        )

    def rule(self, lowpass: float | None) -> SamplingRule:
        """The same behind the filter of the equations, where positions pass this low-pass (Hz)."""
        cutoff = lowpass if self.how.filter == "same" else self.how.filter
        if cutoff is None:
            return self._unfiltered
        return self._unfiltered.behind(Butterworth(cutoff, self.how.filter_order or self.how.order))

    def few_equations(self, training: Sequence[RecordedMotion], how: Sampling, lowpass: float | None) -> Fault | None:
        """That the filter of the equations leaves too few independent ones for each parameter, so that more are kept."""
        return self.rule(lowpass).few_equations(sum(len(part.motion) for part in training), how)

    def moved(self, parts: Sequence[RecordedMotion], late: Delays) -> list[RecordedMotion]:
        """Motions with the confirmed delays of their forces taken out."""
        shifted = without_delays(self.machine, plain(parts), late.kept)
        return [replace(part, motion=m) for part, m in zip(parts, shifted, strict=True)]

    def odd_rates(self, lowpass: float | None) -> list[Mistake]:
        """Measured speeds that are not those of the positions, where there are any."""
        names = self.machine.coordinates
        mistakes: dict[str, Mistake] = {}
        for log in self.repaired:
            piece = log.pieces[0]
            have = [c for c in names if f"qd.{c}" in piece]
            if have:
                own, other = (motion(self.machine, piece, self.signals(lowpass, rates)) for rates in (False, True))
                keep = [names.index(c) for c in have]
                own, other = (Motion(m.t, m.q[:, keep], m.qd[:, keep], m.qdd[:, keep]) for m in (own, other))
                mistakes |= {s.fault.where: s for s in measured_rates(own, other, have)}
        return list(mistakes.values())


def _rate(log: Experiment) -> float:
    """The rate of a log: that of its fastest channel, rounded to what its clock can mean."""
    rates = []
    for c in log.channels.values():
        try:
            rates.append(uniform_rate(c.t))
        except DataError:
            rates.append(float(f"{c.rate:.3g}"))
    return max(rates)
