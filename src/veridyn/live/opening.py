"""From a study file, or the name of a machine that comes with veridyn, to a session that is ready to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from veridyn.errors import DataError, did_you_mean
from veridyn.live.arrivals import Datagrams, GrowingFile, Messages, SampleColumns, columns_of
from veridyn.live.machine import MachineTracker
from veridyn.live.session import Pace, Replay, Session, log_samples
from veridyn.live.shows import Show, arm_show, crane_show
from veridyn.live.tracker import LiveTracker, Sample, SampleSource
from veridyn.observe.readings import measurements_of
from veridyn.progress import Progress, silent
from veridyn.studies.config.car import CarObserveFile
from veridyn.studies.config.observe import ObserveFile
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.run.observe_log import observed_log
from veridyn.studies.run.observer import existing_file, observer_of


def paper_show(name: str) -> Show:
    """A show of :mod:`veridyn.live.paper_shows`, which is imported when it runs: the papers are loaded on demand alone."""

    def show(progress: Progress) -> tuple[LiveTracker, Sequence[Sample], str]:
        from veridyn.live import paper_shows

        return getattr(paper_shows, name)(progress)

    return show


SHOWS: Mapping[str, Show] = MappingProxyType(
    {"crane": crane_show, "arm": arm_show, "car": paper_show("car_show"), "buggy": paper_show("buggy_show")}
)


@dataclass(frozen=True)
class Arriving:
    """Where samples arrive, if they do: a UDP port, a WebSocket port, or a file that grows; a log is replayed without any."""

    udp: int | None = None
    websocket: int | None = None
    follow: Path | None = None
    host: str = "127.0.0.1"
    token: str = ""

    @property
    def wanted(self) -> bool:
        return self.udp is not None or self.websocket is not None or self.follow is not None

    def source(self, columns: SampleColumns) -> SampleSource:
        """The source; a port that is taken is named."""
        if self.udp is not None:
            return Datagrams(columns, self.udp, self.host)
        if self.websocket is not None:
            return Messages(columns, self.websocket, self.host)
        assert self.follow is not None
        return GrowingFile(columns, self.follow)


def open_session(
    study: str,
    *,
    pace: float = 1.0,
    arriving: Arriving | None = None,
    out: Path | None = None,
    variables: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> Session:
    """A session of a study file of kind observe or identify, or of a machine of `SHOWS`; its log is read and its filter made ready."""
    come = arriving or Arriving()
    if study in SHOWS and not Path(study).exists():
        if come.wanted:
            hint = "Give a study file, which says what the columns of the samples are."
            raise DataError(f"'{study}' brings its own samples.", where="live", hint=hint)
        tracker, samples, name = SHOWS[study](progress)
        own = Pace(pace)
        return Session(tracker, Replay(name, samples, own, repeat=True), pace=own)
    if not Path(study).exists() and Path(study).suffix == "":
        hint = did_you_mean(study, list(SHOWS))
        raise DataError(
            f"there is no study file '{study}'.", where="live", expected=f"a file, or {', '.join(SHOWS)}", hint=hint
        )
    loaded = load_study(study, None, variables)
    folder = Path(study).parent / loaded.study.out if out is None else out
    if isinstance(loaded.study, ObserveFile):
        return _observer(loaded, pace, come, progress)
    if isinstance(loaded.study, CarObserveFile):
        from veridyn.live.car import car_session

        return car_session(loaded, pace, come.source if come.wanted else None, come.token, progress)
    if loaded.study.kind == "identify" and not loaded.study.of_a_drive:
        from veridyn.live.identification import identification_session

        return identification_session(loaded, pace, come.source if come.wanted else None, come.token, folder, progress)
    raise loaded.error_at(
        ("kind",), "nothing of this kind can be followed live.", "observe or identify", loaded.study.kind
    )


def _observer(loaded: Loaded[Any], pace: float, come: Arriving, progress: Progress) -> Session:
    """An observer of a machine, from its log or from what arrives; noise that is not given is chosen from the log either way."""
    study: ObserveFile = loaded.study
    prepared, samples, name = observer_of(loaded), None, ""
    if not come.wanted or study.process_noise.tuned:
        file = existing_file(loaded, study.log.file, ("log", "file"))
        log, _ = observed_log(loaded, prepared.system, file)
        prepared, _, _ = prepared.tuned(study, measurements_of(prepared.system, log), progress)
        samples, name = log_samples(prepared.system, log), file.name
    tracker = MachineTracker(prepared)
    if not come.wanted:
        own = Pace(pace)
        return Session(tracker, Replay(name, samples or [], own), pace=own)
    if study.log.pulses or study.log.geodetic:
        which = "pulses" if study.log.pulses else "geodetic"
        raise loaded.error_at(
            ("log", which), "samples that arrive are taken as they are.", "columns in SI or their units"
        )
    return Session(tracker, come.source(columns_of(loaded, study.log, prepared.system.inputs, come.token)))
