"""Logs written as tables: CSV or Parquet, one clock, a unit in every header."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from veridyn.arguments import checked
from veridyn.errors import DataError, Faults, part_at
from veridyn.files.atomic import write_atomic
from veridyn.files.log.opening import PARQUET
from veridyn.files.units import dimension
from veridyn.model.experiment import Experiment


@checked
def save_log(experiment: Experiment, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write channels that share a clock as CSV or Parquet (by suffix), headers ``name [unit]``, first ``t [s]``.

    The file appears whole or not at all; an existing one is kept unless `overwrite`. Notes are not part of a table.
    """
    file = Path(path)
    faults = Faults()
    channels = list(experiment.channels.values())
    for channel in channels:
        if not np.array_equal(channel.t, channels[0].t):
            faults.add(
                f"channel '{channel.name}' has another clock than '{channels[0].name}'.",
                where=experiment.name,
                expected="one clock for all columns of a table",
                hint="Bring them to one clock with veridyn.signals.resample.resample first.",
            )
        if "[" in channel.name or channel.name == "t":
            faults.add(
                "its name cannot head a column.", where=part_at("channel", channel.name), expected="not 't', and no '['"
            )
        try:
            dimension(channel.unit, part_at("channel", channel.name))
        except DataError as error:
            faults.extend(error.faults)
    if not channels:
        faults.add("it has no channels to save.", where=experiment.name)
    faults.raise_if_any(DataError)
    table = pa.table({"t [s]": channels[0].t} | {f"{c.name} [{c.unit}]": c.values for c in channels})
    buffer = pa.BufferOutputStream()
    if file.suffix.lower() in PARQUET:
        pq.write_table(table, buffer)
    else:
        pacsv.write_csv(table, buffer)
    return write_atomic(file, buffer.getvalue().to_pybytes(), overwrite)
