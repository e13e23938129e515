"""`token add | list | revoke` and `space add | list | remove | member` (docs/http.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Failure, table_row
from commonplace.cli.syntax import Names, Number, Text, command, group, option
from commonplace.query import split_list

if TYPE_CHECKING:
    from commonplace.serve.auth import Access, Space, StoredToken

_KEYS = ("id", "name", "begins", "scope", "projects", "agent", "member", "expires", "rate", "quota", "used", "state")
_SPACE_KEYS = ("name", "home", "members")
_ROW = "{:<8} {:<16} {:<11} {:<6} {:<12} {:<10} {:<10} {:<8} {}"
_SPACE_ROW = "{:<16} {:<30} {}"
_SCOPES = Names("scope", lambda _: ("read", "write", "admin"))

token = group("token", "token_commands", "add list revoke",
              "Make, list and revoke the tokens with which callers reach the memory over HTTP.")  # fmt: skip
space = group("space", "token_commands", "add list remove member",
              "Memories several people share over HTTP, each with a home of its own.")  # fmt: skip


def _access(call: Invocation) -> Access:
    from commonplace.serve.auth import Access

    if call.caller is not None:
        raise Failure("only the owner gives access; run this without an agent's name")
    return Access(call.settings.home, call.clock)


def _row(each: StoredToken, access: Access) -> dict[str, Any]:
    state = "revoked" if each.revoked else "valid" if access.by_id(each.id) else "expired"
    row = {key: getattr(each, key, None) for key in _KEYS}
    return row | {"begins": each.shown, "projects": list(each.projects), "state": state}


@command("add", "NAME", now=True, keys={"token": _KEYS, "secret": ()}, example="memory token add laptop --expires 90d")
@option("--scope", type=_SCOPES, default="write", help="What it may do: read, write, or admin (projects too).")
@option("--projects", metavar="LIST", help="The only projects there are for it, separated by commas [all].")
@option("--as-agent", metavar="NAME", help="The agent it acts as [the token's name].")
@option("--member", metavar="NAME", help="Whose it is: for the spaces NAME is a member of, not for this home.")
@option("--expires", metavar="TIME", help="How long it is valid, e.g. 90d [for good].")
@option("--rate", type=Number(), default=600, help="Calls a minute; 0 = any number.")
@option("--quota", type=Number(), default=0, help="Calls a day; 0 = any number.")
def token_add(
    call: Invocation, name: str, *, scope: str, projects: Text, as_agent: Text, member: Text, expires: Text,
    rate: int, quota: int,
) -> None:  # fmt: skip
    """Make a token. Its secret is shown this once; only a hash of it is kept."""
    from commonplace.clock import duration
    from commonplace.engine.writing import is_agent
    from commonplace.serve.auth import check_name

    if as_agent is not None and not is_agent(as_agent):
        raise Failure(f'invalid agent "{as_agent}"')
    access = _access(call)
    lasts = None if expires is None else duration(expires)
    wanted = split_list(projects)
    if projects is not None and not wanted:
        raise Failure("--projects names no project; leave it out for all of them")
    if member is not None:
        if as_agent is not None:
            raise Failure("in a space everybody acts as the agent of their member name; leave --as-agent out")
        check_name(member, "member")
        if not any(member in each.members for each in access.spaces().values()):
            raise Failure(f"{member} is no member of a space; make one with memory space member", "not_found")
    elif wanted:
        with call.memory() as memory:
            wanted = [memory.project(each).name for each in wanted]
    made, secret = access.add(
        name, scope=scope, projects=wanted, agent=as_agent, member=member, lasts=lasts, rate=rate, quota=quota
    )
    text = f"Token {made.name} ({made.scope}). It is shown this once:\n{secret}"
    call.answer(text, token=_row(made, access), secret=secret)


@command("list", now=True, keys={"tokens": _KEYS}, example="memory token list")
def token_list(call: Invocation) -> None:
    """List the tokens, revoked and expired ones included."""
    access = _access(call)
    rows = [_row(each, access) for each in access.tokens()]
    lines = [table_row(_ROW, "Id", "Name", "Begins", "Scope", "Agent", "Member", "Used", "State", "Projects")]
    lines += [
        table_row(_ROW, r["id"], r["name"], r["begins"], r["scope"], r["agent"], r["member"] or "-", r["used"] or "-",
                  r["state"], ", ".join(r["projects"]) or "all")
        for r in rows
    ]  # fmt: skip
    call.answer("\n".join(lines) if rows else "No tokens. Make one: memory token add NAME", tokens=rows)


@command("revoke", "NAME", now=True, keys={"token": _KEYS}, example="memory token revoke laptop")
def token_revoke(call: Invocation, name: str) -> None:
    """Make a token, given by name or id, invalid at once, with all OAuth gave out for it."""
    access = _access(call)
    gone = access.revoke(name)
    call.answer(f"Revoked token {gone.name} ({gone.id})", token=_row(gone, access))


def _space_row(each: Space) -> dict[str, Any]:
    return dict(zip(_SPACE_KEYS, (each.name, each.place, each.members), strict=True))


@command("add", "NAME", "[DIR]", keys={"space": _SPACE_KEYS}, example="memory space add team")
def space_add(call: Invocation, name: str, folder: Text = None) -> None:
    """Make a space: a memory with members, served at /s/NAME/mcp.

    DIR is its home [spaces/NAME of this home].
    """
    place = None if folder is None else Path(folder).expanduser().absolute()
    made = _access(call).add_space(name, place)
    call.answer(f"Added space {made.name} ({made.place})", space=_space_row(made))


@command("list", keys={"spaces": _SPACE_KEYS}, example="memory space list")
def space_list(call: Invocation) -> None:
    """List the spaces with their members and folders."""
    found = list(_access(call).spaces().values())
    lines = [table_row(_SPACE_ROW, "Name", "Members", "Folder")]
    for each in found:
        members = ", ".join(f"{name} ({role})" for name, role in sorted(each.members.items()))
        lines.append(table_row(_SPACE_ROW, each.name, members or "-", each.place))
    text = "\n".join(lines) if found else "No spaces. Make one: memory space add NAME"
    call.answer(text, spaces=[_space_row(each) for each in found])


@command("remove", "NAME", keys={"space": _SPACE_KEYS}, example="memory space remove team")
def space_remove(call: Invocation, name: str) -> None:
    """Take a space off the list. Its notes stay."""
    gone = _access(call).remove_space(name)
    call.answer(f"Removed space {gone.name}; its notes stay in {gone.place}", space=_space_row(gone))


@command("member", "SPACE", "NAME", "ROLE", keys={"space": _SPACE_KEYS}, example="memory space member team ann reader")
def space_member(call: Invocation, name: str, member: str, role: str) -> None:
    """Give NAME a role in a space: reader, member, owner, or none.

    A reader reads, a member writes too, an owner may also change projects. Tokens of NAME work at once:
    memory token add LAPTOP --member NAME.
    """
    access = _access(call)
    access.set_member(name, member, None if role == "none" else role)
    text = f"{member} is {f'no member of {name} any more' if role == 'none' else f'{role} of {name}'}"
    call.answer(text, space=_space_row(access.space(name)))
