"""How the command line is read, how errors are said, and what a run costs (contract 001, 1)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import pytest

import memoranda
import memoranda.cli
from cli.conftest import PROGRAM, run_process
from memoranda.cli import COMMANDS
from memoranda.cli.syntax import Command


@pytest.mark.promise("001-17.1")
@pytest.mark.parametrize(
    ("line", "message", "command"),
    [
        ("bogus", 'unknown command "bogus" for "memory"', "memory"),
        ("project bogus", 'unknown command "bogus" for "memory project"', "memory project"),
        ("list --badflag", "unknown flag: --badflag", "memory list"),
        ("--badflag list", "unknown flag: --badflag", "memory"),
        ("list -x", "unknown flag: -x", "memory list"),
        ("write", "requires at least 1 arg(s), only received 0", "memory write"),
        ("read", "accepts 1 arg(s), received 0", "memory read"),
        ("backlinks a b", "accepts 1 arg(s), received 2", "memory backlinks"),
        ("link a", "accepts 2 arg(s), received 1", "memory link"),
        ("list x", "accepts 0 arg(s), received 1", "memory list"),
        ("log a b", "accepts at most 1 arg(s), received 2", "memory log"),
        ("call", "accepts between 1 and 2 arg(s), received 0", "memory call"),
        ("project add x", "accepts 2 arg(s), received 1", "memory project add"),
        ("list --limit x", 'invalid value "x" for --limit: not a number', "memory list"),
        ("list --limit -1", 'invalid value "-1" for --limit: must be at least 0', "memory list"),
        (
            f"list --limit {10**30}",
            f'invalid value "{10**30}" for --limit: must be at most {10**15}',
            "memory list",
        ),
        ("list --limit", "flag needs an argument: --limit", "memory list"),
        ("list --json=1", "--json takes no value", "memory list"),
        ("write x --now soon", 'invalid value "soon" for --now: not an ISO time', "memory write"),
        ("list --now 2026-05-01", "unknown flag: --now", "memory list"),
        ("--now 2026-05-01 list", "unknown flag: --now", "memory list"),
        ("undo x", 'invalid value "x" for N: not a number', "memory undo"),
        (
            f"undo {10**30}",
            f'invalid value "{10**30}" for N: must be at most {10**15}',
            "memory undo",
        ),
        ("doctor --dry-run", "--dry-run needs --fix", "memory doctor"),
        (
            "mcp --project notes --as anthropic",
            "--project goes with --as basic-memory only",
            "memory mcp",
        ),
        ("search x --max-tokens 100", "--max-tokens needs --ranked", "memory search"),
        ("agent --format xml", 'invalid value "xml" for --format: not json', "memory agent"),
        (
            "import --from mem1 x",
            'invalid value "mem1" for --from: must be one of graph-jsonl, agent-memory, '
            "memory-bank, basic-memory, mirror, okf, chatgpt, claude, mem0, claude-mem, "
            "mcp-memory-service, anthropic-memory, deja-vu, agent-files",
            "memory import",
        ),
        ("import --from graph-jsonl", "flag needs an argument: --from", "memory import"),
        (
            "import --from graph-jsonl x --input y",
            "--from names its own PATH: leave out --input",
            "memory import",
        ),
        (
            "import --from memory-bank x --project y",
            "--project needs --from basic-memory, okf, chatgpt or claude",
            "memory import",
        ),
        ("help bogus", 'unknown command "bogus" for "memory"', "memory"),
        ("help read x", 'unknown command "x" for "memory read"', "memory read"),
    ],
)
def test_wrong_usage_is_said_once_with_the_way_to_the_help(
    terminal: Any, line: str, message: str, command: str
) -> None:
    ran = terminal(*line.split())
    assert (ran.status, ran.out) == (2, "")
    lines = ran.err.splitlines()
    assert lines[0] == f"Error: {message}"
    assert lines[1] == f"Run '{command} --help' for usage."
    assert ran.err.count("Error:") == 1
    assert not terminal.home.exists()


@pytest.mark.parametrize(
    ("line", "below"),
    [
        ("read", "Usage: memory read [OPTIONS] ID..., e.g. memory read 5a1f notes/Plan.md"),
        ("recent 2wk", "Usage: memory recent [OPTIONS], e.g. memory recent -n 5"),
        ("kv set a", "Usage: memory kv set [OPTIONS] KEY VALUE..., e.g. memory kv set editor vim"),
        (
            "project add",
            "Usage: memory project add [OPTIONS] [NAME] [DIR], e.g. memory project add work ~/work/notes",
        ),
        (
            "remind",
            "Usage: memory remind [OPTIONS] [TEXT...], e.g. memory remind call Bob tomorrow at 3pm",
        ),
        ("graph foo", "Commands: show, export, import."),
        (
            "list --since 2h",
            "--since is an option of memory recent and memory log and memory undo.",
        ),
    ],
)
def test_wrong_usage_shows_the_right_form(terminal: Any, line: str, below: str) -> None:
    ran = terminal(*line.split())
    lines = ran.err.splitlines()
    assert len(lines) == 3
    assert lines[2] == below


def test_option_of_many_commands_names_none_of_them(terminal: Any) -> None:
    ran = terminal("list", "--dry-run")
    lines = ran.err.splitlines()
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (
            "read nobody",
            "Find it: memory search WORDS, or memory list. If it was deleted: memory log",
        ),
        ("undo 999", "See the changes with their numbers and who made them: memory log"),
        ("undo --by nobody", "See the changes with their numbers and who made them: memory log"),
        (
            "remind call Bob",
            "Name one, as in: memory remind call Bob tomorrow at 3pm; or add --at WHEN.",
        ),
        ("token revoke lap", "Did you mean laptop? Tokens: laptop."),
        ("space member tem ann reader", "Did you mean team? Spaces: team."),
        ("project add notes2 .", "Change what agents may do in it: memory project access notes2"),
    ],
)
def test_error_names_the_command_that_helps(
    terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, remedy: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    terminal.ok("token", "add", "laptop")
    terminal.ok("space", "add", "team")
    terminal.ok("project", "add", "notes2", ".")
    ran = terminal(*line.split())
    assert ran.status == 1
    assert ran.err.endswith(f"\n{remedy}\n")


@pytest.mark.parametrize("command", ["list", "config set timezone Asia/Shanghai"])
def test_broken_configuration_is_reported_in_the_same_words(terminal: Any, command: str) -> None:
    terminal.ok("write", "one")
    (terminal.home / "config.yaml").write_text("daemon: [\n", "utf-8")
    ran = terminal(*command.split())
    lines = ran.err.splitlines()
    assert len(lines) == 2
    assert "at line 2" in lines[0]
    assert lines[1].startswith("Correct the file")


def test_text_with_a_dash_in_front_is_text_after_two_dashes(terminal: Any) -> None:
    ran = terminal("write", "- buy milk")
    assert ran.status == 2
    assert ran.err.endswith("Put -- in front of text that begins with a dash.\n")
    terminal.write("--", "- buy milk")
    terminal.write("--", "-x", "--json")
    listed = terminal("list", "--json").json["memories"]
    contents = [memory["content"] for memory in listed]
    assert contents == ["-x --json", "- buy milk"]
    ran = terminal("read", "--", "--json", "x")
    assert ran.out == ""


@pytest.mark.promise("001-17.1")
@pytest.mark.parametrize(
    ("argv", "schema", "code", "status"),
    [
        (["bogus", "--json"], "memory/1", "usage", 2),
        (["--json", "read"], "read/1", "usage", 2),
        (["list", "--nope", "--json"], "list/1", "usage", 2),
        (["read", "nobody", "--json"], "read/1", "not_found", 1),
        (["--json", "write", " "], "write/1", "invalid", 1),
        (["--json", "project", "remove", "x"], "project/1", "project_not_found", 1),
        (["project", "remove", "kv", "--json"], "project/1", "invalid", 1),
        (["call", "nope", "--json"], "call/1", "not_found", 1),
        (["link", "nope", "none", "--json"], "link/1", "not_found", 1),
        (["undo", "--json"], "undo/1", "cannot_undo", 1),
    ],
)
def test_with_json_an_error_is_a_document_too(
    terminal: Any, argv: list[str], schema: str, code: str, status: int
) -> None:
    ran = terminal(*argv)
    assert ran.status == status
    assert list(ran.json) == ["schema", "error"]
    assert ran.json["schema"] == schema
    assert ran.json["error"] == {"code": code, "message": ran.error}
    assert ran.err.count("Error:") == 1


def test_global_options_stand_before_or_after_the_command(terminal: Any, tmp_path: Path) -> None:
    other_home = str(tmp_path / "there")
    terminal.ok("--home", other_home, "write", "one", "--scope", "agent:claude")
    terminal.ok("write", "two", "--home", other_home)
    terminal.ok("--home", other_home, "--agent", "claude", "write", "three")

    document = terminal("list", "--json", "--home", other_home).json
    assert document["total"] == 3
    document = terminal("--json", "list", "--home", other_home, "--agent", "copilot").json
    assert document["total"] == 2
    assert (
        terminal("--json", "project", "--home", other_home, "list").json["projects"][0]["notes"]
        == 3
    )
    assert not terminal.home.exists()


def test_the_home_is_the_option_then_the_variable_then_the_configuration(
    terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(f"storage:\n  root: {tmp_path}/configured\n")
    terminal.ok("--config", str(config), "write", "in the configured home")
    assert (tmp_path / "configured" / "categories" / "inbox").is_dir()
    monkeypatch.setenv("MEMORY_HOME", "~/variable")
    terminal.ok("write", "in the home of the variable", "--config", str(config))
    assert (tmp_path / "user" / "variable" / "categories" / "inbox").is_dir()
    terminal.ok(
        "write", "in the home given", "--home", str(tmp_path / "given"), "--config", str(config)
    )
    assert (tmp_path / "given" / "categories" / "inbox").is_dir()
    assert (tmp_path / "given").stat().st_mode & 0o777 == 0o700


def test_a_bad_configuration_is_named(terminal: Any) -> None:
    terminal.configure("storage: [\n")
    ran = terminal("list")
    assert ran.status == 1
    assert ran.error.startswith(f"load config: {terminal.home}/config.yaml: ")


def test_the_agent_is_the_option_then_the_variable(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = terminal.write("mine alone", "--scope", "agent:claude")
    monkeypatch.setenv("MEMORY_AGENT", "copilot")

    ran = terminal("read", ref)
    assert ran.error == f"memory not found: {ref}"
    ran = terminal("read", ref, "--agent", "claude")
    assert ran.status == 0
    ran = terminal("write", "x", "--scope", "agent:claude")
    assert ran.error == 'invalid scope "agent:claude"'
    ran = terminal("list", "--agent", "No Name")
    assert ran.error == 'invalid agent "No Name"'
    ran = terminal("list", "--agent", "")
    assert ran.error == 'invalid agent ""'


@pytest.mark.parametrize("name", ["owner", "Manual", "web", "FILE", "import"])
def test_an_agent_named_as_the_history_names_somebody_else_is_refused(
    terminal: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    refused = f'invalid agent "{name}"'
    ran = terminal("write", "tea", "--agent", name)
    assert ran.error == refused
    monkeypatch.setenv("MEMORY_AGENT", name)
    assert terminal("write", "tea").error == refused
    monkeypatch.delenv("MEMORY_AGENT")
    document = terminal("log", "--json").json
    assert document["entries"] == []


def test_alone_it_prints_the_help_which_names_every_command(terminal: Any) -> None:
    text = terminal.ok()
    assert text == terminal.ok("--help") == terminal.ok("help")
    for name in COMMANDS:
        assert f"\n  {name} " in text


def test_help_of_a_command_is_the_same_however_it_is_asked_for(terminal: Any) -> None:
    assert terminal.ok("project") == terminal.ok("project", "-h")
    assert terminal.ok("help", "project", "add") == terminal.ok("project", "add", "--help")


def test_help_of_a_group_as_json_names_the_group(terminal: Any) -> None:
    document = terminal("project", "--json").json
    assert document["schema"] == "help/1"
    assert document["command"] == "memory project"
    assert document["text"].startswith("Usage: memory project ")


def test_help_as_json_has_the_text_that_is_printed(terminal: Any) -> None:
    document = terminal("--json").json
    assert document["text"] == terminal.ok().rstrip("\n")


def test_the_version_is_the_package_s(terminal: Any) -> None:
    assert terminal.ok("--version") == f"memory {memoranda.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_and_takes_the_global_options(
    terminal: Any, name: str
) -> None:
    text = terminal.ok(name, "--help")
    assert text.startswith(f"Usage: memory {name} ")
    for option in ("--home", "--config", "--agent", "--json"):
        assert option in text


INTERRUPT_AT = """
import os, runpy, signal, sys
module = sys.argv.pop(1)
class Interrupt:
    def find_spec(name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt)
runpy.run_module("memoranda", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    "module",
    [
        "memoranda.cli.output",
        "memoranda.errors",
        "click",
        "memoranda.cli.memory_commands",
        "memoranda.engine.read_session",
    ],
)
def test_an_interrupt_while_the_command_starts_ends_it_with_130_and_silence(
    terminal: Any, module: str
) -> None:
    process = run_process(sys.executable, "-c", INTERRUPT_AT, module, "list")
    assert (process.returncode, process.stdout, process.stderr) == (130, b"", b"")


def test_what_nobody_foresaw_is_reported_with_its_place(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memoranda.cli.invocation import Invocation

    def broken(self: Invocation) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Invocation, "reading", broken)
    ran = terminal("list", "--json")
    assert ran.status == 1
    begun = "something went wrong inside memoranda (ZeroDivisionError: by zero, at memoranda.cli."
    assert ran.error.startswith(begun)
    assert "report" in ran.err.splitlines()[1]
    assert ran.json["error"]["code"] == "internal"


def test_a_system_without_file_locks_is_told_so(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    ran = terminal("list")

    assert ran.status == 1
    assert ran.out == ""
    assert ran.err.startswith("Error: memory needs a POSIX system with file locks ")
    assert ran.err.count("\n") == 1


def test_a_reader_that_goes_away_ends_it_quietly(terminal: Any) -> None:
    for number in range(3):
        terminal.write(f"{number} " + "long " * 30_000)
    process = run_process("sh", "-c", f'"{sys.executable}" -m memoranda search "" --json | head -1')
    assert (process.stdout, process.stderr) == (b"{\n", b"")


@pytest.mark.parametrize(
    ("redirect", "reason"), [(">/dev/full", "No space left on device"), (">&-", "stdout is closed")]
)
def test_output_nobody_can_take_is_an_error(terminal: Any, redirect: str, reason: str) -> None:
    terminal.write("x")
    for command in ("list", "write --help"):
        process = run_process("sh", "-c", f'"{sys.executable}" -m memoranda {command} {redirect}')
        assert process.returncode == 1
        assert process.stdout == b""
        assert process.stderr.decode() == f"Error: cannot write the output: {reason}\n"


def test_output_is_utf_8_in_any_locale(terminal: Any) -> None:
    terminal.write("深色模式")
    plain = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    process = run_process(*PROGRAM, "search", "深", env=plain)
    assert process.returncode == 0
    assert "深色模式" in process.stdout.decode()


HEAVY = (
    "mcp",
    "numpy",
    "pydantic",
    "asyncio",
    "ruamel",
    "yaml",
    "anthropic",
    "anyio",
    "memoranda.faces",
)


# What only a command that writes needs; each takes a millisecond or more to load.
WRITING = (
    "hashlib",
    "subprocess",
    "tempfile",
    "memoranda.engine.memory",
    "memoranda.engine.overview",
    "memoranda.engine.transaction",
    "memoranda.index.header_filters",
    "memoranda.index.writer",
    "memoranda.sources.locked_file",
    "memoranda.sources.graph_file",
    "memoranda.text.gate",
    "memoranda.text.orders",
)
# Modules of ours that a short command loads: 97 of 466 when this was written.
MOST_MODULES = 98
READING = [
    ("read", "light"),
    ("list",),
    ("search", "light"),
    ("recent",),
]


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_command_that_reads_loads_little(terminal: Any, command: tuple[str, ...]) -> None:
    ref = terminal.write("light")
    arguments = [ref if command[0] == "read" and word == "light" else word for word in command]
    program = (
        "import sys; from memoranda.cli import main; status = main(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    process = run_process(sys.executable, "-c", program, *arguments)
    assert process.returncode == 0, process
    assert b"light" in process.stdout
    loaded = process.stderr.decode().split()
    assert "memoranda.engine" in loaded
    names = [name for name in loaded if name.split(".")[0] in HEAVY or name in HEAVY]
    assert names == []
    names = [name for name in loaded if name in WRITING]
    assert names == []
    assert sum(name.startswith("memoranda") for name in loaded) <= MOST_MODULES


NEAR = [
    ("serach x", "Did you mean search?"),
    ("ad x", "Did you mean add"),
    ("project remov x", "Did you mean remove?"),
    ("remove x", "Did you mean delete?"),
    ("list --tag x", "Did you mean --tags?"),
    ("list --limt 3", "Did you mean --limit"),
    ("list --category preference", "Did you mean preferences? One of: soul, character,"),
    ("list --phase all", "One of: inbox, organized, archived."),
    ("list --scope al", "A scope is global, or agent:NAME"),
    ("list --agent No.Na/me", "An agent's name is of a-z"),
    ("search x --from soonish", "A day is YYYY-MM-DD, today, yesterday,"),
    ("log --since soonish", "Use e.g. 2h, 7d, yesterday,"),
    ("context x --project note", "Did you mean notes? Projects: banks,"),
    ("ingest --source obsidan", "Did you mean obsidian? One of: all, claude,"),
    ("call read_not", "Did you mean read_note"),
    ("read Plann", "Did you mean notes/plan?"),
    ("config get history.dayz", "Did you mean history.days?"),
    ("list --as-of soonish", "Use e.g. 2025-03-01, 2025-03 or yesterday."),
    ("import notes.jsonl", "Error: open input file: notes.jsonl: no such file"),
    ("export notes.jsonl", "Did you mean --output notes.jsonl?"),
    ("ingest ~/vault", "Did you mean --path ~/vault?"),
    ("find tea", "Did you mean search?"),
    ("remember tea", "Did you mean write?"),
    ("project list x", "Usage: memory project list [OPTIONS], e.g."),
    ("import a b", "Usage: memory import [OPTIONS] [FILE], e.g."),
    ("project find", "Commands: add, list, remove,"),
]


def test_near_misses_and_valid_values_stand_below_an_error(terminal: Any) -> None:
    terminal.ok("call", "write_note", '{"title": "Plan", "folder": "", "content": "x"}')
    for line, hint in NEAR:
        ran = terminal(*line.split())
        assert ran.err.splitlines()[-1].startswith(hint), line
        assert ran.err.startswith("Error: "), line


def test_every_command_has_an_example_that_names_it() -> None:
    group = memoranda.cli.command_group()
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        if isinstance(command, Command):
            inner = [command]
        else:
            inner = [command.get_command(None, module) for module in command._modules]
        for subcommand in inner:
            if subcommand is command:
                path = f"memory {subcommand.name}"
            else:
                path = f"memory {name} {subcommand.name}"
            assert subcommand.example.startswith(path), subcommand.name


def test_tags_without_their_option_are_answered_with_it(terminal: Any) -> None:
    ref = terminal.write("tea")
    ran = terminal("tag", ref, "drinks", "hot")
    assert (ran.status, ran.err) == (
        1,
        "Error: memory not found: drinks\nDid you mean --add drinks,hot?\n",
    )
    assert terminal("tag", "drinks", ref).error == "memory not found: drinks"
    assert terminal("tag", ref, "drinks", "--add", "x").error == "memory not found: drinks"


def test_an_interrupt_ends_with_130_and_silence(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(memoranda.cli, "command_group", interrupted)
    ran = terminal("list")
    assert (ran.status, ran.out, ran.err) == (130, "", "")


@pytest.mark.parametrize(
    ("option", "noun"), [("--home", "home"), ("--config", "configuration file")]
)
@pytest.mark.parametrize("place", ["", "  "])
def test_empty_place_is_refused_and_not_the_usual_one(terminal, option, noun, place):
    ran = terminal("list", option, place)
    assert ran.status == 1
    assert ran.err.startswith(f"Error: the {noun} is an empty text\n")


@pytest.mark.parametrize("argv", [("context", "tea"), ("search", "tea", "--ranked")])
def test_no_tokens_at_all_are_refused(terminal, argv):
    ran = terminal(*argv, "--max-tokens", "0")
    assert ran.status == 2
    assert "must be at least 1" in ran.err


def test_error_about_a_huge_argument_is_short(terminal):
    ran = terminal("read", "x" * 100_000, "--json")
    assert ran.json["error"]["message"].startswith("memory not found: xxx")
    assert len(ran.err) < 2_000
