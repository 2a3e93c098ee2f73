"""The reference of study files, written from the classes that read them, so that what the documentation shows is what is checked."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from veridyn.studies.config.study import FORMULATED, KINDS, SECTIONS, settings_class
from veridyn.studies.config.text import flow


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
