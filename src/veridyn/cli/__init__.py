"""The command line: it puts the other rooms together."""

from __future__ import annotations

import os

DEFECT = 3  # exit code of an error that was not raised on purpose; Python's own would be 1, which says that a limit is missed


def main() -> None:
    """Run the command given to the process; the door that the package installs as ``veridyn``."""
    # Values of options and study files are checked by pydantic, which looks for plugins in the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from veridyn.cli.terminal import open_closed_streams, show_everything

    open_closed_streams()
    from veridyn.cli.app import app

    show_everything()
    try:
        app(prog_name="veridyn")
    except Exception as error:
        import traceback

        traceback.print_exception(error)
        raise SystemExit(DEFECT) from error
