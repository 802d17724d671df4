# To start with: `make demo`, `make check` and `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3
VENV   ?= .venv
SPARK  ?= pyspark
COUNT  ?= 20000
SEED   ?= 1
SCALE  ?= 1
# Tests run in so many processes, each with a Spark of its own.
WORKERS ?= 2
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help demo check test test-long coverage lint docs quick bench bench-check inputcut fuzz clean java

help:
	@echo "make demo   the analyst's queries on a generated lake in three formats, with and without secateur"
	@echo "make check  lint, format, types, layers, and the tests that need no Spark; two minutes at most, no Java"
	@echo "make test   make check, then the tests that need Spark (WORKERS=2)"
	@echo "make test-long  the tests that are too long for every run"
	@echo "make coverage   all that make test runs, with the share of the Python code that it reaches"
	@echo "make fuzz   random expressions over every function with a rule, put to Spark and to the evaluator, and random joins, orders and windows (COUNT=20000 SEED=1)"
	@echo "make bench  the measurements of bench/, as ratios against plain Spark"
	@echo "make bench-check  TPC-H, TPC-DS and cyclic joins with and without secateur, on three formats: the same rows? (SCALE=1)"
	@echo "make inputcut     how many bytes these queries need not read, over four layouts, as a picture (SCALE=1)"
	@echo "make docs   the site, in build/site; links and anchors that lead nowhere fail"
	@echo "make clean  removes the virtual environment and what was generated"

demo: java $(READY)
	$(BIN)/python -m demo

check: lint quick

quick: $(READY)
	$(BIN)/python -m pytest -m "not spark and not long" -n $(WORKERS) --dist worksteal

test: java check
	$(BIN)/python -m pytest -m "spark and not long" -n $(WORKERS) --dist loadfile

test-long: java $(READY)
	$(BIN)/python -m pytest -m long

coverage: java $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --cov=secateur

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.prose
	$(BIN)/codespell
	$(BIN)/pymarkdown --config pyproject.toml scan --recurse *.md docs .github

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

fuzz: java $(READY)
	$(BIN)/python -m tests.fuzz --count $(COUNT) --seed $(SEED)
	$(BIN)/python -m tests.fuzz.implied 2000 $(SEED)
	$(BIN)/python -m tests.fuzz.joins 500 $(SEED)
	$(BIN)/python -m tests.fuzz.ordered 500 $(SEED)

bench: java $(READY)
	$(BIN)/python -m bench

# The tables are made once, below the folder for temporary files; they take about 3 GB with SCALE=1.
bench-check: java $(READY)
	$(BIN)/python -m bench.tpc.check --scale $(SCALE)

inputcut: java $(READY)
	$(BIN)/python -m bench.inputcut --scale $(SCALE) --picture docs/inputcut.svg

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage

# Spark needs Java 17 or 21; a sentence with the remedy is better than Spark's stack trace.
java:
	@$(PYTHON) tools/check_machine.py

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]" "$(SPARK)"
	@touch $@
