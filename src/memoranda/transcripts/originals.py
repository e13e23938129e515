"""Reads the texts of turns from their transcripts: the index does not have them."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.transcripts.formats import FORMATS
from memoranda.transcripts.turn import NotUnderstood

if TYPE_CHECKING:
    from memoranda.transcripts.index import TurnRow
    from memoranda.transcripts.mask import Mask


def moment(time: int) -> datetime | None:
    """Convert the time of a turn, in seconds since 1970. None if it is 0, which means unknown."""
    if not time:
        return None
    return datetime.fromtimestamp(time, UTC)


def raw_text(turn: TurnRow) -> str | None:
    """Read the text of a turn from its transcript, secrets included. None if it is gone."""
    try:
        return FORMATS[turn.format].passage(Path(turn.path), turn.session, turn.position)
    except (OSError, NotUnderstood, ValueError, RecursionError, sqlite3.Error):
        return None


def text_of(turn: TurnRow, mask: Mask) -> str | None:
    """Read the text of a turn from its transcript, without secrets. None if it is gone.

    mask: takes out the secrets.
    """
    text = raw_text(turn)
    if text is None:
        return None
    return mask.clean(text)
