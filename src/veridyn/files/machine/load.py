"""The machine that a model file describes: YAML, URDF, or MJCF. Each reader is imported where it is used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ruamel.yaml.nodes import Node, ScalarNode

from veridyn.arguments import checked
from veridyn.errors import Fault, FileError, ModelError
from veridyn.files.access import resolved
from veridyn.files.machine.keys import FORMAT
from veridyn.files.yaml_nodes import compose, line_of, text_of
from veridyn.model.machine import Machine

MJCF_ENDINGS = (".xml", ".mjcf")


@checked
def load_model(path: str | Path, *, base: Literal["auto", "fixed", "free"] = "auto", strict: bool = False) -> Machine:
    """The machine that a model file describes.

    Parameters
    ----------
    path : str or path
        A model file (YAML), whatever the formulation; or .urdf; or .xml and .mjcf, a model of MuJoCo
        (:func:`~veridyn.files.machine.mjcf.load_mjcf`); or "veridyn:NAME", a file that comes with veridyn.
    base : {"auto", "fixed", "free"}
        Of a URDF or MJCF: whether its root stands on the ground or moves freely. "auto" is free where the file says so, by a floating
        joint alone on a root without inertia or by a free joint, else fixed. A model file (YAML) has a key for it, and takes "auto" only.
    strict : bool
        Of a URDF or MJCF: refuse inertias that no physical body has. Otherwise they are unknown, to be identified, and a warning gives
        their count.
        A model file (YAML) with such an inertia is always refused.

    Returns
    -------
    Machine

    Raises
    ------
    FileError, ModelError
        With every fault of the file, by name and line.

    Examples
    --------
    >>> import veridyn as vd
    >>> linkage = vd.load_model("veridyn:linkage.yaml")  # a file that comes with veridyn
    >>> linkage.coordinates
    ('q1', 'q2', 'q3')
    """
    file = resolved(Path(path))
    if file.suffix.lower() == ".urdf":
        from veridyn.files.machine.urdf import load_urdf

        return load_urdf(file, base, impossible="refuse" if strict else "unknown")
    if file.suffix.lower() in MJCF_ENDINGS:
        from veridyn.files.machine.mjcf import load_mjcf

        return load_mjcf(file, base, strict=strict)
    if base != "auto":
        hint = f"Write base: {base} in the file."
        what = "a model file says itself what its base is."
        raise ModelError(what, where="base", expected="'auto'", found=f"'{base}'", hint=hint, source=file.name)
    return parse_machine(text_of(file), source=file.name)


def parse_machine(text: str, source: str = "model") -> Machine:
    """The machine that the text of a model file describes. `source` stands in messages and names a nameless machine."""
    root = compose(text, source)
    keys = {key.value: value for key, value in root.value if isinstance(key, ScalarNode)}
    _check_version(keys, source)
    word = keys.get("formulation")
    if "car" in keys or (isinstance(word, ScalarNode) and word.value == "single_track"):
        from veridyn.files.machine.car import parse_car

        return parse_car(root, source)
    from veridyn.files.machine.read import parse_root

    return parse_root(root, source)


def _check_version(keys: Mapping[str, Node], source: str) -> None:
    """Refuse a file of another kind or version; where none is given, the reader reports the missing key."""
    if "veridyn" not in keys and "bodies" not in keys:
        found = f"the keys {', '.join(list(keys)[:8]) or '(none)'}"
        hint = f"A model file begins with veridyn: {FORMAT} and lists bodies."
        raise FileError("this is not a model file.", found=found, hint=hint, source=source)
    version = keys.get("veridyn")
    if version is None:
        return
    word = version.value if isinstance(version, ScalarNode) else ""
    if word == str(FORMAT):
        return
    if word == "1":
        what = "model files of version 1 are no longer read."
        hint = (
            f"Write veridyn: {FORMAT} and the keys of version {FORMAT}, which docs/model-file.md lists: loops are joints with cut: yes; "
            "mechanism is name, angles and distances are coordinates, springs and dampers elements, drives, forces and torques loads."
        )
    else:
        what, hint = "this version of the format is unknown.", "A newer veridyn may know it."
    found = f"'{word}'" if word else "something else"
    raise FileError(Fault(what, "veridyn", str(FORMAT), found, hint, line_of(version)), source)
