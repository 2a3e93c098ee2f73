"""The command line: it puts the other rooms together.

On a terminal that cannot show every character, ± becomes +/- where the encoding has none, instead of ending the command:
"0.3 ± 0.1 kg·m²" on an ASCII terminal is "0.3 +/- 0.1 kg*m^2".
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
from pathlib import Path

DEFECT = 3  # exit code of an error that was not raised on purpose; Python's own would be 1, which says that a limit is missed
HANDLER = "veridyn.plain"
SIGNS = "±·×–—−…→≤≥≈°µ‘’“”√∞⁻¹²³⁴⁵⁶⁷⁸⁹"
IN_ASCII = "+/- * x - - - ... -> <= >= ~ deg u ' ' \" \" sqrt inf ^- ^1 ^2 ^3 ^4 ^5 ^6 ^7 ^8 ^9"
PLAIN = dict(zip(SIGNS, IN_ASCII.split(), strict=True))


def main() -> None:
    """Run the command given to the process; the door that the package installs as ``veridyn``."""
    # Values of options and study files are checked by pydantic, which looks for plugins in the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    open_closed_streams()
    from veridyn.cli.app import BAD_INPUT, app
    from veridyn.cli.streams import keep_writing
    from veridyn.errors import VeridynError

    keep_writing()

    show_everything()
    try:
        app(prog_name="veridyn")
    except VeridynError as error:  # of an option that prints and ends, before any command runs
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from error
    except Exception as error:
        import traceback

        traceback.print_exception(error)
        raise SystemExit(DEFECT) from error


def plain(text: str) -> str:
    """The nearest ASCII text: signs in words, letters without their accents, Greek ones by name, "?" for the rest."""
    return "".join(_plain(c) for c in text).replace("^-^", "^-")


def open_closed_streams() -> None:
    """Give the process streams that lead nowhere where it was started with closed ones, as by ``>&-``.

    They take the numbers of the closed ones too, which the next file that is opened would have otherwise.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  as long as the process


def show_everything() -> None:
    """Let stdout and stderr replace what their encoding cannot show; streams that are not text files of the process are left alone."""
    codecs.register_error(HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return plain(error.object[error.start : error.end]), error.end


def _plain(character: str) -> str:
    if character.isascii():
        return character
    if character in PLAIN:
        return PLAIN[character]
    bare = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    if bare:
        return bare
    name = unicodedata.name(character, "")
    return name.split()[-1].lower() if name.startswith("GREEK SMALL LETTER") else "?"
