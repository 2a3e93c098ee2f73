"""Tables and lines of the commands, as wide as the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 200  # of a line where there is no terminal: nothing is cut


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> Table:
    """A table whose first `left` columns are words and the others numbers."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for k, name in enumerate(head):
        table.add_column(name, justify="left" if k < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def console() -> Console:
    """A console that prints names as they are: ":arm:" is no picture."""
    return Console(emoji=False) if sys.stdout.isatty() else Console(width=PLAIN_WIDTH, emoji=False)
