import subprocess
import sys

import pytest

import veridyn

HEAVY = ("plotly", "pyarrow", "typer", "scipy", "rich", "jinja2", "numba", "ruamel")


def loaded_after(code: str) -> set[str]:
    """Packages among the heavy ones that a fresh interpreter holds after running `code`."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", veridyn.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(veridyn, name) is not None


def test_the_names_are_listed_and_others_are_refused() -> None:
    assert set(veridyn.__all__) <= set(dir(veridyn))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = veridyn.nonsense


def test_importing_veridyn_loads_nothing_heavy() -> None:
    assert loaded_after("import veridyn") == set()


def test_the_command_line_starts_with_typer_alone() -> None:
    assert loaded_after("import veridyn.cli") == set()
    assert loaded_after("import veridyn.cli.app") <= {"typer", "rich"}
