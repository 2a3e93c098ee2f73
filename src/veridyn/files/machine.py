"""A machine from a model file of either kind: a tree of bodies, a mechanism of points and vectors, or URDF."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml.nodes import ScalarNode

from veridyn.files.native import parse_model
from veridyn.files.natural import parse_mechanism
from veridyn.files.urdf import load_urdf
from veridyn.files.yaml_nodes import compose, text_of
from veridyn.model.machine import Machine
from veridyn.model.of_mechanism import machine_of_mechanism
from veridyn.model.of_tree import machine_of_tree


def load_machine(path: str | Path) -> Machine:
    """The machine that a model file describes.

    Parameters
    ----------
    path : str or path
        A model file with a list of bodies (formulation tree), one with points and bodies (formulation natural), or .urdf.

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
    >>> from veridyn.machines.shipped import shipped
    >>> vd.load_machine(shipped("veridyn:fourbar.yaml")).formulation
    'natural'
    """
    file = Path(path)
    if file.suffix.lower() == ".urdf":
        return machine_of_tree(load_urdf(file))
    return parse_machine(text_of(file), source=file.name)


def parse_machine(text: str, source: str = "model") -> Machine:
    """The machine that the text of a model file describes."""
    keys = {key.value for key, _ in compose(text, source).value if isinstance(key, ScalarNode)}
    if "mechanism" in keys:
        return machine_of_mechanism(parse_mechanism(text, source))
    return machine_of_tree(parse_model(text, source))
