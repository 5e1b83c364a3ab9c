# Everything runs in .venv, made here; nothing but Python 3.11+ and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more test at once than there are cores, up to five: many tests wait for processes that they start.
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 4 ] && echo $$((n + 1)) || echo 5)
# Of the tests marked exhaustive: a number takes one slice of them, `all` or `none` are possible (tests/slices.py).
SLICE ?= 0
STAMP := $(VENV)/.installed
COMPILED := $(VENV)/.compiled

.PHONY: install demo docs reproduce test test-all lint style types suite clean

install: $(STAMP)

# Without bytecode: to compile all that is installed takes a minute, and what is imported is compiled then.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or later is needed: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: install
	$(BIN)/fedprivacy compare local-vs-central

# Offline, and strict: a link, reference or heading that is not there fails the build, after all of them were listed.
docs: install
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build/html

# Every published claim beside our figure, those that train models too: some minutes. Rows without data are skipped.
reproduce: install
	$(BIN)/fedprivacy reproduce --all

lint: style types

style: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install
	$(BIN)/mypy

# What fails in seconds comes first; types are checked beside the tests.
test: style
	$(MAKE) --jobs 2 types suite

# With every exhaustive test: before a release, and after a change that reaches far.
test-all:
	$(MAKE) test SLICE=all

# One thread for each worker: two that share two cores would otherwise wait for each other. Bytecode is kept, also
# where the environment says otherwise: tests start hundreds of processes, each of which would compile all modules.
suite: $(COMPILED)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal --slice $(SLICE)

# All workers would compile the same modules at once, for half a minute each. Problems of collection are for the suite.
$(COMPILED): $(STAMP)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --collect-only --quiet --numprocesses 0 >/dev/null || true
	touch $(COMPILED)

clean:
	rm -rf $(VENV) build dist docs/_build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
