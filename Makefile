# Two commands: `make demo` shows the main job, `make test` runs the tests. Both set up their own .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint bench bench-graph bench-lifecycle bench-ingest docs clean

.venv/ready: pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
		uv pip install --quiet --python $(BIN)/python -e '.[anthropic]' --group dev; \
	else \
		$(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1' && \
		$(BIN)/python -m pip install --quiet -e '.[anthropic]' --group dev; \
	fi
	@touch $@

demo: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python samples/demo.py

test: .venv/ready
	@$(BIN)/python -m pytest -q -n auto

lint: .venv/ready
	@$(BIN)/ruff check src tests bench samples tools && $(BIN)/ruff format --check --diff src >/dev/null || true

bench: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/run.py

bench-graph: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/graph.py

bench-ingest: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/ingest.py

bench-lifecycle: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/lifecycle.py

docs: .venv/ready
	@$(BIN)/python tools/reference.py

clean:
	rm -rf .venv build dist
