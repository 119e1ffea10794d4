# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test clusters lint docs check perf clean

help:  ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)  ## train ten small networks on digits, compare them by every view, write demo/report.html
	$(BIN)/likewise demo demo

test: $(READY)  ## run the tests
	$(BIN)/python -m pytest -n auto

clusters: $(READY)  ## run every long job on Dask, Ray and submitit, and kill a worker of each; takes minutes
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[distributed]'
	LIKEWISE_CLUSTERS=1 $(BIN)/python -m pytest -vv --durations=10 tests/contract/test_engines.py tests/work/engines

lint: $(READY)  ## run the linter and the type checker, build the package into dist
	$(BIN)/ruff format --check src tests perf examples studies scripts
	$(BIN)/ruff check src tests perf examples studies scripts
	$(BIN)/mypy
	$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null

docs: $(READY)  ## build the documentation into site, strictly: a warning is an error
	$(BIN)/zensical build --strict --clean

check: test lint docs  ## all of these

perf: $(READY)  ## measure speed and memory; results in perf/results
	$(BIN)/python -m perf

clean:  ## remove what was made
	rm -rf $(VENV) demo dist site .cache .pytest_cache .mypy_cache .ruff_cache
