"""Keys of study files that older versions spell otherwise: they are read as the new ones, with one warning that names those.

unsure: {force: 4}  →  process_noise: {force: 4}        model: {asked: [K1]}  →  model: {estimated: [K1]}
mechanism: crane.yaml  →  model: {file: crane.yaml, formulation: natural}
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from veridyn.errors import DataWarning, Fault, Faults, FileError, warn
from veridyn.files.yaml_plain import Place, PlainYaml

OLD_KEYS: dict[Place, Place] = {
    ("unsure",): ("process_noise",),
    ("model", "asked"): ("model", "estimated"),
    ("mechanism",): ("model", "file"),
}
WITH_MECHANISM = ("observe", "simulate")  # kinds of study that had the key


def modern(yaml: PlainYaml) -> PlainYaml:
    """The document with today's keys; lines stay those of the file. Refused where an old key stands beside its new one."""
    found = [old for old in OLD_KEYS if _holds(yaml.values, old) and _known(yaml, old)]
    if not found:
        return yaml
    _refuse_both(yaml, found)
    values, lines = dict(yaml.values), dict(yaml.lines)
    for old in found:
        new = OLD_KEYS[old]
        section = str(old[0])
        content = values[section]
        if old == ("mechanism",):
            del values["mechanism"]
            values["model"] = {"file": content, "formulation": "natural"}
            lines |= dict.fromkeys((("model",), ("model", "file"), ("model", "formulation")), yaml.lines[old])
            continue
        if len(old) == 1:
            values = {new[0] if key == old[0] else key: value for key, value in values.items()}
        else:
            values[section] = {new[1] if key == old[1] else key: value for key, value in content.items()}
        lines |= {(*new, *at[len(old) :]): line for at, line in yaml.lines.items() if at[: len(old)] == old}
    warn(DataWarning, Fault(_sentence(yaml, found), yaml.source, line=yaml.lines[found[0]]))
    return replace(yaml, values=values, lines=lines)


def _known(yaml: PlainYaml, old: Place) -> bool:
    return old != ("mechanism",) or yaml.values.get("kind") in WITH_MECHANISM


def _holds(values: Any, at: Place) -> bool:
    for key in at:
        if not isinstance(values, dict) or key not in values:
            return False
        values = values[key]
    return True


def _refuse_both(yaml: PlainYaml, found: list[Place]) -> None:
    faults = Faults()
    for old in found:
        new = ("model",) if old == ("mechanism",) else OLD_KEYS[old]
        if _holds(yaml.values, new):
            what = f"'{old[-1]}' is the old word for '{new[-1]}', and both are given."
            faults.add(what, where=".".join(map(str, old)), hint=f"Drop '{old[-1]}'.", line=yaml.lines[old])
    faults.raise_if_any(FileError, yaml.source)


def _sentence(yaml: PlainYaml, found: list[Place]) -> str:
    said = []
    for old in found:
        if old == ("mechanism",):
            said.append(f"'mechanism: {yaml.values['mechanism']}' is 'model: {{file: {yaml.values['mechanism']}}}'")
        else:
            said.append(f"'{old[-1]}' is '{OLD_KEYS[old][-1]}'")
    return f"{' and '.join(said)} now; the old {'word is' if len(found) == 1 else 'words are'} still read."
