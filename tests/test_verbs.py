"""A verb is the function of its name, in whatever order its folder and the package are imported."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import veridyn
from veridyn.lazy import listed

FOLDERS = {p.parent.name for p in Path(veridyn.__file__).parent.glob("*/__init__.py")}
ORDERS = {
    "the package first": "import veridyn as vd",
    "a module of the folder first": "import veridyn.identify.base",
    "the folder itself": "import importlib; importlib.import_module('veridyn.observe')",
    "a module by another name": "import veridyn.identify.regression.observation as found",
    "a module by another name, after the verb": "import veridyn; veridyn.simulate\nimport veridyn.simulate.imperfection as found",
    "the function's own module": "import veridyn.simulate.simulator, veridyn.identify.estimate, veridyn.observe.observe",
    "from the package": "from veridyn import identify, observe, simulate",
    "from a folder": "from veridyn.identify import base, payload",
    "a room that uses all three": "import veridyn.studies.config.study",
}
CHECK = """
import inspect, sys, types
import veridyn as vd
for name in ("identify", "observe", "simulate"):
    function = getattr(vd, name)
    assert inspect.isfunction(function) and function.__name__ == name, function
    assert isinstance(sys.modules["veridyn." + name], types.ModuleType)
import veridyn.identify.payload, veridyn.observe.process_noise as process_noise
assert veridyn.identify.payload is sys.modules["veridyn.identify.payload"]
assert process_noise is sys.modules["veridyn.observe.process_noise"]
assert "found" not in globals() or isinstance(found, types.ModuleType)
assert inspect.isfunction(vd.identify) and inspect.isfunction(vd.observe)
"""
EVERY = f"""
import sys
sys.dont_write_bytecode = False  # each source is compiled once, not for every order
for order, words in {ORDERS!r}.items():
    for name in [n for n in sys.modules if n.partition(".")[0] == "veridyn"]:
        del sys.modules[name]
    exec(words + {CHECK!r}, {{}})
    print(order)
"""


def test_the_name_is_the_function_in_any_order_of_imports() -> None:
    """Each order in a process that has imported nothing of the package yet: forgotten between two of them."""
    done = subprocess.run([sys.executable, "-c", EVERY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(ORDERS)


def test_the_names_kept_for_functions_are_those_that_folders_have() -> None:
    functions = {name for name, (home, _) in listed("veridyn").items() if home != "veridyn"}
    assert set(veridyn.VERBS) == functions & FOLDERS


@pytest.mark.parametrize("verb", veridyn.VERBS)
def test_help_shows_signature_and_parameters(verb: str) -> None:
    function = getattr(veridyn, verb)
    shown = pydoc.plain(pydoc.render_doc(function))
    assert shown.startswith(f"Python Library Documentation: function {verb} in module veridyn.{verb}")
    for name in inspect.signature(function).parameters:
        assert shown.count(name) >= 2, name  # in the signature, and below it


@pytest.mark.parametrize("verb", veridyn.VERBS)
def test_a_verb_travels_to_another_process(verb: str) -> None:
    assert pickle.loads(pickle.dumps(getattr(veridyn, verb))) is getattr(veridyn, verb)


def test_a_verb_can_be_replaced_and_a_folder_cannot_take_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(veridyn, "identify", len)
        assert veridyn.identify is len
    veridyn.identify = importlib.import_module("veridyn.identify")
    assert inspect.isfunction(veridyn.identify)
