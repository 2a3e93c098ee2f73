"""The settings of a reduction are those of the function that reduces."""

import inspect
from dataclasses import fields

from veridyn.identify.essential_rule import EssentialRule
from veridyn.identify.selection import essential


def test_its_defaults_are_those_of_the_function() -> None:
    signature = inspect.signature(essential).parameters
    assert {f.name: f.default for f in fields(EssentialRule)} == {
        name: signature[name].default for name in ("rule", "ratio", "significance")
    }
