"""No two public classes of the package share a name: a name in a message, a page or a search means one thing."""

import ast
from collections import defaultdict
from pathlib import Path

import veridyn

PACKAGE = Path(veridyn.__file__).parent


def classes(package: Path) -> dict[str, list[str]]:
    """Name → modules that define a class of that name at their top; names that begin with an underscore are private."""
    found = defaultdict(list)
    for file in sorted(package.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(file.relative_to(package).as_posix())
    return found


def test_no_two_public_classes_share_a_name():
    twice = {name: files for name, files in classes(PACKAGE).items() if len(files) > 1}
    assert twice == {}
