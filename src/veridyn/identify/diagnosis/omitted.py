"""What was not looked for, and why: a report without findings says little to a reader who does not know what was checked."""

from __future__ import annotations

from veridyn.identify.diagnosis.alternatives import CONTRADICTION_RATIO, MIN_ERROR, unreached
from veridyn.identify.diagnosis.evidence import Evidence

MAX_LISTED = 6  # readings that are listed


def omitted(e: Evidence, apart: float, delays: bool, speeds: bool, streamed: bool) -> tuple[str, ...]:
    """In words. `apart` as for :func:`~veridyn.identify.diagnosis.alternatives.suspicions`; whether delays were looked for, speeds are
    measured, and the log is read in blocks."""
    out = []
    if not e.rows:
        return ("Everything that needs measured forces: no row measures any.",)
    error = e.error()
    if error <= MIN_ERROR and apart <= CONTRADICTION_RATIO:
        out.append(
            "Swapped or turned columns, other units and scales, another gravity, bodies that sit elsewhere: these are checked where "
            f"more than {100 * MIN_ERROR:g} % of the forces is unexplained or the rows contradict each other, "
            f"which is not so ({100 * error:.2g} %)."
        )
    else:
        never = unreached(e) if e.machine.closed else []
        if never:
            listed = ", ".join(never[:MAX_LISTED]) + (
                f" and {len(never) - MAX_LISTED} more" if len(never) > MAX_LISTED else ""
            )
            out.append(
                f"Readings of the log with which no way to close the loops was found, so that they explain nothing: {listed}."
            )
        if e.machine.base == "free":
            out.append("Another gravity: the acceleration of the base, gravity included, is measured.")
    if not delays:
        out.append("Delays of forces: the study says clock: {delays: ignore}.")
    if not speeds:
        out.append("Speeds that contradict positions: none are measured.")
    if e.machine.parameters.missing():
        out.append("Forces beside those that the model's own values predict: not all of its parameters have values.")
    if streamed:
        out.append("Anything beyond the first block of each log, which is read in blocks.")
    return tuple(out)
