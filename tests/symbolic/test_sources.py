"""A digest of sources: changes with everything that code can depend on and with nothing else, and stands for the code that runs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from veridyn.symbolic import sources
from veridyn.symbolic.sources import FLOORS, PACKAGE, note_sources, source_digest

ROOMS = [room for floor in FLOORS for room in floor if room not in FLOORS[-1]]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of all rooms, each with a module in it and one a level deeper, and one module beside the rooms."""
    found = tmp_path / "veridyn"
    for room in ROOMS:
        (found / room / "inner").mkdir(parents=True)
        for name in ("__init__.py", "a.py", "inner/__init__.py", "inner/b.py"):
            (found / room / name).write_text("x = 1\n")
    (found / "errors.py").write_text("x = 1\n")
    return found


def new_process() -> None:
    """Forget what was noted and read, as a new process would."""
    for kept in (sources._parts_in_reach, sources._noted, sources._digest):
        kept.cache_clear()


def digest_of(module: str, package: Path) -> str:
    new_process()
    found = source_digest(module, package)
    assert found is not None and len(found) == 64
    return found


def test_the_floors_are_those_of_the_import_contract() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    layers = next(c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")["layers"]
    assert tuple(tuple(layer.split(" | ")) for layer in layers) == FLOORS


@pytest.mark.parametrize("room", ["mechanics", "observe", "identify", "simulate", "report"])
def test_own_room_and_lower_floors_are_covered(package: Path, room: str) -> None:
    """A compiled function may stand in any room: no list says where there are some."""
    floor = next(k for k, rooms in enumerate(FLOORS) if room in rooms)
    below = {r for rooms in FLOORS[floor + 1 :] for r in rooms} | {room}
    for other in ROOMS:
        for name in ("a.py", "inner/b.py"):
            before = digest_of(f"veridyn.{room}.a", package)
            (package / other / name).write_text(f"x = '{room}'\n")
            assert (digest_of(f"veridyn.{room}.a", package) != before) == (other in below), (other, name)


def test_modules_beside_the_rooms_are_covered(package: Path) -> None:
    before = digest_of("veridyn.mechanics.a", package)
    (package / "errors.py").write_text("x = 2\n")
    assert digest_of("veridyn.mechanics.a", package) != before


def test_new_renamed_and_removed_files_count(package: Path) -> None:
    found = [digest_of("veridyn.mechanics.a", package)]
    (package / "model" / "new.py").write_text("x = 1\n")
    found.append(digest_of("veridyn.mechanics.a", package))
    (package / "model" / "new.py").rename(package / "model" / "renamed.py")
    found.append(digest_of("veridyn.mechanics.a", package))
    (package / "model" / "renamed.py").unlink()
    assert len(set(found)) == 3 and digest_of("veridyn.mechanics.a", package) == found[0]


def test_a_room_without_a_floor_is_covered_and_covers_everything(package: Path) -> None:
    (package / "attic").mkdir()
    (package / "attic" / "a.py").write_text("x = 1\n")
    before = [digest_of(f"veridyn.{room}.a", package) for room in ("attic", "mechanics")]
    (package / "attic" / "a.py").write_text("x = 2\n")
    middle = [digest_of(f"veridyn.{room}.a", package) for room in ("attic", "mechanics")]
    assert middle[0] != before[0] and middle[1] != before[1]
    (package / "report" / "a.py").write_text("x = 2\n")
    assert digest_of("veridyn.attic.a", package) != middle[0]


@pytest.mark.parametrize("module", ["other.mechanics.a", "__main__", "veridyn", "veridyn.mechanics.missing"])
def test_what_has_no_source_in_the_package_has_no_digest(package: Path, module: str) -> None:
    new_process()
    assert source_digest(module, package) is None


def test_sources_edited_under_a_running_process_have_no_digest(package: Path) -> None:
    """The process runs what it imported; a digest of what lies there now would give old code a new name."""
    new_process()
    note_sources("veridyn.mechanics.a", package)
    (package / "report" / "a.py").write_text("x = 'edited'\n")
    assert source_digest("veridyn.mechanics.a", package) is not None
    new_process()
    note_sources("veridyn.mechanics.a", package)
    (package / "model" / "a.py").write_text("x = 'edited'\n")
    assert source_digest("veridyn.mechanics.a", package) is None
    assert digest_of("veridyn.mechanics.a", package)


def test_every_compiled_function_of_the_package_has_a_digest() -> None:
    users = [p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py") if "@kept" in p.read_text("utf-8")]
    assert len(users) > 5
    for path in users:
        assert source_digest("veridyn." + ".".join(path.with_suffix("").parts)) is not None, path
