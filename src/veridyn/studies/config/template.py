"""A first study file from a model and a log: what can be guessed is guessed, and every guess is marked as one.

Columns are matched to joints by name (the joint's own name in it, or a letter and its number: q1, qd_2, tau3, positions.0), the unit by the
header or, failing that, by kind and size. Nothing is guessed that the checks of a study could not find out to be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, FileError
from veridyn.files.log.survey import Survey, survey
from veridyn.files.shipped import shipped_name
from veridyn.model.tree import Tree
from veridyn.signals.naming import AXES, BASE_UNITS
from veridyn.studies.config.text import flow

Array = NDArray[np.float64]
TIMES = ("t", "time", "times", "timestamp", "timestamps", "stamp", "sec", "seconds", "time_s", "t_s", "clock")
# Words that say what a column measures; longer ones first, so that "qdd" is not taken for "q".
WORDS: Mapping[str, tuple[str, ...]] = {
    "qdd": ("acceleration", "accelerations", "accel", "acc", "qdd", "ddq"),
    "qd": ("velocity", "velocities", "speed", "speeds", "vel", "dq", "qd", "v"),
    "force": ("torque", "torques", "effort", "efforts", "force", "forces", "tau", "gamma", "trq"),
    "signal": ("current", "currents", "cur", "i"),
    "q": ("position", "positions", "angle", "angles", "pos", "q", "theta"),
}
NUMBERED = re.compile(r"(.*?[a-zA-Z])[ _.\[(]*(\d+)[\])]?")
SECOND_MOMENTS = ("XX", "XY", "XZ", "YY", "YZ", "ZZ")
DEGREES_FROM = 7.0  # a turning joint that goes further than this is more likely in degrees
UNITS = {
    "q": ("rad", "m"),
    "qd": ("rad/s", "m/s"),
    "qdd": ("rad/s^2", "m/s^2"),
    "force": ("N*m", "N"),
    "signal": ("A", "A"),
}


@dataclass(frozen=True)
class Guess:
    """Channel, column and unit, and why."""

    channel: str
    column: str
    unit: str
    why: str


def template(model: Path, tree: Tree, files: Sequence[Path], study: Path, strict: bool = False) -> str:
    """The text of a study file beside which model and logs are found; comments say what was guessed and what may be changed."""
    seen = [survey(file) for file in files]
    parts = {s.file.stem: s for s in seen} if len(seen) > 1 else {}
    spread = _spread(tree, parts) if parts else None
    columns = seen[0].columns if spread is None else spread.columns
    units = seen[0].units if spread is None else {}
    time = "" if seen[0].clocks else time_column(columns)
    guesses = _guesses(tree, {n: x for n, x in columns.items() if n != time}, units)
    taken = {g.column for g in guesses}
    left = [n for n in columns if n not in taken and n != time]
    lines = [
        f"# A study of '{tree.name}'. Written by veridyn new; look at every line marked 'guessed'.",
        f"# Run it with: veridyn identify {study.name}. Every setting with its default: veridyn identify {study.name} --show",
        "veridyn: 1",
        "kind: identify",
        f"name: {re.sub(r'[^A-Za-z0-9_.-]+', '-', tree.name).strip('-.') or 'study'}",
        "",
        "model:",
        f"  file: {flow(beside(model, study))}",
        *urdf_lines(model, tree, strict),
        *_elements(tree),
        "",
        "log:",
        *_log_lines(time, columns, units, spread, seen[0]),
        "  columns: # channel: column [unit]" if guesses else "  columns: {} # channel: column [unit]",
        *(f"    {flow(g.channel)}: {column_text(g)}" + (f" # {g.why}" if g.why else "") for g in guesses),
    ]
    own, found = [tree.coordinates[k] for k in tree.independent], {g.channel for g in guesses}
    driven = tree.actuated_coordinates if tree.loops else tree.coordinates
    missing = [f"{kind}.{c}" for kind, names in (("q", own), ("force", driven)) for c in names]
    missing += (
        [f"base.{name}.{axis}" for name in ("omega", "acceleration") for axis in AXES] if tree.base == "free" else []
    )
    missing = [channel for channel in missing if channel not in found]
    if missing:
        lines += wrapped("    # not found, and needed: ", missing)
    if tree.loops:
        rest = [c for c in tree.coordinates if c not in own]
        lines += wrapped(
            "    # follow through closed loops, and need no column (any that is measured is compared): ", rest
        )
    if left:
        lines += wrapped("    # columns not used: ", left)
    lines += ["", "training: # logs to learn from", *_recordings(seen, spread, study, "[0, 0.7]")]
    lines += ["validation: # logs to be judged by; another motion is a harder test than the rest of the same one"]
    lines += [*_recordings(seen, spread, study, "[0.7, 1]"), ""]
    lines += [
        "signals:",
        "  lowpass: auto # Hz; auto tries some on the training logs and proposes one",
        *(["rows: actuated # a passive joint of a loop has no equation of its own"] if tree.loops else []),
        *(
            ["rows: all # of base and joints; where feet touch the ground the log needs its forces: wrench.BODY.fx …"]
            if tree.base == "free"
            else []
        ),
        "sampling:",
        "  dead_zone: 0.0 # rad/s or m/s; below it dry friction is not sign(speed), try 0.05",
        "estimator:",
        "  name: wls # consistent gives parameters that a machine of matter can have, needed for export",
        "accept: # exit code 1 where a limit is missed",
        "  suspicions: 0",
    ]
    return "\n".join(lines) + "\n"


def column_text(g: Guess) -> str:
    """Column and unit as a study file has them."""
    plain = re.fullmatch(r"[A-Za-z_][\w.]*", g.column)
    return f"{g.column} [{g.unit}]" if plain else flow(f"{g.column} [{g.unit}]")


@dataclass(frozen=True, eq=False)
class _Spread:
    """A log in several files: `columns` of all, and how each part is read."""

    columns: dict[str, Array]
    parts: dict[str, str]


def _spread(tree: Tree, parts: Mapping[str, Survey]) -> _Spread:
    """Several files of one log: one holds the clock, and files of one column the values of all joints one below the other."""
    single = {p: next(iter(s.columns.values())) for p, s in parts.items() if len(s.columns) == 1}
    clock = next((p for p, x in single.items() if len(x) > 2 and (np.diff(x) >= 0.0).all()), None)
    if clock is None:
        raise FileError(
            Fault(
                "none of these files is a clock.",
                "logs",
                "one file with a single column of times, beside those of positions and forces",
                ", ".join(parts),
                "Give one file if the log is a table; name further logs in the study file.",
            )
        )
    N, columns, read = (
        len(single[clock]),
        {"t": single[clock]},
        {clock: '{header: [t], time: "t [s]"} # the clock: guessed, seconds'},
    )
    for p, s in parts.items():
        if p == clock:
            continue
        if p in single and len(single[p]) % N == 0 and len(single[p]) // N > 1:
            k = len(single[p]) // N
            kind = _kind(p) or p
            names = [f"{kind}{j + 1}" for j in range(k)]
            columns |= dict(zip(names, single[p].reshape(-1, k).T, strict=True))
            read[p] = f"{{header: [{', '.join(names)}], interleaved: true}} # guessed: {k} values per sample"
        else:
            columns |= s.columns
            read[p] = "{}" if s.has_header else f"{{header: [{', '.join(s.columns)}]}}"
    return _Spread(columns, read)


def _kind(name: str) -> str | None:
    """What a name measures, by the words in it."""
    words = [w for w in re.split(r"[^a-z]+", name.lower()) if w]
    for kind, known in WORDS.items():
        if any(w in known for w in words):
            return kind
    return None


def time_column(columns: Mapping[str, Array]) -> str:
    """The column of times: by its name, or the first that only increases."""
    for name in columns:
        if name.lower() in TIMES:
            return name
    for name, x in columns.items():
        if len(x) > 2 and np.isfinite(x).all() and (np.diff(x) > 0.0).all():
            return name
    return "t"


def _guesses(tree: Tree, columns: Mapping[str, Array], units: Mapping[str, str]) -> list[Guess]:
    found: list[Guess] = []
    for kind in ("q", "qd", "qdd", "force"):
        numbers = _numbers(tree, {int(m[2]) for n in columns if (m := NUMBERED.fullmatch(n)) and _kind(m[1]) == kind})
        for number, k in zip(numbers, tree.independent, strict=True):
            c, turns = tree.coordinates[k], tree.coordinate_kinds[k]
            picked = _pick(kind, number, c, tree, [n for n in columns if n not in {g.column for g in found}])
            if picked is None:
                continue
            column, why = picked
            unit, because = _unit(kind, turns == "turning", columns[column], units.get(column, ""))
            found.append(Guess(f"{kind}.{c}", column, unit, "; ".join(w for w in (why, because) if w)))
    for k in (
        k for k in range(tree.n) if k not in tree.independent
    ):  # joints that follow are taken by their full name alone
        for name in (n for n in columns if n.lower() == f"q.{tree.coordinates[k].lower()}"):
            turning = tree.coordinate_kinds[k] == "turning"
            found.append(
                Guess(f"q.{tree.coordinates[k]}", name, *_unit("q", turning, columns[name], units.get(name, "")))
            )
    if tree.base == "free":
        channels = {f"base.{name}.{axis}": unit for name, unit in BASE_UNITS.items() for axis in AXES}
        found += [
            Guess(n.lower(), n, units.get(n) or channels[n.lower()], "" if units.get(n) else "unit guessed")
            for n in columns
            if n.lower() in channels
        ]
    return found


def position_guesses(tree: Tree, seen: Survey, kind: str = "q") -> list[Guess]:
    """Which columns of a log hold positions of the tree's coordinates, or their forces with `kind` "force"."""
    time = "" if seen.clocks else time_column(seen.columns)
    columns = {n: x for n, x in seen.columns.items() if n != time}
    return [g for g in _guesses(tree, columns, seen.units) if g.channel.startswith(f"{kind}.")]


def _numbers(tree: Tree, seen: set[int]) -> list[int]:
    """The number by which each coordinate with an equation of its own is called: that of the model, or, of a machine with loops whose
    log counts its drives alone, that among the drives."""
    first = min(seen, default=1)
    by_model = [k + first for k in tree.independent]
    return by_model if seen.issuperset(by_model) else [i + first for i in range(len(by_model))]


def _pick(kind: str, number: int, c: str, tree: Tree, names: Sequence[str]) -> tuple[str, str] | None:
    """The column of one quantity of one coordinate, and what speaks for it."""
    own = c.lower()
    whole = re.compile(rf"(?<!\d){re.escape(own)}(?!\d)")  # q1 is no part of q10
    for name in names:
        if name.lower() in (f"{kind}.{own}", f"{kind}_{own}"):
            return name, ""
    for name in names:
        rest, found = whole.subn(" ", name.lower())
        if found and _kind(rest) == kind:
            return name, "guessed by the joint's name"
    for name in names:
        m = NUMBERED.fullmatch(name)
        if m and _kind(m[1]) == kind and int(m[2]) == number:
            return name, "guessed by its number"
    alone = [n for n in names if _kind(n) == kind]
    return (alone[0], "guessed by its name") if len(tree.independent) == 1 and len(alone) == 1 else None


def _unit(kind: str, turning: bool, x: Array, given: str) -> tuple[str, str]:
    if given:
        return given, ""
    unit = UNITS[kind][0 if turning else 1]
    if kind == "q" and turning and np.nanmax(np.abs(x), initial=0.0) > DEGREES_FROM:
        return "deg", f"unit guessed: it goes to {np.nanmax(np.abs(x)):.4g}"
    return unit, "unit guessed"


def _log_lines(
    time: str, columns: Mapping[str, Array], units: Mapping[str, str], spread: _Spread | None, first: Survey
) -> list[str]:
    if spread is not None:
        return [
            "  parts: # files of one log: how each is read",
            *(f"    {flow(p)}: {how}" for p, how in spread.parts.items()),
        ]
    return time_lines(time, columns, units, first.has_header)


def time_lines(time: str, columns: Mapping[str, Array], units: Mapping[str, str], has_header: bool) -> list[str]:
    """How the clock is read, and the names of columns where the file has none; nothing where channels have clocks of their own."""
    if not time:
        return []
    unit, why = time_unit(time, columns, units)
    lines = [f"  time: {flow(f'{time} [{unit}]')}{why}"]
    if not has_header:
        lines.append(f"  header: [{', '.join(columns)}] # the file has none; call the columns what they are")
    return lines


def time_unit(time: str, columns: Mapping[str, Array], units: Mapping[str, str]) -> tuple[str, str]:
    """The clock's unit, by the header or by its step, and a comment that says so."""
    x = columns.get(time)
    step = float(np.median(np.diff(x))) if x is not None and len(x) > 2 else 0.0
    unit = units.get(time) or ("s" if step < 0.5 else "ms" if step < 500.0 else "us")
    return unit, "" if units.get(time) else f" # unit guessed: a step of {step:.4g}"


def urdf_lines(model: Path, tree: Tree, strict: bool) -> list[str]:
    """What a study says of a URDF, which does not say it itself: its base, and inertias that no body can have."""
    if model.suffix.lower() != ".urdf":
        return []
    other = {
        "fixed": "the root stands on the ground; free: it moves (legged, flying), and the log has base.omega.x, base.acceleration.x …",
        "free": "the root moves, and the log has base.omega.x, base.acceleration.x …; fixed: it stands on the ground",
    }
    lines = [f"  base: {tree.base} # {other[tree.base]}"]
    if strict:
        lines.append("  impossible: refuse # a file with inertias that no physical body has")
    elif any(name.startswith(SECOND_MOMENTS) for name in tree.parameters.missing()):
        lines.append(
            "  impossible: unknown # inertias that no physical body has; keep: the file's values, refuse: stop"
        )
    return lines


def _elements(tree: Tree) -> list[str]:
    if tree.elements:
        listed = ", ".join(e.parameter_name for e in tree.elements[:8]) + (", …" if len(tree.elements) > 8 else "")
        return [f"  elements: [] # besides those of the model: {listed}"]
    on = "actuated" if tree.loops else "each"
    return [
        "  elements: # the model has none; most joints rub, and torque sensors have an offset",
        f"    - {{kind: damper, on: {on}}}",
        f"    - {{kind: coulomb, on: {on}}}",
        f"    - {{kind: offset, on: {on}}}",
    ]


def _recordings(seen: Sequence[Survey], spread: _Spread | None, study: Path, share: str) -> list[str]:
    if spread is None:
        return [f"  - {{file: {flow(beside(seen[0].file, study))}, share: {share}}}"]
    lines = ["  - files:", *(f"      {flow(s.file.stem)}: {flow(beside(s.file, study))}" for s in seen)]
    return [*lines, f"    share: {share}"]


def beside(file: Path, study: Path) -> str:
    """The path as the study file may name it: relative to its folder where it lies in or below it, by name where it comes with veridyn."""
    if own := shipped_name(file):
        return own
    try:
        return file.resolve().relative_to(study.resolve().parent).as_posix()
    except ValueError:
        return str(file.resolve())


def wrapped(head: str, names: Sequence[str]) -> list[str]:
    """A comment with names, of which the first thirty are shown."""
    shown = ", ".join(names[:30]) + (", …" if len(names) > 30 else "")
    return [head + shown]
