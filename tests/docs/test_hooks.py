"""The reference has a page for each room and a line for each module, and names in pages that do not exist are warnings."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from docs import hooks

DOCS = Path(hooks.__file__).parent
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(DOCS.rglob("*.ipynb"))]


def page(place: str) -> SimpleNamespace:
    return SimpleNamespace(file=SimpleNamespace(src_uri=place))


def test_every_folder_of_the_package_is_a_room() -> None:
    folders = {p.parent.name for p in hooks.PACKAGE.glob("*/__init__.py")}
    assert folders <= set(hooks.FLOORS)
    assert all((hooks.PACKAGE / r).is_dir() or (hooks.PACKAGE / f"{r}.py").is_file() for r in hooks.FLOORS)


def test_every_module_stands_on_one_page_of_the_reference() -> None:
    pages = hooks.written_pages()
    lines = [line for text in pages.values() for line in text.splitlines() if line.startswith("::: ")]
    files = [f for room in hooks.FLOORS for f in (hooks.PACKAGE / room).rglob("*.py") if not f.stem.startswith("_")]
    modules = {".".join(f.relative_to(hooks.PACKAGE.parent).with_suffix("").parts) for f in files}
    alone = {f"veridyn.{room}" for room in hooks.FLOORS if (hooks.PACKAGE / f"{room}.py").is_file()}
    assert sorted(lines) == sorted(f"::: {name}" for name in modules | alone)


def test_the_list_of_rooms_has_the_purpose_of_each() -> None:
    pages = hooks.written_pages()
    rows = pages["reference/index.md"].splitlines()[6:]
    assert len(rows) == sum(place.startswith("reference/") for place in pages) - 1
    for row in rows:
        _, link, purpose, _ = row.split("|")
        assert f"reference/{link.partition('](')[2].rstrip(' )')}" in pages and len(purpose.strip()) > 10
    assert pages["study-file.md"].startswith("# The study file\n") and "## `kind: observe`" in pages["study-file.md"]
    assert "joint" in pages["model-keys.md"]


def test_the_pages_reach_the_navigation_and_the_site() -> None:
    config = SimpleNamespace(nav=[{"Home": "index.md"}])
    hooks.on_config(config)
    home, reference = config.nav
    assert home == {"Home": "index.md"}
    places = [
        place for entry in reference["Reference"] for place in (entry.values() if isinstance(entry, dict) else [entry])
    ]
    assert sorted(places) == sorted(hooks.written_pages())
    built = pytest.importorskip("mkdocs.config.defaults", reason="of the extra 'docs'").MkDocsConfig()
    built.plugins = SimpleNamespace(_current_plugin="hooks")  # as within a build
    files = pytest.importorskip("mkdocs.structure.files").Files([])
    site = hooks.on_files(files, built)
    assert sorted(f.src_uri for f in site) == sorted(places)


@pytest.mark.parametrize(
    "name",
    [
        "veridyn.identify",
        "veridyn.load_model",
        "veridyn.filters.EKF",
        "veridyn.mechanics.tree.recursion.newton_euler",
        "veridyn.mechanics.tree",
        "veridyn.errors.VeridynError",
        "veridyn.errors.VeridynError.__init__",
        "veridyn.errors.Fault.what",
        "veridyn.version.__version__",
        "veridyn.cli.output.Mode",
    ],
)
def test_what_is_in_the_source_may_be_named(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert hooks.on_page_markdown(f"See `{name}`.", page=page("a.md")) == f"See `{name}`."
    assert not caplog.records


@pytest.mark.parametrize(
    "name",
    [
        "veridyn.gone",
        "veridyn.gone.newton_euler",
        "veridyn.filters.Gone",
        "veridyn.mechanics.tree.gone",
        "veridyn.errors.VeridynError.gone",
        "veridyn.errors.VeridynError.__init__.gone",
        "veridyn.errors.gone",
    ],
)
def test_what_is_not_is_a_warning_with_the_page(name: str, caplog: pytest.LogCaptureFixture) -> None:
    hooks.on_page_markdown(f"See `{name}` and `{name}`.", page=page("a.md"))
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (logging.WARNING, f"a.md names '{name}', which is not in the source.")
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_no_page_names_what_does_not_exist(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hooks.on_page_markdown(path.read_text(encoding="utf-8"), page=page(path.name))
    assert not [r.getMessage() for r in caplog.records]


def test_links_of_a_notebook_lead_to_pages_of_the_site() -> None:
    html = '<a href="urdf.md">a</a> <a href="papers/index.md#x">b</a> <a href="https://other.org/c.md">c</a> <code>d.md</code>'
    made = hooks.on_post_page(html, page=page("notebook.ipynb"))
    assert made == html.replace("urdf.md", "urdf.html").replace("papers/index.md", "papers/index.html")
    assert hooks.on_post_page(html, page=page("urdf.md")) == html
