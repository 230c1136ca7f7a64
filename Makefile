# `make demo` runs the main job on a fresh machine, `make test` passes the tests. Both set up what they need.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-slow lint format clean

demo: $(VENV)/.served
	$(BIN)/archon eval configs/pipelines/demo_single.yaml configs/pipelines/demo.yaml --task original --difficulty 1 --difficulty 2 --limit 8 --out runs/demo

test: $(VENV)/.tested
	sh scripts/start_docker.sh || echo "no Docker engine: its tests are skipped, bubblewrap's are run"
	$(BIN)/python -m pytest -m "not slow and not gpu"

test-slow: $(VENV)/.tested $(VENV)/.served
	sh scripts/start_docker.sh || true
	$(BIN)/python -m pytest -m "slow and not gpu"

lint: $(VENV)/.tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.tested
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.tested: $(VENV)/bin/python pyproject.toml
	sh scripts/system_packages.sh
	$(BIN)/pip install -q -e '.[dev,tasks]'
	touch $@

# torch is named with its version so that pip takes the CPU build it knows, and not a newer one with CUDA inside.
$(VENV)/.served: $(VENV)/bin/python pyproject.toml
	sh scripts/system_packages.sh
	$(BIN)/pip install -q 'torch==2.13.0' -e '.[serve-cpu,tasks,fix]'
	$(BIN)/python -m archon.serving.mend
	touch $@

clean:
	rm -rf $(VENV) runs report
