"""Study files as text: a study with every default written out.

    parse(study_text(study)) == study

It is written from the classes that read study files. With `comments`, each key is explained in the words of its settings class.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from veridyn.studies.config.study import StudyFile

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
