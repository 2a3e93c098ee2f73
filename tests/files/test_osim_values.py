"""Functions of OpenSim files against their closed forms, and numbers that are none."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from veridyn.errors import FileError
from veridyn.files.osim_values import DEEPEST, function_of, is_identity, number, numbers


def test_functions_are_their_closed_forms() -> None:
    x = np.array([-0.5, 0.0, 0.7])
    line = ElementTree.fromstring("<LinearFunction><coefficients>2 -1</coefficients></LinearFunction>")
    assert function_of(line, "f")(x) == pytest.approx(2 * x - 1) and not is_identity(line, "f")
    spline = "<SimmSpline><x>-1 0 1 2</x><y>1 0 1 4</y></SimmSpline>"
    text = f"<MultiplierFunction><scale>3</scale><function>{spline}</function></MultiplierFunction>"
    assert function_of(ElementTree.fromstring(text), "f")(x) == pytest.approx(
        3 * x**2
    )  # the parabola through its points
    assert is_identity(ElementTree.fromstring("<LinearFunction/>"), "f")


@pytest.mark.parametrize("text", ["1 x", "1 1e51", "1 inf", "1 1_0", "1", "1 2 3", ""])
def test_numbers_are_as_many_as_expected_finite_and_of_this_world(text: str) -> None:
    with pytest.raises(FileError, match=r"body 'a', at: (.|\n)*2 finite numbers"):
        numbers(ElementTree.fromstring(f"<a><at>{text}</at></a>"), "at", "0 0", 2, "body 'a'")
    assert number(ElementTree.fromstring("<a/>"), "at", "7", "a") == 7.0


def test_functions_nested_without_end_are_refused() -> None:
    levels = DEEPEST + 2
    text = "<MultiplierFunction><function>" * levels + "</function></MultiplierFunction>" * levels
    with pytest.raises(FileError, match="a multiple of no function"):
        function_of(ElementTree.fromstring(text), "f")
