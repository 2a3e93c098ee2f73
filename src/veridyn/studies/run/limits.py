"""The limits that a study file sets, held against what came out."""

from __future__ import annotations

import math

from veridyn.studies.config.identify import IdentifyAccept
from veridyn.studies.identification import IdentificationStudy


def missed(study: IdentificationStudy, accept: IdentifyAccept, suspicions: int) -> list[str]:
    """Sentences about the limits that are missed; none where all are kept. An error that is not known keeps no limit.

    Errors are of what the fit was fitted to: of forces, or of the positions of a simulation.
    """
    f, judging = study.figures, study.judging
    of = " of simulated positions" if study.by_simulation else ""
    most = {
        "training_percent": (f"relative error{of} on the training logs, %", 100.0 * study.judging_own.relative_error),
        "validation_percent": (f"relative error{of} on the validation logs, %", 100.0 * judging.relative_error),
        "validation_std_percent": (
            f"rms error{of} over the standard deviation on the validation logs, %",
            100.0 * judging.std_error,
        ),
        "condition": ("condition number", f["condition"]),
        "suspicions": ("suspicions", float(suspicions)),
    }
    out = []
    for key, (words, value) in most.items():
        limit = getattr(accept, key)
        if limit is not None and not value <= limit:
            shown = f"{value:.6g}" if math.isfinite(value) else f"not known ({study.unjudged or 'nothing is measured'})"
            out.append(f"{words}: {shown}, and at most {limit:g} is accepted (accept.{key}).")
    rows = {r.row: 100.0 * r.relative_error for r in judging.rows}
    for row, limit in accept.row_percent.items():
        if not rows.get(row, math.nan) <= limit:
            shown = (
                "no such row" if row not in rows else f"{rows[row]:.4g}" if math.isfinite(rows[row]) else "not known"
            )
            out.append(f"error of row '{row}' on the validation logs, %: {shown}, and at most {limit:g} is accepted.")
    if accept.base_parameters is not None and f["base_parameters_excited"] != accept.base_parameters:
        out.append(f"base parameters: {f['base_parameters_excited']:g}, and {accept.base_parameters} are expected.")
    if accept.well_identified is not None and f["well_identified"] < accept.well_identified:
        out.append(f"well identified: {f['well_identified']:g}, and at least {accept.well_identified} are expected.")
    return out
