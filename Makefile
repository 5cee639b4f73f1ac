# Every target sets itself up from a clean clone with python3 alone; from the second time on it starts at once.
# AMQP needs a C compiler: where there is none, `make test` says so and does without.
PYTHON ?= python3
VENV   ?= .venv
EXTRAS ?=
ARGS   ?=
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
comma  := ,
READY  := $(VENV)/.ready-$(subst $(comma),+,$(or $(EXTRAS),dev$(comma)amqp))

.PHONY: help setup demo test test-all soak nightly matrix check docs bench dist clean
help:            ## this list
	@sed -nE 's/^([a-z-]+):.*## */\1\t/p' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "redelivery needs Python 3.11 or newer, this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 $(MAKECMDGOALS)" or 0)'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "No venv module: on Debian and Ubuntu 'apt install python3-venv'"; exit 1; }
	@$(PIP) install --upgrade pip

$(VENV)/.ready-%: pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV) with [$(subst +,$(comma),$*)], once"
	@$(PIP) install --editable '.[$(subst +,$(comma),$*)]' 2>$(VENV)/pip.log || { \
	  case "$$CI+$*" in +*+amqp*) ;; *) cat $(VENV)/pip.log; exit 1;; esac; \
	  echo "WITHOUT AMQP: python-qpid-proton did not compile (needs gcc python3-dev pkg-config; see $(VENV)/pip.log)"; \
	  $(PIP) install --editable '.[$(subst +,$(comma),$(subst +amqp,,$*))]'; }
	@touch $@

setup: $(READY)  ## what the others need; they do it themselves where it is not done

demo: $(VENV)/.ready-$(subst $(comma),+,$(or $(EXTRAS),cli))  ## what redelivery does, live, in 20 s
	@$(BIN)/redelivery demo $(if $(findstring spark,$(EXTRAS)),--spark) $(ARGS)

# Tests start many Python processes, each of which would compile every module anew.
test test-all nightly: export PYTHONDONTWRITEBYTECODE =

$(VENV)/.collected: $(READY)    # once, what each of the processes would compile at the same time, and rewrite for pytest
	@$(BIN)/python -m pytest --collect-only -q -n 0 >$(VENV)/collected.log || true
	@touch $@

test: $(VENV)/.collected   ## each rule once, in two to three minutes; where Java and Maven, or Docker, are there, with real brokers (Spark: EXTRAS=dev,amqp,spark)
	@$(BIN)/python -m pytest -n auto $(ARGS)

test-all: $(VENV)/.collected  ## every test
	@REDELIVERY_FORM=$${REDELIVERY_FORM:-all} $(BIN)/python -m pytest -n auto $(ARGS)

soak: $(READY)   ## ten minutes of lost connections on each pair of protocol and broker, half with threads, half with asyncio
	@REDELIVERY_FORM=all REDELIVERY_SOAK_MINUTES=$${REDELIVERY_SOAK_MINUTES:-10} $(BIN)/python -m pytest -s -p no:logging tests/conformance/test_soak.py $(ARGS)

nightly:         ## everything at length; writes the pages of docs/ that are made of runs; takes hours
	@$(MAKE) --no-print-directory $(VENV)/.ready-dev+amqp+spark+s3-test
	@VENV=$(VENV) scripts/nightly

matrix: $(READY)  ## the tests without real brokers on every Python, with the oldest and the newest dependencies
	@$(BIN)/python scripts/matrix $(ARGS)

# What scripts write, pages of docs/ and the shell for threads: each has `--check`.
PAGES := $(addprefix scripts/,unasync reference conformance-table promises-table selectors-table spark-options policy-captures trace-table \
  differential-report fault-report load-report soak-report spark-report spark-versions)

check: $(READY)  ## lint, format, types, import contracts; whether the pages that scripts write are what they write
	@test -d src/redelivery/client/. || { echo "make check looks at the sources through src/redelivery/client, which is not a link here. Clone with: git clone -c core.symlinks=true"; exit 1; }
	@$(BIN)/ruff check --no-cache .   # its cache does not see that an imported file has come
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/mypy tests
	@$(BIN)/mypy examples benchmarks scripts/pages.py
	@$(BIN)/lint-imports --no-cache
	@for page in $(PAGES) "-m benchmarks" "-m benchmarks.cpu_page" "-m benchmarks.observers"; do \
	  $(BIN)/python $$page --check || exit 1; done

docs: $(VENV)/.ready-$(subst $(comma),+,$(or $(EXTRAS),docs))  ## the site, into build/docs; a link that leads nowhere fails
	@$(BIN)/python -c 'import furo, myst_parser, sphinx' 2>/dev/null || { echo "WITHOUT THE SITE: Sphinx, furo or myst-parser is missing (pip install '.[docs]')"; exit 1; }
	@$(BIN)/sphinx-build --quiet -n -W --keep-going -j auto -c docs -d build/doctrees . build/docs $(ARGS)
	@echo "build/docs/index.html written"

bench: $(READY)  ## processor time; ratios to raw stomp.py: a table, JSON and a plot
	@$(BIN)/python -m benchmarks.cpu_page
	@$(BIN)/python -m benchmarks.observers
	@$(BIN)/python -m benchmarks $(ARGS)

dist: $(VENV)/.ready-dist  ## what is released, from the last commit: wheel, sdist, SBOM, checksums; built twice, installed on every Python
	@$(BIN)/python scripts/dist $(ARGS)

clean:           ## forget the set-up
	rm -rf $(VENV) build dist src/*.egg-info
