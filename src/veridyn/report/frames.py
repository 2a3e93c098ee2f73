"""Results as pandas data frames. pandas is imported here, when a frame is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from veridyn.errors import Fault, VeridynError
from veridyn.identify.error_measures import RowReport
from veridyn.identify.result import Fit
from veridyn.identify.validation import Validation
from veridyn.observe.history import StateHistory


def frame_of_fit(fit: Fit) -> Any:
    """A line for each base parameter, by its name."""
    well = set(fit.well_identified())
    columns = {
        "value": fit.values,
        "sigma": fit.sigma,
        "sigma_percent": fit.relative_sigma,
        "prior": fit.priors,
        "unit": list(fit.units),
        "well_identified": [name in well for name in fit.names],
    }
    return _pandas().DataFrame(columns, index=_pandas().Index(fit.names, name="parameter"))


def frame_of_rows(rows: Sequence[RowReport]) -> Any:
    """A line for each row, as in the table of a validation, with its unit."""
    table = Validation(tuple(rows)).table
    columns = {key: [table[r.row][key] for r in rows] for key in next(iter(table.values()), {})}
    return _pandas().DataFrame(
        {**columns, "unit": [r.unit for r in rows]}, index=_pandas().Index([r.row for r in rows], name="row")
    )


def frame_of_states(states: StateHistory) -> Any:
    """A line for each sample, by time in s; each state and its standard deviation."""
    sigma = states.sigma
    columns = {}
    for j, name in enumerate(states.states):
        columns |= {name: states.reduced[:, j], f"{name}.sigma": sigma[:, j]}
    return _pandas().DataFrame(columns, index=_pandas().Index(states.t, name="t"))


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        hint = "pip install pandas, or use names, values and sigma as they are."
        raise VeridynError(
            Fault("a data frame needs pandas, which is not installed.", "to_frame", hint=hint)
        ) from error
    return pandas
