"""The reference of model files, written from the schema that the reader itself has: a key that exists is in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
COLUMNS = ["| key | what it is | what it takes | |", "|---|---|---|---|"]


def model_page(schema: Schema) -> str:
    """One table for each kind of entry."""
    lines = [
        "# Keys of the model file",
        "",
        "All keys that a [model file](model-file.md) may have; numbers may be formulas. `veridyn schema model` prints the same as JSON",
        "schema for editors. This page is written from the code.",
        "",
        *_table(schema),
    ]
    for key, part in schema["properties"].items():
        entry = part.get("items", part)
        if "properties" in entry:
            lines += [f"## {key}", "", *_table(entry)]
    return "\n".join(lines)


def _table(part: Schema) -> list[str]:
    needed = set(part.get("required", ()))
    rows = []
    for key, p in part.get("properties", {}).items():
        default = "required" if key in needed else ""
        said = " ".join(str(p.get("description", "")).split())
        rows.append(f"| `{key}` | {_safe(said)} | {_takes(p)} | {default} |")
    return [*COLUMNS, *rows, ""]


def _takes(p: Schema) -> str:
    words = list(dict.fromkeys(_words(p)))
    return _safe(", ".join(words)) if words else "anything"


def _words(p: Schema) -> Iterator[str]:
    if "enum" in p:
        yield from (f"`{json.dumps(v)}`".replace('"', "") for v in p["enum"])
    elif "const" in p:
        yield f"`{p['const']}`"
    elif "anyOf" in p:
        for other in p["anyOf"]:
            yield from _words(other)
    elif p.get("type") == "array":
        inner = list(dict.fromkeys(w for item in [p["items"]] for w in _words(item)))
        yield f"list of {' or '.join(inner) or 'anything'}"
    elif p.get("type") == "object" and "additionalProperties" in p and p["additionalProperties"] is not False:
        inner = p["additionalProperties"]
        yield "names → " + (" or ".join(dict.fromkeys(_words(inner))) if isinstance(inner, dict) else "anything")
    elif p.get("type") == "object":
        yield "a section"
    else:
        kinds = p.get("type", [])
        names = {
            "number": "number",
            "integer": "whole number",
            "string": "text",
            "boolean": "yes or no",
            "null": "null",
        }
        yield from (names.get(k, k) for k in ([kinds] if isinstance(kinds, str) else kinds))


def _safe(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
