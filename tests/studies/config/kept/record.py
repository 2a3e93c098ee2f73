"""What study files promise, as text: the schema, faults of faulty studies, studies with every default, and the page of keys.

    python tests/studies/config/kept/record.py          # writes the record anew where it is meant to change

Names of classes are no part of it. Descriptions, and studies with comments, are kept by their digests.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[3]))

from docs.study_keys import reference  # noqa: E402

from veridyn.errors import FileError  # noqa: E402
from veridyn.files.yaml_reader import plain_yaml  # noqa: E402
from veridyn.studies.config.study import FORMULATED, KINDS, SECTIONS, json_schema, parse_study  # noqa: E402
from veridyn.studies.config.text import flow, study_text  # noqa: E402

Record = dict[str, list[str]]  # heading → lines
WRONG: dict[str, Any] = {"a word": "zzz", "a number": -1, "a list": [[1]]}  # what is written for every key of a section
CHOOSING = ("kind", "payload", "fleet", "flexible", "drives")  # keys at the top that choose the settings of a study


def study_of(name: str) -> dict[str, Any]:
    """One of studies.yaml."""
    return copy.deepcopy(plain_yaml((HERE / "studies.yaml").read_text(encoding="utf-8"), "studies.yaml").values[name])


def names() -> list[str]:
    return list(plain_yaml((HERE / "studies.yaml").read_text(encoding="utf-8"), "studies.yaml").values)


def yaml_text(values: dict[str, Any], depth: int = 0) -> str:
    """A study with each key on a line of its own, and each entry of a list of sections."""
    out = ""
    for key, value in values.items():
        head = f"{'  ' * depth}{flow(key)}:"
        if isinstance(value, dict) and value:
            out += f"{head}\n{yaml_text(value, depth + 1)}"
        elif isinstance(value, list) and any(isinstance(v, dict) for v in value):
            out += f"{head}\n" + "".join(f"{'  ' * depth}  - {flow(v)}\n" for v in value)
        else:
            out += f"{head} {flow(value)}\n"
    return out


def changed(study: dict[str, Any], place: str, value: Any) -> None:
    """Write a value at a place, a/b/0; None takes the key away."""
    *way, last = place.split("/")
    inner: Any = study
    for part in way:
        inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
    if isinstance(inner, list):
        inner[int(last)] = value
    elif value is None:
        inner.pop(last, None)
    else:
        inner[last] = value


def faults_of(study: dict[str, Any], described: str = "") -> list[str]:
    """The faults of a study, one in a line."""
    try:
        parse_study(plain_yaml(yaml_text(study), "s.yaml"), described=described)
    except FileError as error:
        parts = [
            (
                f"{f.line}",
                f.where,
                f.what,
                f.expected and f"expected {f.expected}",
                f.found and f"found {f.found}",
                f.hint,
            )
            for f in error.faults
        ]
        return [" | ".join(part for part in own if part) for own in parts]
    return ["no fault"]


def faulty() -> Record:
    """The studies of faulty.yaml."""
    out: Record = {}
    for one in plain_yaml("all:\n" + (HERE / "faulty.yaml").read_text(encoding="utf-8"), "faulty.yaml").values["all"]:
        ((name, changes),) = one.items()
        study = study_of(name)
        for place, value in changes.items():
            changed(study, place, value)
        out[f"{name}: {flow(changes)}"] = faults_of(study)
    return out


def wrong_types() -> Record:
    """Each section of the studies with a word, a number or a list for every key; sections that are the same elsewhere once.

    Faults of words are kept as they are, the others by their digest.
    """
    out: Record = {}
    seen: set[str] = set()
    for label, root in _roots().items():
        for place, section in _sections(root):
            content = json.dumps(section, sort_keys=True)
            steps = _in_study(study_of(label), place)
            if content in seen or steps is None:
                continue
            seen.add(content)
            keys = [k for k in section["properties"] if place or k not in CHOOSING]
            for word, value in WRONG.items():
                study = study_of(label)
                for key in keys if place else [k for k in keys if k != "model"]:
                    changed(study, "/".join((*steps, key)), value)
                changed(study, "/".join((*steps, "unknown_key")), value)
                faults = faults_of(study)
                kept = faults if word == "a word" else [f"{len(faults)} faults #{_digest(' '.join(faults))}"]
                out[f"{label}, {word} for every key of {place or 'the study'}"] = kept
    return out


def _in_study(study: Any, place: str) -> tuple[str, ...] | None:
    """The steps to the first section at a place of the schema, a.*.b[], in a study; None where there is none."""
    steps: list[str] = []
    for part in re.findall(r"\[\]|\.\*|[^.\[\]*]+", place):
        if part == "[]":
            index = (
                next((k for k, v in enumerate(study) if isinstance(v, dict)), None) if isinstance(study, list) else None
            )
            if index is None:
                return None
            steps.append(str(index))
            study = study[index]
        elif isinstance(study, dict):
            key = next((k for k, v in study.items() if isinstance(v, dict)), None) if part == ".*" else part
            if key is None or key not in study:
                return None
            steps.append(key)
            study = study[key]
        else:
            return None
    return tuple(steps) if isinstance(study, dict) else None


def _roots() -> dict[str, dict[str, Any]]:
    """The schema of each variant of each kind, with what it refers to written out, without titles."""
    schema = json_schema()
    out = {}
    for kind, own in zip(KINDS, schema["oneOf"], strict=True):
        variants = [n for n, kinds in SECTIONS.items() if kind in kinds] + [
            "car" for _ in FORMULATED if kind in _cars()
        ]
        labels = [kind, *(n if kind == "identify" and n != "car" else f"{kind} {n}" for n in variants)]
        out |= dict(zip(labels, (_plain(one, schema["$defs"]) for one in own.get("oneOf", [own])), strict=True))
    return out


def _cars() -> set[str]:
    return {kind for kinds in FORMULATED.values() for kind in kinds}


def _plain(schema: Any, shared: dict[str, Any], field: bool = False) -> Any:
    if isinstance(schema, list):
        return [_plain(one, shared) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        own = {k: v for k, v in schema.items() if k != "$ref"}
        inner = _plain(shared[schema["$ref"].rpartition("/")[2]], shared)
        return {**inner, **({"beside": _plain(own, shared)} if own else {})}
    if "properties" in schema and not field:
        return {k: _plain(v, shared, k == "properties") for k, v in schema.items() if k != "title"}
    if field:
        return {k: _plain(v, shared) for k, v in schema.items()}
    return {k: _plain(v, shared) for k, v in schema.items() if k != "title"}


def _sections(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """A section and those inside it, each with its place: a[] are entries of a list, a.* values of a mapping."""
    if not isinstance(schema, dict):
        return
    if "properties" in schema and schema.get("type") == "object":
        yield place, schema
        for key, own in schema["properties"].items():
            yield from _sections(own, f"{place}.{key}".lstrip("."))
        return
    for word, mark in (("anyOf", ""), ("prefixItems", "[]")):
        for one in schema.get(word, ()):
            yield from _sections(one, place + mark)
    for word, mark in (("items", "[]"), ("additionalProperties", ".*")):
        yield from _sections(schema.get(word), place + mark)
    for one in schema.get("patternProperties", {}).values():
        yield from _sections(one, f"{place}.*")


def schema_lines() -> Record:
    """Each section with its keys: type, limits, default, and the digest of its description; one that stands elsewhere by that place."""
    out: Record = {}
    seen: dict[str, str] = {}
    for label, root in _roots().items():
        for place, section in _sections(root):
            heading = f"{label}: {place}" if place else label
            lines = [f"required: {', '.join(section['required'])}"] if "required" in section else []
            lines += [
                f"other keys: {section.get('additionalProperties', True)} #{_digest(section.get('description', ''))}"
            ]
            lines += [f"{key}: {_described(own)}" for key, own in section["properties"].items()]
            content = "\n".join(lines)
            out[heading] = [f"as {seen[content]}"] if content in seen else lines
            seen.setdefault(content, heading)
    return out


def _described(schema: dict[str, Any]) -> str:
    """The schema of one key in a line."""
    own = {**schema, **schema.get("beside", {})}
    text = _kind_of(schema)
    text += f" = {json.dumps(own['default'], ensure_ascii=False)}" if "default" in own else ""
    return text + (f" #{_digest(own['description'])}" if "description" in own else "")


def _kind_of(schema: dict[str, Any]) -> str:
    limits = {k: v for k, v in schema.items() if k not in OTHER_WORDS}
    if "properties" in schema and schema.get("type") == "object":
        return "section"
    text = " or ".join(_kind_of(one) for one in schema.get("anyOf", ())) or str(schema.get("type", "any"))
    if "items" in schema:
        text += f" of ({_kind_of(schema['items'])})"
    if "prefixItems" in schema:
        text += f" of [{', '.join(_kind_of(one) for one in schema['prefixItems'])}]"
    if isinstance(schema.get("additionalProperties"), dict):
        text += f" of names to ({_kind_of(schema['additionalProperties'])})"
    text += "".join(f" of /{n}/ to ({_kind_of(one)})" for n, one in schema.get("patternProperties", {}).items())
    return f"{text} {json.dumps(limits, ensure_ascii=False, sort_keys=True)}" if limits else text


OTHER_WORDS = (
    "anyOf",
    "type",
    "items",
    "prefixItems",
    "additionalProperties",
    "patternProperties",
    "default",
    "description",
    "beside",
)


def _digest(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:8]


def shown() -> Record:
    """Each study as --show prints it, and the digest of that with comments."""
    out: Record = {}
    for name in names():
        study = parse_study(plain_yaml(yaml_text(study_of(name)), "s.yaml"))
        out[name] = [*study_text(study).splitlines(), f"# with comments #{_digest(study_text(study, comments=True))}"]
    return out


def page() -> Record:
    """The digest of each part of the page of study keys."""
    out: Record = {}
    kind = ""
    for part in filter(None, re.split(r"^(?=##)", reference(), flags=re.MULTILINE)):
        heading, _, rest = part.partition("\n")
        kind = heading if heading.startswith("## ") else kind
        out[heading if heading == kind else f"{kind} {heading}"] = [f"#{_digest(rest)}"]
    return out


RECORDS = {"schema": schema_lines, "faulty": faulty, "wrong_types": wrong_types, "shown": shown, "page": page}


def as_text(record: Record) -> str:
    """A heading, and its lines behind a tab."""
    return "".join(f"{heading}\n" + "".join(f"\t{line}\n" for line in lines) for heading, lines in record.items())


def kept(name: str) -> Record:
    """The record as it is stored."""
    out: Record = {}
    for line in (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("\t"):
            out[next(reversed(out))].append(line[1:])
        else:
            out[line] = []
    return out


if __name__ == "__main__":
    for name, made in RECORDS.items():
        (HERE / f"{name}.txt").write_text(as_text(made()), encoding="utf-8")
