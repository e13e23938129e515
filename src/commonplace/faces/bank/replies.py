"""Replies and refusals in the words of contract 003, 7."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from commonplace.errors import CommonplaceError, InvalidInput
from commonplace.faces.arguments import Arguments, check
from commonplace.faces.bank.names import KINDS
from commonplace.faces.bank.session import Session
from commonplace.faces.reply import Reply, error_reply
from commonplace.faces.tool import Tool

if TYPE_CHECKING:
    from commonplace.engine import Memory

FAILED = {
    "activate": "Failed to activate memory bank",
    "list": "Failed to list memory banks",
    "update": "Failed to update memory bank",
}
_CODES = {"activate": "activation_failed", "list": "list_failed", "update": "update_failed"}
_MILD = "content_processing_failed"


class BankError(CommonplaceError):
    """A refusal: `code` of contract 003, 7, the sentence, and what to know beside it. `bank` is the key of the
    bank it happened in, None when there is none."""

    def __init__(self, code: str, error: str, details: str = "", bank: str | None = None):
        super().__init__(error)
        self.code, self.details, self.bank = code, details or error, bank

    def of(self, bank: str) -> BankError:
        """The same, as what happened in this bank."""
        self.bank = bank
        return self


class Missing(InvalidInput):
    """An argument is missing that another one might have stood in for."""

    def __init__(self, name: str, tool: str):
        super().__init__(f"Parameter `{name}` is required for {tool}.")


def failed(tool: str, reason: str, details: str = "", code: str = "") -> BankError:
    """The refusal of a whole call."""
    return BankError(code or _CODES[tool], f"{FAILED[tool]}: {reason}", details or reason)


def check_kind(tool: str, kind: str) -> None:
    """Raises BankError for a kind of bank there is not."""
    if kind not in KINDS:
        reason = f"Invalid bank type: {kind}. Must be one of: {', '.join(KINDS)}."
        raise failed(tool, reason, code="invalid_bank_type")


def reason_of(error: CommonplaceError) -> str:
    """Why it failed, without the sentence around it where there is a plain reason."""
    return getattr(error, "reason", None) or str(error)


def answering(
    session: Session,
    row: Arguments,
    run: Callable[[Session, Memory, Arguments], dict[str, Any]],
    also: Arguments,
) -> Tool:
    """The tool a row of the definitions describes, with `run` behind it: arguments checked, data worded as JSON,
    refusals with their code.

    Values the schema lists are checked by `run`, which has its own words for them; so are the arguments that
    may stand in for each other. `also` holds schemata of further accepted arguments.
    """
    schema = row["inputSchema"]
    properties = {name: {"type": each["type"]} for name, each in schema["properties"].items()} | also
    required = [name for name in schema.get("required", ()) if name not in ("bank_type", "bank_id")]
    accepted = {"properties": properties, "required": required}

    def answer(memory: Memory, arguments: Any) -> Reply:
        try:
            given = check(arguments, accepted, "bank", row["name"])
        except InvalidInput as error:
            return error_reply(error)
        try:
            with session.lock:
                data = run(session, memory, given)
        except Missing as error:
            return _not_valid(error)
        except BankError as error:
            return _refusal(session, memory, error)
        except CommonplaceError as error:
            return _refusal(session, memory, failed(row["name"], reason_of(error)))
        return Reply(json.dumps(data, ensure_ascii=False, indent=2), data)

    return Tool(row["name"], row["description"], schema, answer, row["title"], row["annotations"], contract=None)


def _not_valid(error: InvalidInput) -> Reply:
    return error_reply(InvalidInput(f"Input validation error: {error}"))


def _refusal(session: Session, memory: Memory, error: BankError) -> Reply:
    with session.lock:
        before = session.recent.of(error.bank)
        if error.bank is not None:
            severity = "warning" if error.code == _MILD else "error"
            session.recent.add(error.bank, str(error), severity, memory.clock())
    data = {
        "status": "error",
        "error": str(error),
        "code": error.code,
        "details": error.details,
        "previous_errors": before,
    }
    return Reply(json.dumps(data, ensure_ascii=False, indent=2), data, is_error=True)
