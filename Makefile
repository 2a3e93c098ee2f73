# veridyn: `make demo` shows it, `make test` checks it, `make help` lists the rest.
# Needs python3 (3.11 or newer, with its venv module) and make; everything else goes into .venv.

PYTHON  ?= python3
WORKERS ?= 2
OUT     ?= runs
CASES   ?= 20000
SEED    ?= 1
SEEDS   ?= 20
MUTANTS ?= 300

VENV := .venv
BIN  := $(VENV)/bin

# Tests and examples with real logs find them here, and are skipped where there are none.
ifneq ($(wildcard ../shared/data),)
export VERIDYN_DATA ?= $(abspath ../shared/data)
endif

# Installing compiles nothing, and tests start many processes: what one compiles to bytecode, the others read.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all urdfs fuzz bench graph lint types docs matrix dist paper claims mutants stranger coverage clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.ready-test  ## create .venv and install veridyn with its test tools

demo: $(VENV)/.ready  ## drive, identify and validate a simulated car; writes a report into runs/
	$(BIN)/veridyn demo car --out $(OUT)

# A test that takes 20 minutes hangs: it ends with the lines that wait and fails by name, and the others go on.
test: lint  ## lint, then all tests except the slow ones
	$(call pytest,-m "not slow" -o faulthandler_timeout=1200)

test-all: lint types docs  ## lint, all types, every test, and the documentation
	$(call pytest,)

urdfs: $(VENV)/.ready-test  ## read every URDF of example-robot-data; identify twelve of them at SEEDS seeds each
	$(call pytest,tests/files/machine/test_urdf_public.py)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.urdfs --seeds $(SEEDS)

fuzz: $(VENV)/.ready-test  ## read CASES damaged files, drawn by SEED; failures are kept in runs/fuzz
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -W ignore -m tests.fuzz --cases $(CASES) --seed $(SEED) --workers $(WORKERS)

bench: $(VENV)/.ready-test  ## measure speed and memory beside Pinocchio and, where it installs, FIGAROH
	-@$(BIN)/python -m pip install --quiet figaroh
	$(BIN)/python -W ignore -m benchmarks

# Types of all files take a third as long as the tests: `make test` checks what users import; `make types`, `make test-all` and CI check all.
FRONT := $(wildcard src/veridyn/*.py src/veridyn/*.pyi src/veridyn/*/__init__.pyi)

lint: $(VENV)/.ready-test  ## style, formatting, layers of imports, and types of what users import
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/basedpyright --pythonpath $(BIN)/python $(FRONT)

types: $(VENV)/.ready-test  ## types of the package and of its tests
	$(BIN)/basedpyright --threads $(WORKERS) --pythonpath $(BIN)/python

matrix: $(VENV)/.ready-test  ## try the oldest and newest dependencies with every Python that is found
	@$(BIN)/python -m pip install --quiet uv
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python packaging/matrix.py

docs: $(VENV)/.ready-docs  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The documentation is in site/index.html"

dist: $(VENV)/.ready-test  ## build wheel and source distribution into dist/, and try the wheel in an empty environment
	@$(BIN)/python -m pip install --quiet build twine
	$(BIN)/python packaging/check.py --keep dist

paper: $(VENV)/.ready-test  ## draw the figures of paper/paper.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python paper/figures.py

claims: $(VENV)/.ready-test  ## run what the papers' claims rest on, and write docs/papers/claims.md (PAPERS=003 for one)
	nice -n 10 $(BIN)/python -m docs.claims --run $(PAPERS) --workers $(WORKERS)

mutants: $(VENV)/.ready-test  ## change MUTANTS lines of statistics and filters, one at a time: do their tests notice?
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 nice -n 10 $(BIN)/python -W ignore -m benchmarks.mutants --count $(MUTANTS) --seed $(SEED) --workers $(WORKERS)

# Neither is in the extra `test`: together they are larger than all the rest.
graph: $(VENV)/.ready-test $(VENV)/.ready-torch $(VENV)/.ready-jax  ## test and measure a machine in the graphs of PyTorch and JAX, on the GPU where there is one
	$(call pytest,tests/training tests/gpu tests/examples/test_learn_arm.py)
	$(BIN)/python -m benchmarks.graph --device $(if $(wildcard /dev/nvidia0),cuda,cpu)

stranger: $(VENV)/.ready-test  ## time a newcomer's path: clone, demo, own URDF and log, report, MuJoCo
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.stranger

coverage: $(VENV)/.ready-test  ## which lines no test runs, the worst files first; compiled code is not seen
	@$(BIN)/python -m pip install --quiet pytest-cov
	$(call pytest,-m "not slow" --cov=veridyn --cov-report=term:skip-covered --cov-report=html:runs/coverage)

clean:  ## remove .venv and everything that was generated (not runs/)
	rm -rf $(VENV) site build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +

# Workers share the cores, so each keeps to one thread. The slowest tests are listed at the end, for whoever looks for time.
pytest = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --durations=15 --durations-min=5 $(1)

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "veridyn needs Python 3.11 or newer; $(PYTHON) is older or missing. Try: make PYTHON=python3.12 ..."; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo "$(PYTHON) has no venv module. On Debian and Ubuntu: apt install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	-@$(BIN)/python -m pip install --quiet --upgrade pip  # a new one installs in half the time of those that come with Python
	@touch $@

# Most modules of what is installed are never imported: each is compiled when it is, not now.
install = $(BIN)/python -m pip install --quiet --no-compile --editable

$(VENV)/.ready: $(VENV)/.created pyproject.toml
	$(install) .
	@touch $@

$(VENV)/.ready-%: $(VENV)/.created pyproject.toml
	$(install) '.[$*]'
	@touch $@
