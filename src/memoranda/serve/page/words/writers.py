"""Says who wrote a note or made a change: you, an agent, upkeep, or something outside."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from memoranda.index.rows import NoteInfo
from memoranda.jobs.lifecycle import FACE
from memoranda.ledger.change import IMPORTING, Change
from memoranda.note.model import Note, Provenance

_OWNER = "owner"
BY_HAND = "manual"
"""The source of a memory that names none."""
AUTHORS = {"owner": "You", "file": "a file", "import": "an import", "web": "a web page"}
"""The words for authors that are not agents."""
# The words for the interfaces of memoranda. Other programs are shown by their own names. That the
# daemon carried something out is no news to a person.
_INTERFACES = {
    "cli": "on the command line",
    "page": "on the page",
    "python": "in Python",
    "socket": "",
    FACE: "",
}
# Verbs of upkeep when the daemon did them for nobody.
_JOBS = frozenset(
    ("classify", "upgrade", "consolidate", "decay", "expire", "remind", "fire", "merge", "link")
)
# Colours of the avatars of agents, in the style sheet.
_COLOURS = 8


def colour_of(agent: str | None) -> str:
    """Return the CSS class for the colour of an agent's avatar: `c3`, or `me` for the owner (None).

    The colour depends on the name alone, so it is the same on every page and machine.
    """
    if agent is None:
        return "me"
    # The second byte of this checksum gives different colours to the most used agents.
    return f"c{(crc32(agent.encode('utf-8', 'replace')) >> 8) % _COLOURS}"


def initial_of(agent: str | None) -> str:
    """Return the letters in an agent's avatar: two of a Latin name, otherwise one.

    agent: the name of the agent. None means the owner, who has no letters: "".
    """
    name = (agent or "").lstrip("<>[]()")
    is_latin = name[:2].isascii()
    if is_latin:
        return name[:2].capitalize()
    return name[:1]


def writer_of(info: NoteInfo | Note) -> str:
    """Return the writer of a note for people: an agent's name, or a word to be translated."""
    provenance = info.provenance
    # Upkeep acts as the owner. A text that it merged from texts of agents has only their trust.
    # So has an agent's text that the owner edited, but there the owner is the writer.
    is_of_upkeep = provenance.who == _OWNER and provenance.client == FACE
    if is_of_upkeep and provenance.trust != _OWNER:
        if info.source and info.source != BY_HAND:
            return info.source
        return "an agent"
    return writer_of_provenance(provenance)


def writer_of_provenance(provenance: Provenance) -> str:
    """Return the writer of a text for people: an agent's name, or a word to be translated."""
    return AUTHORS.get(provenance.who, provenance.writer)


def writing_agent(info: NoteInfo | Note) -> str | None:
    """Return the agent whose avatar a note has. None means the owner."""
    writer = writer_of(info)
    return None if writer == AUTHORS[_OWNER] else writer


def writer_of_change(change: Change) -> str:
    """Return who made a change for people: an agent's name, or a word to be translated."""
    if is_upkeep([change]):
        return "Upkeep"
    if change.agent is None and change.verb in IMPORTING:
        return AUTHORS["import"]
    return change.agent or AUTHORS[_OWNER]


def via(client: str | None) -> str:
    """Return the program or interface through which something was written, in words to translate.

    "" if there is nothing to say.

    client: the program or interface as a note or change names it. None if it names neither.
    """
    return _INTERFACES.get(client or "", client or "")


def program_of(change: Change) -> str:
    """Return the program or interface through which a change was made, in words to translate.

    "" if there is nothing to say.
    """
    return via((change.by or {}).get("client") or change.face)


def is_upkeep(run: Sequence[Change]) -> bool:
    """Whether a job of upkeep made this run, and nobody asked for it."""
    first = run[0]
    if first.undoes is not None:
        return False
    is_of_daemon = first.face == FACE and first.agent is None
    return first.run is not None or (is_of_daemon and first.verb in _JOBS)
