"""Cases, what became of them, and the table at the end.

A case is a subject, a mutation and a number: the same three give the same file. Outcomes:

- refused: an error of veridyn; warned: accepted with a warning; accepted: taken without one
- silent: the result moved by more than three standard deviations without a warning
- traceback, hang (more than 20 s of processor time), memory (1 GB more than before, or not to be had): each a defect
"""

from __future__ import annotations

import json
import resource
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

import numpy as np

from fuzz.subjects import SILENT_SIGMAS, Subject, subjects
from veridyn.errors import VeridynError

HANG_S = 20.0
ALARM_KB = 1_000_000
DEFECTS = ("traceback", "hang", "memory", "crash")
OUTCOMES = ("refused", "warned", "accepted", "silent", *DEFECTS)


class Hang(BaseException):
    """Raised by the timer."""


@dataclass(frozen=True)
class Case:
    """One damaged file."""

    subject: str
    mutation: str
    number: int
    seed: int


@dataclass(frozen=True)
class Done:
    """`said`: the error, the last lines of a traceback, or how far a result moved."""

    case: Case
    outcome: str
    said: str = ""


def drawn(count: int, seed: int, names: Sequence[str] = ()) -> Iterator[Case]:
    """Cases in the proportions of the subjects' weights, the same for the same seed."""
    every = [s for s in subjects() if not names or s.name in names]
    share = np.array([s.weight for s in every]) / sum(s.weight for s in every)
    rng = np.random.default_rng([seed, 1])
    for number in range(count):
        subject = every[int(rng.choice(len(every), p=share))]
        mutation = subject.mutations[int(rng.integers(len(subject.mutations)))]
        yield Case(subject.name, mutation.__name__, number, seed)


def damaged(case: Case) -> tuple[Subject, dict[str, bytes]]:
    """The files of a case."""
    subject = next(s for s in subjects() if s.name == case.subject)
    mutation = next(m for m in subject.mutations if m.__name__ == case.mutation)
    files = dict(subject.files())
    files[subject.target] = mutation(files[subject.target], np.random.default_rng([case.seed, 2, case.number]))
    return subject, files


def run(case: Case) -> Done:
    """Damage the files, read them, and see what comes of it."""
    subject, files = damaged(case)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        return _read(case, subject, folder)


def _read(case: Case, subject: Subject, folder: Path) -> Done:
    def alarm(_signum: int, _frame: FrameType | None) -> None:
        raise Hang

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    previous = signal.signal(signal.SIGPROF, alarm)
    signal.setitimer(signal.ITIMER_PROF, HANG_S)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            moved = subject.door(folder)
    except Hang:
        return Done(case, "hang")
    except VeridynError as error:
        return Done(case, "refused", str(error))
    except MemoryError:
        return Done(case, "memory", traceback.format_exc(limit=-4))
    except Exception:  # noqa: BLE001
        return Done(case, "traceback", traceback.format_exc(limit=-6))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, previous)
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > ALARM_KB:
        return Done(case, "memory", "more than 1 GB")
    if told:
        return Done(case, "warned", str(told[0].message))
    return Done(case, "silent", f"{moved:.3g} σ") if moved > SILENT_SIGMAS else Done(case, "accepted")


def table(done: Sequence[Done]) -> str:
    """Outcomes by subject, and the last line."""
    counts: dict[str, Counter[str]] = {}
    for d in done:
        counts.setdefault(d.case.subject, Counter())[d.outcome] += 1
    lines = [f"{'':18}" + "".join(f"{o:>11}" for o in OUTCOMES)]
    lines += [f"{name:18}" + "".join(f"{c[o]:11d}" for o in OUTCOMES) for name, c in sorted(counts.items())]
    total = Counter(d.outcome for d in done)
    lines.append(f"{'all':18}" + "".join(f"{total[o]:11d}" for o in OUTCOMES))
    broken = total["traceback"] + total["crash"]
    memory = f", {total['memory']} memory alarms" if total["memory"] else ""
    lines.append(
        f"{len(done)} cases, {broken} tracebacks, {total['hang']} hangs{memory}, {total['silent']} silent changes"
    )
    return "\n".join(lines)


def keep(done: Done, folder: Path) -> None:
    """A failure for replay: the damaged files, and case.json, which ``python -m tests.fuzz --replay`` runs again."""
    c = done.case
    place = folder / f"{done.outcome}-{c.subject.replace(' ', '-')}-{c.seed}-{c.number}"
    place.mkdir(parents=True, exist_ok=True)
    for name, content in damaged(c)[1].items():
        (place / name).write_bytes(content)
    (place / "case.json").write_text(json.dumps({**asdict(c), "outcome": done.outcome, "said": done.said}, indent=1))
