"""Study files as text: a study with every default written out, and what messages say about keys.

    parse(study_text(study)) == study

It is written from the classes that read study files. With `comments`, each key is explained in the words of its settings class.

Messages name values that a key takes, and keys that older versions spell otherwise. Their examples are made from the type of a key, and
checked against it.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from veridyn.files.yaml_reader import Place

WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z_$.](?:[\w .$/(){}*^-]*[\w)}])?(?: \[[\w*/^%. ()-]+\])?", re.ASCII)
_RESERVED = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"))


def study_text(study: BaseModel, comments: bool = False) -> str:
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


MAX_SHOWN_CHARACTERS = 40  # characters of a value that a message shows
SAMPLE_TEXTS = ("NAME", "NAME [rad]", "0.07 N*m/A", "auto")
SAMPLE_NUMBERS = (1, 0.5, 2, 10, 100, 0)
RENAMED = {
    "unsure": "process_noise",
    "asked": "estimated",
    "mechanism": "model: {file: …}",
}  # old key → what is written now


def subject_of(section: type[BaseModel] | None, place: Place) -> str:
    """What stands at a place, as the subject of a sentence: "an element", "'signals'", "an entry of 'training'"."""
    word = getattr(section, "word", "")
    if word:
        return word
    keys = [part for part in place if isinstance(part, str)]
    if not keys:
        return "a study file"
    return f"an entry of '{keys[-1]}'" if isinstance(place[-1], int) else f"'{keys[-1]}'"


def words_of(value: object) -> str:
    """A value as it stands in the file."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value:g}"
    if isinstance(value, str):
        short = value if len(value) <= MAX_SHOWN_CHARACTERS else value[: MAX_SHOWN_CHARACTERS - 1] + "…"
        return f"the {'text' if ' ' in short else 'word'} '{short}'"
    if isinstance(value, Mapping):
        return "keys and values"
    return "an empty list" if not value else "a list"


@cache
def example_of(section: type[BaseModel]) -> str:
    """Keys and values that a section takes: its own `example`, or its required keys, or its first ones."""
    return _in_one_line(_keys(section))


def example_of_field(field: FieldInfo) -> str:
    """A value that a key takes; empty where none of those tried does."""
    return next((_in_one_line(value) for value in _candidates_of_field(field)), "")


def _keys(section: type[BaseModel]) -> dict[str, Any]:
    own = getattr(section, "example", {})
    if own:
        return dict(own)
    needed = {n: f for n, f in section.model_fields.items() if f.is_required()}
    chosen = needed or dict(list(section.model_fields.items())[:1])
    return {name: "FILE" if name == "file" else next(_candidates_of_field(f), "…") for name, f in chosen.items()}


def _candidates_of_field(field: FieldInfo) -> Iterator[Any]:
    """Values that the type of a key accepts, the default first."""
    hint: Any = field.annotation
    annotated: Any = Annotated
    adapter: TypeAdapter[Any] = TypeAdapter(annotated[(hint, *field.metadata)] if field.metadata else hint)
    tried = [] if field.is_required() or field.default is None else [field.default]
    for value in [*tried, *_samples(hint)]:
        if not isinstance(value, str | int | float | list | dict) or value in ([], {}, ""):
            continue
        try:
            adapter.validate_python(value)
        except ValidationError:
            continue
        yield value


def _samples(hint: Any) -> Iterator[Any]:
    """Values of about the right kind."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from _samples(args[0])
        yield from SAMPLE_TEXTS  # a short form that a validator turns into what is asked for
    elif origin is Literal:
        yield args[0]
    elif origin in (Union, UnionType):
        for arg in args:
            if arg is not NoneType:
                yield from _samples(arg)
    elif origin in (tuple, list) and args:
        kinds = [args[0]] if args[-1] is Ellipsis or origin is list else list(args)
        if len(kinds) == 2 and kinds[0] is not str:
            yield [0, 1]
        yield [next(_samples(kind), "…") for kind in kinds]
        yield list(SAMPLE_TEXTS[:1])
    elif origin is dict:
        for inner in _samples(args[1]):
            yield {"NAME": inner}
    elif isinstance(hint, type) and issubclass(hint, BaseModel):
        yield _keys(hint)
    elif hint is bool:
        yield True
    elif hint in (int, float):
        yield from SAMPLE_NUMBERS
    elif hint is str:
        yield from SAMPLE_TEXTS


def _in_one_line(value: Any, inside: bool = False) -> str:
    """A value as YAML in one line; `inside` of brackets, texts with signs of YAML stand in quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_in_one_line(inner, True)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_in_one_line(inner, True) for inner in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    return f'"{value}"' if inside and set(str(value)) & set("[]{},:#") else str(value)
