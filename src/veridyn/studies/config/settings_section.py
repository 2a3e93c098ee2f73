"""Sections of study files made from settings classes: what a class says of its settings is said there alone.

    class FlexibleSection(section_of(FlexibleSettings, "joints", ..., own=["joints"])):
        joints: tuple[str, ...] = ()
        \"\"\"Coordinates of their link sides; all flexible joints of the model if left out.\"\"\"

    section.settings()  →  FlexibleSettings(…)

The section has a key for each setting, with its type, limits, default and meaning, which is that in the docstring of the class. Numbers may
be formulas, and a number that may be infinite is so where the key is left out. Keys that the section declares itself are its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from types import EllipsisType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import Field as Key
from pydantic import create_model

from veridyn.settings import Interval, descriptions
from veridyn.studies.config.study import Number, StudySection

T = TypeVar("T")


class SettingsSection(StudySection, Generic[T]):
    """A section whose keys are those of a settings class, `of`; `key_of`: setting → key."""

    of: ClassVar[type[Any]]
    key_of: ClassVar[Mapping[str, str]]

    def settings(self, **others: Any) -> T:
        """The object of the settings class; `others` are settings that are no keys, or keys of the section's own."""
        return self.of(**self.given() | others)

    def given(self) -> dict[str, Any]:
        """Setting → value, of the settings that are keys of the section."""
        given = {name: getattr(self, key) for name, key in self.key_of.items()}
        endless = {f.name for f in fields(self.of) if f.default == math.inf}
        return {k: x for k, x in given.items() if x is not None or k not in endless}


def section_of(
    kind: type[T], *keys: str | EllipsisType, own: Collection[str] = (), called: Mapping[str, str] | None = None
) -> type[SettingsSection[T]]:
    """The section of a settings class, to derive from.

    `keys`: those of the section in their order, all settings by default; `...` stands for the settings that are not named. `own`: keys that
    the derived class declares. `called`: setting → key, where these differ.
    """
    settings: dict[str, Field[Any]] = {f.name: f for f in fields(kind)}  # pyright: ignore[reportArgumentType]
    rest = [name for name in settings if name not in keys]
    listed = [name for key in keys or (...,) for name in (rest if isinstance(key, EllipsisType) else [key])]
    hints, meanings, other = get_type_hints(kind, include_extras=True), descriptions(kind), called or {}
    made: dict[str, Any] = {
        other.get(n, n): (Any, None) if n in own else _key(hints[n], settings[n], meanings.get(n)) for n in listed
    }
    section = create_model(f"{kind.__name__}Keys", __base__=SettingsSection, **made)
    section.of, section.key_of = kind, {name: other.get(name, name) for name in listed if name in settings}
    return section


def _key(hint: Any, setting: Field[Any], meaning: str | None) -> tuple[Any, Any]:
    """The annotation of a key, and its default with limits and description."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    limits = [part for part in parts if get_origin(part) is Annotated] if len(parts) <= 2 else []
    own: Any = _annotation(hint)
    if limits:  # of the key as a whole
        own = Union[tuple(_annotation(get_args(p)[0] if p in limits else p) for p in parts)]  # noqa: UP007
    more = {"description": meaning, **(_limits(limits[0]) if limits else {})}
    if setting.default_factory is not MISSING:
        return own, Key(default_factory=cast("Any", setting.default_factory), **more)
    if setting.default is MISSING:
        return own, Key(**more)
    if setting.default == math.inf:
        return own | None, Key(default=None, **more)
    return own, Key(default=setting.default, **more)


def _annotation(hint: Any) -> Any:
    """The annotation of a setting as that of a key: limits as pydantic has them, and formulas for numbers."""
    hint = getattr(hint, "__value__", hint)  # of an alias
    origin, args = get_origin(hint), get_args(hint)
    if hint is float:
        return Number
    if origin is Annotated:
        annotated: Any = Annotated
        return annotated[_annotation(args[0]), Key(**_limits(hint))]
    if origin in (Union, UnionType):
        literal: Any = Literal
        words = tuple(word for arg in args if get_origin(arg) is Literal for word in get_args(arg))
        # Words of several lists are one list, which a union holds once.
        return Union[tuple(literal[words] if get_origin(arg) is Literal else _annotation(arg) for arg in args)]  # noqa: UP007
    if origin in (Mapping, dict):
        return dict[args[0], _annotation(args[1])]
    if origin is Sequence:
        return tuple[_annotation(args[0]), ...]
    if origin is tuple:
        return tuple[tuple(arg if arg is Ellipsis else _annotation(arg) for arg in args)]
    return hint


def _limits(hint: Any) -> dict[str, Any]:
    """Bounds of a number in the words of pydantic."""
    bounds = next((x for x in get_args(hint)[1:] if isinstance(x, Interval)), Interval())
    low = {"gt" if bounds.low_open else "ge": bounds.low} if bounds.low > -math.inf else {}
    return low | ({"lt" if bounds.high_open else "le": bounds.high} if bounds.high < math.inf else {})
