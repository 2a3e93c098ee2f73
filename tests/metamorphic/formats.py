"""One log in every format, and in other units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import asammdf
import numpy as np
import pandas as pd
from scipy.io import savemat

import veridyn as vd
from metamorphic.machines import Array


def _table(log: vd.Experiment) -> dict[str, Array]:
    t = next(iter(log.channels.values())).t
    return {"t": t} | {c.name: c.values for c in log.channels.values()}


def _units(log: vd.Experiment) -> dict[str, str]:
    return {"t": "s"} | {c.name: c.unit for c in log.channels.values()}


def _csv(log: vd.Experiment, folder: Path) -> vd.Experiment:
    return vd.load_log(vd.files.save_log(log, folder / "log.csv"))


def _parquet(log: vd.Experiment, folder: Path) -> vd.Experiment:
    return vd.load_log(vd.files.save_log(log, folder / "log.parquet"))


def _npz(log: vd.Experiment, folder: Path) -> vd.Experiment:
    np.savez(folder / "log.npz", **_table(log))  # pyright: ignore[reportArgumentType]
    return vd.load_log(folder / "log.npz", units=_units(log))


def _mat(log: vd.Experiment, folder: Path) -> vd.Experiment:
    plain = {name.replace(".", "_"): x for name, x in _table(log).items()}  # no dots in names of MATLAB
    savemat(folder / "log.mat", plain)
    columns = {c: c.replace(".", "_") for c in log.names}
    return vd.load_log(folder / "log.mat", columns=columns, units=_units(log))


def _mdf(log: vd.Experiment, folder: Path) -> vd.Experiment:
    with asammdf.MDF(version="4.10") as mdf:
        mdf.append([asammdf.Signal(c.values, c.t, unit=c.unit, name=c.name) for c in log.channels.values()])
        mdf.save(folder / "log.mf4", overwrite=True)
    return vd.load_log(folder / "log.mf4", units=_units(log))


def _frame(log: vd.Experiment, folder: Path) -> vd.Experiment:
    return vd.load_log(pd.DataFrame(_table(log)), units=_units(log))


FORMATS: Mapping[str, Callable[[vd.Experiment, Path], vd.Experiment]] = {
    "csv": _csv,
    "parquet": _parquet,
    "npz": _npz,
    "mat": _mat,
    "mdf": _mdf,
    "frame": _frame,
}

# Unit of the column → what one of it is in SI
COLUMN_UNITS: Mapping[str, tuple[str, float]] = {
    "rad": ("deg", np.pi / 180.0),
    "N*m": ("N*mm", 1e-3),
    "m": ("mm", 1e-3),
}


def in_other_units(log: vd.Experiment) -> vd.Experiment:
    """The log from a table in degrees, N*mm, mm and ms."""
    table, units = {"t": 1e3 * _table(log)["t"]}, {"t": "ms"}
    for c in log.channels.values():
        units[c.name], one = COLUMN_UNITS[c.unit]
        table[c.name] = c.values / one
    return vd.load_log(pd.DataFrame(table), units=units)
