import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("first", ["veridyn.identify.base", "veridyn.simulate.imperfection"])
def test_a_verb_is_a_function_though_a_folder_has_its_name(first: str) -> None:
    # Importing veridyn.identify.base binds the folder veridyn.identify to the name that belongs to the function.
    code = f"import {first}\nimport veridyn as vd\nprint(callable(vd.identify), callable(vd.simulate))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_the_names_are_listed_and_others_are_refused() -> None:
    assert set(veridyn.__all__) <= set(dir(veridyn))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = veridyn.nonsense


def test_importing_veridyn_loads_nothing_heavy() -> None:
    assert loaded_after("import veridyn") == set()


def test_the_command_line_starts_with_typer_alone() -> None:
    assert loaded_after("import veridyn.cli") == set()
    assert loaded_after("import veridyn.cli.app") <= {"typer", "rich"}


@pytest.mark.slow
def test_the_example_runs_to_its_end() -> None:
    example = Path(__file__).parents[1] / "examples" / "arm.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("of the parameters lie within two deviations of the truth")
