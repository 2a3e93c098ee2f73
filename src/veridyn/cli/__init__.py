"""The command line: it puts the other rooms together."""

from __future__ import annotations


def main() -> None:
    """Run the command given to the process; the door that the package installs as ``veridyn``."""
    from veridyn.cli.app import app
    from veridyn.cli.terminal import show_everything

    show_everything()
    app(prog_name="veridyn")
