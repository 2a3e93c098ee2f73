"""WebAssembly: run by wasmtime, and by a browser where there is one, it has the numbers of the graph and of the compiled kernel."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import wasmtime

from batch_machines import MACHINES, arm, car, states
from strangers.evaluate import evaluate
from strangers.pinocchio_oracle import PinModel
from veridyn.mechanics.tree.dynamics.engine import sample_arrays, uniform_values
from veridyn.mechanics.tree.dynamics.formula import formula
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.symbolic import emit_wasm as module
from veridyn.symbolic.emit_wasm import F64, I64, WasmFunction, WasmModule, emit_wasm, section, signed, unsigned, vector
from veridyn.symbolic.expression import Graph


@pytest.mark.parametrize(("value", "code"), [(0, "00"), (127, "7f"), (128, "8001"), (624485, "e58e26")])
def test_numbers_as_the_standard_writes_them(value: int, code: str) -> None:
    assert unsigned(value).hex() == code


@pytest.mark.parametrize(("value", "code"), [(0, "00"), (63, "3f"), (64, "c000"), (-1, "7f"), (-123456, "c0bb78")])
def test_signed_numbers_as_the_standard_writes_them(value: int, code: str) -> None:
    """-123456 is the example of the standard."""
    assert signed(value).hex() == code


def test_sections_and_vectors_have_their_length_before_them() -> None:
    assert section(1, vector([b"ab", b"c"])).hex() == "0104" + "02" + b"abc".hex()


def test_locals_are_declared_in_runs_of_one_kind() -> None:
    f = WasmFunction(1)
    x = f.add(b"\x20\x00", f.number(1.0))
    f.bits(f.mul(x, x))
    assert f.locals == [F64, F64, I64]
    assert f.body().hex().startswith(unsigned(len(f.body()) - 1).hex() + "02" + "027c" + "017e")


SAMPLES = 20
PAGE = """<body><script>
const bytes = Uint8Array.from(atob("CODE"), c => c.charCodeAt(0)), given = GIVEN;
WebAssembly.instantiate(bytes).then(({instance: {exports: e}}) => {
  const a = e.free.value, b = a + 8 * given.inputs.length, end = b + 8 * given.outputs;
  e.memory.grow(Math.ceil(end / 65536));
  new Float64Array(e.memory.buffer, e.parameters.value, given.parameters.length).set(given.parameters);
  new Float64Array(e.memory.buffer, a, given.inputs.length).set(given.inputs);
  e.run(a, b, given.count);
  document.body.textContent = "[" + Array.from(new Float64Array(e.memory.buffer, b, given.outputs)).join(",") + "]";
});
</script></body>"""


def run(made: WasmModule, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Outputs (samples, outputs) for inputs (samples, inputs)."""
    store = wasmtime.Store()
    exports = wasmtime.Instance(store, wasmtime.Module(store.engine, made.code), []).exports(store)
    memory, call = exports["memory"], exports["run"]
    assert exports["parameters"].value(store) == made.parameters_at and exports["free"].value(store) == made.free
    first = made.free
    second = first + inputs.nbytes
    size = 8 * len(inputs) * made.outputs
    memory.grow(store, (second + size) // module.PAGE + 1)
    memory.write(store, np.ascontiguousarray(parameters).tobytes(), made.parameters_at)
    memory.write(store, np.ascontiguousarray(inputs).tobytes(), first)
    call(store, first, second, len(inputs))
    return np.frombuffer(bytes(memory.read(store, second, second + size))).reshape(len(inputs), made.outputs)


@pytest.mark.parametrize("piece", [3, 1000])
def test_every_operation(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", piece)
    g = Graph()
    a, b, c, p = g.inputs_named("abcp")
    outputs = [
        g.sin(a) * g.cos(a) - g.cos(b), g.exp(a) + g.log(b) * p, g.atan(c) / b, g.sqrt(b) - g.abs(c), g.sign(a) * 0.1,
        -(a * b), a - b * c, 3.25, -a, p,
    ]  # fmt: skip
    x = np.random.default_rng(0).uniform(0.1, 3.0, (SAMPLES, 3)) * [1.0, 1.0, -1.0]
    made = emit_wasm(g, outputs, "abc", "p")
    expected = evaluate(g, outputs, dict(zip("abc", x.T, strict=True)) | {"p": 0.7})
    found = run(made, x, np.array([0.7]))
    np.testing.assert_allclose(found.T, [np.broadcast_to(y, SAMPLES) for y in expected], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("quantity", ["inverse", "forward"])
def test_dynamics_are_those_of_the_kernel(machine: str, quantity: str) -> None:
    tree = tree_of(MACHINES[machine]())
    m = states(tree, SAMPLES)
    f = formula(tree, Request(quantity, tuple(range(len(tree.rows)))))
    made = emit_wasm(f.graph, f.outputs, f.samples, f.parameters)
    inputs = np.array(sample_arrays(tree, m, f.samples)).T
    found = run(made, inputs, uniform_values(tree, tree.parameters.values, f.parameters))
    if quantity == "inverse":
        expected = inverse_dynamics(tree, m, engine="compiled")
        np.testing.assert_allclose(found, PinModel(tree).inverse_dynamics(m), rtol=1e-10, atol=1e-10)
    else:
        found = found[:, len(tree.rows) - tree.n :]
        expected = forward_dynamics(tree, m, engine="compiled").qdd
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_functions_stay_far_below_the_limits_of_browsers() -> None:
    """50,000 locals and 7,654,321 bytes of one function (limits of the JavaScript interface)."""
    f = formula(tree_of(car()), Request("forward", tuple(range(20))))
    made = emit_wasm(f.graph, f.outputs, f.samples, f.parameters)
    assert made.functions > 3 and len(made.code) < 200_000
    assert 60 * module.PIECE < 7_654_321  # bytes of an instruction with a sine and cosine called beside it, at most


def test_a_browser_gives_the_same(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("there is no browser here")
    tree = tree_of(arm())
    m = states(tree, 3)
    f = formula(tree, Request("inverse", tuple(range(tree.n))))
    made = emit_wasm(f.graph, f.outputs, f.samples, f.parameters)
    inputs = np.array(sample_arrays(tree, m, f.samples)).T
    parameters = uniform_values(tree, tree.parameters.values, f.parameters)
    given = {
        "inputs": inputs.ravel().tolist(),
        "parameters": parameters.tolist(),
        "count": 3,
        "outputs": 3 * made.outputs,
    }
    page = PAGE.replace("CODE", base64.b64encode(made.code).decode()).replace("GIVEN", json.dumps(given))
    (tmp_path / "page.html").write_text(page)
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path}",
    ]
    command = [browser, *options, "--dump-dom", (tmp_path / "page.html").as_uri()]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    found = json.loads(text[text.index("[") : text.index("]") + 1])
    np.testing.assert_array_equal(np.reshape(found, (3, -1)), run(made, inputs, parameters))
