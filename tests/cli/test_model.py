from importlib import resources
from pathlib import Path

from typer.testing import CliRunner

from veridyn.cli.app import app

ARM = str(resources.files("veridyn.machines").joinpath("arm.yaml"))


def test_a_model_is_shown_with_its_bodies_groups_and_what_has_no_effect() -> None:
    done = CliRunner().invoke(app, ["model", "show", ARM])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "arm: 6 bodies on a fixed base, 6 coordinates"
    assert lines[2].split() == ["1", "ground", "turning", "q1", "6.2"]
    assert any(line.split()[:5] == ["hm6", "damper", "q5", "+", "q6"] for line in lines)
    assert "transmission: q5 = m5; q6 = − m5 + m6" in lines
    assert "XX6R = XX6 - YY6" in lines
    assert any(line.startswith("without effect: XX1, XY1") for line in lines)


def test_passive_virtual_and_unknown_parts_are_named(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(
        "veridyn: 1\nname: odd\nbase: free\nbodies:\n"
        "  - {name: trunk}\n"
        "  - {name: slide, antecedent: trunk, joint: sliding, actuated: false, virtual: true}\n"
        "  - {name: foot, antecedent: slide, joint: fixed, mdh: {d: 0.1}}\n"
    )
    done = CliRunner().invoke(app, ["model", "show", str(file)])
    assert done.exit_code == 0, done.output
    assert "odd: 3 bodies on a free base, 1 coordinate" in done.stdout
    assert "sliding, passive" in done.stdout
    assert "virtual" in done.stdout
    assert "without a value: XX_trunk" in done.stdout


def test_a_bad_model_ends_with_2_and_all_its_faults(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("veridyn: 1\nbodies:\n  - {name: a, antecedent: b, joint: turning}\n  - {name: c, joint: turnig}\n")
    done = CliRunner().invoke(app, ["model", "show", str(file)])
    assert done.exit_code == 2
    assert done.stderr.startswith("ModelError: bad.yaml, 2 faults:")
    assert done.stdout == ""


def test_loops_are_shown() -> None:
    done = CliRunner().invoke(app, ["model", "show", ARM.replace("arm.yaml", "linkage.yaml")])
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["pin", "turning", "coupler", "rocker"] in lines
    assert "1 degree of freedom: q1" in done.stdout
