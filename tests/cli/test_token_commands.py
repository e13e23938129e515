"""`memory token` and `memory space`, and the options of `memory serve` for HTTP."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def secret(terminal):
    """The secret of a token of a laptop for 90 days, as it is shown once."""
    output = terminal.ok("token", "add", "laptop", "--expires", "90d", "--projects", "notes,kv")
    first, secret = output.splitlines()
    assert first == "Token laptop (write). It is shown this once:"
    return secret


def only_token(terminal, *more):
    (row,) = json.loads(terminal.ok("token", "list", "--json", *more))["tokens"]
    return row


def test_listed_token_has_its_projects_and_not_its_secret(terminal, secret):
    assert secret.startswith("cpl_")
    listed = terminal.ok("token", "list")
    assert "notes, kv" in listed
    assert secret not in listed


def test_listed_token_has_its_state_agent_and_member(terminal, secret):
    row = only_token(terminal)
    assert row["state"] == "valid"
    assert row["agent"] == "laptop"
    assert row["member"] is None


def test_token_is_expired_once_its_time_has_come(terminal, secret):
    assert only_token(terminal, "--now", "2099-01-01")["state"] == "expired"


def test_revoked_token_is_listed_as_revoked(terminal, secret):
    output = terminal.ok("token", "revoke", "laptop")
    assert output.startswith("Revoked token laptop")
    assert "revoked" in terminal.ok("token", "list")


def test_revoked_token_cannot_be_revoked_again(terminal, secret):
    terminal.ok("token", "revoke", "laptop")
    assert terminal("token", "revoke", "laptop").error == "no such token: laptop"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "x", "--scope", "all"], 'invalid scope "all"'),
        (["add", "X y"], 'invalid token name "X y"'),
        (["add", "x", "--projects", "nowhere"], "no such project: nowhere"),
        (["add", "x", "--projects", ","], "--projects names no project"),
        (["add", "x", "--member", "ann"], "ann is no member of a space"),
        (
            ["add", "x", "--member", "ann", "--as-agent", "b"],
            "in a space everybody acts as the agent",
        ),
        (["add", "x", "--as-agent", "a b"], 'invalid agent "a b"'),
        (["add", "x", "--expires", "soon"], 'Not a duration: "soon"'),
        (["add", "x", "--expires", "999999999d"], "a token cannot last that long"),
        (["add", "x", "--agent", "claude"], "only the owner gives access"),
        (["add", "x", "--rate", "-1"], 'invalid value "-1" for --rate'),
    ],
)
def test_a_token_that_cannot_be_is_refused(terminal, words, why):
    assert terminal("token", *words).error.startswith(why)
    assert terminal.ok("token", "list") == "No tokens. Make one: memory token add NAME\n"


def test_a_space_has_members_with_roles(terminal, tmp_path):
    assert terminal.ok("space", "list") == "No spaces. Make one: memory space add NAME\n"
    terminal.ok("space", "add", "team")
    terminal.ok("space", "add", "club", str(tmp_path / "club"))
    assert terminal.ok("space", "member", "team", "ann", "reader") == "ann is reader of team\n"
    assert "ann (reader)" in terminal.ok("space", "list")
    assert terminal.ok("token", "add", "ann-laptop", "--member", "ann")
    assert (
        terminal.ok("space", "member", "team", "ann", "none")
        == "ann is no member of team any more\n"
    )
    assert terminal("space", "member", "team", "ann", "none").error == "no such member of team: ann"
    assert terminal("space", "member", "team", "ann", "king").error.startswith(
        'invalid role "king"'
    )
    assert terminal("space", "member", "no", "ann", "owner").error == "no such space: no"
    assert terminal("space", "add", "team").error == "space exists: team"
    assert terminal("space", "add", "two", str(tmp_path / "club")).error.endswith(
        "choose another one"
    )
    assert "is or holds this home" in terminal("space", "add", "three", str(terminal.home)).error
    assert "its notes stay in" in terminal.ok("space", "remove", "club")
    assert (tmp_path / "club").is_dir()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--http", "nonsense"], "--http takes HOST:PORT"),
        (["--http", "0.0.0.0:0", "--no-token"], "--no-token is for this machine alone"),
        (
            ["--http", "127.0.0.1:0", "--public-url", "http://a.example"],
            "--public-url must be https://HOST",
        ),
        (["--no-token"], "--no-token, --public-url, --allow-host and --allow-origin need --http"),
        (["--http", "256.1.1.1:0"], "cannot listen on 256.1.1.1:0"),
    ],
)
def test_a_server_that_anybody_could_call_does_not_start(terminal, words, why):
    assert terminal("serve", *words).error.startswith(why)


def test_a_unit_file_names_its_configuration_and_starts_http(terminal):
    config = terminal.ok(
        "serve", "--config=~/c.yaml", "--agent", "claude", "--print-unit", "systemd"
    )
    assert f"--config {terminal.home.parent}/c.yaml --agent claude serve\n" in config
    words = [
        "--http",
        "127.0.0.1:8377",
        "--public-url",
        "https://m.example.org",
        "--allow-origin",
        "https://a.example",
    ]
    unit = terminal.ok("serve", "--print-unit", "systemd", *words)
    assert f"serve {' '.join(words)}\n" in unit
    assert "--no-token" in terminal.ok(
        "serve", "--print-unit", "launchd", "--http", "8377", "--no-token"
    )
