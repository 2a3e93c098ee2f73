"""Text of users' files on its way out: to a terminal, which acts on control characters, and to a spreadsheet, which runs formulas.

visible("arm\\x1b]0;mine\\x07")      "arm␛]0;mine␇"
harmless_cell("=2+5")             "'=2+5"          read_cell takes the apostrophe away again
"""

from __future__ import annotations

FORMULAS = ("=", "+", "-", "@")  # with which a cell begins that spreadsheets run
PICTURES = 0x2400  # of Unicode: the picture of each control character
KEPT = "\n\t"
SHOWN = {code: chr(PICTURES + code) for code in range(32) if chr(code) not in KEPT} | {127: "␡"}
SHOWN |= dict.fromkeys(range(128, 160), "�") | dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "�")


def visible(text: str) -> str:
    """The same text with a picture in place of every control character, and of those that turn the direction of writing, but line ends and
    tabs."""
    return text if text.isascii() and text.isprintable() else text.replace("\r\n", "\n").translate(SHOWN)


def harmless_cell(cell: object) -> object:
    """A cell of a table; a text that is no number and begins as a formula does gets an apostrophe before it, which spreadsheets hide."""
    if not isinstance(cell, str) or not cell.lstrip().startswith(FORMULAS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def read_cell(cell: str) -> str:
    """A text as it was before :func:`harmless_cell`."""
    return cell[1:] if cell.startswith("'") and cell[1:].lstrip().startswith(FORMULAS) else cell
