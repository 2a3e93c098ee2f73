"""A picture that fails is replaced by words, in the report and among the warnings; defects of the program are not hidden."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from veridyn.errors import DataError, ReportWarning
from veridyn.report.attempted import attempted
from veridyn.report.blocks import Block, Text


def degenerate() -> Block:
    ConvexHull(np.zeros((5, 3)))
    raise AssertionError


def singular() -> Block:
    np.linalg.inv(np.zeros((2, 2)))
    raise AssertionError


def refused() -> Block:
    raise DataError("it has no width.")


def test_what_can_be_drawn_is_drawn() -> None:
    assert attempted("a picture", lambda: Text("drawn")) == Text("drawn")


@pytest.mark.parametrize(
    ("make", "reason"),
    [(degenerate, "QhullError: QH6"), (singular, "LinAlgError: Singular"), (refused, "DataError: it has no width.")],
)
def test_what_cannot_be_drawn_is_named_with_the_reason(make, reason: str) -> None:
    with pytest.warns(ReportWarning, match="picture “The machine”: it cannot be drawn.\nFound " + reason):
        block = attempted("The machine", make)
    assert isinstance(block, Text)
    assert block.text.startswith(f"The picture “The machine” cannot be drawn ({reason}")


def test_a_defect_is_not_taken_for_a_picture_that_fails() -> None:
    def defect() -> Block:
        raise TypeError("a bug")

    with pytest.raises(TypeError, match="a bug"):
        attempted("The machine", defect)
