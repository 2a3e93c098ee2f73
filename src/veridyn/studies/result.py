"""What a run found, in the one form that programs may rely on: `result.json` and `parameters.csv`."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from veridyn.errors import VeridynWarning
from veridyn.model.experiment import Experiment
from veridyn.version import __version__

NAN = float("nan")


@dataclass(frozen=True)
class ParameterRow:
    """One parameter: its estimate with standard deviation, its prior, and the truth where it is known (else NaN)."""

    name: str
    unit: str
    value: float
    sigma: float
    sigma_percent: float
    prior: float = NAN
    truth: float = NAN

    @property
    def inside(self) -> bool | None:
        """Whether the truth lies within 2σ; None where it is not known."""
        return abs(self.value - self.truth) <= 2.0 * self.sigma if math.isfinite(self.truth) else None


@dataclass(frozen=True)
class Result:
    """The content of `result.json`.

    In `figures`, names that end in `_percent` are percent and unsigned, of prediction errors ‖r‖/‖y‖; `_std_percent` is rms(r)/std(y);
    `share_…` is a fraction, yes and no are 1 and 0, all else is SI. `inputs`: what went in → its SHA-256. `validation`: row → samples, rms,
    measured_rms, error_percent and more on the validation data.
    """

    study: str
    seed: int | None
    quick: bool
    inputs: Mapping[str, str]
    figures: Mapping[str, float]
    parameters: tuple[ParameterRow, ...]
    validation: Mapping[str, Mapping[str, float]]
    warnings: tuple[str, ...] = ()
    veridyn: str = __version__

    def as_dict(self) -> dict[str, object]:
        own = asdict(self)
        order = ("veridyn", "study", "seed", "quick", "inputs", "figures", "parameters", "validation", "warnings")
        return {key: own[key] for key in order}

    def parameter_table(self) -> str:
        """The parameters as CSV; a cell is empty where there is no finite number."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        columns = [f.name for f in fields(ParameterRow)]
        table.writerow(columns)
        for row in self.parameters:
            table.writerow([_cell(getattr(row, column)) for column in columns])
        return text.getvalue()


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return repr(float(value)) if math.isfinite(value) else ""


def fingerprint(content: bytes | str | Path | Experiment) -> str:
    """SHA-256 of bytes, of a text, of a file, which need not fit the memory, or of everything measured in an experiment.

    Of a folder, such as a bag: of the names and hashes of its files.
    """
    if isinstance(content, Path):
        if content.is_dir():
            files = sorted(f for f in content.iterdir() if f.is_file())
            return fingerprint("".join(f"{f.name}\0{fingerprint(f)}\0" for f in files))
        with content.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    digest = hashlib.sha256()
    if isinstance(content, str):
        digest.update(content.encode("utf-8"))
    elif isinstance(content, bytes):
        digest.update(content)
    else:
        for channel in content.channels.values():
            digest.update(f"{channel.name}\0{channel.unit}\0{len(channel)}\0".encode())
            # Little-endian doubles, so that the same log has the same hash on every machine.
            digest.update(channel.t.astype("<f8").tobytes())
            digest.update(channel.values.astype("<f8").tobytes())
    return digest.hexdigest()


@contextmanager
def collected_warnings(into: list[str] | None = None) -> Iterator[list[str]]:
    """A list (`into`, or a new one) that gets, at the end, the texts of veridyn's warnings raised meanwhile; others are shown as ever."""
    texts: list[str] = [] if into is None else into
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VeridynWarning)
        try:
            yield texts
        finally:
            own = [w for w in caught if issubclass(w.category, VeridynWarning)]
            others = [w for w in caught if not issubclass(w.category, VeridynWarning)]
            texts.extend(dict.fromkeys(str(w.message) for w in own))
    for w in others:
        warnings.showwarning(w.message, w.category, w.filename, w.lineno, w.file, w.line)
