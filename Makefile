# Every target makes what it needs: a virtual environment in .venv, with the package installed.
PYTHON ?= python3
VENV   ?= .venv
RUN     = $(VENV)/bin/python
BASE_STAMP = $(VENV)/.installed-base
DEV_STAMP  = $(VENV)/.installed-dev
DOCS_STAMP = $(VENV)/.installed-docs

.PHONY: demo test lint docs bench paper clean clean-experiments help

help:
	@echo "make demo   run the demonstration; pictures go to demo_output/"
	@echo "make test   run all tests and doctests"
	@echo "make lint   run ruff and mypy"
	@echo "make docs   build the documentation into site/, with warnings as errors"
	@echo "make paper  run all experiments; the results are in experiments/results/"
	@echo "make bench  run the benchmarks of speed and accuracy"
	@echo "make clean  remove the environment, demo_output/ and site/"
	@echo "make clean-experiments  remove experiments/.cache: finished trials, environments of peers"

demo: $(BASE_STAMP)
	$(VENV)/bin/xtrellis demo

test: $(DEV_STAMP)
	$(RUN) -m pytest -n auto --dist worksteal

lint: $(DEV_STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

paper: $(BASE_STAMP)
	$(RUN) experiments/run_all.py

bench: $(DEV_STAMP)
	$(RUN) benchmarks/bench_decode.py
	$(RUN) benchmarks/bench_assignment.py
	$(RUN) benchmarks/bench_train.py
	$(RUN) benchmarks/bench_predict.py
	$(RUN) benchmarks/bench_accuracy.py
	$(RUN) benchmarks/bench_serve.py

clean:
	rm -rf $(VENV) demo_output site

clean-experiments:
	rm -rf experiments/.cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("xtrellis needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(BASE_STAMP): pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[plot]'
	@touch $@

$(DEV_STAMP): pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(BASE_STAMP)

$(DOCS_STAMP): pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[docs,plot,dask]'
	@touch $@ $(BASE_STAMP)
