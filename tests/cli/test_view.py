import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from studies.bench_robot import Bench
from veridyn.cli.app import app

pytest.importorskip("viser", reason="viser (the extra 'view') serves live views")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_it_prints_the_address_and_stops(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    port = free_port()
    args = [
        "view",
        str(tmp_path / "model.urdf"),
        str(tmp_path / "training.csv"),
        "--port",
        str(port),
        "--seconds",
        "0.1",
    ]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    assert "q.q3: q3 [rad]  (guessed by the name in it; unit guessed)" in done.stdout
    assert done.stdout.endswith(f"bench robot: http://127.0.0.1:{port} (Ctrl-C stops)\n")


def test_a_mechanism_that_comes_with_veridyn() -> None:
    done = CliRunner().invoke(app, ["view", "veridyn:crane.yaml", "--port", str(free_port()), "--seconds", "0.05"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("crane: http://127.0.0.1:")


def test_bad_input_ends_with_2(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["view", str(tmp_path / "none.urdf")]).exit_code == 2
    assert CliRunner().invoke(app, ["view", "veridyn:crane.yaml", "--port", "0"]).exit_code == 2


def test_ctrl_c_ends_it_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("veridyn.view.live.LiveView.run", pressed)
    done = CliRunner().invoke(app, ["view", "veridyn:crane.yaml", "--port", str(free_port())])
    assert done.exit_code == 0 and done.stdout.endswith("(Ctrl-C stops)\n\n")


def test_a_mesh_that_is_not_found_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    file = tmp_path / "model.urdf"
    gone = '<visual><geometry><mesh filename="package://robot/gone.stl"/></geometry></visual></link>'
    file.write_text(file.read_text(encoding="utf-8").replace("</link>", gone, 1), encoding="utf-8")
    done = CliRunner().invoke(app, ["view", str(file), "--port", str(free_port()), "--seconds", "0.05"])
    assert done.exit_code == 0, done.output
    assert "not shown: " in done.stderr and "gone.stl" in done.stderr and "bench robot: http" in done.stdout
