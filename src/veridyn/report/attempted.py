"""Pictures that may fail: the report goes on without them, and both the report and the warnings name them."""

from __future__ import annotations

from collections.abc import Callable

from scipy.spatial import QhullError

from veridyn.errors import Fault, ReportWarning, VeridynError, warn
from veridyn.report.blocks import Block, Text

# What geometry and numbers can do to a picture: a degenerate hull, a decomposition that fails (a ValueError), a division by zero.
# Others are defects of the program: the results are kept all the same (veridyn.cli.recording), and the traceback is shown.
DRAWING_ERRORS = (VeridynError, QhullError, ValueError, ArithmeticError)


def attempted(picture: str, make: Callable[[], Block]) -> Block:
    """The block that `make` draws; where it cannot be drawn, a paragraph and a warning that name the picture and the reason."""
    try:
        return make()
    except DRAWING_ERRORS as error:
        return undrawn(picture, error)


def undrawn(picture: str, error: Exception) -> Text:
    """What stands in place of a picture; a warning says the same."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    reason, hint = f"{type(error).__name__}: {lines[0]}", "No number of the result depends on it."
    warn(ReportWarning, Fault("it cannot be drawn.", where=f"picture “{picture}”", found=reason, hint=hint))
    return Text(f"The picture “{picture}” cannot be drawn ({reason}). {hint}")
