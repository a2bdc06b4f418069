# Everything that is made stays in .venv, .real and the caches; `make clean` removes it.

PYTHON ?= python3
PYTEST_ARGS ?= -n 4
BENCH_ARGS ?=
CHAOS_ARGS ?=

# Thousands of servers are started; each would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_NO_INPUT = 1

PY := .venv/bin/python
# The place and the Python are part of the stamps' names: a copied tree must not import the old one,
# and PYTHON=python3.13 must not run what python3.11 installed.
FOR := $(shell { pwd; $(PYTHON) --version; } 2>&1 | cksum | cut -d ' ' -f 1)
VENV := .venv/.pins-$(FOR)
EDITABLE := .venv/.editable-$(FOR)
TYPED := $(wildcard mcpclient bench examples scripts)

.DEFAULT_GOAL := help
.PHONY: help demo test lint bytecode format bench chaos setup programs suite interpreter venv real clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: setup ## real servers start, answer, crash, come back and stop
	@$(PY) examples/demo.py

test: setup programs suite ## format, lint, types, tests on asyncio and trio, the wheel
	@$(MAKE) --no-print-directory -j2 lint bytecode
	$(PY) -m pytest $(PYTEST_ARGS)
	$(PY) scripts/check_wheel.py

lint:
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy $(TYPED)

# So that the workers of the tests need not all compile the same.
bytecode:
	@$(PY) -m pytest --collect-only -qq > /dev/null

format: $(VENV) ## put the code into its one format, mend what lint can mend
	$(PY) -m ruff check --fix-only --show-fixes .
	$(PY) -m ruff format .

bench: interpreter venv ## measure against raw pipes and the official SDK
	@$(PYTHON) scripts/setup_real.py sdk
	@$(PY) bench/run.py $(BENCH_ARGS)

chaos: interpreter venv ## 60 s of servers killed, stopped, flooded and changed under 200 callers
	@$(PY) tests/chaos/run.py $(CHAOS_ARGS)

setup: ## make .venv and the real servers' environments (the others do this themselves)
	@$(MAKE) --no-print-directory -j2 venv real

venv: $(EDITABLE)
	@:

real: interpreter
	@$(PYTHON) scripts/setup_real.py

suite: interpreter
	@$(PYTHON) scripts/setup_real.py conformance fastmcp

programs: interpreter
	@$(PYTHON) scripts/setup_programs.py

interpreter:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo 'mcpclient needs Python 3.11 or newer, and "$(PYTHON)" is not that:' \
	         'name one, as in  make PYTHON=python3.12' >&2; exit 1; }

$(VENV): requirements/dev.txt | interpreter
	@echo 'installing the tools into .venv'
	@$(PYTHON) -m venv --clear .venv
	@$(PY) -m pip install -qq -r requirements/dev.txt
	@touch $@

$(EDITABLE): $(VENV) pyproject.toml
	@$(PY) -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@

clean: ## remove everything that was made
	rm -rf .venv .real build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis bench/results
	find $(wildcard mcpclient tests fixtures bench examples scripts) -name __pycache__ -prune -exec rm -rf {} +
