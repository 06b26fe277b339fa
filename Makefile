# Every target sets up what it needs; all that must be there before is Python ≥ 3.11, gcc and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OLDEST := .venv-oldest
BOUNDS := .venv-bounds
COMPILERS := .venv-compilers
PYTHONS ?= python3.12 python3.13 python3.14
SOURCES := meson.build meson.options $(shell find src -name '*.py' -o -name '*.px[yd]' -o -name '*.h' -o -name 'meson.build' -o -path '*/assets/*')

# Small matrices, and one test process for each core: BLAS threads would only get in each other's way.
demo test test-all test-oldest test-pythons test-bounds test-compilers wheel reproduce: export OPENBLAS_NUM_THREADS ?= 1
demo test test-all test-oldest test-pythons test-bounds test-compilers wheel reproduce: export OMP_NUM_THREADS ?= 1

.PHONY: help demo docs test test-all test-oldest test-pythons test-bounds test-compilers wheel lint format bench reproduce clean

help:
	@echo "make demo         learn on bundled data: tables, certificates, then pictures in out/; installs few extras"
	@echo "make test         lint and the fast tests (a few minutes)"
	@echo "make test-all     all tests, slow ones too"
	@echo "make test-oldest  the fast tests with the oldest dependencies that are supported"
	@echo "make test-pythons  the fast tests on other Pythons, $(PYTHONS), one after the other"
	@echo "make test-bounds  the fast tests, with every index of the compiled part checked (gcc)"
	@echo "make test-compilers  the compiled part by gcc, by clang, and in plain C, and its tests on each"
	@echo "make wheel        sdist and manylinux wheel in dist/, tried in a clean environment without a compiler"
	@echo "make lint         ruff (docstrings and private access too), mypy, import layers"
	@echo "make format       ruff's fixes and layout"
	@echo "make bench        speed and accuracy against peers, as ratios; docs/results/bench/run.txt (hours)"
	@echo "make reproduce    the paper's experiments; refreshes docs/results (long)"
	@echo "make docs         the documentation as a site in build/docs; runs every example"
	@echo "make clean        remove what the targets made"

# The package is installed, not linked, so that what is tested is what pip installs. The demo alone needs few extras; a
# full installation serves it as well.
$(VENV)/.installed: pyproject.toml README.md $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ".[all]"
	touch $(VENV)/.demo $@

$(VENV)/.demo: pyproject.toml README.md $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ".[cli,plots]"
	touch $@

# The lower bounds of pyproject.toml for what is needed at run time, and for tables.
$(OLDEST)/.installed: pyproject.toml README.md $(SOURCES)
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check ".[test]" \
		"numpy==1.26.*" "scipy==1.13.*" "scikit-learn==1.6.*" "safetensors==0.4.*" "pyarrow==16.*"
	touch $@

demo: $(VENV)/.demo
	$(BIN)/mahalo demo --out out

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd src && ../$(BIN)/lint-imports --config ../pyproject.toml --no-cache

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

# Vector databases, torch and other libraries, which the tests of recipes, arrays and integrations skip without.
$(VENV)/.recipes: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ".[recipes,integrations]"
	touch $@

test-all: lint dist/.built $(VENV)/.recipes
	$(BIN)/python -m pytest -n auto --dist worksteal

test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -n auto -m "not slow"

# An interpreter may be a path; each has an environment of its own, named after its version.
test-pythons:
	set -e; for python in $(PYTHONS); do \
		venv=.venv-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		echo "== $$venv"; \
		test -x $$venv/bin/python || $$python -m venv $$venv; \
		$$venv/bin/python -m pip install --quiet --disable-pip-version-check ".[test]"; \
		$$venv/bin/python -m pytest -n auto -m "not slow"; \
	done

# A library under the address sanitizer wants it loaded first, and libstdc++ with it for those who throw.
$(BOUNDS)/.installed: pyproject.toml README.md $(SOURCES)
	test -x $(BOUNDS)/bin/python || $(PYTHON) -m venv $(BOUNDS)
	CC=gcc $(BOUNDS)/bin/python -m pip install --quiet --disable-pip-version-check \
		".[test]" -Csetup-args=-Dbounds_checks=true
	touch $@

test-bounds: $(BOUNDS)/.installed
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 $(BOUNDS)/bin/python -m pytest -n auto -m "not slow"

# One after the other in the same environment; `plain_c` is for compilers that know neither our flags nor extensions to C.
$(COMPILERS)/.installed: pyproject.toml README.md $(SOURCES)
	test -x $(COMPILERS)/bin/python || $(PYTHON) -m venv $(COMPILERS)
	$(COMPILERS)/bin/python -m pip install --quiet --disable-pip-version-check ".[test]"
	touch $@

test-compilers: $(COMPILERS)/.installed
	set -e; for build in gcc clang "gcc -Csetup-args=-Dplain_c=true"; do \
		echo "== $$build"; set -- $$build; \
		CC=$$1 $(COMPILERS)/bin/python -m pip install --quiet --disable-pip-version-check \
			--no-deps --force-reinstall . $$2; \
		$(COMPILERS)/bin/python -m pytest -n auto -m "not slow" tests/_core tests/kernels tests/solvers; \
	done

# The wheel is built from the sdist, and the sdist from what is committed.
dist/.built: $(VENV)/.installed
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	PATH="$(abspath $(BIN)):$$PATH" auditwheel repair --wheel-dir dist dist/*-linux_*.whl
	rm dist/*-linux_*.whl
	touch $@

wheel: dist/.built
	$(BIN)/python -m pytest -s tests/packaging

docs: $(VENV)/.installed
	rm -rf docs/gallery docs/generated
	$(BIN)/python -m sphinx -W --keep-going -q docs build/docs
	@echo "open build/docs/index.html"

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks --json docs/results/bench/run.json

reproduce: $(VENV)/.installed
	$(BIN)/python -m experiments all --out docs/results

clean:
	rm -rf $(VENV) .venv-3.* $(OLDEST) $(BOUNDS) $(COMPILERS) .venv-peers build dist out benchmarks/.cache
