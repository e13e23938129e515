"""The face `bank`: the tools `activate`, `list` and `update` (contract 003, 2 and 4 to 8).

A bank is a folder of Markdown files for one kind of conversation.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from string import Template
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.clock import stamp
from memoranda.errors import (
    Exists,
    InvalidInput,
    MemorandaError,
    NotFound,
    NotText,
    OutsideError,
    StorageError,
)
from memoranda.faces.arguments import Arguments
from memoranda.faces.bank import bank as banks
from memoranda.faces.bank import placement
from memoranda.faces.bank.bank import (
    Bank,
    BankFiles,
    BankInfo,
    Puts,
    Repository,
    find_repository,
    is_bank_id,
    title_case,
    token_count,
)
from memoranda.faces.bank.placement import Placement
from memoranda.faces.reply import Reply
from memoranda.faces.tool import Tool, Toolset, declarations, flags_of, function_of
from memoranda.note.bank_files import FOLDERS
from memoranda.sources.files import NAME_REASONS
from memoranda.text.gate import default_rules

if TYPE_CHECKING:
    from memoranda.engine import MemorySession
    from memoranda.llm import Endpoint
    from memoranda.sources.base import File

_log = logging.getLogger("memoranda.bank")
DUMP = "cache_memory_dump.json"
# A server remembers at most this many failures, and a reply shows at most this many.
_MAX_FAILURES = 100
_MAX_FAILURES_IN_REPLY = 10
# The length of the digest that tells apart two repositories of one name.
_HASH_DIGITS = 6
_LLM_FAILED = "LLM processing failed, using fallback rule-based processing"
# Arguments that are recorded in the history of a bank -> their names there.
_JOURNAL_FIELDS = {
    "trigger_type": "trigger",
    "conversation_id": "conversation",
    "update_count": "update",
}
# At most this many characters of such an argument are recorded.
_JOURNAL_CHARACTERS = 200
_ID_RULE = (
    "A bank's id is 1 to 100 letters and digits of any script, blanks, `.`, `_`, `-`; "
    "no blank or `.` first, no `..`."
)
_TARGET_RULE = (
    "A file ends in .md; each part between `/` is 1 to 100 letters and digits of any script, "
    "blanks, `.`, `_`, `-`, with no blank or `.` first and no `..`. No link leads out of the bank. "
    "Leave target_file out to have one chosen."
)
_NAME_NEEDED = "Give project_name, or the bank's id in bank_id; list shows the banks there are."
_REPOSITORY_NEEDED = (
    "Give in current_path a folder inside the repository, or the bank's id in bank_id."
)
# The description of a bank that has none, by kind.
_DESCRIPTIONS = {
    "global": "Global conversation memory",
    "project": "Project {}",
    "code": "Code for {}",
}
# The code and the sentence of each tool's failure, as contract 003 has them.
_FAILED = {
    "activate": ("activation_failed", "Failed to activate memory bank"),
    "list": ("list_failed", "Failed to list memory banks"),
    "update": ("update_failed", "Failed to update memory bank"),
}


class BankError(MemorandaError):
    """The refusal of a call.

    code: the code of contract 003, 7.
    details: a longer explanation than the message, or the message.
    bank: the key of the bank that failed. None means that the caller made a mistake. It may be set
        later.
    is_in_replies: whether `bank` was given from the beginning. Only then does the error appear
        in `previous_errors`; a caller's mistake appears only in the dump of debug mode.
    """

    def __init__(self, code: str, error: str, details: str = "", bank: str | None = None):
        super().__init__(error)
        self.code = code
        self.details = details or error
        self.bank = bank
        self.is_in_replies = bank is not None


def _failure_of(
    tool: str, reason: str, details: str = "", code: str = "", bank: str | None = None
) -> BankError:
    """Make the error of a tool.

    reason: the reason, which follows the tool's own sentence.
    details: a longer explanation; "" repeats the reason.
    code: "" means the code that this tool usually has.
    bank: the key of the bank. None means that the caller made a mistake.
    """
    default, sentence = _FAILED[tool]
    return BankError(code or default, f"{sentence}: {reason}", details or reason, bank)


class _RecordedFailure(NamedTuple):
    """A failure that a server remembers.

    bank: the key of the bank.
    is_in_replies: whether `previous_errors` shows it. If not, only the dump does.
    entry: its timestamp, description and severity.
    """

    bank: str
    is_in_replies: bool
    entry: dict[str, str]


@dataclass(slots=True)
class ServerState:
    """The state of one server. The files of its banks are not part of it.

    debug: whether updates write a dump.
    llm: the language model that chooses files. None means that rules choose.
    active: kind -> id of the bank that was activated last.
    last_activated: the kind and the id of the bank that was activated last. None before the first.
    loaded: (agent, key of the bank) -> the files as they were read last.
    failures: the latest errors, which dumps and replies show.
    methods: (key of the bank, method) -> how often the method has chosen a file.
    lock: held while a call runs.
    """

    debug: bool = False
    llm: Endpoint | None = None
    active: dict[str, str] = field(default_factory=dict)
    last_activated: tuple[str, str] | None = None
    loaded: dict[tuple[str | None, str], BankFiles] = field(default_factory=dict)
    failures: deque[_RecordedFailure] = field(default_factory=lambda: deque(maxlen=_MAX_FAILURES))
    methods: Counter[tuple[str, str]] = field(default_factory=Counter)
    lock: RLock = field(default_factory=RLock)

    def load(self, bank: Bank) -> tuple[BankFiles, bool]:
        """Return the files of a bank, and whether they are unchanged since they were read last."""
        key = (bank.agent, bank.key)
        files_before = self.loaded.get(key)
        # The same object if nothing has changed.
        files = bank.load(files_before)
        self.loaded[key] = files
        return files, files is files_before

    def add_failure(
        self,
        bank: str,
        description: str,
        severity: str,
        moment: datetime,
        is_in_replies: bool = True,
    ) -> None:
        """Remember a failure.

        bank: the key of the bank.
        description: what failed, in words.
        severity: error, warning or info.
        moment: when.
        is_in_replies: whether `previous_errors` shows it. If not, only the dump does.
        """
        when = stamp(moment.replace(microsecond=0))
        entry = {"timestamp": when, "description": description, "severity": severity}
        self.failures.append(_RecordedFailure(bank, is_in_replies, entry))

    def failures_of(
        self, bank: str | None, limit: int = _MAX_FAILURES_IN_REPLY, with_mistakes: bool = False
    ) -> list[dict[str, str]]:
        """Return the latest failures of a bank, newest last.

        bank: the key of the bank. None gives an empty list.
        with_mistakes: whether to include mistakes of callers, which only the dump shows.
        """
        entries = [
            dict(failure.entry)
            for failure in self.failures
            if failure.bank == bank and (failure.is_in_replies or with_mistakes)
        ]
        return entries[-limit:]


Run = Callable[[ServerState, "MemorySession", Arguments], dict[str, Any]]


def toolset(
    *,
    debug: bool = False,
    llm_url: str | None = None,
    llm_model: str | None = None,
    llm_key: str | None = None,
) -> Toolset:
    """Make the toolset of one server, with a new ServerState.

    debug: whether a dump is written beside each updated bank.
    llm_url: the address of an OpenAI-compatible endpoint, which chooses the file of an update that
        names none. None means that rules choose.
    llm_model: the language model that the endpoint runs. None means that rules choose.
    llm_key: the API key of the endpoint. None if it needs none.
    """
    state = ServerState(debug)
    if llm_url and llm_model:
        from memoranda.llm import Endpoint

        state.llm = Endpoint(llm_url, llm_model, llm_key)
    own_module = sys.modules[__name__]
    tools = [
        _tool(state, row, function_of(row["name"], own_module))
        for row in declarations("bank-tools.json")
    ]
    return Toolset("bank", tools)


def _tool(state: ServerState, definition: dict[str, Any], run: Run) -> Tool:
    """Make a tool that runs `run` and replies with its data as JSON, also for errors.

    The tool shows the schema of its declaration, but its arguments are checked with a looser one
    (`_accepted_schema`). `run` checks everything else itself.

    definition: the declaration of the tool.
    """
    return Tool(
        name=definition["name"],
        description=definition["description"],
        schema=definition["inputSchema"],
        run=partial(_answer, state, definition["name"], run),
        title=definition["title"],
        annotations=definition["annotations"],
        contract="bank",
        accepts=_accepted_schema(definition),
        **flags_of(definition),
    )


def _accepted_schema(definition: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that arguments of a tool must fit before the tool runs.

    It has only the types of arguments, and which of them are required. Older clients send
    `conversation_type` for `bank_type`, and may leave out the id of the bank. So neither is required
    here: the tool itself finds out whether a bank is named.

    definition: the declaration of the tool.
    """
    schema = definition["inputSchema"]
    types = {
        key: {"type": property_schema["type"]}
        for key, property_schema in schema["properties"].items()
    }
    if definition["name"] == "activate":
        types["conversation_type"] = {"type": "string"}
    required = [key for key in schema.get("required", ()) if key not in ("bank_type", "bank_id")]
    return {"properties": types, "required": required}


def _answer(
    state: ServerState, tool: str, run: Run, memory: MemorySession, arguments: Arguments
) -> Reply:
    """Run a tool for one call, and reply with its data as JSON. A refusal is remembered.

    tool: the tool's name.

    Raises InvalidInput for arguments of a wrong type.
    """
    with state.lock:
        try:
            data = run(state, memory, arguments)
        except InvalidInput:
            raise
        except MemorandaError as error:
            refusal = error
            if not isinstance(refusal, BankError):
                refusal = _failure_of(tool, _reason_of(error), error.hint)
            # `previous_errors` has only earlier errors, so this one is remembered afterwards.
            data = {
                "status": "error",
                "error": str(refusal),
                "code": refusal.code,
                "details": refusal.details,
                "previous_errors": state.failures_of(refusal.bank),
            }
            _remember(state, refusal, memory.clock())
            text = json.dumps(data, ensure_ascii=False, indent=2)
            return Reply(text, data, is_error=True, message=str(refusal))
    return Reply(json.dumps(data, ensure_ascii=False, indent=2), data)


def _remember(state: ServerState, refusal: BankError, now: datetime) -> None:
    """Remember a refusal among the failures of its bank. A caller's mistake belongs to no bank."""
    if refusal.bank is None:
        return
    severity = "warning" if refusal.code == "content_processing_failed" else "error"
    message = default_rules().redacted(str(refusal))
    state.add_failure(refusal.bank, message, severity, now, is_in_replies=refusal.is_in_replies)


def _reason_of(error: MemorandaError) -> str:
    """Return why a call failed: the `reason` of an error, or else its message.

    Advice on tools of other toolsets is left out of the message.
    """
    if error.advice is not None:
        return str(error).replace(error.advice.text, error.advice.otherwise)
    return getattr(error, "reason", None) or str(error)


def _is_bad_name(error: MemorandaError) -> bool:
    """Whether an error means that a path cannot be used, because of a name or a link in it."""
    return isinstance(error, OutsideError) or (
        isinstance(error, StorageError) and error.reason in NAME_REASONS
    )


def _missing_error(name: str, tool: str) -> InvalidInput:
    """Return the error for a call that lacks the argument `name`."""
    return InvalidInput(f"Input validation error: Parameter `{name}` is required for {tool}.")


def _check_kind(tool: str, kind: str) -> None:
    """Raise BankError for an unknown kind of bank."""
    if kind not in banks.KINDS:
        reason = f"Invalid bank type: {kind}. Must be one of: {', '.join(banks.KINDS)}."
        raise _failure_of(tool, reason, code="invalid_bank_type")


def list_(state: ServerState, memory: MemorySession, arguments: Arguments) -> dict[str, Any]:
    """List the banks of each kind, or of the kind that the call names. The one used last is first."""
    kinds: tuple[str, ...] = banks.KINDS
    named_kind = arguments.get("bank_type")
    if named_kind:
        _check_kind("list", named_kind)
        kinds = (named_kind,)
    return {FOLDERS[kind]: _bank_documents(memory, kind) for kind in kinds}


def _bank_documents(memory: MemorySession, kind: str) -> list[dict[str, Any]]:
    """Describe the banks of a kind, the one used last first. Of equal times, the first by id."""
    # The first call imports the engine: a server must answer the handshake quickly.
    from memoranda import documents
    from memoranda.engine.plain_files import Files

    try:
        entries = Files(memory, banks.PROJECT).entries(FOLDERS[kind])
    except NotFound:
        entries = []
    # A link may lead out of the memory, so it is no bank.
    folders = [name for name, place in entries if place.kind == "folder" and not place.link]
    rows = []
    for id in sorted(filter(is_bank_id, folders)):
        bank = Bank(memory, kind, id)
        # A folder without a record and without files is no bank.
        if not bank.exists():
            continue
        description = bank.info().description or _DESCRIPTIONS[kind].format(title_case(id))
        last_used = bank.last_change(bank.stamps().values())
        rows.append(documents.bank(id, last_used, description))
    return sorted(rows, key=lambda row: row["last_used"], reverse=True)


def activate(state: ServerState, memory: MemorySession, arguments: Arguments) -> dict[str, Any]:
    """Open a bank, or create it. Returns its files, and instructions on how to use them."""
    from memoranda import documents

    kind, id, repository = _bank_of_arguments(memory, arguments)
    bank = Bank(memory, kind, id)
    named_id = arguments.get("bank_id")
    is_detected = named_id is None or named_id in banks.AUTO
    try:
        if not bank.exists():
            _create(memory, bank, repository, arguments)
        elif repository is not None and is_detected:
            # A caller may name any bank, even for another repository, so a named one is not claimed.
            _claim(state, memory, bank, repository)
        files, is_cached = state.load(bank)
    except MemorandaError as error:
        if _is_bad_name(error):
            raise _failure_of("activate", f"Invalid bank id: {id}", _ID_RULE) from None
        raise _failure_of("activate", _reason_of(error), error.hint, bank=bank.key) from None
    if files.unreadable:
        # The error names only one file: the first that cannot be read.
        path, why = next(iter(files.unreadable.items()))
        raise _load_error(path, why, bank)

    # A later update that names no bank is about this one.
    state.active[kind] = bank.id
    state.last_activated = (kind, bank.id)
    last_updated = bank.last_change(files.stamps.values())
    document = documents.opened_bank(kind, bank.id, files.texts, last_updated)
    return {
        "status": "success",
        "bank_info": document | {"cache_info": _cache_info(bank, files, is_cached)},
        "content": dict(files.texts),
        "custom_instructions": _instructions(bank, repository),
        "previous_errors": state.failures_of(bank.key),
    }


def _cache_info(bank: Bank, files: BankFiles, is_cached: bool) -> dict[str, Any]:
    """Return the size of a bank that was activated, and whether its files were in memory."""
    count = token_count(files.texts.values())
    origin = "in memory" if is_cached else "read from disk"
    _log.debug("activated %s, about %d tokens, %s", bank.key, count, origin)
    return {
        "cache_hit": is_cached,
        "approximate_tokens": count,
        "optimization_recommended": count > banks.MANY_TOKENS,
    }


def _create(
    memory: MemorySession, bank: Bank, repository: Repository | None, arguments: Arguments
) -> None:
    """Create a bank with the files of its template. Raises MemorandaError.

    repository: the Git repository that the bank belongs to; None for none.
    arguments: the arguments of `activate`, which may name the project.
    """
    name = title_case(bank.id)
    if repository is not None:
        name = repository.name
    elif bank.kind == "project":
        name = _printable(arguments.get("project_name") or "") or name
    description = (arguments.get("project_description") or "").strip()
    info = BankInfo(name, description, repository)
    now = memory.clock()

    def files_to_write() -> Puts:
        """Return the files of the template, or nothing if another process has created the bank."""
        if bank.exists():
            return {}
        return bank.first_files(info, now)

    bank.files.put(files_to_write, "create")


def _printable(text: str) -> str:
    """Return a text in one line, with single blanks, and without control characters."""
    characters = [sign if sign.isprintable() else " " for sign in text]
    return " ".join("".join(characters).split())


def _claim(state: ServerState, memory: MemorySession, bank: Bank, repository: Repository) -> None:
    """Record that a bank belongs to a repository.

    If that fails, the failure is only remembered, because the bank can be read all the same.
    """
    try:
        bank.claim(repository)
    except MemorandaError as error:
        reason = f"The bank could not be marked as that of its repository: {_reason_of(error)}"
        state.add_failure(bank.key, reason, "warning", memory.clock())


def _bank_of_arguments(
    memory: MemorySession, arguments: Arguments
) -> tuple[str, str, Repository | None]:
    """Return (kind, id, repository) of the bank that `activate` is called for.

    The repository is None if the caller's path is in none. Raises BankError, InvalidInput.
    """
    # Older clients send `conversation_type` for `bank_type` (its alias), and may leave out the id.
    by_alias = "bank_type" not in arguments
    kind = arguments.get("conversation_type" if by_alias else "bank_type")
    if kind is None:
        raise _missing_error("bank_type", "activate")
    _check_kind("activate", kind)
    id = arguments.get("bank_id", "auto" if by_alias else None)
    if id is None:
        raise _missing_error("bank_id", "activate")

    # A folder of code belongs to the bank of its repository. Older clients call it a project.
    path = arguments.get("current_path")
    may_be_code = kind == "code" or (by_alias and kind == "project")
    repository = find_repository(path) if path and may_be_code else None
    if repository is not None:
        kind = "code"
    if id in banks.AUTO:
        id = _detected_id(memory, arguments, kind, repository, by_alias=by_alias)
    if not is_bank_id(id):
        details = f"{_ID_RULE} Give another in bank_id."
        raise _failure_of("activate", f"Invalid bank id: {id}", details)
    return kind, id, repository


def _detected_id(
    memory: MemorySession,
    arguments: Arguments,
    kind: str,
    repository: Repository | None,
    *,
    by_alias: bool,
) -> str:
    """Return the id of a bank that the caller did not name. Raises BankError.

    kind: the kind of bank: `global`, `project` or `code`.
    repository: the repository at the caller's path; None without one.
    by_alias: whether the kind came as `conversation_type`.
    """
    # There is only one bank of this kind.
    if kind == "global":
        return "default"
    if kind == "project":
        name = (arguments.get("project_name") or "").strip()
        if name:
            return banks.project_id(name)
        needed = "is required to detect a project bank"
        if by_alias:
            needed = "is required for project conversations."
        reason = f"Project name {needed}"
        raise _failure_of("activate", reason, details=_NAME_NEEDED, code="bank_not_found")
    if repository is not None:
        return _repository_bank_id(memory, repository)
    place = arguments.get("current_path") or "no current_path was given"
    reason = f"No Git repository found at: {place}"
    raise _failure_of("activate", reason, details=_REPOSITORY_NEEDED, code="bank_not_found")


def _repository_bank_id(memory: MemorySession, repository: Repository) -> str:
    """Return the id of a repository's bank.

    Two repositories may have folders of the same name, such as `my_app`. The first one gets the
    plain id `my_app`, and any other one the id with a digest, such as `my_app-3f2a9c`.
    """
    plain_id = banks.repository_id(repository.name)
    hashed_id = _hashed_id(plain_id, repository)
    owns_plain_id = Bank(memory, "code", plain_id).belongs_to(repository)
    if owns_plain_id:
        return plain_id
    # None means that the bank records no repository, so that it is free.
    is_plain_id_free = owns_plain_id is None
    if not is_plain_id_free:
        return hashed_id
    # The repository may have got a hashed id while the plain one was taken. It stays with it.
    owns_hashed_id = Bank(memory, "code", hashed_id).belongs_to(repository)
    if owns_hashed_id:
        return hashed_id
    return plain_id


def _hashed_id(id: str, repository: Repository) -> str:
    """Return an id with a digest of the repository's path, e.g. `my_app-3f2a9c`.

    A long id is cut, so that the result is valid.
    """
    suffix = hashlib.sha256(repository.root.encode()).hexdigest()[:_HASH_DIGITS]
    stem = id
    while not is_bank_id(f"{stem}-{suffix}"):
        stem = stem[:-1]
    return f"{stem}-{suffix}"


def _instructions(bank: Bank, repository: Repository | None) -> dict[str, Any]:
    """Return the instructions of `activate` for the model: directives, prompts and examples.

    repository: the Git repository that the bank belongs to; None for none.
    """
    data = banks.bank_data("instructions")
    prompts = data["prompts"]
    git_line = ""
    if repository is not None and (repository.branch or repository.commit):
        template = Template(prompts["branch" if repository.branch else "detached"])
        sentence = template.safe_substitute(branch=repository.branch, commit=repository.commit)
        git_line = f"\n{sentence}\n"
    name = bank.info().name if repository is None else repository.name
    values = {
        "type": bank.kind,
        "id": bank.id,
        "name": name,
        "rules": data["rules"][bank.kind].strip(),
        "git": git_line,
    }
    # The id of each prompt, with the key of its text.
    prompt_keys = {"memory_bank_automation": "automation", f"{bank.kind}_default": bank.kind}
    return {
        "directives": [*data["directives"]["all"], *data["directives"].get(bank.kind, [])],
        "prompts": [
            {"id": id, "text": Template(prompts[key]).substitute(values).strip()}
            for id, key in prompt_keys.items()
        ],
        "examples": {
            "trigger_patterns": data["trigger_patterns"],
            "verification": data["verification"],
        },
    }


def update(state: ServerState, memory: MemorySession, arguments: Arguments) -> dict[str, Any]:
    """Write a text into a file of a bank."""
    kind, id = _bank_to_update(state, arguments)
    bank = Bank(memory, kind, id)
    try:
        # Called only for its error: it raises if the folder of the bank is a link, before a model
        # is asked for a file.
        bank.has_record()
        placed = _placement(state, memory, bank, arguments)
        became_too_large = _write(state, memory, bank, placed, arguments)
    except MemorandaError as error:
        raise _update_error(bank, error) from None
    data: dict[str, Any] = {
        "status": "success",
        "updated_file": placed.target,
        "operation": placed.operation,
    }
    # There is a category only if the caller did not name the file.
    if placed.category is not None:
        data["bank_info"] = {"type": kind, "id": bank.id}
        data |= {
            "category": placed.category,
            "confidence": placed.confidence,
            "processing_method": placed.method,
        }
    count = arguments.get("update_count", "N/A")
    conversation = arguments.get("conversation_id") or "unknown"
    return data | {
        "cache_updated": True,
        "cache_optimized": False,
        "verification": f"// Update #{count} for conversation {conversation}",
        "next_actions": ["optimize"] if became_too_large else [],
        "previous_errors": state.failures_of(bank.key),
    }


def _bank_to_update(state: ServerState, arguments: Arguments) -> tuple[str, str]:
    """Return (kind, id) of the bank to update.

    If the arguments do not name a bank, it is the bank that was activated last. Raises BankError.
    """
    kind = arguments.get("bank_type")
    id = arguments.get("bank_id")
    has_only_one = (kind is None) != (id is None)
    if has_only_one:
        raise _missing_error("bank_type" if kind is None else "bank_id", "update")
    if kind is None:
        # If no bank was activated yet, there is no id, and the error below is about `auto/auto`.
        kind, id = state.last_activated or ("auto", None)
    else:
        _check_kind("update", kind)
        if id in banks.AUTO:
            id = state.active.get(kind)
    if id is None:
        details = (
            "No such bank was activated on this connection. Call activate first, or name the bank."
        )
        reason = f"Memory bank not found: {kind}/auto"
        raise _failure_of("update", reason, details=details, code="bank_not_found")
    if not is_bank_id(id):
        raise _failure_of("update", f"Invalid bank id: {id}", _ID_RULE)
    return kind, id


def _update_error(bank: Bank, error: MemorandaError) -> BankError:
    """Convert the error of a failed update to a BankError."""
    if isinstance(error, BankError):
        error.bank = bank.key
        return error
    if isinstance(error, OutsideError):
        return _failure_of("update", f"Invalid bank id: {bank.id}", _ID_RULE)
    if isinstance(error, StorageError):
        sentence = f"Failed to synchronize with disk: {error.reason}"
        return BankError("disk_sync_failed", sentence, error.reason, bank.key)
    return _failure_of("update", _reason_of(error), error.hint, bank=bank.key)


def _placement(
    state: ServerState, memory: MemorySession, bank: Bank, arguments: Arguments
) -> Placement:
    """Return where and how to write the text of an update.

    If the arguments name no file, rules or the language model choose one. But if the arguments name
    an operation, that one is used. Raises BankError if the update is impossible.
    """
    target = arguments.get("target_file") or None
    content = arguments["content"]
    operation = arguments.get("operation") or "append"
    position = arguments.get("position") or ""
    _check_update(bank, target, content, operation, position)
    if target:
        return Placement(target, content, operation, position)

    placed = _chosen_place(state, memory, bank, content)
    if arguments.get("operation"):
        placed.operation = operation
        placed.position = position
    # A text that was appended without a heading would become a part of the section before it.
    has_heading = placed.content.lstrip().startswith("#")
    if placed.operation == "append" and not has_heading:
        when = memory.clock().astimezone(memory.settings.zone)
        heading = f"## {title_case(placed.category or '')} - {when:%Y-%m-%d %H:%M}"
        placed.content = f"{heading}\n\n{placed.content}"
    return placed


def _check_update(
    bank: Bank, target: str | None, content: str, operation: str, position: str
) -> None:
    """Raise BankError for an update that cannot be carried out.

    target: the file that the caller names. None if no file is named.
    """
    if operation not in placement.OPERATIONS:
        names = ", ".join(placement.OPERATIONS)
        raise BankError(
            "invalid_operation",
            "Failed to update content: Invalid operation type",
            f"Invalid operation: {operation}. Must be one of: {names}.",
        )
    if target is not None and not banks.is_target(target):
        raise _failure_of("update", f"Invalid target file: {target}", _TARGET_RULE)
    if not content.strip():
        raise _failure_of("update", "content must not be blank")
    _, heading = placement.parse_position(position)
    if operation == "insert" and not heading:
        file = target or placement.place_by_rules(bank.kind, content).target
        reason = f"Failed to update file: {file}"
        raise _failure_of("update", reason, "position is required for insert")


def _chosen_place(state: ServerState, memory: MemorySession, bank: Bank, content: str) -> Placement:
    """Choose a file for a text, by the language model if one is configured, otherwise by rules."""
    files, _ = state.load(bank)
    texts = files.texts
    placed = placement.place_by_rules(bank.kind, content)
    if state.llm is not None and not state.llm.is_off:
        from memoranda.llm import NoAnswer

        try:
            placed = placement.place_by_llm(state.llm, bank.kind, texts, content)
        except NoAnswer as error:
            _log.debug("%s: %s", bank.key, error)
            state.add_failure(bank.key, _LLM_FAILED, "warning", memory.clock())
    state.methods[bank.key, placed.method] += 1
    if _log.isEnabledFor(logging.DEBUG):
        explanation = placement.explain(placed, texts, memory.clock())
        _log.debug("%s: %s", bank.key, json.dumps(explanation, ensure_ascii=False))
    return placed


def _write(
    state: ServerState, memory: MemorySession, bank: Bank, placed: Placement, arguments: Arguments
) -> bool:
    """Write the text of an update into its file, as one change.

    If the bank is new, its other files are written in the same change. Returns whether this change
    made the bank larger than MANY_TOKENS.
    """
    update_plan = _UpdatePlan(state, memory, bank, placed)
    try:
        bank.files.put(update_plan.plan, placed.operation, _journal_details(arguments))
    except MemorandaError as error:
        raise _write_error(error, bank, placed) from None
    # Read the new files now, so that the next call finds them in memory.
    state.load(bank)
    tokens = update_plan.tokens_after
    _log.debug("%s: %s %s, about %d tokens", bank.key, placed.operation, placed.target, tokens)
    was_small = update_plan.tokens_before <= banks.MANY_TOKENS
    return was_small and tokens > banks.MANY_TOKENS


class _UpdatePlan:
    """Plan the files that an update of a bank writes, and count the bank's tokens.

    The files are planned while the bank is locked. A change that has to be repeated plans them
    again, and counts again.

    tokens_before: about how many tokens the bank has before the update; 0 before `plan` has run.
    tokens_after: about how many tokens it has after the update; 0 before `plan` has run.
    """

    def __init__(
        self, state: ServerState, memory: MemorySession, bank: Bank, placed: Placement
    ) -> None:
        self._state = state
        self._memory = memory
        self._bank = bank
        self._placed = placed
        self.tokens_before = 0
        self.tokens_after = 0

    def plan(self) -> Puts:
        """Return the files to write. In debug mode, the dump is one of them."""
        files, _ = self._state.load(self._bank)
        puts = _puts(self._memory, self._bank, self._placed, files)
        texts_after = dict(files.texts)
        for path, (new_text, _) in puts.items():
            if path.endswith(".md"):
                texts_after[path] = new_text
        self.tokens_before = token_count(files.texts.values())
        self.tokens_after = token_count(texts_after.values())
        if self._state.debug:
            puts[DUMP] = (self._dump(texts_after), self._bank.read(DUMP))
        return puts

    def _dump(self, texts: Mapping[str, str]) -> str:
        """Return the JSON dump of a bank: its texts, token counts and errors.

        texts: the text of each file of the bank, by path.
        """
        state = self._state
        bank = self._bank
        ordered_texts = {path: texts[path] for path in banks.in_order(bank.kind, list(texts))}
        ways = (placement.BY_LLM, placement.BY_RULES)
        data = {
            "cache": ordered_texts,
            "metrics": {
                "total_tokens": self.tokens_after,
                "bank_tokens": {path: token_count([text]) for path, text in ordered_texts.items()},
                "timestamp": stamp(self._memory.clock().replace(microsecond=0)),
            },
            "processing_path": {way: state.methods[bank.key, way] for way in ways},
            "error_history": state.failures_of(bank.key, _MAX_FAILURES, with_mistakes=True),
        }
        return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def _journal_details(arguments: Arguments) -> dict[str, str]:
    """Return the facts about an update that the history keeps with the change."""
    details: dict[str, str] = {}
    for argument, key in _JOURNAL_FIELDS.items():
        value = arguments.get(argument)
        is_given = value is not None and value != ""
        if is_given:
            details[key] = str(value)[:_JOURNAL_CHARACTERS]
    return details


def _write_error(error: MemorandaError, bank: Bank, placed: Placement) -> MemorandaError:
    """Return the error that a caller gets for an update that could not be written.

    error: the error of the change. It is returned as it is unless the target cannot be a file.
    """
    from memoranda.engine.plain_files import NotADirectory

    is_bad_target = isinstance(error, Exists | NotADirectory) or _is_bad_name(error)
    if not is_bad_target:
        return error
    if placed.category is None:
        # The caller named the file.
        return _failure_of("update", f"Invalid target file: {placed.target}", _TARGET_RULE)
    sentence = f"Failed to process content for {placed.target}"
    return BankError("content_processing_failed", sentence, _reason_of(error), bank.key)


def _puts(memory: MemorySession, bank: Bank, placed: Placement, files: BankFiles) -> Puts:
    """Return the files to write for an update, each with its new text and the file that it replaces.

    A bank that does not exist yet gets all its first files.

    placed: where and how to write the text.
    files: the files that the bank has now.
    """
    if placed.target in files.unreadable:
        raise _load_error(placed.target, files.unreadable[placed.target], bank)
    first_files: Puts = {}
    if not bank.exists():
        first_files = bank.first_files(bank.info(), memory.clock())

    old = bank.read(placed.target)
    text = _text_to_change(bank, placed, old, first_files)
    puts: Puts = {placed.target: (placed.apply(text), old)}
    for path, put in first_files.items():
        puts.setdefault(path, put)
    return puts


def _text_to_change(bank: Bank, placed: Placement, old: File | None, first_files: Puts) -> str:
    """Return the text that an update changes.

    It is the text of the file. A missing file begins with the text of its template, or empty.

    placed: where and how to write the text.
    old: the file that is there. None if it is missing.
    first_files: the first files of a bank that does not exist yet. {} if it exists.

    Raises BankError if the file is not a text.
    """
    if old is not None:
        try:
            return old.data.decode()
        except UnicodeDecodeError:
            raise _load_error(placed.target, str(NotText(placed.target)), bank) from None
    if placed.target in first_files:
        text, _ = first_files[placed.target]
        return text
    # Only an insertion needs a text into which it is inserted.
    if placed.operation != "insert":
        return ""
    stem = placed.target.rpartition("/")[2].removesuffix(".md")
    template = banks.template_texts(bank.kind, bank.info()).get(placed.target)
    return template or f"# {title_case(stem)}\n"


def _load_error(path: str, why: str, bank: Bank) -> BankError:
    """Return the error for a file of a bank that cannot be read.

    path: the path of the file.
    why: the reason.
    """
    return BankError("cache_load_failed", f"Failed to load bank into cache: {path}", why, bank.key)


def parse_response(response: Any) -> dict[str, Any]:
    """Convert the reply of a bank tool, as a client in Python gets it, to a dict (contract 003, 10).

    response: a list of content items (objects with `.text`, or dicts with `"text"`), a result with
        `.content`, the pair (content, structured data), a JSON text, or the dict.

    Raises InvalidInput for anything else.
    """
    if isinstance(response, tuple) and len(response) == 2:
        content, structured = response
        if isinstance(structured, dict):
            return structured
        return parse_response(content)
    if isinstance(response, dict):
        content = response.get("content")
        if isinstance(content, list):
            return parse_response(content)
        return response
    if isinstance(response, list):
        texts = [text for text in map(_item_text, response) if isinstance(text, str)]
        if texts:
            return parse_response(texts[0])
    if isinstance(response, str):
        return _parsed_text(response)
    if hasattr(response, "content"):
        return parse_response(response.content)
    raise InvalidInput("This is no reply of a memory bank.")


def _item_text(item: Any) -> Any:
    """Return the text of a content item, which is a dict or an object. None if it has none."""
    if isinstance(item, dict):
        return item.get("text")
    return getattr(item, "text", None)


def _parsed_text(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises InvalidInput for any other text."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"This reply of a memory bank is no JSON: {text[:200]}") from None
    if not isinstance(data, dict):
        raise InvalidInput("This reply of a memory bank is no object.")
    return data
