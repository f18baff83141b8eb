# Everything runs from a virtual environment in .venv that these targets make themselves.
# Tools are called as `python -m tool`, never as scripts: that works in a folder whose name has a space.
PYTHON ?= python3
PY := .venv/bin/python

.PHONY: help demo test format lint types unit docs mutants lowest bench results figures clean

help:
	@echo "make demo     run the main job on data that ships with the project"
	@echo "make test     format check, lint, types and all tests"
	@echo "make format   rewrite the sources in the project's format"
	@echo "make mutants  check that the tests of the operations can fail (minutes)"
	@echo "make lowest   all tests with the lowest versions that are promised to work (minutes)"
	@echo "make docs     build the documentation under docs/_build/html"
	@echo "make bench    measure on this machine and bring README and docs up to date;"
	@echo "              MACHINE=-intel names the record of a second processor"
	@echo "make results  draw all results from the records and bring README and docs up to date"
	@echo "make figures  draw the pictures of README and docs anew"

# Tests need the frameworks that there are adapters for.
TESTED := .[train,tensorboard,lightning,transformers,timm,test]

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[train]'
	@touch .venv/ready

.venv/tools: .venv/ready
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '$(TESTED)'
	@touch .venv/tools

demo: .venv/ready
	@$(PY) -m divaug demo --out demo

test: format-check lint types unit

.PHONY: format-check
format-check: .venv/tools
	$(PY) -m ruff format --check .

lint: .venv/tools
	$(PY) -m ruff check .

types: .venv/tools
	$(PY) -m mypy --strict src/divaug

unit: .venv/tools
	$(PY) -m pytest -n 2 -q

format: .venv/tools
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

mutants: .venv/tools
	$(PY) tests/mutants.py

# Old releases of others call what newer ones of a third have deprecated: that is not ours to mend.
lowest:
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) tools/lowest.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint .venv-lowest/constraints.txt --editable '$(TESTED)'
	.venv-lowest/bin/python -m pytest -n 2 -q -W ignore::DeprecationWarning

docs: .venv/tools
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(PY) -m sphinx -W -b html docs docs/_build/html

# Records of other processors have a name of their own behind.
MACHINE ?=

bench: .venv/tools
	$(PY) -m divaug bench operations --json benchmarks/results/operations$(MACHINE).json
	$(PY) -m divaug bench select --json benchmarks/results/select$(MACHINE).json
	$(PY) tools/update_docs.py

results: .venv/ready
	$(PY) -m divaug report --from results
	$(PY) tools/update_docs.py

figures: .venv/ready
	$(PY) tools/draw_figures.py

clean:
	rm -rf .venv .venv-lowest demo docs/_build .mypy_cache .ruff_cache .pytest_cache
