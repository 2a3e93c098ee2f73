"""Sections that are made from settings classes: keys, limits, defaults and meanings, and the object that they make."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Literal

import pytest
from pydantic import ValidationError

import veridyn.studies.config as config
from veridyn.mechanics.system.simulation import BaseState
from veridyn.model.elements.element import LawTable
from veridyn.observe.filters.filter import Filter
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.settings import Settings, above, at_least, between, descriptions
from veridyn.simulate.imperfection import Imperfection
from veridyn.studies.config.identify import TableLawSettings
from veridyn.studies.config.observe import FilterSettings, ProcessNoiseSettings
from veridyn.studies.config.settings_section import SettingsSection, section_of
from veridyn.studies.config.simulate import BaseSettings, SensorSettings
from veridyn.studies.config.study import StudySection

for module in pkgutil.iter_modules(config.__path__):
    importlib.import_module(f"{config.__name__}.{module.name}")


@dataclass(frozen=True, repr=False, kw_only=True)
class Grinder(Settings):
    """How coffee is ground.

    Parameters
    ----------
    fineness : float above 0
        Of the powder, in words that
        go on for two lines.
    cups, filters : int of at least 1
        How many of them.
    mode : "fast" or "slow"
        Of the motor.

    Examples
    --------
    mode : none of the settings
        Nor this text.
    """

    fineness: Annotated[float, above(0.0)] = 2.0
    cups: Annotated[int, at_least(1)] = 1
    filters: Annotated[int, at_least(1)] | None = None
    until: Annotated[float, above(0.0, infinite=True)] = math.inf
    share: Annotated[float, between(0.0, 1.0)] | Literal["auto"] | None = "auto"
    mode: Literal["fast", "slow"] | Literal["off"] = "fast"
    by_name: Mapping[str, float] | None = None
    span: tuple[float, float] = (0.0, 1.0)
    beans: Sequence[str] = ()
    motor: object = None


class GrinderSection(section_of(Grinder, "name", ..., "mode", own=["name", "motor"], called={"cups": "portions"})):
    name: str = "mill"
    motor: str = "dc"


def made(**given: Any) -> Any:
    return GrinderSection.model_validate(given)


def test_the_meanings_of_settings_are_those_of_the_docstring() -> None:
    assert descriptions(Grinder) == {
        "fineness": "Of the powder, in words that go on for two lines.",
        "cups": "How many of them.",
        "filters": "How many of them.",
        "mode": "Of the motor.",
    }
    keys = GrinderSection.model_fields
    assert keys["portions"].description == "How many of them." and keys["span"].description is None


def test_keys_stand_in_the_order_that_is_asked_for() -> None:
    order = ["name", "fineness", "portions", "filters", "until", "share", "by_name", "span", "beans", "motor", "mode"]
    assert list(GrinderSection.model_fields) == order


class FilterOnly(section_of(Grinder, "filters", called={"filters": "cups"})):
    """A key that is called as another setting."""


def test_a_key_may_be_called_as_another_setting() -> None:
    assert FilterOnly.model_validate({"cups": 3}).given() == {"filters": 3}


def test_the_object_is_made_from_the_keys_and_defaults_are_those_of_the_class() -> None:
    assert made().settings(motor=None) == Grinder()
    section = made(
        fineness="1/2",
        portions=3,
        until=4,
        share=0.5,
        mode="off",
        by_name={"a": "pi/2"},
        span=[1, 2],
        beans=["x", "y", "z"],
    )
    wanted = Grinder(
        fineness=0.5,
        cups=3,
        until=4.0,
        share=0.5,
        mode="off",
        by_name={"a": math.pi / 2},
        span=(1.0, 2.0),
        beans=("x", "y", "z"),
    )
    assert section.settings(motor=None) == wanted
    assert made(share=None).settings(motor=None).share is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"fineness": 0},
        {"portions": 0},
        {"filters": 0.5},
        {"until": -1},
        {"share": 1},
        {"mode": "faster"},
        {"by_name": {"a": "b"}},
        {"span": [1]},
        {"cups": 1},
        {"name": 3},
    ],
)
def test_limits_are_those_of_the_class(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        made(**wrong)
    assert {error["loc"][0] for error in caught.value.errors()} == set(wrong)


def derived(kind: type[Any]) -> list[type[Any]]:
    return [inner for own in kind.__subclasses__() for inner in (own, *derived(own))]


SECTIONS = [
    s for s in derived(SettingsSection) if s.__module__.startswith(f"{config.__name__}.") and "Keys" not in s.__name__
]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: s.__name__)
def test_every_key_has_a_meaning_and_a_kind_of_its_own(section: type[StudySection]) -> None:
    assert [name for name, key in section.model_fields.items() if not key.description or key.annotation is Any] == []


# Sections that state settings again, because importing their class takes a second that --show and a faulty study would wait for: with keys
# whose default differs on purpose, as the file has a word of its own for what it leaves to be chosen.
STATED_AGAIN: list[tuple[type[StudySection], type, dict[str, Any]]] = [
    (SensorSettings, Imperfection, {}),
    (ProcessNoiseSettings, ProcessNoise, dict.fromkeys(("force", "acceleration", "position"))),
    (FilterSettings, Filter, {"horizon": None}),
    (FilterSettings, ObserveSettings, {}),
    (TableLawSettings, LawTable, {}),
    (BaseSettings, BaseState, {}),
]


@pytest.mark.parametrize(("section", "kind", "own"), STATED_AGAIN, ids=lambda x: getattr(x, "__name__", ""))
def test_defaults_that_are_stated_again_are_the_same(
    section: type[StudySection], kind: type, own: dict[str, Any]
) -> None:
    keys = section.model_fields
    shared = {f.name: f.default for f in fields(kind) if f.name in keys and f.default is not MISSING}
    assert len(shared) > 1
    assert {name: keys[name].default for name in shared} == {**shared, **own}
