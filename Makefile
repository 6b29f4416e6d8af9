# Two commands do all the set-up: `make demo` and `make test`.

VENV := .venv
BIN := $(VENV)/bin
# Most tests wait for real programs: four of them keep two cores busy for a third of the time; 0: none but this one.
WORKERS ?= 4
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
# The first interpreter on PATH that is new enough.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p $(NEW_ENOUGH) && { echo $$p; break; }; done)

.PHONY: demo test lint bench screenshots clean

demo: $(VENV)/.demo
	@$(BIN)/rgt demo

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python -m tests.bench

screenshots: $(VENV)/.dev
	$(BIN)/python -m tests.screenshots

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "rgt needs Python 3.11 or newer; none was found on PATH. Set PYTHON=/path/to/python3."; exit 1; }
	@$(PYTHON) $(NEW_ENOUGH) || { echo "rgt needs Python 3.11 or newer; PYTHON=$(PYTHON) is not. Set PYTHON=/path/to/python3."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "$(PYTHON) can't make a virtual environment; on Debian and Ubuntu: apt install python3-venv."; exit 1; }

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "Installing rgt into $(VENV) (once; about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	@$(BIN)/python -m tui.demo.torch_build
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing rgt and its test tools into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo,dev]'
	@$(BIN)/python -m tui.demo.torch_build
	@touch $@

clean:
	rm -rf $(VENV) build dist
