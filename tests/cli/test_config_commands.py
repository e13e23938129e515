"""`memory config`: the settings with defaults and meanings, changed without touching the rest of
the file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from memoranda import config
from memoranda.config import keys

TEXT = """\
# mine
history:
  # long
  days: 30
daemon: {dream: no}  # never
"""


def test_a_value_is_read_from_the_file_or_is_the_default(terminal: Any) -> None:
    terminal.configure(TEXT)
    output = terminal.ok("config", "get", "history.days")
    assert output == "30\n"
    assert terminal.ok("config", "get", "daemon.interval") == "60s\n"
    row = terminal("config", "get", "daemon.dream", "--json").json
    assert row["value"] is False
    assert row["default"] is True
    assert row["set"] is True


@pytest.mark.promise("shell-4")
def test_setting_and_unsetting_keep_comments_and_order(terminal: Any) -> None:
    terminal.configure(TEXT)
    terminal.ok("config", "set", "history.days", "7")
    terminal.ok("config", "set", "timezone", "Asia/Shanghai")
    terminal.ok("config", "set", "daemon.decay_exempt", "soul, people")
    text = (terminal.home / "config.yaml").read_text()
    assert text.startswith(
        "# mine\nhistory:\n  # long\n  days: 7\ndaemon: {dream: no, decay_exempt: [soul, people]}"
    )
    assert "# never" in text
    assert text.endswith("timezone: Asia/Shanghai\n")
    for key in ("timezone", "daemon.decay_exempt", "history.days"):
        terminal.ok("config", "unset", key)
    assert terminal.ok("config", "get", "history.days") == "90\n"
    assert "# long" in (terminal.home / "config.yaml").read_text()
    assert config.load(terminal.home).dream is False


def test_a_section_with_nothing_left_goes_too(terminal: Any) -> None:
    terminal.configure("daemon: {decay_exempt: [soul]}\n# mine\nhistory: {days: 3}  # kept\n")
    terminal.ok("config", "unset", "daemon.decay_exempt")
    terminal.ok("config", "unset", "history.days")
    file = terminal.home / "config.yaml"
    text = file.read_text()

    assert text.split() == ["#", "mine", "history:", "{}", "#", "kept"]


@pytest.mark.promise("shell-4")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["set", "daemon.interval", "soon"], "cannot set daemon.interval: Not a duration"),
        (
            ["set", "daemon.interval", "9999999999d"],
            "cannot set daemon.interval: Duration too long",
        ),
        (
            ["set", "daemon.decay_exempt", "soul,sol"],
            'cannot set daemon.decay_exempt: invalid category "sol"',
        ),
        (
            ["set", "notification.day_hour", "24"],
            "cannot set notification.day_hour: must be 0 to 23",
        ),
        (["set", "timezone", "Mars/X"], 'cannot set timezone: "Mars/X" is unknown'),
        (["set", "history.dayz", "3"], 'unknown setting "history.dayz"'),
        (["get", "nonsense"], 'unknown setting "nonsense"'),
        (["set", "projects.work", "/x"], "projects are added and removed by memory project"),
    ],
)
def test_what_a_setting_cannot_be_is_refused(terminal: Any, argv: list[str], message: str) -> None:
    terminal.configure(TEXT)
    ran = terminal("config", *argv)

    assert ran.status == 1
    assert ran.error.startswith(message)
    text = (terminal.home / "config.yaml").read_text()
    assert text == TEXT


def test_a_file_that_stops_all_commands_is_mended(terminal: Any) -> None:
    terminal.configure("daemon:\n  interval: soon\n")
    assert terminal("list").status == 1
    terminal.ok("config", "set", "daemon.interval", "5m")
    terminal.ok("list")


@pytest.mark.parametrize("setting", [("daemon.interval", "5m"), ("daemon.keep", "soul")])
def test_a_file_that_is_no_yaml_is_refused(terminal: Any, setting: tuple[str, str]) -> None:
    terminal.configure("daemon: [\n")
    assert f"cannot set {setting[0]}: while parsing" in terminal("config", "set", *setting).error


def test_the_list_has_every_key_the_program_reads() -> None:
    assert all(hasattr(config.Settings, key.field) for key in keys() if key.field)
    assert all(key.meaning for key in keys())


def test_the_defaults_are_those_of_the_program(terminal: Any) -> None:
    settable_keys = [
        key for key in keys() if not key.default.startswith("(") and "{" not in key.name
    ]
    usual = config.Settings(terminal.home, terminal.home / "config.yaml")
    for settable_key in settable_keys:
        if settable_key.name != "storage.root":
            terminal.ok("config", "set", settable_key.name, settable_key.default)
    now = replace(config.load(terminal.home, environ={}), rows={}, stamp=None)

    assert {key: getattr(now, key) for key in vars(usual)} == vars(usual)


@pytest.mark.parametrize(
    "words",
    [
        ("config", "set", "gate.secrets", "allow"),
        ("config", "unset", "history.days"),
        ("transcripts", "on"),
    ],
)
def test_an_agent_does_not_change_the_configuration(terminal: Any, words: tuple[str, ...]) -> None:
    terminal.configure(TEXT)
    ran = terminal("--agent", "bob", *words)

    assert ran.status == 1
    assert "only the owner" in ran.err
    text = (terminal.home / "config.yaml").read_text()
    assert text == TEXT


def test_an_empty_name_of_a_file_of_rules_is_no_file(terminal: Any) -> None:
    terminal.ok("config", "set", "gate.rules", "")
    assert terminal.ok("write", "tea is green").startswith("Created ")


@pytest.mark.parametrize("text", [None, "oops\n"], ids=["missing", "broken"])
def test_a_write_that_a_file_of_rules_prevents_is_refused_with_a_remedy_that_works(
    terminal: Any, text: str | None
) -> None:
    terminal.ok("config", "set", "gate.rules", "my.rules")
    if text is not None:
        (terminal.home / "my.rules").write_text(text)
    ran = terminal("write", "tea is green")
    assert ran.status == 1
    remedy = "Correct my.rules, or use no rules of your own: memory config unset gate.rules"
    assert remedy in ran.err
    terminal.ok(*remedy.partition(": memory ")[2].split())
    assert terminal.ok("write", "tea is green").startswith("Created ")
