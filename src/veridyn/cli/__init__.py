"""The command line: it puts the other rooms together."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command given to the process; the door that the package installs as ``veridyn``."""
    # Values of options and study files are checked by pydantic, which looks for plugins in the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from veridyn.cli.terminal import open_closed_streams, show_everything

    open_closed_streams()
    from veridyn.cli.app import app

    show_everything()
    app(prog_name="veridyn")
