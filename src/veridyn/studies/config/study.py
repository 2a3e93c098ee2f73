"""Study files: one YAML file says everything about one run, and nothing in it is taken on trust.

A kind of study is a class of settings (pydantic) that derives from :class:`StudyFile`; `KINDS` names its home. Unknown keys,
missing ones and values of the wrong kind are reported with file and line, all at once. The same classes give the defaults
(:func:`study_text`), the comments of a new file and the JSON schema of the documentation (:func:`json_schema`).
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.json_schema import models_json_schema

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault, FileError, ModelError, VeridynError, did_you_mean
from veridyn.files.access import is_shipped, shipped
from veridyn.files.expressions import evaluate
from veridyn.files.yaml_nodes import text_of
from veridyn.files.yaml_reader import Place, PlainYaml, plain_yaml
from veridyn.settings import build
from veridyn.studies.config.text import RENAMED, example_of, example_of_field, subject_of, words_of

FORMAT = 1
KINDS: dict[str, tuple[str, str]] = {  # kind → module and class of its settings; imported when asked for
    "identify": ("veridyn.studies.config.identify", "IdentifyFile"),
    "excite": ("veridyn.studies.config.excite", "ExciteFile"),
    "observe": ("veridyn.studies.config.observe", "ObserveFile"),
    "simulate": ("veridyn.studies.config.simulate", "SimulateFile"),
}
# With a section of this name a kind has other settings: section → kind → module and class.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "payload": {"identify": ("veridyn.studies.config.identify_sections", "PayloadFile")},
    "fleet": {"identify": ("veridyn.studies.config.identify_sections", "FleetFile")},
    "flexible": {"identify": ("veridyn.studies.config.identify_sections", "FlexibleFile")},
    "drives": {
        "identify": ("veridyn.studies.config.identify_sections", "DrivesFile"),
        "excite": ("veridyn.studies.config.excite_drives", "DriveExciteFile"),
    },
}
OF_A_CAR = "single_track"
# In this formulation of its model a kind has the log of a drive: formulation → kind → module and class.
FORMULATED: dict[str, dict[str, tuple[str, str]]] = {
    OF_A_CAR: {
        "identify": ("veridyn.studies.config.observe", "CarIdentifyFile"),
        "observe": ("veridyn.studies.config.observe", "CarObserveFile"),
    }
}
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def _formula(value: Any) -> Any:
    """A text where a number is expected may be a formula, as in model files: pi/2, radians(5), 1/101."""
    if not isinstance(value, str):
        return value
    try:
        return evaluate(value)
    except ModelError as error:
        fault = error.faults[0]
        raise ValueError(f"{fault.what} {fault.hint}".strip()) from None


Number = Annotated[float, BeforeValidator(_formula, json_schema_input_type=float | str)]
_WORDS = "Name of the run folder, which gets a number."
RunName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", description=_WORDS)]


class StudySection(BaseModel):
    """A section of a study file: every key is known, and values stay as they are.

    `word` and `example`: what it is called and what it looks like in messages, where that is not made of its keys.
    """

    word: ClassVar[str] = ""
    example: ClassVar[Mapping[str, Any]] = {}

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class StudyFile(StudySection):
    """What every study file has. `of_a_drive`: its log is the drive of a car of a few numbers."""

    of_a_drive: ClassVar[bool] = False

    veridyn: Literal[1] = FORMAT
    """Version of the format."""
    kind: str
    """What is done: the command of that name runs it."""
    name: RunName = "study"
    seed: int = Field(default=0, ge=0)
    """Seed of whatever is random."""
    out: str = "runs"
    """Folder that gets the run folder, beside the study file unless --out says otherwise."""


S = TypeVar("S", bound=StudyFile)
T = TypeVar("T")


@dataclass(frozen=True)
class Loaded(Generic[S]):
    """A study file that has been read: its settings, and where in the file each of them stands."""

    study: S
    file: Path
    yaml: PlainYaml
    text: str
    variables: Mapping[str, str]
    places: Mapping[str, Place] = field(default_factory=dict)
    """Where a key of `study` stands in the file, if not at its top: a part of a study that is run as a study of its own."""

    def fault(self, at: Place, what: str, expected: str = "", found: str = "", hint: str = "") -> Fault:
        """A fault of one place of the file, with its line."""
        at = (*self.places[str(at[0])], *at[1:]) if at and str(at[0]) in self.places else at
        return Fault(what, dotted(at), expected, found, hint, self.yaml.line(at), at)

    def error(self, faults: Fault | Iterable[Fault]) -> FileError:
        """An error about this file."""
        return FileError(faults, self.file.name)

    def error_at(self, at: Place, what: str, expected: str = "", found: str = "", hint: str = "") -> FileError:
        """An error about one place of this file."""
        return self.error(self.fault(at, what, expected, found, hint))

    @contextmanager
    def placing(self, at: Place, *kinds: type[VeridynError]) -> Iterator[None]:
        """Faults of errors of these kinds, raised meanwhile, become faults of one place of this file."""
        try:
            yield
        except kinds as error:
            raise self.error([self.fault(at, f.what, f.expected, f.found, f.hint) for f in error.faults]) from error

    def build(self, at: Place, kind: type[T], values: Mapping[str, Any]) -> T:
        """An object of a settings class (:mod:`veridyn.settings`) from the keys and values at a place, its faults with their lines."""
        made = build(kind, values)
        if made.object is None:
            raise self.error([self.fault((*at, *f.path), f.what, f.expected, f.found, f.hint) for f in made.invalid])
        return made.object

    def path(self, text: str, at: Place) -> Path:
        """A path of the file: relative to its folder, with ${NAME} for a variable of the environment; veridyn:NAME comes with veridyn."""
        if is_shipped(text):
            with self.placing(at, DataError):
                return shipped(text)
        unknown = [name for name in _VARIABLE.findall(text) if not self.variables.get(name)]
        if unknown:
            hint = f"Set it ({unknown[0]}=FOLDER veridyn …), or write the path out."
            raise self.error_at(at, f"the variable {unknown[0]} is not set.", found=text, hint=hint)
        found = Path(_VARIABLE.sub(lambda m: self.variables[m[1]], text))
        try:
            return self.file.parent / found.expanduser()
        except RuntimeError:  # an unknown user, or one without a home
            what = f"the home folder that '{found.parts[0]}' means is not known."
            hint = "Write the path out, or set HOME."
            raise self.error_at(at, what, "a folder that exists", text, hint) from None


@checked
def load_study(
    path: str | os.PathLike[str], kind: str | None = None, variables: Mapping[str, str] | None = None
) -> Loaded[Any]:
    """Read a study file. `kind`: the only one that will do. `variables`: stand before those of the environment in paths."""
    file = Path(path)
    text = text_of(file)
    yaml = plain_yaml(text, file.name)
    known = {**os.environ, **(variables or {})}
    described = OF_A_CAR if _describes_car(yaml, file, known) else ""
    return Loaded(parse_study(yaml, kind, described), file, yaml, text, known)


def _describes_car(yaml: PlainYaml, file: Path, variables: Mapping[str, str]) -> bool:
    """Whether the model file of a study, or its fit, says that it is a car, where the study chooses no formulation."""
    model = yaml.values.get("model") if yaml.values.get("kind") in [*FORMULATED[OF_A_CAR]] else None
    if not isinstance(model, Mapping) or model.get("formulation") is not None:
        return False
    named = model.get("file") or model.get("fit")
    if not isinstance(named, str) or is_shipped(named):
        return False
    place = file.parent / _VARIABLE.sub(lambda m: variables.get(m[1], m[0]), named)
    try:
        if model.get("fit"):
            text = (place / "fit.json" if place.is_dir() else place).read_text(encoding="utf-8")
            return json.loads(text).get("car") is not None
        if place.suffix.lower() not in (".yaml", ".yml"):
            return False
        return any(line.startswith("car:") for line in place.read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError, AttributeError):
        return False  # what is wrong with the file is told by who reads it


def parse_study(yaml: PlainYaml, kind: str | None = None, described: str = "") -> StudyFile:
    """The settings that a document holds; a :class:`FileError` with all its faults. `described`: the formulation of its model file."""
    found = yaml.values.get("kind")
    if not isinstance(found, str):  # a list or a mapping is no kind, and no key either
        found = None if found is None else f"{found}"
    if found not in KINDS or (kind is not None and found != kind):
        known = [kind] if kind in KINDS else sorted(KINDS)
        what = "this is no study file." if found is None else f"'{found}' is not the kind of study wanted here."
        hint = "" if found not in KINDS else f"Run it with: veridyn {found} {yaml.source}"
        raise FileError(
            Fault(what, "kind", " or ".join(f"kind: {k}" for k in known), hint=hint, line=yaml.line(("kind",))),
            yaml.source,
        )
    _refuse_vehicle(yaml)
    model = yaml.values.get("model")
    own = model.get("formulation") if isinstance(model, Mapping) else None
    section = next((name for name, kinds in SECTIONS.items() if name in yaml.values and found in kinds), "")
    settings = settings_class(str(found), section, own if isinstance(own, str) else described)
    try:
        return settings.model_validate(yaml.values)
    except ValidationError as error:
        raise FileError(_faults(error, settings, yaml), yaml.source) from None


def _refuse_vehicle(yaml: PlainYaml) -> None:
    """A study of the older format, whose car stood in it."""
    if "vehicle" in yaml.values and "model" not in yaml.values:
        hint = f"Write it in a file of its own (docs/own-car.md), and here model: {{file: NEW.yaml, formulation: {OF_A_CAR}}}."
        what = "the car of a study stands in a model file now."
        raise FileError(Fault(what, "vehicle", hint=hint, line=yaml.line(("vehicle",))), yaml.source)


def settings_class(kind: str, section: str = "", formulation: str = "") -> type[StudyFile]:
    """The class of settings of a kind of study, with a section that changes it (payload, fleet), or in a formulation that does."""
    in_formulation = FORMULATED.get(formulation, {})
    module, name = SECTIONS[section][kind] if section else in_formulation.get(kind, KINDS[kind])
    return getattr(importlib.import_module(module), name)


def json_schema() -> dict[str, Any]:
    """The JSON schema of study files of every kind, as editors and the documentation use it."""
    classes = {kind: [settings_class(kind), *_variants(kind)] for kind in KINDS}
    places, shared = models_json_schema([(c, "validation") for of in classes.values() for c in of])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "veridyn study file",
        "oneOf": [_kind_schema(kind, [places[c, "validation"] for c in of]) for kind, of in classes.items()],
        "$defs": shared["$defs"],
    }


def _variants(kind: str) -> list[type[StudyFile]]:
    """The classes of settings of a kind of study with a section, or in a formulation, that changes it."""
    found = [settings_class(kind, name) for name, kinds in SECTIONS.items() if kind in kinds]
    return [*found, *(settings_class(kind, formulation=name) for name, kinds in FORMULATED.items() if kind in kinds)]


def _kind_schema(kind: str, either: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of a kind of study: of a machine, or of any where sections such as payload, or a car, change it."""
    named = {"properties": {"kind": {"const": kind, "type": "string"}}, "required": ["kind"]}
    return {**named, **(either[0] if len(either) == 1 else {"oneOf": either})}


def dotted(place: Place) -> str:
    """A place in words: training[2].file."""
    out = ""
    for part in place:
        out += f"[{part + 1}]" if isinstance(part, int) else f"{'.' if out else ''}{part}"
    return out


def quantity(text: str) -> tuple[float, str]:
    """A number with its unit, "0.07 N*m/A"; a DataError where it is none. Without a unit it is a pure number, "1"."""
    match = re.fullmatch(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*", text)
    if match is None:
        raise DataError("it is no quantity.", expected="a number and a unit, such as 0.07 N*m/A", found=text)
    return float(match[1]), match[2].strip("[]").strip() or "1"


def _faults(error: ValidationError, settings: type[BaseModel], yaml: PlainYaml) -> list[Fault]:
    """pydantic's errors in the words of this house, one for each place, by line."""
    by_place: dict[Place, list[Any]] = {}
    for e in error.errors():
        by_place.setdefault(_place(e["loc"], e["type"], yaml), []).append(e)
    faults = [_fault(place, found, settings, yaml) for place, found in by_place.items()]
    return sorted(faults, key=lambda fault: fault.line or 0)


def _place(loc: tuple[str | int, ...], kind: str, yaml: PlainYaml) -> Place:
    """Where an error stands: the parts of its location that are in the file (unions add words of their own)."""
    place: Place = ()
    for k, part in enumerate(loc):
        last = k == len(loc) - 1
        if (*place, part) in yaml.lines or (last and kind in ("missing", "extra_forbidden")):
            place = (*place, part)
    return place


def _fault(place: Place, found: list[Any], settings: type[BaseModel], yaml: PlainYaml) -> Fault:
    first = found[0]
    line, holder = yaml.line(place), dotted(place[:-1])
    if first["type"] == "extra_forbidden":
        known = sorted({name for c in _classes_at(settings, place[:-1]) for name in c.model_fields})
        key = str(place[-1])
        hint = f"Write '{RENAMED[key]}'." if key in RENAMED else did_you_mean(key, known)
        return Fault(f"there is no key '{key}' here.", holder, hint=hint, line=line)
    if first["type"] == "missing":
        return Fault(f"the key '{place[-1]}' is missing.", holder, line=line)
    value, where = first["input"], dotted(place)
    classes = _classes_at(settings, place)
    if all(e["type"] in ("model_type", "dict_type") for e in found):
        section = next((c for c in classes if c is not settings), None) if first["type"] == "model_type" else None
        name = subject_of(section, place)
        shown = example_of(section) if section is not None else "{NAME: value}"
        return Fault(f"{name} is a mapping, such as {shown}; found {words_of(value)}.", where, line=line)
    reasons = [str(e["ctx"]["error"]) for e in found if e["type"] == "value_error"]
    together = f"the keys of {'this study' if not place else repr(place[-1])} do not fit together."
    plain = together if isinstance(value, Mapping) else f"{subject_of(None, place)} cannot be {words_of(value)}."
    what = next((reason for reason in reasons if reason.endswith(".")), plain)
    wanted = " or ".join(dict.fromkeys(w for w in (_expected(e) for e in found) if w != what))
    shown = "keys and values" if isinstance(value, Mapping) else words_of(value)
    return Fault(what, where, wanted, shown, _example_at(settings, place), line)


def _example_at(settings: type[BaseModel], place: Place) -> str:
    """A sentence with a value that a key takes; empty where none is known."""
    if not place or not isinstance(place[-1], str):
        return ""
    holders = _classes_at(settings, place[:-1])
    fields = [c.model_fields[place[-1]] for c in holders if place[-1] in c.model_fields]
    shown = next((text for f in fields if (text := example_of_field(f))), "")
    return f"For example {place[-1]}: {shown}." if shown else ""


def _expected(e: Mapping[str, Any]) -> str:
    words = {
        "float_parsing": "a number",
        "float_type": "a number",
        "int_parsing": "a whole number",
        "int_from_float": "a whole number",
        "int_type": "a whole number",
        "string_type": "text (in quotes, where it looks like a number)",
        "bool_parsing": "true or false",
        "bool_type": "true or false",
        "list_type": "a list",
        "tuple_type": "a list",
        "dict_type": "keys and values",
        "model_type": "keys and values",
        "finite_number": "a finite number",
        "too_short": "at least one entry",
    }
    if e["type"] == "literal_error":
        return str(e["ctx"]["expected"])
    if e["type"] == "value_error":
        return str(e["ctx"]["error"])
    if e["type"] == "too_long":
        return f"{e['ctx']['max_length']} entries at most"
    text = str(e["msg"]).removeprefix("Input should be ")
    return words.get(e["type"], text[0].lower() + text[1:].removesuffix("."))


def _classes_at(settings: type[BaseModel], place: Place) -> set[type[BaseModel]]:
    """The classes of settings that may stand at a place."""
    classes: set[type[BaseModel]] = {settings}
    for part in place:
        inner = {
            c for own in classes if part in own.model_fields for c in _models_in(own.model_fields[part].annotation)
        }
        classes = inner or classes
    return classes


def _models_in(annotation: Any) -> set[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return {model for part in get_args(annotation) for model in _models_in(part)}
