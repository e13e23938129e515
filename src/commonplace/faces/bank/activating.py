"""activate: find or make a bank and tell everything in it (contract 003, 2)."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError, OutsideError, StorageError
from commonplace.faces.bank import names, repository, templates
from commonplace.faces.bank.bank import Bank, Beginning
from commonplace.faces.bank.copies import MANY_TOKENS, Copy, last_change, tokens
from commonplace.faces.bank.replies import BankError, Missing, check_kind, failed, reason_of
from commonplace.faces.bank.repository import Repository
from commonplace.faces.bank.session import Session
from commonplace.faces.tool import Arguments
from commonplace.store.files import NAME_REASONS

if TYPE_CHECKING:
    from commonplace.engine import Memory

_log = logging.getLogger("commonplace.bank")
_HASH = 6


def activate(session: Session, memory: Memory, given: Arguments) -> dict[str, Any]:
    """Open the bank the arguments name or lead to, and make it the active one."""
    kind, id, found = _chosen(memory, given)
    bank = Bank(memory, kind, id)
    try:
        if not bank.exists():
            bank.create(_beginning(bank, given, found), memory.clock())
        elif found is not None and given.get("bank_id") in (None, *names.AUTO):
            _claim(session, memory, bank, found)
        copy, hit = session.copies.load(bank)
    except OutsideError:
        raise failed("activate", f"Invalid bank id: {id}") from None
    except StorageError as error:
        if error.reason in NAME_REASONS:
            raise failed("activate", f"Invalid bank id: {id}") from None
        raise failed("activate", error.reason).of(bank.key) from None
    except CommonplaceError as error:
        raise failed("activate", reason_of(error)).of(bank.key) from None
    for path, why in copy.unreadable.items():
        raise BankError("cache_load_failed", f"Failed to load bank into cache: {path}", why, bank.key)
    session.active[kind] = id
    session.last = kind, id
    return _reply(session, bank, copy, hit, found)


def _reply(session: Session, bank: Bank, copy: Copy, hit: bool, found: Repository | None) -> dict[str, Any]:
    count = tokens(copy.texts.values())
    _log.debug("activated %s, about %d tokens, %s", bank.key, count, "in memory" if hit else "read from disk")
    name = found.name if found is not None else bank.beginning().name
    cache = {"cache_hit": hit, "approximate_tokens": count, "optimization_recommended": count > MANY_TOKENS}
    return {
        "status": "success",
        "bank_info": {
            "type": bank.kind,
            "id": bank.id,
            "files": list(copy.texts),
            "last_updated": last_change(bank, copy.stamps.values()),
            "cache_info": cache,
        },
        "content": dict(copy.texts),
        "custom_instructions": templates.instructions(bank.kind, bank.id, name, found),
        "previous_errors": session.recent.of(bank.key),
    }


def _chosen(memory: Memory, given: Arguments) -> tuple[str, str, Repository | None]:
    """(kind, id, the repository of a code bank) the arguments mean."""
    by_alias = "bank_type" not in given
    kind = given.get("conversation_type" if by_alias else "bank_type")
    if kind is None:
        raise Missing("bank_type", "activate")
    check_kind("activate", kind)
    id = given.get("bank_id", "auto" if by_alias else None)
    if id is None:
        raise Missing("bank_id", "activate")
    path = given.get("current_path") or ""
    may_be_code = kind == "code" or (by_alias and kind == "project")
    found = repository.find(path) if path and may_be_code else None
    if by_alias and kind == "project" and found is not None:
        kind = "code"
    if id in names.AUTO:
        id = _detected(memory, kind, given, found, by_alias)
    if not names.is_id(id):
        raise failed("activate", f"Invalid bank id: {id}")
    return kind, id, found


def _detected(memory: Memory, kind: str, given: Arguments, found: Repository | None, by_alias: bool) -> str:
    if kind == "global":
        return "default"
    if kind == "project":
        name = (given.get("project_name") or "").strip()
        if not name:
            needed = "is required for project conversations." if by_alias else "is required to detect a project bank"
            raise failed("activate", f"Project name {needed}", code="bank_not_found")
        return names.id_of_project(name)
    if found is None:
        path = given.get("current_path") or "no current_path was given"
        raise failed("activate", f"No Git repository found at: {path}", code="bank_not_found")
    return _of_repository(memory, found)


def _of_repository(memory: Memory, found: Repository) -> str:
    """The id of the bank that is this repository's, or would be: its own, not one of the same name elsewhere."""
    plain = names.id_of_repository(found.name)
    marked = names.marked(plain, hashlib.sha256(found.root.encode()).hexdigest()[:_HASH])
    owners = {id: Bank(memory, "code", id).belongs_to(found) for id in (plain, marked)}
    for id, is_owner in owners.items():
        if is_owner:
            return id
    return plain if owners[plain] is None else marked


def _claim(session: Session, memory: Memory, bank: Bank, found: Repository) -> None:
    """A bank without a repository that was found through one is this one's from now on."""
    if bank.belongs_to(found) is not None:
        return
    try:
        bank.claim(found)
    except CommonplaceError as error:  # it can be read all the same
        reason = f"The bank could not be marked as that of its repository: {reason_of(error)}"
        session.recent.add(bank.key, reason, "warning", memory.clock())


def _beginning(bank: Bank, given: Arguments, found: Repository | None) -> Beginning:
    """How a new bank begins."""
    name = ""
    if bank.kind == "project":
        name = "".join(sign if sign.isprintable() else " " for sign in given.get("project_name") or "")
        name = " ".join(name.split())
    description = (given.get("project_description") or "").strip()
    if found is not None:
        name = found.name
    return Beginning(name or names.title_of(bank.id), description, found)
