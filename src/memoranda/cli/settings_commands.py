"""The commands `config`, `token` and `space`.

`config get | set | unset | list` are about the keys of config.yaml (contract 001, 15), whose meanings
are in ../config-keys.txt. `token add | list | revoke` and `space add | list | remove | member` are
about access over HTTP (docs/http.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda import config as settings_file
from memoranda import config_text
from memoranda.cli import output
from memoranda.cli.invocation import Invocation
from memoranda.cli.output import Failure, table_row
from memoranda.cli.syntax import Names, Number, Text, command, group, option
from memoranda.config import ConfigKey, key_named, keys
from memoranda.errors import ConfigError, ConfigFileError
from memoranda.query import split_list
from memoranda.text.user_path import absolute_path

if TYPE_CHECKING:
    from memoranda.config import Settings
    from memoranda.serve.auth import Access, Space, StoredToken

_SETTING_KEYS = ("key", "value", "default", "set", "meaning")
_SETTING_ROW = "{:<32} {:<24} {}"


def _plain_keys() -> list[ConfigKey]:
    """Return the settings with a fixed name, without those such as `agents.{name}`."""
    return [key for key in keys() if "{" not in key.name]


def _setting_completions(_: object) -> list[str]:
    """Return the settings for the completion of a shell: name, tab, meaning."""
    return [f"{key.name}\t{key.meaning}" for key in _plain_keys()]


config = group(
    "config",
    "settings_commands",
    "get set unset list",
    "Show and change the settings in config.yaml.",
)


def _settings(call: Invocation) -> Settings:
    """Return the settings, or the defaults if the file cannot be read.

    So the command can correct the file.
    """
    try:
        return call.settings
    except ConfigError:
        return settings_file.load(call.home, call.config, unread=True)


def _row(rows: dict[str, Any], key: ConfigKey) -> dict[str, Any]:
    """Return the JSON keys of one setting: its value, its default, whether it is set, and others.

    rows: the content of the configuration file.
    """
    stored = config_text.stored_value(rows, key.name)
    # A default in parentheses is a description: `(the system's)`.
    default = None if key.default.startswith("(") else _parsed_value(key.default, "")
    return {
        "key": key.name,
        "value": default if stored is None else stored,
        "default": default,
        "set": stored is not None,
        "meaning": key.meaning,
    }


def _parsed_value(text: str, default: str) -> Any:
    """Return the value that a person typed: YAML, or a list separated by commas.

    default: the default of the setting, as YAML. It begins with `[` if the setting is a list, which
        may also be typed with commas. "" for a setting without such a form.
    """
    import yaml

    if default.startswith("[") and not text.startswith("["):
        return split_list(text)
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    if isinstance(value, bool | int | list):
        return value
    return text


def _value_text(value: Any) -> str:
    """Return a value as a person reads it: `a, b` for a list, `true` for True, "" for None."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return ""
    return str(value)


@command(
    "get",
    "KEY",
    keys=_SETTING_KEYS,
    complete=_setting_completions,
    example="memory config get daemon.interval",
)
def config_get(call: Invocation, name: str) -> None:
    """Print the value of a setting: from config.yaml, or the default."""
    key = key_named(name)
    row = _row(config_text.read(_settings(call).file), key)
    call.answer(_value_text(row["value"]), **row)


@command(
    "set",
    "KEY",
    "VALUE...",
    keys=_SETTING_KEYS,
    complete=_setting_completions,
    example="memory config set timezone Asia/Shanghai",
)
def config_set(call: Invocation, name: str, *words: str) -> None:
    """Write a setting into config.yaml. Its other lines, comments and their order stay.

    Separate the items of a list by commas. A value that the setting cannot have is refused. Running
    programs use the new value from their next call on. For agents, bank, graph, llm, memory_tool,
    semantic, storage, daemon.interval and notes.agents_may_add_projects, they must be started again.
    """
    key = key_named(name)
    _write(call, key, _parsed_value(" ".join(words), key.default))


@command(
    "unset",
    "KEY",
    keys=_SETTING_KEYS,
    complete=_setting_completions,
    example="memory config unset timezone",
)
def config_unset(call: Invocation, name: str) -> None:
    """Remove a setting from config.yaml, so that it has its default again."""
    _write(call, key_named(name), None)


def _write(call: Invocation, key: ConfigKey, value: Any) -> None:
    """Write a setting to the configuration file, and answer with its new value.

    value: the value. None removes the setting.
    """
    from memoranda.engine import open_session

    settings = _settings(call)
    with open_session(agent=call.caller, config=settings, face="cli", watch=False) as memory:
        try:
            memory.configure(key.name, value)
        except ConfigFileError as error:
            # If the error is about this setting, the message need not name it twice.
            reason = error.problem if error.key == key.name else error.reason
            # A wrong value is in the command line, and any other fault is in the file.
            hint = "" if error.key == key.name else output.remedy(error)
            raise Failure(f"cannot set {key.name}: {reason}", error.code, hint) from None
    row = _row(config_text.read(settings.file), key)
    call.answer(f"{key.name}: {_value_text(row['value']) or key.default}", **row)


@command("list", keys={"file": (), "settings": _SETTING_KEYS}, example="memory config list")
def config_list(call: Invocation) -> None:
    """List all settings: the value, whether it is the default, and the meaning."""
    file = _settings(call).file
    rows = config_text.read(file)
    settings = []
    cells = []
    for key in _plain_keys():
        setting = _row(rows, key)
        settings.append(setting)
        if setting["set"]:
            value = _value_text(setting["value"])
        else:
            # Some defaults are only descriptions, in parentheses.
            default = _value_text(setting["default"]) or key.default.strip("()")
            value = f"{default} (default)"
        cells.append((key.name, value, key.meaning))
    if call.json:
        return call.document(file=str(file), settings=settings)
    last_lines = [str(file)] if call.on_terminal else []
    call.table(("Setting", "Value", "Meaning"), cells, *last_lines, form=_SETTING_ROW)


_TOKEN_KEYS = (
    "id",
    "name",
    "begins",
    "scope",
    "projects",
    "agent",
    "member",
    "expires",
    "rate",
    "quota",
    "used",
    "state",
)
_SPACE_KEYS = ("name", "home", "members")
_TOKEN_ROW = "{:<8} {:<16} {:<11} {:<6} {:<12} {:<10} {:<10} {:<8} {}"
_SPACE_ROW = "{:<16} {:<30} {}"
_SCOPES = Names("scope", lambda _: ("read", "write", "admin"))

token = group(
    "token",
    "settings_commands",
    "add list revoke",
    "Create, list and revoke the tokens that give access to the memory over HTTP.",
)
space = group(
    "space",
    "settings_commands",
    "add list remove member",
    "Manage memories that several people share over HTTP, each in a separate home.",
)


def _access(call: Invocation) -> Access:
    """Return the tokens and rights of this home. Raises Failure if an agent asks for them."""
    from memoranda import clock
    from memoranda.serve.auth import Access

    if call.caller is not None:
        raise Failure("only the owner gives access; run this without an agent's name")
    return Access(call.settings.home, call.own_clock or clock.now)


def _token_row(token: StoredToken, access: Access) -> dict[str, Any]:
    """Return the JSON keys of a token. Its state is `valid`, `expired` or `revoked`.

    access: finds the tokens that are still valid.
    """
    if token.revoked:
        state = "revoked"
    elif access.by_id(token.id):
        state = "valid"
    else:
        state = "expired"
    row = {key: getattr(token, key, None) for key in _TOKEN_KEYS}
    return row | {"begins": token.shown, "projects": list(token.projects), "state": state}


@command(
    "add",
    "NAME",
    now=True,
    keys={"token": _TOKEN_KEYS, "secret": ()},
    example="memory token add laptop --expires 90d",
)
@option(
    "--scope",
    type=_SCOPES,
    default="write",
    help="What the token allows: read, write, or admin (also projects).",
)
@option(
    "--projects",
    metavar="LIST",
    help="The only projects that it gives access to, separated by commas [all].",
)
@option(
    "--as-agent", metavar="NAME", help="The agent as which its user acts [the name of the token]."
)
@option(
    "--member",
    metavar="NAME",
    help="The member who uses it: in the spaces of this member, not in this home.",
)
@option("--expires", metavar="TIME", help="How long it is valid, e.g. 90d [forever].")
@option("--rate", type=Number(), default=600, help="The most calls in a minute; 0 = any number.")
@option("--quota", type=Number(), default=0, help="The most calls in a day; 0 = any number.")
def token_add(
    call: Invocation,
    name: str,
    *,
    scope: str,
    projects: Text,
    as_agent: Text,
    member: Text,
    expires: Text,
    rate: int,
    quota: int,
) -> None:
    """Make a token. Its secret is shown only now, because only a hash of it is stored."""
    from memoranda.clock import duration
    from memoranda.note.project_access import check_agent

    if as_agent is not None:
        check_agent(as_agent)
    access = _access(call)
    lifetime = None if expires is None else duration(expires)
    project_names = split_list(projects)
    if projects is not None and not project_names:
        raise Failure("--projects names no project; leave it out for all of them")
    if member is not None:
        # `--projects` then names projects of spaces, which this home may not have.
        _check_member(member, access, has_agent=as_agent is not None)
    elif project_names:
        with call.memory() as memory:
            # The names in the spelling of the home. An unknown name is an error.
            project_names = [memory.project(project_name).name for project_name in project_names]
    new_token, secret = access.add(
        name,
        scope=scope,
        projects=project_names,
        agent=as_agent,
        member=member,
        lasts=lifetime,
        rate=rate,
        quota=quota,
    )
    text = f"Token {new_token.name} ({new_token.scope}). It is shown this once:\n{secret}"
    call.answer(text, token=_token_row(new_token, access), secret=secret)


def _check_member(member: str, access: Access, *, has_agent: bool) -> None:
    """Check that a name is the name of a member of some space.

    access: knows the spaces and their members.
    has_agent: whether the new token names an agent. A member's token must not name one.

    Raises Failure or InvalidInput if the check fails.
    """
    from memoranda.serve.auth import check_name

    if has_agent:
        raise Failure(
            "in a space everybody acts as the agent of their member name; leave --as-agent out"
        )
    check_name(member, "member")
    if not any(member in space.members for space in access.spaces().values()):
        raise Failure(
            f"{member} is no member of a space; make one with memory space member", "not_found"
        )


@command("list", now=True, keys={"tokens": _TOKEN_KEYS}, example="memory token list")
def token_list(call: Invocation) -> None:
    """List the tokens, revoked and expired ones included."""
    access = _access(call)
    rows = [_token_row(token, access) for token in access.tokens()]
    if not rows:
        return call.answer("No tokens. Make one: memory token add NAME", tokens=rows)
    head = ("Id", "Name", "Begins", "Scope", "Agent", "Member", "Used", "State", "Projects")
    lines = [table_row(_TOKEN_ROW, *head)]
    lines += [_token_line(row) for row in rows]
    call.answer("\n".join(lines), tokens=rows)


def _token_line(row: dict[str, Any]) -> str:
    """Return the row of a token as a line of the table."""
    return table_row(
        _TOKEN_ROW,
        row["id"],
        row["name"],
        row["begins"],
        row["scope"],
        row["agent"],
        row["member"] or "-",
        row["used"] or "-",
        row["state"],
        ", ".join(row["projects"]) or "all",
    )


@command(
    "revoke", "NAME", now=True, keys={"token": _TOKEN_KEYS}, example="memory token revoke laptop"
)
def token_revoke(call: Invocation, name: str) -> None:
    """Revoke a token, given by name or id, and all tokens that OAuth issued for it."""
    access = _access(call)
    revoked_token = access.revoke(name)
    call.answer(
        f"Revoked token {revoked_token.name} ({revoked_token.id})",
        token=_token_row(revoked_token, access),
    )


def _space_row(space: Space) -> dict[str, Any]:
    """Return the JSON keys of a space: its name, its folder, and the role of each member by name."""
    return {"name": space.name, "home": space.place, "members": space.members}


@command("add", "NAME", "[DIR]", keys={"space": _SPACE_KEYS}, example="memory space add team")
def space_add(call: Invocation, name: str, folder: Text = None) -> None:
    """Make a space: a memory with members, served at /s/NAME/mcp.

    DIR is the folder of its home [spaces/NAME in this home].
    """
    place = None if folder is None else Path(absolute_path(folder))
    new_space = _access(call).add_space(name, place)
    call.answer(f"Added space {new_space.name} ({new_space.place})", space=_space_row(new_space))


@command("list", keys={"spaces": _SPACE_KEYS}, example="memory space list")
def space_list(call: Invocation) -> None:
    """List the spaces with their members and folders."""
    spaces = list(_access(call).spaces().values())
    if not spaces:
        return call.answer("No spaces. Make one: memory space add NAME", spaces=[])
    lines = [table_row(_SPACE_ROW, "Name", "Members", "Folder")]
    for space in spaces:
        members = ", ".join(f"{name} ({role})" for name, role in sorted(space.members.items()))
        lines.append(table_row(_SPACE_ROW, space.name, members or "-", space.place))
    call.answer("\n".join(lines), spaces=[_space_row(space) for space in spaces])


@command("remove", "NAME", keys={"space": _SPACE_KEYS}, example="memory space remove team")
def space_remove(call: Invocation, name: str) -> None:
    """Remove a space from the list. Its notes stay."""
    removed_space = _access(call).remove_space(name)
    call.answer(
        f"Removed space {removed_space.name}; its notes stay in {removed_space.place}",
        space=_space_row(removed_space),
    )


@command(
    "member",
    "SPACE",
    "NAME",
    "ROLE",
    keys={"space": _SPACE_KEYS},
    example="memory space member team ann reader",
)
def space_member(call: Invocation, name: str, member: str, role: str) -> None:
    """Give NAME a role in a space: reader, member, owner, or none.

    A reader may read, a member may also write, and an owner may also change projects. The role counts
    at once for tokens of NAME, which you make by memory token add LAPTOP --member NAME.
    """
    access = _access(call)
    access.set_member(name, member, None if role == "none" else role)
    if role == "none":
        text = f"{member} is no member of {name} any more"
    else:
        text = f"{member} is {role} of {name}"
    call.answer(text, space=_space_row(access.space(name)))
