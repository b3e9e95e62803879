# What a day needs. Each target installs first what it needs (scripts/setup is quick when nothing
# is missing).
IMAGE ?= debian-12
PYTHON := .venv/bin/python
# Tests wait more than they compute.
FAST := $(PYTHON) -m pytest -n 4 --dist loadfile

.PHONY: help setup demo test check image bench clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' $(MAKEFILE_LIST)

setup:  ## packages and the virtual environment
	@scripts/setup

demo:  ## build the default image if needed and do one graded run on it
	@scripts/demo

test:  ## the whole test suite, on the real image
	@scripts/setup --test
	@$(MAKE) --no-print-directory image IMAGE=debian-12
	$(FAST) -m "not vm and not slow"
	$(FAST) -m "slow and not vm"
	$(PYTHON) -m pytest -n 2 --dist loadfile -m vm

check: setup  ## format, lint, types and the fast tests: before every commit
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m ruff check
	$(PYTHON) -m mypy
	$(FAST) -q -m "not vm and not slow"

image: setup  ## build an image, unless it is in the cache: make image IMAGE=debian-12
	@.venv/bin/cua-gym image build $(IMAGE)

bench: setup image  ## measure, beside others' ways; write bench.json, docs/bench.md and its plot
	$(PYTHON) scripts/bench.py

clean:  ## remove what was built here: the virtual environment, caches and bench.json
	@if [ -x .venv/bin/cua-gym ]; then .venv/bin/cua-gym clean; fi
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist bench.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
