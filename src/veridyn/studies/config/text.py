"""Study files as text: a study with every default written out, and the reference of all keys.

    parse(study_text(study)) == study

Both are written from the classes that read study files, so that what the documentation shows is what is checked. With `comments`, each key
is explained in the words of its settings class.
"""

from __future__ import annotations

import json
import re
import textwrap
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from veridyn.studies.config.study import FORMULATED, KINDS, SECTIONS, StudyFile, settings_class

WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z_$.](?:[\w .$/(){}*^-]*[\w)}])?(?: \[[\w*/^%. ()-]+\])?", re.ASCII)
_RESERVED = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"))


def study_text(study: StudyFile, comments: bool = False) -> str:
    """The text of a study file that holds every setting, the defaults too."""
    return "\n".join(_block(study, 0, comments)) + "\n"


def _block(settings: BaseModel, depth: int, comments: bool) -> list[str]:
    indent, lines = "  " * depth, []
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if comments and field.description:
            if not depth and lines:
                lines.append("")
            lines += [indent + line for line in commented(field.description)]
        lines += _entry(name, value, depth, comments)
    return lines


def commented(text: str) -> list[str]:
    """A text as comment lines."""
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent="# ", subsequent_indent="# ")


def _entry(name: str, value: Any, depth: int, comments: bool) -> list[str]:
    indent = "  " * depth
    if isinstance(value, BaseModel):
        return [f"{indent}{name}:", *_block(value, depth + 1, comments)]
    if isinstance(value, Mapping) and any(isinstance(v, BaseModel) for v in value.values()):
        return [f"{indent}{name}:", *(f"{indent}  {flow(k)}: {flow(v)}" for k, v in value.items())]
    if isinstance(value, tuple | list) and any(isinstance(v, BaseModel) for v in value):
        return [f"{indent}{name}:", *(f"{indent}  - {flow(v)}" for v in value)]
    return [f"{indent}{name}: {flow(value)}"]


def flow(value: Any) -> str:
    """A value on one line, as YAML reads it back; of settings, those that differ from their defaults."""
    if isinstance(value, BaseModel):
        own = {k: getattr(value, k) for k in type(value).model_fields if k in value.model_fields_set}
        return flow({k: v for k, v in own.items() if v is not None})
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    if isinstance(value, str):
        inside = _PLAIN.fullmatch(value) and value.lower() not in _RESERVED
        return value if inside and not set(value) & set("[]{},:#") else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def reference(kind: str | None = None) -> str:
    """Markdown: for each kind of study one table of keys for each section, with meanings, kinds of values and defaults."""
    parts = []
    listed = [(name, "", settings_class(name)) for name in ([kind] if kind else KINDS)]
    if not kind:
        listed += [(n, f" of a {s}", settings_class(n, s)) for s, kinds in SECTIONS.items() for n in kinds]
        listed += [(n, " of a car", settings_class(n, formulation=f)) for f, kinds in FORMULATED.items() for n in kinds]
    for name, of, settings in listed:
        parts.append(f"## `kind: {name}`{of}\n\n{_prose(settings.__doc__)}\n")
        parts += [f"{head}{_table(part)}" for head, part in _sections(settings, "")]
    return "\n".join(parts)


def _sections(settings: type[BaseModel], place: str) -> list[tuple[str, type[BaseModel]]]:
    """A class of settings and those inside it, each with its heading, each once."""
    head = f"### `{place}`\n\n{_prose(settings.__doc__)}\n\n" if place else ""
    out = [(head, settings)]
    for name, field in settings.model_fields.items():
        for inner, mark in _models(field.annotation):
            out += _sections(inner, f"{place}.{name}{mark}".lstrip("."))
    return out


def _models(annotation: Any) -> list[tuple[type[BaseModel], str]]:
    """Classes of settings in an annotation: "[]" marks entries of a list, ".*" values of a mapping."""
    if isinstance(annotation, type) and not get_args(annotation):
        return [(annotation, "")] if issubclass(annotation, BaseModel) else []
    origin, found = get_origin(annotation), []
    mark = "[]" if origin in (tuple, list) else ".*" if origin is dict else ""
    for part in get_args(annotation):
        found += [(model, mark + inner) for model, inner in _models(part)]
    return found


def _table(settings: type[BaseModel]) -> str:
    rows = ["| key | value | if left out | meaning |", "|---|---|---|---|"]
    for name, field in settings.model_fields.items():
        inner = _models(field.annotation)
        meaning = _prose(field.description) or (_prose(inner[0][0].__doc__) if inner else "")
        rows.append(f"| `{name}` | {_cell(_kind(field.annotation))} | {_default(field)} | {_cell(meaning)} |")
    return "\n".join(rows) + "\n"


def _kind(annotation: Any) -> str:
    """What may stand there, in words."""
    words = {
        str: "text",
        float: "number",
        int: "whole number",
        bool: "true or false",
        type(None): "nothing",
        Any: "any",
    }
    if annotation in words:
        return words[annotation]
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{flow(part)}`" for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(part) for part in parts if part is not type(None)))
    if origin in (tuple, list):
        inner = [part for part in parts if part is not Ellipsis]
        return f"list of {_kind(inner[0])}" if Ellipsis in parts else f"[{', '.join(_kind(p) for p in inner)}]"
    if origin is dict:
        return f"name: {_kind(parts[1])}"
    if hasattr(annotation, "__metadata__"):
        return _kind(parts[0])
    return "section" if isinstance(annotation, type) and issubclass(annotation, BaseModel) else str(annotation)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "a fault"
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined or isinstance(value, BaseModel):
        return "its defaults"
    return "–" if value is None or value in ({}, (), "") else f"`{flow(value)}`"


def _prose(text: str | None) -> str:
    return " ".join((text or "").split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
