"""update: write something into a bank (contract 003, 6)."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commonplace.clock import stamp
from commonplace.errors import CommonplaceError, Exists, NotText, OutsideError, StorageError
from commonplace.faces.bank import asking, names, rules, templates
from commonplace.faces.bank.bank import Bank, Puts
from commonplace.faces.bank.blocks import AppendBlock, InsertInSection, named
from commonplace.faces.bank.copies import MANY_TOKENS, Copy, tokens
from commonplace.faces.bank.replies import BankError, Missing, check_kind, failed, reason_of
from commonplace.faces.bank.rules import BY_LLM, BY_RULES, Placement
from commonplace.faces.bank.session import KEPT, Session
from commonplace.faces.tool import Arguments
from commonplace.note.edit import Rewrite
from commonplace.store.files import NAME_REASONS

if TYPE_CHECKING:
    from commonplace.engine import Memory

_log = logging.getLogger("commonplace.bank")
DUMP = "cache_memory_dump.json"
LLM_FAILED = "LLM processing failed, using fallback rule-based processing"
_SAID = {"trigger_type": "trigger", "conversation_id": "conversation", "update_count": "update"}
_SAID_LENGTH = 200


@dataclass(slots=True)
class Change:
    """One update as it is to be carried out; `placed` when nobody named the file."""

    target: str
    operation: str
    content: str
    position: str
    placed: Placement | None = None

    @property
    def edit(self) -> AppendBlock | InsertInSection | Rewrite:
        """What happens to the file's text."""
        if self.operation == "replace":
            return Rewrite(self.content)
        return InsertInSection(self.position, self.content) if self.operation == "insert" else AppendBlock(self.content)


def update(session: Session, memory: Memory, given: Arguments) -> dict[str, Any]:
    """Check, find the file if none is named, write, answer."""
    kind, id = _bank_of(session, given)
    bank = Bank(memory, kind, id)
    try:
        _check_folder(bank)
        change = _change(session, memory, bank, given)
        grown = _write(session, memory, bank, change, given)
    except BankError as error:
        raise error.of(bank.key) from None
    except StorageError as error:
        raise _unwritten(error).of(bank.key) from None
    except CommonplaceError as error:
        raise failed("update", reason_of(error)).of(bank.key) from None
    return _reply(session, bank, change, grown, given)


def _reply(session: Session, bank: Bank, change: Change, grown: bool, given: Arguments) -> dict[str, Any]:
    data: dict[str, Any] = {"status": "success", "updated_file": change.target, "operation": change.operation}
    if change.placed is not None:
        data["bank_info"] = {"type": bank.kind, "id": bank.id}
        data["category"] = change.placed.category
        data["confidence"] = change.placed.confidence
        data["processing_method"] = change.placed.method
    count, conversation = given.get("update_count", "N/A"), given.get("conversation_id") or "unknown"
    return data | {
        "cache_updated": True,
        "cache_optimized": False,
        "verification": f"// Update #{count} for conversation {conversation}",
        "next_actions": ["optimize"] if grown else [],
        "previous_errors": session.recent.of(bank.key),
    }


def _bank_of(session: Session, given: Arguments) -> tuple[str, str]:
    """(kind, id) of the bank meant. Raises BankError when there is none."""
    kind, id = given.get("bank_type"), given.get("bank_id")
    if kind is None and id is None:
        if session.last is None:
            raise _no_bank("auto/auto")
        return session.last
    if kind is None or id is None:
        raise Missing("bank_type" if kind is None else "bank_id", "update")
    check_kind("update", kind)
    if id in names.AUTO:
        if kind not in session.active:
            raise _no_bank(f"{kind}/auto")
        id = session.active[kind]
    if not names.is_id(id):
        raise failed("update", f"Invalid bank id: {id}")
    return kind, id


def _check_folder(bank: Bank) -> None:
    """A bank must be a folder of its own, or not there yet."""
    try:
        bank.has_record()
    except OutsideError:
        raise failed("update", f"Invalid bank id: {bank.id}") from None


def _no_bank(place: str) -> BankError:
    details = "No such bank was activated on this connection. Call activate first, or name the bank."
    return failed("update", f"Memory bank not found: {place}", details, "bank_not_found")


def _change(session: Session, memory: Memory, bank: Bank, given: Arguments) -> Change:
    """The update the arguments ask for. Raises BankError before anything is written."""
    operation, target, content = (
        given.get("operation") or "append",
        given.get("target_file"),
        given["content"],
    )
    if operation not in asking.OPERATIONS:
        known = ", ".join(asking.OPERATIONS)
        details = f"Invalid operation: {operation}. Must be one of: {known}."
        raise BankError("invalid_operation", "Failed to update content: Invalid operation type", details)
    if target and not names.is_target(target):
        raise _bad_target(target)
    if not content.strip():
        raise failed("update", "content must not be blank")
    position = given.get("position") or ""
    if operation == "insert" and not named(position)[1]:
        file = target or rules.place(bank.kind, {}, content).target_file
        raise failed("update", f"Failed to update file: {file}", "position is required for insert")
    if target:
        return Change(target, operation, content, position)
    return _placed(session, memory, bank, content, given)


def _placed(session: Session, memory: Memory, bank: Bank, content: str, given: Arguments) -> Change:
    """The update of a file nobody named; what the caller did say is never overruled."""
    texts = session.copies.load(bank)[0].texts
    placed = _by_llm(session, memory, bank, texts, content) or rules.place(bank.kind, texts, content)
    session.ways[bank.key, placed.method] += 1
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("%s: %s", bank.key, json.dumps(placed.as_data(memory.clock()), ensure_ascii=False))
    if given.get("operation"):
        change = Change(placed.target_file, given["operation"], placed.content, given.get("position") or "", placed)
    else:
        change = Change(placed.target_file, placed.operation, placed.content, placed.position or "", placed)
    if change.operation == "append" and not change.content.lstrip().startswith("#"):
        when = memory.clock().astimezone(memory.settings.zone)
        change.content = f"## {names.title_of(placed.category)} - {when:%Y-%m-%d %H:%M}\n\n{change.content}"
    return change


def _by_llm(session: Session, memory: Memory, bank: Bank, texts: dict[str, str], content: str) -> Placement | None:
    """Where the language model puts it; None when there is none to ask, or none that can be followed."""
    if session.llm is None or session.llm.is_off:
        return None
    from commonplace.llm import NoAnswer

    try:
        return asking.ask(session.llm, bank.kind, texts, content)
    except NoAnswer as error:
        _log.debug("%s: %s", bank.key, error)
        session.recent.add(bank.key, LLM_FAILED, "warning", memory.clock())
        return None


def _write(session: Session, memory: Memory, bank: Bank, change: Change, given: Arguments) -> bool:
    """Carry it out as one change, with a new bank's other files. Returns whether the bank became large by it."""
    from commonplace.engine.files import NotADirectory

    before = after = 0

    def plan() -> Puts:
        nonlocal before, after
        copy, _ = session.copies.load(bank)
        fresh = {} if bank.exists() else bank.first_files(bank.beginning(), memory.clock())
        puts, texts = _puts(bank, change, copy, fresh)
        before, after = tokens(copy.texts.values()), tokens(texts.values())
        if session.debug:
            puts[DUMP] = (_dump(session, memory, bank, texts), bank.read(DUMP))
        return puts

    said = {word: str(given[name])[:_SAID_LENGTH] for name, word in _SAID.items() if given.get(name) not in (None, "")}
    try:
        bank.files.put(plan, change.operation, said)
    except (Exists, NotADirectory, OutsideError) as error:
        raise _unusable(change, error) from None
    except StorageError as error:
        if error.reason in NAME_REASONS:
            raise _unusable(change, error) from None
        raise
    session.copies.load(bank)
    _log.debug("%s: %s %s, about %d tokens", bank.key, change.operation, change.target, after)
    return before <= MANY_TOKENS < after


def _puts(bank: Bank, change: Change, copy: Copy, fresh: Puts) -> tuple[Puts, dict[str, str]]:
    """The files to write, the one the update is about first, and the texts the bank has then."""
    if change.target in copy.unreadable:
        raise _unloaded(change.target, copy.unreadable[change.target])
    old = bank.read(change.target)
    if old is not None:
        text = _decoded(change.target, old.data)
    elif change.target in fresh:
        text = fresh[change.target][0]
    elif change.operation == "insert":
        start = bank.beginning()
        text = templates.missing(bank.kind, change.target, start.name, start.description)
    else:
        text = ""
    puts: Puts = {change.target: (change.edit.apply(text).text, old)}
    puts |= {path: put for path, put in fresh.items() if path != change.target}
    texts = copy.texts | {path: put[0] for path, put in puts.items() if path.endswith(".md")}
    return puts, {path: texts[path] for path in templates.in_order(bank.kind, list(texts))}


def _decoded(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _unloaded(path, str(NotText(path))) from None


def _dump(session: Session, memory: Memory, bank: Bank, texts: dict[str, str]) -> str:
    """What a developer wants to see of the bank (contract 003, 8)."""
    metrics = {
        "total_tokens": tokens(texts.values()),
        "bank_tokens": {path: tokens([text]) for path, text in texts.items()},
        "timestamp": stamp(memory.clock().replace(microsecond=0)),
    }
    data = {
        "cache": texts,
        "metrics": metrics,
        "processing_path": {way: session.ways[bank.key, way] for way in (BY_LLM, BY_RULES)},
        "error_history": session.recent.of(bank.key, KEPT),
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _bad_target(target: str) -> BankError:
    return failed("update", f"Invalid target file: {target}")


def _unusable(change: Change, error: CommonplaceError) -> BankError:
    """The file's place is taken, or its way leads elsewhere."""
    if change.placed is None:
        return _bad_target(change.target)
    return BankError("content_processing_failed", f"Failed to process content for {change.target}", reason_of(error))


def _unloaded(path: str, why: str) -> BankError:
    return BankError("cache_load_failed", f"Failed to load bank into cache: {path}", why)


def _unwritten(error: StorageError) -> BankError:
    return BankError("disk_sync_failed", f"Failed to synchronize with disk: {error.reason}", error.reason)
