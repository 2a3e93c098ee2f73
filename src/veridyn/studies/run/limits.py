"""The limits that a study file sets, held against what came out."""

from __future__ import annotations

from veridyn.studies.config.identify import IdentifyAccept
from veridyn.studies.identification import IdentificationStudy


def missed(study: IdentificationStudy, accept: IdentifyAccept, suspicions: int) -> list[str]:
    """Sentences about the limits that are missed; none where all are kept."""
    f = study.figures
    most = {
        "training_percent": ("relative error on the training logs, %", f["training_percent"]),
        "validation_percent": ("relative error on the validation logs, %", f["cross_validation_percent"]),
        "validation_std_percent": (
            "rms error over the standard deviation on the validation logs, %",
            f.get("cross_validation_std_percent", float("nan")),
        ),
        "condition": ("condition number", f["condition"]),
        "suspicions": ("suspicions", float(suspicions)),
    }
    out = []
    for key, (words, value) in most.items():
        limit = getattr(accept, key)
        if limit is not None and not value <= limit:
            out.append(f"{words}: {value:.6g}, and at most {limit:g} is accepted (accept.{key}).")
    rows = {r.row: 100.0 * r.relative_error for r in study.check.rows}
    for row, limit in accept.row_percent.items():
        if not rows.get(row, float("nan")) <= limit:
            shown = f"{rows[row]:.4g}" if row in rows else "no such row"
            out.append(f"error of row '{row}' on the validation logs, %: {shown}, and at most {limit:g} is accepted.")
    if accept.base_parameters is not None and f["base_parameters_excited"] != accept.base_parameters:
        out.append(f"base parameters: {f['base_parameters_excited']:g}, and {accept.base_parameters} are expected.")
    if accept.well_identified is not None and f["well_identified"] < accept.well_identified:
        out.append(f"well identified: {f['well_identified']:g}, and at least {accept.well_identified} are expected.")
    return out
