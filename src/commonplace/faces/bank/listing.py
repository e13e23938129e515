"""list: which banks there are (contract 003, 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.faces.arguments import Arguments
from commonplace.faces.bank.bank import Bank, all_banks
from commonplace.faces.bank.copies import last_change
from commonplace.faces.bank.names import FOLDERS, KINDS, title_of
from commonplace.faces.bank.replies import check_kind
from commonplace.faces.bank.session import Session

if TYPE_CHECKING:
    from commonplace.engine import Memory


def list_banks(session: Session, memory: Memory, given: Arguments) -> dict[str, Any]:
    """All banks, or those of one kind, latest change first. Writes nothing."""
    wanted = given.get("bank_type")
    if wanted:
        check_kind("list", wanted)
    return {FOLDERS[kind]: _rows(memory, kind) for kind in KINDS if not wanted or kind == wanted}


def _rows(memory: Memory, kind: str) -> list[dict[str, str]]:
    rows = [_row(bank) for bank in all_banks(memory, kind)]
    rows.sort(key=lambda row: row["id"])
    rows.sort(key=lambda row: row["last_used"], reverse=True)
    return rows


def _row(bank: Bank) -> dict[str, str]:
    description = bank.beginning().description or _description(bank)
    last_used = last_change(bank, list(bank.notes().values()))
    return {"id": bank.id, "last_used": last_used, "description": description}


def _description(bank: Bank) -> str:
    if bank.kind == "global":
        return "Global conversation memory"
    return f"{'Project' if bank.kind == 'project' else 'Code for'} {title_of(bank.id)}"
