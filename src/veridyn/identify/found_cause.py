"""What a diagnosis found against a fit: a cause, its place, how much of it there is, and the evidence."""

from __future__ import annotations

from dataclasses import dataclass

NAN = float("nan")


@dataclass(frozen=True, kw_only=True)
class FoundCause:
    """One cause, of those that a diagnosis names, in the order of their `rank` (1 first); ``str(finding)`` says what to do about it.

    `cause`: in the words of :mod:`veridyn.identify.diagnosis.causes` and of the other checks, such as "rotor inertia" or "force scale".
    `place`: a coordinate, a channel or a part of the model. `evidence`: 2 Δ log L, the gain in likelihood of the equations with the cause;
    `size` with deviation `sigma`, in the unit that the message states; NaN where a check states none. `moves`: the parameter that it moves
    most, by `shift` deviations. `alternatives`: causes that this log cannot tell from it, as (cause, place). `message`: all of it in words.
    """

    cause: str
    place: str
    rank: int
    evidence: float = NAN
    size: float = NAN
    sigma: float = NAN
    moves: str = ""
    shift: float = NAN
    alternatives: tuple[tuple[str, str], ...] = ()
    message: str = ""

    def __str__(self) -> str:
        return self.message

    @property
    def record(self) -> dict[str, str | float]:
        """What `result.json` keeps: cause, place, evidence, rank, size and sigma."""
        return {
            "cause": self.cause,
            "place": self.place,
            "evidence": self.evidence,
            "rank": self.rank,
            "size": self.size,
            "sigma": self.sigma,
        }
