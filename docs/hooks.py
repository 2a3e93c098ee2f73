"""What the site needs beyond its pages: the reference, and a check that no page names what does not exist.

The reference has one page for each room and is written from the source tree: a new module appears by existing, a new room
by being listed in FLOORS. Names such as `veridyn.mechanics.tree.recursion.newton_euler` in a page must be found in the source; one that
is not is a warning, and a strict build fails.
"""

from __future__ import annotations

import ast
import logging
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veridyn.files.machine.schema import model_schema

sys.path.insert(0, str(Path(__file__).parent))
from model_keys import model_page
from study_keys import reference

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.veridyn")
NAME = re.compile(r"`(veridyn(?:\.\w+)+)`")
LINK = re.compile(r'(?<=href=")([\w/.-]+)\.md(?=["#])')  # to a page of the documentation, by its source
PACKAGE = Path(__file__).parent.parent / "src" / "veridyn"
FLOORS = (
    "model",
    "mechanics",
    "signals",
    "inference",
    "identify",
    "simulate",
    "observe",
    "files",
    "machines",
    "studies",
    "view",
    "live",
    "report",
    "papers",
    "cli",
    "spatial",
    "symbolic",
    "training",
    "settings",
    "progress",
    "errors",
)
# Each room, and behind it the rooms inside it: "mechanics", "mechanics.natural", …
ROOMS = [
    name
    for room in FLOORS
    for name in (
        room,
        *(".".join(p.parent.relative_to(PACKAGE).parts) for p in sorted((PACKAGE / room).glob("*/**/__init__.py"))),
    )
]
STUDY = """# The study file

One YAML file says what is studied, from which logs, and how. Unknown keys are refused by line; every default is here, and
`veridyn identify STUDY.yaml --show` prints them in place. `veridyn new MODEL LOG` writes a file to start from, and `veridyn schema study`
prints the JSON schema for editors. This page is written from the code.

"""


def on_config(config: MkDocsConfig, **_: Any) -> MkDocsConfig:
    pages: list[Any] = [
        "reference/index.md",
        {"The study file": "study-file.md"},
        {"Keys of the model file": "model-keys.md"},
    ]
    pages += [{f"veridyn.{room}": f"reference/{room}.md"} for room in ROOMS if _modules(room)]
    assert config.nav is not None
    config.nav = [*config.nav, {"Reference": pages}]
    return config


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    from mkdocs.structure.files import File

    for place, content in written_pages().items():
        files.append(File.generated(config, place, content=content))
    return files


def written_pages() -> dict[str, str]:
    """The pages that are written from the code, by their place on the site."""
    pages = {}
    lines = ["# Reference", "", "One page for each room, from what users touch first to what the others stand on.", ""]
    lines += ["| room | what it is for |", "|---|---|"]
    for room in ROOMS:
        modules = _modules(room)
        if not modules:
            continue
        lines.append(f"| [`veridyn.{room}`]({room}.md) | {_purpose(room)} |")
        content = [f"# veridyn.{room}", ""]
        if _place(room).is_dir():
            content += [_purpose(room), ""]
        content += [f"::: {name}\n" for name in modules]
        pages[f"reference/{room}.md"] = "\n".join(content)
    return pages | {
        "reference/index.md": "\n".join(lines),
        "study-file.md": STUDY + reference(),
        "model-keys.md": model_page(model_schema()),
    }


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    for name in sorted(set(NAME.findall(markdown))):
        parts = name.split(".")[1:]
        if not _exists(parts):
            log.warning("%s names '%s', which is not in the source.", page.file.src_uri, name)
    return markdown


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Links of a notebook are left as they are written; in the repository they lead to sources, and on the site to pages."""
    return LINK.sub(r"\1.html", output) if page.file.src_uri.endswith(".ipynb") else output


def _exists(parts: list[str]) -> bool:
    """True when the parts are a room, a module in it, something that module defines, or what a class of it defines."""
    place = PACKAGE
    while parts and (place / parts[0]).is_dir():
        place, parts = place / parts[0], parts[1:]
    if not parts:
        return True
    if len(parts) == 1 and parts[0] in _listed(place / "__init__.pyi"):
        return True
    module = place / f"{parts[0]}.py"
    if not module.exists():
        return False
    if len(parts) == 2 and parts[1] in _listed(module.with_suffix(".pyi")):
        return True
    defined = ast.parse(module.read_text(encoding="utf-8")).body
    for name in parts[1:]:
        if name not in _names(defined):
            return False
        classes = (node.body for node in defined if isinstance(node, ast.ClassDef) and node.name == name)
        defined = next(classes, [])
    return True


def _names(defined: list[ast.stmt]) -> set[str]:
    """What lines of a module or a class define."""
    names = {node.name for node in defined if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {t.id for node in defined if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)}
    return names | {n.target.id for n in defined if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


def _listed(stub: Path) -> set[str]:
    """The public names that a stub lists."""
    lines = ast.parse(stub.read_text(encoding="utf-8")).body if stub.exists() else []
    return {alias.name for line in lines if isinstance(line, ast.ImportFrom) for alias in line.names}


def _place(room: str) -> Path:
    return PACKAGE.joinpath(*room.split("."))


def _modules(room: str) -> list[str]:
    if _place(room).with_suffix(".py").exists():
        return [f"veridyn.{room}"]
    public = sorted(p for p in _place(room).glob("*.py") if not p.stem.startswith("_"))
    return [f"veridyn.{room}.{p.stem}" for p in public]


def _purpose(room: str) -> str:
    """The first sentence of the room's docstring."""
    path = _place(room).with_suffix(".py")
    source = path if path.exists() else _place(room) / "__init__.py"
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n\n")[0].replace("\n", " ")
