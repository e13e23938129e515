"""The profile: the notes about the person, for `memory profile` and for the start of sessions.

Each interface has its own place for such notes. AMENDMENTS 1.4 lists the places, and the
instructions of the tools name them, too. A note that an agent wrote is a claim until the owner
confirms it in `memory review`.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from memoranda.engine.contents import contents
from memoranda.engine.engine import verb
from memoranda.engine.reading import ReadVerbs
from memoranda.engine.review import (
    DELETE,
    ReviewItem,
    ReviewSource,
    ReviewVerbs,
    SharedAnswer,
)
from memoranda.engine.suspicion import CLAIM, KEEP
from memoranda.engine.telling.manner import Telling, author
from memoranda.engine.telling.person_entries import is_about_person
from memoranda.errors import MemorandaError, NotFound
from memoranda.index.rows import NoteInfo
from memoranda.note.entry import DEFAULT_NAMESPACE
from memoranda.note.model import CATEGORY_PROJECT, KV_PROJECT
from memoranda.query import Query
from memoranda.text.fence import cut
from memoranda.text.unicode import one_line

PREFERENCES = ("preference", "preferences")
"""Categories of observations, and types of notes, for a preference of the person."""
PINNED = "pinned"
"""The reason `ProfileEntry.why` of a note that somebody pinned."""
_LINES = "preference lines"
_MEMORIES = "memories"
_USER_FOLDER = "user"
_PERSON_TYPES = ("person", "user", "human")
# The names by which agents call the person if they do not know the real name.
_PERSON_NAMES = frozenset(("user", "default_user", "the_user", "me", "owner"))
# The most entries of the profile, so that a session is also told other things.
_MOST_ENTRIES = 30
# A value with more characters is not taken for a preference.
_MOST_VALUE_CHARACTERS = 300
# How many notes the owner is asked about at most, and how many characters of a note are shown.
_MOST_CLAIMS = 100
_MOST_CLAIM_CHARACTERS = 100


class ProfileEntry(NamedTuple):
    """A note about the person.

    info: the note.
    why: the place or reason that makes it a note about the person, such as `pinned`.
    text: the part of the note that is about the person.
    is_confirmed: whether the owner wrote or confirmed all of the note.
    is_only_pinned: whether nothing but a pin makes it part of the profile: it may be about anybody.
    """

    info: NoteInfo
    why: str
    text: str
    is_confirmed: bool
    is_only_pinned: bool


@verb
def profile(memory: ReviewVerbs, limit: int = _MOST_ENTRIES) -> list[ProfileEntry]:
    """Return the notes about the person, each once.

    Notes that the owner wrote or confirmed come before claims of agents. In both groups, pinned
    notes come first. Notes that are no longer valid, archived, suspicious or another agent's are
    left out.
    """
    memory.engine.fresh()
    # Each note once, with the first reason for it.
    chosen: dict[int, tuple[NoteInfo, str]] = {}
    rows_about_person: set[int] = set()
    for why, infos in _notes_by_reason(memory, limit):
        for info in infos:
            if memory.telling(info) is Telling.SILENT:
                continue
            chosen.setdefault(info.row, (info, why))
            if why != PINNED:
                rows_about_person.add(info.row)

    texts = contents(memory, [info for info, _ in chosen.values()])
    entries: list[ProfileEntry] = []
    for (info, why), text in zip(chosen.values(), texts, strict=True):
        entry = ProfileEntry(
            info,
            why,
            text=_text_about_person(memory, info, why, text),
            is_confirmed=memory.telling(info) is Telling.FACT,
            is_only_pinned=info.row not in rows_about_person,
        )
        entries.append(entry)
    # The sort is stable, so notes of one group stay in the order of `_notes_by_reason`.
    entries.sort(key=lambda entry: (not entry.is_confirmed, entry.why != PINNED))
    return [entry for entry in entries if entry.text.strip()][:limit]


def _notes_by_reason(memory: ReadVerbs, limit: int) -> Iterator[tuple[str, Iterable[NoteInfo]]]:
    """Yield each reason why notes are about the person, with these notes, the newest first.

    limit: how many notes to yield for each reason.
    """
    holding = Query(
        archived=False,
        valid_at=memory.clock(),
        upheld=memory.upheld_rows(),
        order="created",
    )

    def newest_with(**fields: object) -> list[NoteInfo]:
        """Return the newest notes that are valid now and fit these fields of a query."""
        return memory.list(holding.replace(**fields), limit=limit)[0]

    yield PINNED, newest_with(pinned=True)
    yield "preference", newest_with(projects=(CATEGORY_PROJECT,), category="preferences")
    yield "about the user", _memory_files(memory)
    yield "about the user", _person_entities(memory, newest_with(types=_PERSON_TYPES))
    yield "preference", newest_with(types=PREFERENCES)
    yield _LINES, newest_with(categories=PREFERENCES)
    # Many values are left out, so more are read than are needed.
    values, _ = memory.list(holding.replace(projects=(KV_PROJECT,)), limit=10 * limit)
    # The file of a value also has a header.
    max_bytes = 2 * _MOST_VALUE_CHARACTERS
    lasting_values = [info for info in values if info.expires is None and info.size < max_bytes]
    yield "value", _personal_entries(memory, lasting_values)


def _memory_files(memory: ReadVerbs) -> list[NoteInfo]:
    """Return the notes in the folder /memories/user, and the notes directly in /memories.

    The notes in /memories/user come first. In each group, the latest change comes first.
    """
    # A process may be limited to other projects.
    if _MEMORIES not in memory.engine.sources:
        return []
    index = memory.index.notes
    rows, _ = index.directory(_MEMORIES, folder="", depth=1, viewer=memory.agent, limit=None)
    infos = [row.note for row in rows if row.note is not None and row.note.path.endswith(".md")]
    infos += [info for info in index.below(_MEMORIES, _USER_FOLDER) if memory.sees(info.scope)]
    invalid_rows = memory.invalid_rows()
    valid_infos = [info for info in infos if info.row not in invalid_rows]
    # A sort keeps the order of equal items, so the second one keeps the order of times.
    valid_infos.sort(key=lambda info: info.changed, reverse=True)
    valid_infos.sort(key=lambda info: not info.path.startswith(f"{_USER_FOLDER}/"))
    return valid_infos


def _person_entities(memory: ReadVerbs, newest: Iterable[NoteInfo]) -> list[NoteInfo]:
    """Return the entities, or notes like entities, that represent the person.

    newest: the newest notes with a type such as `person`. Older ones are found by their names.
    """
    people = [info for info in newest if _is_person(info)]
    names = {*_PERSON_NAMES, _account()}
    # Without the name of an account that has none.
    names.discard("")
    for name in sorted(names):
        # Mostly there is no note with such a name.
        with suppress(MemorandaError):
            info = memory.find(name)
            if info.type.casefold() in _PERSON_TYPES and _is_person(info):
                people.append(info)
    return people


def _is_person(info: NoteInfo) -> bool:
    """Whether an entity represents the person.

    It does if its type is `user`, or if its title is a name for the person or the account's name.
    """
    if info.type.casefold() == "user":
        return True
    words = info.title.casefold().replace("-", " ").replace("_", " ").split()
    name = "_".join(words)
    return name in _PERSON_NAMES or name == _account()


def _account() -> str:
    """Return the name of the account that runs this process, in lower case; "" if it has none."""
    try:
        return getpass.getuser().casefold()
    except (KeyError, OSError, ImportError):
        # There is no account, as in some containers.
        return ""


def _personal_entries(memory: ReadVerbs, infos: Sequence[NoteInfo]) -> list[NoteInfo]:
    """Return those entries of the project `kv` that are about the person."""
    personal: list[NoteInfo] = []
    for info, value in zip(infos, contents(memory, infos), strict=True):
        namespace = str(info.header.get("namespace") or DEFAULT_NAMESPACE)
        if is_about_person(namespace, info.title, value):
            personal.append(info)
    return personal


def _text_about_person(memory: ReadVerbs, info: NoteInfo, why: str, text: str) -> str:
    """Return the part of a note that is about the person.

    why: the reason why the note is in the profile. If it is `preference lines`, the part is the
        observations (lines) with a preference. In other cases, it is the whole text.
    text: the text of the note.
    """
    # A value says nothing without its key.
    if info.project == KV_PROJECT and text.strip():
        return f"{info.title}: {text}"
    if why != _LINES:
        return text
    lines = [
        observation.content
        for observation in memory.observations(info)
        if (observation.category or "").casefold() in PREFERENCES
    ]
    return "\n".join(lines)


def _unconfirmed_claims(memory: ReviewVerbs) -> Iterator[ProfileEntry]:
    """Yield the claims about the person: notes that agents wrote and that nobody has confirmed."""
    for entry in profile(memory, _MOST_CLAIMS):
        if entry.info.provenance.agent is not None and not entry.is_confirmed:
            yield entry


def _ask_claims(memory: ReviewVerbs) -> Iterator[ReviewItem]:
    """Yield a question for the owner about each claim: Is this so?"""
    for entry in _unconfirmed_claims(memory):
        info = entry.info
        text = cut(one_line(entry.text.strip()), _MOST_CLAIM_CHARACTERS)
        line = f'"{text}", noted by {author(info.provenance)}'
        yield ReviewItem(
            key=memory.claim(info),
            kind=CLAIM,
            text=f"Is this so? {line}",
            refs=(info.id,),
            choices=_choices(memory, entry),
            lines=(line,),
            subject=text,
        )


def _choices(memory: ReviewVerbs, entry: ProfileEntry) -> tuple[tuple[str, str], ...]:
    """Return the answers to the question about a claim: the letter of each, and its effect."""
    confirm = (KEEP, "it is so")
    delete = (DELETE, "delete the note")
    leave = ("n", "leave it unconfirmed")
    # Only the lines with a preference are about the person; deleting the note deletes the others, too.
    has_other_lines = entry.why == _LINES
    # Deleting an entity changes a graph file, which belongs to another program.
    is_in_graph_file = memory.engine.source(entry.info.project).holds_entities
    if has_other_lines or is_in_graph_file:
        return confirm, leave
    return confirm, delete, leave


def _answer_claim(memory: Any, item: ReviewItem, choice: str) -> bool:
    """Carry out the owner's answer to a question about a claim. Returns whether a note was changed.

    DELETE deletes the note. The other answers change no note.

    item: the question. Its key names the claim.
    choice: the letter of the answer.
    """
    if choice != DELETE:
        return False
    for entry in _unconfirmed_claims(memory):
        if memory.claim(entry.info) == item.key:
            memory.delete((entry.info.project, entry.info.path))
            return True
    raise NotFound(item.key, "the open questions")


def _delete_claims(memory: Any, items: Sequence[ReviewItem]) -> None:
    """Delete the notes of these questions, as one change."""
    keys = {item.key for item in items}
    infos = [
        entry.info for entry in _unconfirmed_claims(memory) if memory.claim(entry.info) in keys
    ]
    places = [(info.project, info.path) for info in infos]
    memory.delete(*places)


CLAIMS = ReviewSource(
    _ask_claims,
    _answer_claim,
    shared=(
        SharedAnswer(KEEP, "they are so"),
        SharedAnswer(DELETE, "delete the notes", _delete_claims),
        SharedAnswer("n", "leave them unconfirmed"),
    ),
)
"""The question whether a claim of an agent about the person is right (docs/trust.md)."""
