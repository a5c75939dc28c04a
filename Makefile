# Every chore of the project. Needs Python 3.11 or newer with pip and venv, and make; nothing else.

# The first of these that runs and is new enough.
PYTHON ?= $(shell for python in python3.11 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
INSTALL = PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	$(BIN)/python -m pip install -qq --constraint constraints.txt --editable
# Both at once, each on a core of its own.
COMPILE = $(BIN)/python -m maskwell.analysis & analysis=$$!; $(BIN)/python -m maskwell.kernels && wait $$analysis
BENCHMARKS = $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check lint types docs bench calibration clean .venv

help:
	@echo "make demo    mask the built-in survey, attack it, repair it, write the release"
	@echo "make test    all tests"
	@echo "make check   style, types, documentation"
	@echo "make bench   benchmarks (QUICK=1: within a minute each)"
	@echo "make calibration  proof of the samplers at full size (two hours; QUICK=1: some minutes)"
	@echo "make docs    the documentation, in docs/_build/html"
	@echo "make clean   remove what these made, except .venv"

demo: .venv/.ready-to-run
	@$(BIN)/maskwell demo

# Bytecode is written whatever the environment says: without it every worker rewrites all assertions and every program
# that a test starts compiles its modules anew. There are as many workers as cores: threads of matrix products would wait.
test: .venv/.ready-to-develop
	@PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

check: lint types docs

lint: .venv/.ready-to-develop
	@echo "ruff check"
	@$(BIN)/ruff check --quiet
	@echo "ruff format --check"
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --diff --quiet; false; }

types: .venv/.ready-to-develop
	@echo "mypy"
	@$(BIN)/mypy --no-error-summary

docs: .venv/.ready-to-develop
	@echo "sphinx-build docs"
	@$(BIN)/sphinx-build -W --keep-going --quiet -b html docs docs/_build/html

bench: .venv/.ready-to-develop
	@set -e; for script in $(BENCHMARKS); do \
		echo "$$script"; $(BIN)/python $$script $(if $(QUICK),--quick); done
	@$(if $(BENCHMARKS),,echo "there are no benchmarks")

calibration: .venv/.ready-to-develop
	@$(BIN)/python calibration/run.py $(if $(QUICK),--quick)

clean:
	@rm -rf build dist demo docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# Set-up. One stamp for running the program, one for working on it; each is renewed when the pins change.

.venv: .venv/.ready-to-develop

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "maskwell needs Python 3.11 or newer: neither python3.11 nor python3 is." \
		"Name one: make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "maskwell needs Python 3.11 or newer; $(PYTHON) is not."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) lacks venv or ensurepip (Debian and Ubuntu: install the package python3-venv)."; exit 1; }
	@echo "creating .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv

.venv/.ready-to-run: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing maskwell into .venv and compiling its loops (once, some two minutes)"
	@$(INSTALL) '.[all]'
	@$(COMPILE)
	@touch $@

.venv/.ready-to-develop: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing maskwell and its tools into .venv and compiling its loops (once, some two minutes)"
	@$(INSTALL) '.[all,test,check,docs]'
	@command -v age >/dev/null || test "$$(id -u)" != 0 || \
		{ apt-get update -qq && apt-get install -qq -y age; } >/dev/null 2>&1 || true  # one test has it open our files
	@$(COMPILE)
	@touch $@ .venv/.ready-to-run
