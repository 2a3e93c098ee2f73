import dataclasses
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import veridyn
from veridyn.lazy import listed

ROOT = Path(__file__).parents[1]
HEAVY = ("plotly", "pyarrow", "typer", "scipy", "rich", "jinja2", "numba", "ruamel")


def loaded_after(code: str) -> set[str]:
    """Packages among the heavy ones that a fresh interpreter holds after running `code`."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


MOST_NAMES = 50  # that a newcomer can learn, modules among them; the rest is in modules
# The names of the documented way from a file to an observer.
RELIED_ON = (
    "load_model load_log motion Signals inverse_dynamics regressor base_parameters identify validate design_excitation Fourier Robust",
    "simulate observe ObserveSettings EKF ErrorEKF save load Motion BaseMotion Fit Machine Link Joint Element Marker Sensor Experiment",
)
# Records of more than five fields whose first ones are written by position in many places.
BY_POSITION = {
    "BaseMotion": 4,
    "Consistent": 5,
    "Limits": 2,
    "Motion": 6,
    "RigidBody": 6,
    "Body": 4,  # a row of a table: name, antecedent, joint, placement
    "ParameterRow": 7,  # a row of a table, in its order
    "RowFactor": 5,
    "RowReport": 5,
    "Sensor": 4,
    "Verdict": 5,  # grade, headline, and three lists of sentences
}
BUILDING = {
    "model": "Machine Link Joint Loop Attachment Assembly Element Marker Sensor Drive Force Torque Transmission ParameterSet Tie",
    "elements": "KINDS spring damper coulomb stribeck strut lugre maxwell relaxation motor_inertia drive_gain drag offset asymmetric",
    "spatial": "MDH Placement from_centre",
}


def test_the_front_door_can_be_learnt() -> None:
    assert len(dir(veridyn)) <= MOST_NAMES
    assert set(" ".join(RELIED_ON).split()) <= set(dir(veridyn))


def test_no_public_module_resembles_a_verb() -> None:
    """identify and identification, simulate and simulation: one is easily read for the other."""
    names = {name: getattr(veridyn, name) for name in dir(veridyn)}
    modules = [n for n, v in names.items() if inspect.ismodule(v)]
    verbs = [n for n, v in names.items() if inspect.isfunction(v)]
    assert not [(m, v) for m in modules for v in verbs if m[:6] == v[:6]]


def test_the_page_of_names_lists_those_of_the_stubs() -> None:
    """One line for each, in its module; ``python docs/api_names.py`` writes the page."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    found = {}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        found[section.split()[0]] = re.findall(r"^\| `(\w+)` \| \S.*\. \|$", section, flags=re.M)
    modules = [n for n in dir(veridyn) if inspect.ismodule(getattr(veridyn, n)) and n != "errors"]
    expected = {"vd": sorted(listed("veridyn"), key=str.lower)}
    expected |= {f"vd.{n}": sorted(dir(getattr(veridyn, n)), key=str.lower) for n in modules}
    errors = found.pop("vd.errors")
    assert found == expected
    kinds = (veridyn.errors.VeridynError, veridyn.errors.VeridynWarning, veridyn.errors.Fault)
    raised = [n for n, v in vars(veridyn.errors).items() if isinstance(v, type) and issubclass(v, kinds)]
    assert errors == sorted(raised)


def test_everything_needed_to_build_a_machine_can_be_reached() -> None:
    for module, names in BUILDING.items():
        for name in names.split():
            assert hasattr(getattr(veridyn, module), name), f"{module}.{name}"


def test_the_type_checker_is_told_that_the_package_is_typed() -> None:
    folder = Path(veridyn.__file__).parent
    assert (folder / "py.typed").is_file() and (folder / "__init__.pyi").is_file()


def test_records_with_more_than_five_fields_take_keywords() -> None:
    found = {}
    for room in ("model", "signals", "inference", "identify"):
        folder = str(Path(veridyn.__file__).parent / room)
        for module in pkgutil.walk_packages([folder], f"veridyn.{room}."):
            for kind in vars(importlib.import_module(module.name)).values():
                if dataclasses.is_dataclass(kind) and isinstance(kind, type) and kind.__module__ == module.name:
                    fields = dataclasses.fields(kind)
                    by_position = sum(f.init and not f.kw_only for f in fields)
                    if len(fields) > 5 and by_position and not kind.__name__.startswith("_"):
                        found[kind.__name__] = by_position
    assert found == BY_POSITION


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = veridyn.nonsense


def test_importing_veridyn_loads_nothing_heavy() -> None:
    assert loaded_after("import veridyn") == set()


def test_the_command_line_starts_with_typer_alone() -> None:
    assert loaded_after("import veridyn.cli") == set()
    assert loaded_after("import veridyn.cli.app") <= {"typer", "rich"}


@pytest.mark.slow
def test_the_example_runs_to_its_end() -> None:
    example = ROOT / "examples" / "arm.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("of the parameters lie within two deviations of the truth")
