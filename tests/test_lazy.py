"""Names that a stub lists are found when they are first used, and nothing else is."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import pydoc
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import veridyn
from veridyn.lazy import listed

PACKAGE = Path(veridyn.__file__).parent
STUBS = sorted(PACKAGE.rglob("*.pyi"))
MODULES = [
    ".".join(("veridyn", *p.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__") for p in STUBS
]


@pytest.mark.parametrize("module", MODULES)
def test_every_listed_name_is_there_and_is_the_one_of_its_home(module: str) -> None:
    if module in ("veridyn.jax", "veridyn.torch"):  # extras: their doors load the library
        pytest.importorskip(module.split(".")[1])
    door = importlib.import_module(module)
    assert dir(door) == sorted(listed(module)) == door.__all__
    for name, (home, own) in listed(module).items():
        value = getattr(door, name)
        assert value is not None
        if home not in ("", module):
            assert value is getattr(importlib.import_module(home), own)


@pytest.mark.parametrize("module", MODULES)
def test_what_is_not_listed_is_refused_by_name(module: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nonsense'"):
        _ = importlib.import_module(module).nonsense


@pytest.mark.parametrize("stub", STUBS, ids=str)
def test_a_stub_holds_its_docstring_and_names_and_nothing_else(stub: Path) -> None:
    """A line that the module does not read would be a name for the type checker alone."""
    docstring, *lines = ast.parse(stub.read_text("utf-8")).body
    assert isinstance(docstring, ast.Expr)
    for line in lines:
        if isinstance(line, ast.ImportFrom):
            assert line.level == 0 and all(alias.asname == alias.name for alias in line.names)
        else:
            assert isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)


@pytest.mark.parametrize("module", [m for m in MODULES if m != "veridyn"])
def test_no_listed_name_is_that_of_a_file_in_the_folder(module: str) -> None:
    """It would mean the file as soon as something imports it. The verbs of the package itself are cared for: test_verbs."""
    folder = PACKAGE.joinpath(*module.split(".")[1:])
    files = {p.stem for p in folder.glob("*")} if folder.is_dir() else set()
    importlib.import_module(module)  # only then does it list names, whichever tests ran before in this process
    assert not files & set(listed(module))


@pytest.mark.parametrize("stub", [s for s in STUBS if s.parent != PACKAGE or s.stem != "__init__"], ids=str)
def test_a_module_with_lazy_names_is_its_docstring_and_nothing_else(stub: Path) -> None:
    """The file is there for its examples, and for editors and type checkers, which mark imports of a stub without a source; all that it
    does is in lazy.py. The stub has what the file says in its first paragraph."""
    source = stub.with_suffix(".py").read_text("utf-8")
    text, short = (ast.get_docstring(ast.parse(t), clean=False) for t in (source, stub.read_text("utf-8")))
    assert text is not None and short is not None
    assert source == f'"""{text}"""\n\nfrom veridyn.lazy import attach\n\n__getattr__, __dir__ = attach(__name__)\n'
    assert text.split("\n\n")[0].strip() == short.strip()


def test_a_module_with_lazy_names_has_a_stub() -> None:
    users = {p for p in PACKAGE.rglob("*.py") if "= attach(__name__)" in p.read_text("utf-8")}
    assert {p.with_suffix(".pyi") for p in users} == set(STUBS)


@pytest.fixture
def small_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with lazy names, whose modules press Ctrl-C while they are imported."""
    folder = tmp_path / "small_lazy"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from veridyn.lazy import attach\n\n__getattr__, __dir__ = attach(__name__)\n", "utf-8"
    )
    modules = ("calm", "through", "swallowed", "turned")
    lines = [f"from small_lazy.{m} import VALUE as {m}_value\n" for m in modules]
    (folder / "__init__.pyi").write_text("".join(lines), "utf-8")
    press = "import signal\nVALUE = 1\n"
    (folder / "calm.py").write_text(press, "utf-8")
    press += "try:\n    signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt:\n    "
    for module, then in (("through", "raise"), ("swallowed", "pass"), ("turned", "raise ImportError('no such part')")):
        (folder / f"{module}.py").write_text(f"{press}{then}\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield folder
    signal.signal(signal.SIGINT, before)
    for name in [m for m in sys.modules if m.startswith("small_lazy")]:
        del sys.modules[name]


@pytest.mark.parametrize("module", ["through", "swallowed", "turned"])
def test_an_interrupt_during_a_lazy_import_is_never_lost(module: str, small_package: Path) -> None:
    package = importlib.import_module(small_package.name)
    assert package.calm_value == 1
    with pytest.raises(KeyboardInterrupt):
        getattr(package, f"{module}_value")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_users_own_decides_itself(small_package: Path) -> None:
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    package = importlib.import_module(small_package.name)
    assert package.swallowed_value == 1 and seen == [signal.SIGINT]


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
afresh = ("", "identify", "observe", "simulate", "studies")
for order, words in {ORDERS!r}.items():
    for name in [n for n in sys.modules if n.partition(".")[0] == "veridyn" and (n + ".").split(".")[1] in afresh]:
        del sys.modules[name]
    exec(words + {CHECK!r}, {{}})
    print(order)
"""


def test_the_name_is_the_function_in_any_order_of_imports() -> None:
    """Each order without the package and the rooms of the verbs: they are forgotten between two orders, the floors below them stay."""
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
