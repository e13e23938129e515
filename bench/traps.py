"""Recall at the point of action: a scripted agent walks into 50 traps (a command that failed here
before, a decision against a package, a renamed function), each worded otherwise than it was learned,
and makes 200 calls about which nothing is known. Prints how often a hook spoke, and
how often an agent that heeds it still walks into a trap.

    python bench/traps.py
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from memoranda import Draft
from memoranda.clients import hook
from memoranda.clients.hook_events import TOOL, HookEvent
from memoranda.engine import MemorySession, open_session
from memoranda.transcripts.tier import Transcripts

Call = tuple[str, dict[str, str]]
FOLDER = "/work/app"
FAILED = (
    ("npm test", "npm: Missing script: test", "pnpm test", "npm test -- --watch"),
    (
        "docker-compose up -d",
        "docker-compose: command not found",
        "docker compose up -d",
        "docker-compose logs web",
    ),
    (
        "python manage.py migrate",
        "python: command not found",
        "python3 manage.py migrate",
        "python manage.py shell",
    ),
    ("make tests", "make: *** No rule to make target 'tests'", "make test", "cd x && make tests"),
    ("yarn build", "yarn: command not found", "npm run build", "yarn build --prod"),
    (
        "pip install -e .",
        "error: externally-managed-environment",
        "uv pip install -e .",
        "pip install -e . -q",
    ),
    (
        "cargo nextest run",
        "error: no such command: nextest",
        "cargo test run",
        "cargo nextest run --all",
    ),
    (
        "go test ./... -race",
        "-race requires cgo: not supported",
        "go test ./...",
        "go test ./... -race -v",
    ),
    (
        "psql -h localhost app",
        "psql: could not find host: connection refused",
        "psql -h db app",
        "psql -h localhost app",
    ),
    (
        "node server.mjs --inspect-all",
        "node: bad option: unknown option",
        "node server.mjs --inspect",
        "node server.mjs --inspect-all",
    ),
    ("terraform plan", "terraform: command not found", "tofu plan", "terraform apply"),
    ("poetry run pytest", "poetry: command not found", "uv run pytest", "poetry install"),
    ("eslint src --fix", "eslint: command not found", "npx eslint src --fix", "eslint lib"),
    (
        "kubectl get pods -n prod",
        "Unable to locate credentials: permission denied",
        "kubectl get pods -n prod --context eu",
        "kubectl get pods -n prod",
    ),
    ("rails db:migrate", "rails: command not found", "bin/rails db:migrate", "rails console"),
    ("gradle build", "gradle: command not found", "./gradlew build", "gradle test"),
    ("mvn package", "mvn: command not found", "./mvnw package", "mvn verify"),
)
_PACKAGES = (
    "moment",
    "axios",
    "lodash",
    "request",
    "jquery",
    "redux",
    "mongoose",
    "sequelize",
    "nose",
    "pylint",
    "flask",
    "celery",
    "boto",
    "toml",
    "simplejson",
    "mock",
)
_SAID = (
    "We decided against {0}; use {1}.",
    "Don't use {0} here, use {1}.",
    "Use {1} instead of {0}.",
    "No, we replaced {0} with {1}.",
)
_NAMES = (
    ("load_cfg", "read_config"),
    ("getUserById", "findUser"),
    ("parse_args_v1", "parse_options"),
    ("sendMail", "deliverMail"),
    ("init_db", "open_database"),
    ("fetchAll", "listRecords"),
    ("to_json_str", "dump_json"),
    ("makeClient", "connectClient"),
    ("old_hash", "stable_hash"),
    ("renderView", "renderPage"),
    ("calc_total", "sum_lines"),
    ("isValidUser", "checkUser"),
    ("run_task_now", "schedule_task"),
    ("mapKeys2", "renameKeys"),
    ("write_log", "log_event"),
    ("setState2", "updateState"),
    ("open_conn", "connect"),
)


def learn(memory: MemorySession, person: Path) -> None:
    """Put the lessons into one transcript and into notes."""
    lines = []
    number = 0

    def entry(role: str, content: object) -> None:
        message = {"role": role, "content": content}
        about = {"type": role, "cwd": FOLDER, "timestamp": "2026-11-02T09:00:00Z"}
        lines.append(json.dumps({**about, "message": message}))

    for failed, error, worked, _ in FAILED:
        for command, output, is_error in ((failed, error, True), (worked, "done", False)):
            number += 1
            use = {
                "type": "tool_use",
                "id": f"t{number}",
                "name": "Bash",
                "input": {"command": command},
            }
            entry("assistant", [use])
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
            if is_error:
                result["is_error"] = True
            entry("user", [result])
    for at, package in enumerate(_PACKAGES):
        sentence = _SAID[at % len(_SAID)]
        decision = sentence.format(package, f"{package}-next")
        if at % 2:
            entry("user", decision)
        else:
            memory.write(Draft(decision, project="categories"))
    for old, new in _NAMES:
        memory.write(Draft(f"`{old}` was renamed to `{new}` in 2.0.", project="categories"))
    place = person / ".claude" / "projects" / "-work-app" / "s.jsonl"
    place.parent.mkdir(parents=True)
    place.write_text("".join(f"{line}\n" for line in lines))
    Transcripts(memory).sync()


def traps() -> Iterator[Call]:
    for _, _, _, again in FAILED:
        yield "Bash", {"command": again}
    for at, package in enumerate(_PACKAGES):
        if at % 3 == 0:
            yield "Bash", {"command": f"npm install --save {package}@latest"}
        elif at % 3 == 1:
            yield (
                "Write",
                {"file_path": f"{FOLDER}/a{at}.ts", "content": f'import x from "{package}"\n'},
            )
        else:
            yield "Bash", {"command": f"uv add {package}"}
    for old, _ in _NAMES:
        code = f"value = {old}(path)\n"
        yield "Edit", {"file_path": f"{FOLDER}/b.py", "old_string": "x", "new_string": code}


def others() -> Iterator[Call]:
    """200 calls that have words of what is known, and nothing to do with it."""
    words = (
        "request",
        "mock",
        "moment",
        "flask",
        "test",
        "migrate",
        "build",
        "mail",
        "total",
        "view",
    )
    for at in range(200):
        word = words[at % len(words)]
        if at % 5 == 0:
            yield "Bash", {"command": f"git commit -m 'Add {word} number {at}'"}
        elif at % 5 == 1:
            yield "Bash", {"command": f"grep -rn {word} src/{at}"}
        elif at % 5 == 2:
            text = f"The {word} of page {at} waits a moment, then the request goes out.\n"
            yield "Write", {"file_path": f"{FOLDER}/docs/{at}.md", "content": text}
        elif at % 5 == 3:
            yield "Bash", {"command": f"pnpm test src/{word}{at}.spec.ts"}
        else:
            code = f"def {word}_{at}(value):\n    return value + {at}\n"
            yield (
                "Edit",
                {"file_path": f"{FOLDER}/{word}{at}.py", "old_string": "", "new_string": code},
            )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        person = Path(folder)
        os.environ["HOME"] = folder
        home = person / "home"
        home.mkdir()
        (home / "config.yaml").write_text("transcripts:\n  enabled: true\n")
        with open_session(home, watch=False) as memory:
            learn(memory, person)
            for label, calls in (("traps", list(traps())), ("other calls", list(others()))):
                texts = []
                again = []
                for at, (tool, arguments) in enumerate(calls):
                    event = HookEvent(
                        "claude-code",
                        TOOL,
                        "PreToolUse",
                        f"{label}{at}",
                        FOLDER,
                        tool=tool,
                        arguments=json.dumps(arguments),
                    )
                    texts.append(hook.answer(memory, event) or "")
                    # An agent that insists makes the same call again.
                    again.append(hook.answer(memory, event) or "")
                _report(label, calls, texts)
                first = sum(map(_is_held, texts))
                second = sum(map(_is_held, again))
                print(f"  held back before they ran: {first}, and when made again: {second}")


def _report(label: str, calls: list[Call], texts: list[str]) -> None:
    """Print how often a hook spoke, and how often an agent that heeds it still fails."""
    count = sum(map(bool, texts))
    print(f"{label}: {count} of {len(calls)} were told something")
    if label == "traps":
        # Without hooks the agent walks into each trap again.
        failures = sum(
            not _is_warned(arguments, text)
            for (_, arguments), text in zip(calls, texts, strict=True)
        )
        print(f"repeated failures: {len(calls)} without hooks, {failures} with them")
    for (tool, arguments), text in zip(calls, texts, strict=True):
        if bool(text) is (label != "traps"):
            print("   ", tool, arguments, text[:300])


def _is_held(reply: str) -> bool:
    """Whether the answer of a hook keeps a call from running."""
    return '"permissionDecision": "deny"' in reply


def _is_warned(arguments: dict[str, str], text: str) -> bool:
    """Whether a text names something of what is about to be done, so that it can be heeded."""
    new_text = (
        arguments.get("command") or arguments.get("new_string") or arguments.get("content") or ""
    )
    words = set(re.findall(r"[\w-]{3,}", new_text))
    return any(word in words for word in re.findall(r"[\w-]{3,}", text))


if __name__ == "__main__":
    main()
