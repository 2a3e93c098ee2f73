"""The page of public names, written from the stubs and the first sentences of docstrings: ``python docs/api_names.py``."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from veridyn import errors
from veridyn.lazy import listed

PAGE = Path(__file__).parent / "api.md"
MODULES = (
    "model",
    "elements",
    "spatial",
    "signals",
    "dynamics",
    "gpu",
    "estimators",
    "manoeuvres",
    "filters",
    "files",
    "studies",
)
ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")
SENTENCE = re.compile(r"(.+?\.)(?:\s|$)", re.DOTALL)
VALUES = {"__version__": "The version of this package.", "KINDS": "The kinds of elements by name."}
HEAD = """# Public names

What `import veridyn as vd` gives, and what its modules hold. All names are imported when they are first used. These names, and what
[What others may rely on](contract.md) lists, are the interface of veridyn; everything else is reached by the path of its file
and may move. `python docs/api_names.py` writes this page from the stubs (`__init__.pyi` and its neighbours), which are the lists that the
package itself reads.

The [reference](reference/index.md) describes parameters, units and shapes; `help(vd.identify)` prints the same.
"""


def public_names() -> dict[str, dict[str, Any]]:
    """Module → its public names, with what they mean."""
    found = {}
    for module in ("veridyn", *(f"veridyn.{name}" for name in MODULES)):
        door = importlib.import_module(module)
        found[module] = {name: getattr(door, name) for name in sorted(listed(module), key=str.lower)}
    kinds = (errors.VeridynError, errors.VeridynWarning, errors.Fault)
    own = {n: v for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, kinds)}
    found["veridyn.errors"] = dict(sorted(own.items()))
    return found


def description(name: str, value: Any) -> str:
    """The first sentence about a name."""
    text = VALUES.get(name) or inspect.getdoc(value) or ""
    text = ROLE.sub(r"`\1`", " ".join(text.split("\n\n")[0].split())).replace("``", "`")
    sentence = SENTENCE.match(text)
    return (sentence[1] if sentence else text).rstrip(".:;").replace("|", "\\|") + "."


def _purpose(module: str) -> str:
    """What a module says of itself, without its example."""
    return (inspect.getdoc(importlib.import_module(module)) or "").partition("\n\nExamples\n")[0]


def api_page() -> str:
    """The page: one table for each module, one line for each name."""
    lines = [HEAD]
    for module, names in public_names().items():
        short = module.replace("veridyn", "vd", 1)
        purpose = "" if module == "veridyn" else f"\n{_purpose(module)}\n"
        lines += [f"## {short}", purpose, "| name | what it is |", "|---|---|"]
        lines += [f"| `{name}` | {description(name, value)} |" for name, value in names.items()]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(api_page(), encoding="utf-8")
