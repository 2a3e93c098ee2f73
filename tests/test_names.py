"""No two public classes of the package share a name: a name in a message, a page or a search means one thing."""

import re
from collections import defaultdict
from pathlib import Path

import veridyn

PACKAGE = Path(veridyn.__file__).parent
TOP = re.compile(r"^class ([A-Za-z]\w*)", re.M)


def classes(package: Path) -> dict[str, list[str]]:
    """Name → modules that define a class of that name at their top; names that begin with an underscore are private."""
    found = defaultdict(list)
    for file in sorted(package.rglob("*.py")):
        for name in TOP.findall(file.read_text(encoding="utf-8")):
            found[name].append(file.relative_to(package).as_posix())
    return found


def test_no_two_public_classes_share_a_name():
    twice = {name: files for name, files in classes(PACKAGE).items() if len(files) > 1}
    assert twice == {}
