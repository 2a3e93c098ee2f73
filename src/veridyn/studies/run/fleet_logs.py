"""The machines of a fleet study and their logs, by name or by a pattern of paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from veridyn.files.yaml_plain import Place
from veridyn.studies.config.fleet import MACHINE, NAME, FleetFile
from veridyn.studies.config.log import RecordingSettings
from veridyn.studies.config.study import Loaded

Logs = Mapping[str, tuple[RecordingSettings, ...]]
BY_PATTERN: Place = ("fleet", "logs")
BY_NAME: Place = ("fleet", "machines")


def logs_of(loaded: Loaded[FleetFile]) -> Logs:
    """Machine → its logs, in the order of the file or of the alphabet; a pattern that finds nothing is refused with its line."""
    own = loaded.study.fleet
    if own.machines:
        return own.machines
    pattern = loaded.path(own.logs.replace(MACHINE, _STAND_IN), BY_PATTERN)
    found: dict[str, list[RecordingSettings]] = {}
    folder = loaded.file.parent
    name_at = _named(pattern)
    for file in sorted(_matching(pattern)):
        match = name_at.fullmatch(str(file))
        if match is not None and re.fullmatch(NAME, match[1]):
            inside = file.is_relative_to(folder)
            path = file.relative_to(folder) if inside else file.absolute()
            found.setdefault(match[1], []).append(RecordingSettings(file=path.as_posix()))
    if not found:
        shown = str(pattern).replace(_STAND_IN, MACHINE)
        hint = "Paths are relative to the study file; * stands for any text without a slash."
        raise loaded.error(loaded.fault(BY_PATTERN, "no log has such a path.", found=shown, hint=hint))
    return {name: tuple(logs) for name, logs in found.items()}


_STAND_IN = "\N{REPLACEMENT CHARACTER}"  # for {machine}, which is no text of a path


def _matching(pattern: Path) -> list[Path]:
    """Files and folders of bags that a pattern fits, wherever it is."""
    parts = pattern.parts
    fixed = next(k for k, part in enumerate(parts) if _STAND_IN in part or "*" in part or "?" in part)
    rest = "/".join(parts[fixed:]).replace(_STAND_IN, "*")
    return list(Path(*parts[:fixed]).glob(rest))


def _named(pattern: Path) -> re.Pattern[str]:
    """A pattern of paths as an expression whose first group is the name of the machine."""
    words = {_STAND_IN: "([^/\\\\]+?)", "*": "[^/\\\\]*", "?": "[^/\\\\]"}
    return re.compile("".join(words.get(letter, re.escape(letter)) for letter in str(pattern)))
