import io

import pytest
from rich.console import Console

from veridyn.cli.bar import shown_progress


def test_without_a_terminal_each_task_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(Console(file=io.StringIO())) as progress:
        for done in range(3):
            progress("simulating", done, 2.0)
        progress("identifying", 0.0, None)
    shown = capsys.readouterr()
    assert shown.err == "simulating\nidentifying\n"
    assert shown.out == ""


def test_on_a_terminal_there_is_a_bar_with_the_time_left() -> None:
    screen = io.StringIO()
    with shown_progress(Console(file=screen, force_terminal=True, width=100)) as progress:
        progress("simulating", 0.0, 4.0)
        progress("simulating", 2.0, 4.0)
        progress("simulating", 0.0, 8.0)
        progress("looking", 1.0, None)
    assert "simulating" in screen.getvalue()
    assert "-:--:--" in screen.getvalue()
