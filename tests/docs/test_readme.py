"""The ten lines of the README and of the home page run as they are printed, on logs with the headers that the text names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from veridyn.files.access import shipped
from veridyn.machines.arm import exciting, other, tracking

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """robot.yaml, and two runs with columns time [s], q1 [rad] …, tau1 [N*m] …."""
    made, rng = tmp_path_factory.mktemp("readme"), np.random.default_rng(5)
    robot = vd.load_model("veridyn:arm.yaml")
    (made / "robot.yaml").write_text(shipped("veridyn:arm.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    for name, path in (("run1.csv", exciting), ("run2.csv", other)):
        log = vd.simulate(robot, tracking(path(rng), robot, 4.0), rng=rng)
        columns = {"time [s]": log["q.q1"].t}
        columns |= {f"q{k} [rad]": log[f"q.q{k}"].values for k in range(1, 7)}
        columns |= {
            f"tau{k} [N*m]": log[f"force.q{k}"].values + 0.05 * rng.normal(size=len(log["q.q1"])) for k in range(1, 7)
        }
        np.savetxt(
            made / name, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments=""
        )
    return made


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_ten_lines_run_as_printed(page: str, folder: Path, monkeypatch, capsys) -> None:
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(blocks) == 1
    monkeypatch.chdir(folder)
    for kept in folder.glob("fit.*"):
        kept.unlink()
    exec(compile(blocks[0], page, "exec"), {})  # noqa: S102 - the page itself is under test
    printed = capsys.readouterr().out
    assert "base parameters" in printed and "rms error" in printed
    fit = vd.load(folder / "fit.json")
    assert fit.relative_error < 0.1


def test_pictures_and_links_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [*re.findall(r'src="([^"]+)"', text), *re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)]
    assert len(links) > 10
    for link in links:
        assert link.startswith("http") or (ROOT / link).exists(), link
