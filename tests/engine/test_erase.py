"""`erase`: what must go is gone from every byte of the home (docs/failures.md)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from memoranda import Erased, Session, config
from memoranda.engine import MemorySession, open_session
from memoranda.engine.doctor import examine, repair
from memoranda.engine.history.trail import MentionKind
from memoranda.engine.json_entries import JsonEntryFolder
from memoranda.engine.overview import Overview, Pending
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import Ambiguous, CannotUndo, InvalidInput, Locked, NotFound
from memoranda.jobs import dream
from memoranda.note.edit import Append, StrReplace
from memoranda.note.markdown import Record
from memoranda.note.model import Draft

START = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)


@dataclass
class Place:
    """A home with a vault and a graph file elsewhere, and a folder of JSON entries."""

    root: Path

    def __post_init__(self) -> None:
        self.home = self.root / "home"
        self.vault = self.root / "vault"
        self.graph = self.root / "graph.jsonl"
        self.rows = self.root / "rows"
        self.vault.mkdir(exist_ok=True)
        self.graph.touch()
        self.home.mkdir(mode=0o700, exist_ok=True)
        places = {"vault": str(self.vault), "lines": str(self.graph)}
        (self.home / "config.yaml").write_text(json.dumps({"timezone": "UTC", "projects": places}))

    def open(self, **more: Any) -> MemorySession:
        settings = replace(config.load(self.home), semantic_model=more.pop("model", None))
        return open_session(config=settings, **({"clock": lambda: START} | more))

    def holding(self, *words: str) -> list[str]:
        """The files, everywhere, whose bytes or names hold one of the words."""
        encoded_words = [word.encode() for word in words]
        holding = []
        for path in self.root.rglob("*"):
            name = str(path.relative_to(self.root))
            data = name.encode()
            if path.is_file():
                data += b"\0" + path.read_bytes()
            if any(word in data for word in encoded_words):
                holding.append(name)
        return holding

    def everything(self) -> bytes:
        """The names and bytes of all files."""
        paths = list(self.root.rglob("*"))
        contents = [path.read_bytes() for path in paths if path.is_file()]
        names = [str(path).encode() for path in paths]
        return b"\0".join([*contents, *names])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def memory(place: Place) -> Iterator[MemorySession]:
    with place.open() as memory:
        yield memory


def plain(secret: str) -> int:
    """A number for a secret, to name what may be named."""
    return crc32(secret.encode())


@lru_cache(maxsize=1)
def session_of(memory: MemorySession) -> Session:
    return Session(memory, tools=("memory", "notes", "graph", "bank", "kv"))


def use(memory: MemorySession, name: str, **arguments: Any) -> str:
    reply = session_of(memory).call(name, arguments)
    assert not reply.is_error, reply.text
    return reply.text


def file(memory: MemorySession, **arguments: Any) -> None:
    use(memory, "memory", **arguments)


def note(memory: MemorySession, title: str, text: str, **more: Any) -> str:
    written = memory.write(Draft(text, title=title, project=more.pop("project", "notes"), **more))
    return f"{written.project}/{written.path}"


def remember(memory: MemorySession, text: str, category: str | None = None, **more: Any) -> str:
    return memory.write(Draft(text, project="categories", category=category, **more)).id


def entity(memory: MemorySession, name: str, *observations: str, project: str = "graph") -> str:
    use(
        memory,
        "memory_create_entities",
        project=project,
        entities=[{"name": name, "entityType": "thing", "observations": list(observations)}],
    )
    return f"{project}/{name}.md"


def in_file(memory: MemorySession, secret: str) -> str:
    file(memory, command="create", path=f"/memories/a-{secret}.txt", file_text=f"of {secret}\n")
    return f"memories/a-{secret}.txt"


def in_hidden_file(memory: MemorySession, secret: str) -> str:
    file(memory, command="create", path=f"/memories/.{secret}/.plan", file_text=f"of {secret}\n")
    return f"memories/.{secret}/.plan"


def edited_away(memory: MemorySession, secret: str) -> str:
    path = f"/memories/{plain(secret)}.md"
    file(memory, command="create", path=path, file_text=f"of {secret}\n")
    file(memory, command="str_replace", path=path, old_str=secret, new_str="nothing")
    return f"memories/{path.rpartition('/')[2]}"


def renamed(memory: MemorySession, secret: str) -> str:
    new = f"/memories/new/{plain(secret)}.md"
    file(memory, command="create", path=f"/memories/old/{secret}.md", file_text="plain\n")
    file(memory, command="rename", old_path=f"/memories/old/{secret}.md", new_path=new)
    return new.replace("/memories", "memories")


def deleted_file(memory: MemorySession, secret: str) -> str:
    ref = in_file(memory, secret)
    file(memory, command="delete", path=f"/{ref}")
    return ref


def restored(memory: MemorySession, secret: str) -> str:
    ref = deleted_file(memory, secret)
    memory.restore(ref)
    return ref


def of_a_folder(memory: MemorySession, secret: str) -> str:
    ref = note(memory, f"plan {plain(secret)}", "text", folder=f"box/{secret}")
    memory.move_folder("notes", f"box/{secret}", f"chest/{secret}")
    return ref.replace("box", "chest")


def moved_note(memory: MemorySession, secret: str) -> str:
    ref = note(memory, secret, "text")
    memory.move(ref, f"later/{plain(secret)}.md")
    return f"notes/later/{plain(secret)}.md"


def edited_note(memory: MemorySession, secret: str) -> str:
    ref = note(memory, f"edited {plain(secret)}", f"of {secret}")
    memory.edit(ref, StrReplace(secret, "nothing"))
    return ref


def in_the_header(memory: MemorySession, secret: str) -> str:
    return note(
        memory, f"header {plain(secret)}", "text", metadata={f"key_{secret}": f"value {secret}"}
    )


def upgraded(memory: MemorySession, secret: str) -> str:
    ref = remember(memory, f"of {secret}")
    Upkeep(memory).change(
        memory.memory_id(ref), {"phase": "organized"}, "upgrade", category="skills"
    )
    return ref[:13]


def merged(memory: MemorySession, secret: str) -> str:
    first_id = remember(memory, f"one of {secret}", "skills")
    second_id = remember(memory, f"other of {secret}", "habits")
    Upkeep(memory).merge(memory.memory_id(first_id), memory.memory_id(second_id))
    return second_id


def deleted_memory(memory: MemorySession, secret: str) -> str:
    ref = remember(memory, f"of {secret}", "people")
    memory.delete(memory.memory_id(ref))
    return ref[:8]


def moved_then_deleted(memory: MemorySession, secret: str) -> str:
    ref = upgraded(memory, secret)
    memory.delete(memory.memory_id(ref))
    return ref[:8]


def fired(memory: MemorySession, secret: str) -> str:
    record = Record(
        f"{plain(secret) % 10**8:08d}-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
        f"call {secret}",
        category="reminders",
        created=START,
        updated=START,
        further={"due_at": "2026-05-07T09:00:00Z", "fired_at": "2026-05-07T09:00:00Z"},
    )
    Upkeep(memory).put([record], "remind")
    return record.id


def ingested(memory: MemorySession, secret: str) -> str:
    record = Record(
        f"{plain(secret) % 10**8:08d}-bbbb-4bbb-8bbb-bbbbbbbbbbbb",
        f"of {secret}",
        created=START,
        category="knowledge",
        updated=START,
        further={"source_ref": f"vault:{secret}.md"},
    )
    Upkeep(memory).put([record], "ingest")
    return record.id


def passing(memory: MemorySession, secret: str) -> str:
    use(
        memory, "memory_remember", key="once", value=secret, namespace=f"n{secret}", ttl_seconds=900
    )
    return f"kv/n{secret}/once"


def replaced_value(memory: MemorySession, secret: str) -> str:
    key = f"key-{plain(secret)}"
    use(memory, "memory_remember", key=key, value=f"of {secret}")
    use(memory, "memory_remember", key=key, value="nothing")
    return f"kv/default/{key}"


def odd_key(memory: MemorySession, secret: str) -> str:
    use(memory, "memory_remember", key=f"Key: {secret}!", value="v", namespace=f"Space {secret}")
    return f"kv/Space {secret}/Key: {secret}!"


def bank_file(memory: MemorySession, secret: str) -> str:
    use(
        memory,
        "update",
        bank_type="global",
        bank_id="default",
        target_file=f"doc/{secret}.md",
        content=f"# {secret}",
    )
    return f"banks/global/default/doc/{secret}.md"


def deleted_entity(memory: MemorySession, secret: str) -> str:
    ref = entity(memory, f"Name {secret}", f"says {secret}", project="lines")
    use(memory, "memory_delete_entities", project="lines", entityNames=[f"Name {secret}"])
    return ref


def lost_observation(memory: MemorySession, secret: str) -> str:
    name = f"E{plain(secret)}"
    ref = entity(memory, name, f"says {secret}", "more", project="lines")
    use(
        memory,
        "memory_delete_observations",
        project="lines",
        deletions=[{"entityName": name, "observations": [f"says {secret}"]}],
    )
    return ref


def json_row(memory: MemorySession, secret: str) -> str:
    folder = memory.home.parent / "rows"
    JsonEntryFolder(folder).entries(memory).put("default", f"key {secret}", f"value {secret}")
    return f"{folder}/default.json:key {secret}"


KINDS: dict[str, Callable[[MemorySession, str], str]] = {
    "a file of the memory tool": in_file,
    "a hidden file": in_hidden_file,
    "a text edited away": edited_away,
    "a renamed file": renamed,
    "a deleted file": deleted_file,
    "a restored file": restored,
    "a note's title and text": lambda memory, secret: note(memory, secret, f"text {secret}"),
    "a folder that moved": of_a_folder,
    "a moved note": moved_note,
    "an edited note": edited_note,
    "a header": in_the_header,
    "a tag": lambda memory, secret: note(memory, f"tag {plain(secret)}", "text", tags=(secret,)),
    "an observation": lambda memory, secret: note(
        memory, f"o {plain(secret)}", f"- [fact] of {secret} #t (ctx)"
    ),
    "a relation": lambda memory, secret: note(
        memory, f"r {plain(secret)}", f"- likes{secret} [[{secret} two]]"
    ),
    "a long passage": lambda memory, secret: note(
        memory, f"l {plain(secret)}", f"many words {secret}. " * 900
    ),
    "a note of a vault": lambda memory, secret: note(
        memory, secret, f"text {secret}", project="vault"
    ),
    "a memory": lambda memory, secret: remember(memory, f"of {secret}", "preferences"),
    "an inbox memory": lambda memory, secret: remember(memory, f"first line\n\n{secret}"),
    "a source": lambda memory, secret: remember(
        memory, f"s {plain(secret)}", "habits", source=f"by {secret}"
    ),
    "a memory in another category": upgraded,
    "a merged memory": merged,
    "a deleted memory": deleted_memory,
    "a moved and deleted memory": moved_then_deleted,
    "a reminder that fired": fired,
    "an ingested memory": ingested,
    "an entry with a time to live": passing,
    "a replaced value": replaced_value,
    "a key and a namespace": odd_key,
    "a bank's file": bank_file,
    "an entity": lambda memory, secret: entity(memory, f"E {secret}", f"says {secret}"),
    "an entity of a graph file": lambda memory, secret: entity(
        memory, secret, f"says {secret}", project="lines"
    ),
    "a deleted entity": deleted_entity,
    "an observation deleted from a graph file": lost_observation,
    "an entry of a JSON file": json_row,
}
PER_KIND = 5
TOGETHER = 6


def secret_of(number: int) -> str:
    """A text no other holds: every fourth one in Chinese where a name may be."""
    digits = f"{number * 7919 % 99991:05d}"
    if number % 4:
        return f"zq{digits}vault"
    return "绝密" + "".join("零一二三四五六七八九"[int(digit)] for digit in digits)


def terms(index: Path) -> str:
    """Every word of the full-text tables."""
    with closing(sqlite3.connect(index)) as db:
        names = ("note_fts", "name_fts", "passage_fts", "stem_fts")
        words = []
        for name in names:
            db.execute(f"create virtual table temp.v_{name} using fts5vocab(main, {name}, row)")
            words += [word for (word,) in db.execute(f"select term from temp.v_{name}")]
        return " ".join(words)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_secret_goes_with_all_its_versions(
    place: Place, memory: MemorySession, kind: str
) -> None:
    note(memory, "bystander", "stays as it is")
    refs = {secret: KINDS[kind](memory, secret) for secret in (secret_of(1), secret_of(4))}
    memory.sync()
    index = memory.index.identity
    for secret, ref in refs.items():
        erasure = memory.erase(ref)
        assert len(erasure.notes) == 1, erasure
        assert erasure.remains == (), erasure
        assert place.holding(secret) == []
    # cleaned, not made again
    assert memory.index.identity == index
    assert memory.read("notes/bystander.md").content == "stays as it is"
    findings = [finding for finding in examine(memory) if finding.level != "warning"]
    assert findings == []


@pytest.mark.slow
@pytest.mark.promise("issue-erase")
def test_a_thousand_secrets_of_thirty_kinds_are_gone_from_every_byte(
    place: Place, small_models: str
) -> None:
    from memoranda.engine.embedding import Embedding

    makers = [*KINDS.values()] * PER_KIND
    secrets = [secret_of(n) for n in range(len(makers) * TOGETHER)]
    assert len(set(secrets)) >= 1000
    texts = ["".join(secrets[n : n + TOGETHER]) for n in range(0, len(secrets), TOGETHER)]

    with place.open(model=small_models) as memory:
        note(memory, "bystander", "stays as it is")
        refs = [make(memory, text) for text, make in zip(texts, makers, strict=True)]
        Overview(memory).refresh()
        Pending(memory).refresh()
        dream.run(memory, 3)
        Embedding(memory).embed_some(60, thorough=True)
        erasure = memory.erase(*refs)
        assert erasure.remains == ()
        assert len(erasure.notes) >= len(refs)
    data = place.everything()
    for secret in secrets:
        assert secret.encode() not in data
        assert secret.upper().encode() not in data
    index_terms = terms(place.home / ".memoranda" / "index.db")
    for word in (*secrets, "绝密", "vault"):
        assert word not in index_terms

    with place.open(model=small_models) as memory:
        # Whose templates stay
        remaining = [info for info in memory.list(limit=0)[0] if info.project != "banks"]
        titles = [info.title for info in remaining]
        assert titles == ["bystander"]
        waiting = Embedding(memory).counts().waiting
        assert waiting == 0
        texts = [finding.text for finding in examine(memory) if "vectors" in finding.text]
        assert texts == []


def changes(memory: MemorySession) -> dict[int, str]:
    return {change.number: change.verb for change in memory.log(limit=0)}


def test_a_copy_that_the_ledger_left_in_a_free_page_goes(memory: MemorySession) -> None:
    note = memory.write(Draft("the safe opens with 7731-zebra", project="notes", title="Safe"))
    ledger = memory.home / ".memoranda" / "ledger.db"
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        connection.execute("pragma secure_delete = off")
        filler = "the safe opens with 7731-zebra " * 200
        connection.execute("insert into day_calls values (?, ?, ?)", (filler, "2026-01-01", 1))
        connection.execute("delete from day_calls where who = ?", (filler,))
        connection.execute("pragma wal_checkpoint(truncate)")
    assert b"7731-zebra" in ledger.read_bytes()
    erased = memory.erase(note.id)
    assert erased.remains == ()
    assert b"7731-zebra" not in ledger.read_bytes()


def test_what_is_locked_or_unknown_is_refused_and_nothing_goes(
    place: Place, memory: MemorySession
) -> None:
    ref = note(memory, "plan", "text")
    locked = note(memory, "kept", "text", metadata={"locked": True})
    with pytest.raises(Locked):
        memory.erase(ref, locked)
    for unknown in (
        "zzzz",
        "notes/none.md",
        "lines/None.md",
        str(place.rows / "default.json:none"),
    ):
        with pytest.raises(NotFound):
            memory.erase(ref, unknown)
    assert memory.read(ref).content == "text"
    assert changes(memory) == {2: "write", 1: "write"}


def test_undo_and_log_say_what_was_erased_and_go_on_with_the_rest(memory: MemorySession) -> None:
    other_note = note(memory, "other", "first")
    ref = note(memory, "plan", "text")
    memory.edit(other_note, StrReplace("first", "second"))
    memory.erase(ref)
    bob = memory.as_caller("bob")
    assert changes(memory) == {5: "erase", 3: "edit", 1: "write"}
    assert changes(bob) == {3: "edit", 1: "write"}
    for number in (None, 5):
        with pytest.raises(CannotUndo, match="gone for good"):
            memory.undo(number)
    with pytest.raises(CannotUndo, match="cannot undo #2: what it changed was erased"):
        memory.undo(2)
    memory.undo(3)
    content = memory.read(other_note).content
    assert content == "first"


def test_a_change_it_shared_with_other_notes_can_still_be_undone_for_them(
    place: Place, memory: MemorySession
) -> None:
    memory.write_many([Draft("1", title="one"), Draft("2", title="other")])
    file(memory, command="create", path="/memories/box/a.md", file_text="a")
    file(memory, command="create", path="/memories/box/b.md", file_text="b")
    file(memory, command="delete", path="/memories/box")
    (deletion,) = (change for change in memory.log() if change.verb == "delete")
    memory.erase("memories/box/a.md", "notes/one.md")
    assert place.holding("a.md", "one.md") == []
    (rest,) = (change for change in memory.log() if change.number == deletion.number)
    assert rest.details == {"erased": 1}
    memory.undo(deletion.number)
    names = [path.name for path in (place.home / "memories").rglob("*.md")]
    assert names == ["b.md"]
    memory.undo(1)
    titles = [info.title for info in memory.list(limit=0)[0]]
    assert titles == ["b"]


def test_lines_of_a_graph_file_that_others_share_a_change_with_come_back(
    place: Place, memory: MemorySession
) -> None:
    use(
        memory,
        "memory_create_entities",
        project="lines",
        entities=[
            {"name": name, "entityType": "t", "observations": [f"of {name}"]}
            for name in ("Ann", "Bob")
        ],
    )
    use(memory, "memory_delete_entities", project="lines", entityNames=["Ann", "Bob"])
    memory.erase("lines/Ann.md")
    assert place.holding("Ann") == []
    memory.undo(2)
    assert "of Bob" in place.graph.read_text()


def words(erased: Erased) -> set[str]:
    """The mentions of an erasure in words."""
    return {mention.words for mention in erased.mentions}


def test_notes_that_name_it_stay_and_are_reported(memory: MemorySession) -> None:
    ref = note(memory, "secret plan", "of zq4711vault")
    note(memory, "linking", "see [[secret plan]]")
    note(memory, "quoting", "zq4711vault, he said")
    memory.sync()
    erasure = memory.erase(ref)

    assert erasure.remains == ()
    assert words(erasure) == {"notes/linking.md", "notes/quoting.md"}
    assert memory.read("notes/quoting.md").content == "zq4711vault, he said"


@pytest.mark.parametrize(
    "line",
    ["last_used_at: 2026-03-01T10:00:00Z", "archived_from: people", "valid_until: 2030-01-01"],
)
def test_a_note_with_the_same_line_of_our_header_is_not_reported(
    memory: MemorySession, line: str
) -> None:
    notes = [memory.write(Draft(text, project="notes", title=text)) for text in ("Owl", "Fern")]
    for note in notes:
        file = memory.home / "notes" / note.path
        file.write_text(file.read_text().replace("---\n", f"---\n{line}\n", 1))
    memory.sync()
    assert line in memory.read(notes[1]).text
    assert memory.erase(memory.find(notes[0].id), dry_run=True).mentions == ()


def test_a_note_that_only_links_to_the_same_note_is_not_reported(memory: MemorySession) -> None:
    owl, fern, moss = [
        memory.write(Draft(text, project="categories", category="knowledge"))
        for text in ("Owls sleep by day.", "Ferns like the shade.", "Moss grows on the wall.")
    ]
    for linking in (owl, fern):
        memory.link(linking, moss)
    assert f"  - {moss.id}\n" in memory.read(fern).text

    mentions = memory.erase(memory.find(owl.id), dry_run=True).mentions
    places = [mention.place for mention in mentions if mention.kind is MentionKind.NOTE]
    assert places == [(moss.project, moss.path)], "it links to the note itself"


def test_the_files_that_it_shows_stay_and_are_reported(place: Place, memory: MemorySession) -> None:
    ref = note(memory, "secret plan", "![[zq4711vault.png]] and [the plan](img/plan%20b.pdf)")
    folder = place.home / "notes"
    (folder / "img").mkdir()
    for path in ("zq4711vault.png", "img/plan b.pdf", "other.png"):
        (folder / path).write_bytes(b"bytes")

    assert words(memory.erase(ref, dry_run=True)) == {
        "notes/zq4711vault.png",
        "notes/img/plan b.pdf",
    }
    assert words(memory.erase(ref)) == {"notes/zq4711vault.png", "notes/img/plan b.pdf"}
    assert (folder / "zq4711vault.png").exists()


@pytest.mark.parametrize("other_title", ["C#", "C-1", "C", "C plus plus", "Objective-C++", "C++20"])
def test_a_note_whose_address_only_begins_or_ends_alike_is_not_reported(
    memory: MemorySession, other_title: str
) -> None:
    for title in ("C++", other_title):
        note(memory, title, f"about {title}\n")
    mentions = memory.erase("C++", dry_run=True).mentions
    assert mentions == ()
    erasure = memory.erase("C++")
    assert erasure.remains == ()
    assert erasure.mentions == ()
    _, total = memory.list(limit=0)
    assert total == 1


@pytest.mark.parametrize(
    "quoted",
    [
        "permalink: notes/plan",
        "(permalink: notes/plan)",
        "it was permalink: notes/plan.",
        "[[plan]]",
    ],
)
def test_a_note_with_the_whole_address_is_reported(memory: MemorySession, quoted: str) -> None:
    ref = note(memory, "plan", "of zq4711vault")
    note(memory, "plan 2", "of something else")
    note(memory, "quoting", quoted)
    assert words(memory.erase(ref)) == {"notes/quoting.md"}


def test_a_dry_run_foretells_what_goes_and_who_has_the_same_words(memory: MemorySession) -> None:
    ref = note(memory, "secret plan", "of zq4711vault")
    memory.edit(ref, Append("and zq4712vault\n"))
    memory.tag(ref, ["plan"])
    note(memory, "linking", "see [[secret plan]]")
    note(memory, "quoting", "zq4711vault, he said")
    copy = note(memory, "copied", "zq4712vault")
    memory.delete(copy)
    foretold = memory.erase(ref, dry_run=True)
    assert memory.read(ref, count=False)
    assert {"notes/linking.md", "notes/quoting.md"} < words(foretold)
    assert len(foretold.mentions) == 3, "the kept text of the deleted copy holds it, too"
    erasure = memory.erase(ref)
    assert (foretold.notes, foretold.changes, foretold.texts) == (
        erasure.notes,
        erasure.changes,
        erasure.texts,
    )
    assert set(foretold.mentions) == set(erasure.mentions)


def test_an_archived_note_is_foretold_by_its_place_and_never_as_a_mention_of_itself(
    memory: MemorySession,
) -> None:
    infos = [
        memory.memory_id(memory.write(Draft(text, category="knowledge")).id)
        for text in ("of zq4711vault", "zq4711vault, he said")
    ]
    Upkeep(memory).archive_all(infos, {})
    archived, quoting = (memory.memory_id(info.id) for info in infos)
    foretold = memory.erase(archived.id, dry_run=True)
    in_notes = [mention for mention in foretold.mentions if mention.kind is MentionKind.NOTE]

    places = [mention.place for mention in in_notes]
    assert places == [(quoting.project, quoting.path)]
    assert words(foretold) >= {f"archive/{quoting.path}"}


def test_the_source_of_a_note_and_an_older_text_are_mentions_of_their_own_kind(
    memory: MemorySession,
) -> None:
    header = {"source_ref": "~/plan.md"}
    info = memory.write(Draft("of zq4711vault", project="notes", title="Plan", metadata=header))
    memory.delete(note(memory, "quoting", "zq4711vault, he said"))
    source, older_text = memory.erase(info).mentions

    assert source.kind == MentionKind.SOURCE
    assert source.name == "~/plan.md"
    assert source.words == "the source ~/plan.md, from which ingest would take it again"
    assert older_text.kind is MentionKind.OLDER_TEXT
    assert older_text.words == f"the kept text {older_text.name[:8]} of another note"


def test_a_reminder_made_from_its_text_goes_with_it(place: Place, memory: MemorySession) -> None:
    ref = remember(memory, "Pay zq4711vault tomorrow at 3pm", "project")
    dream.run(memory, 3)

    _, total = memory.list(limit=0)
    assert total == 2
    notes = memory.erase(ref).notes
    assert len(notes) == 2
    assert place.holding("zq4711vault", "Pay", ref) == []


def test_a_memory_moved_by_hand_is_followed_and_reads_of_a_deleted_one_are_forgotten(
    place: Place, memory: MemorySession
) -> None:
    ref = remember(memory, "of zq4711vault", "skills")
    memory.tag(ref, ("x",))
    memory.read(ref)
    (path,) = (place.home / "categories").rglob("*.md")
    (place.home / "categories" / "habits").mkdir()
    path.rename(place.home / "categories" / "habits" / path.name)
    memory.tag(ref, ("y",))
    memory.delete(memory.memory_id(ref))

    remains = memory.erase(ref[:8]).remains
    assert remains == ()
    assert place.holding("zq4711vault", ref[:8]) == []


def test_all_notes_of_an_agent_a_project_or_a_source_go(
    place: Place, memory: MemorySession
) -> None:
    bob = memory.as_caller("bob")
    mine = note(memory, "mine", "text")
    note(bob, "his", "text")
    moved = remember(bob, "of bob", "skills")
    deleted_note = note(bob, "gone", "text")
    Upkeep(memory).change(memory.memory_id(moved), {}, "upgrade", category="habits")
    memory.delete(deleted_note)
    bob.edit(mine, StrReplace("text", "edited"))
    vault = note(memory, "in the vault", "text", project="vault")
    remember(memory, "by web", "skills", source="web page")
    notes = memory.erase(agent="bob").notes
    assert len(notes) == 3
    assert [path.split("/")[0] for path in memory.erase(source="web page").notes] == ["categories"]
    notes = memory.erase(project="vault").notes
    assert notes == (vault,)
    notes = memory.erase(agent="nobody").notes
    assert notes == ()
    bob.add_project("zq4711asked", "/elsewhere/zq4711asked")
    bob.add_project("zq4711twice", "/elsewhere/zq4711twice")
    notes = memory.erase(agent="bob").notes
    assert len(notes) == 2
    assert memory.review(kind="project") == []
    assert place.holding("zq4711") == []
    titles = [info.title for info in memory.list(limit=0)[0]]
    assert titles == ["mine"]
    assert place.holding("bob-", "gone", "web page", "in the vault") == []


@pytest.mark.parametrize(
    "make",
    [
        lambda memory: note(memory, "plan", "- [fact] of zq4711vault #t\n- [fact] more\n"),
        lambda memory: entity(memory, "Ann", "[fact] of zq4711vault #t", "more"),
        lambda memory: entity(memory, "Ann", "[fact] of zq4711vault #t", "more", project="lines"),
    ],
)
def test_one_observation_goes_with_the_older_versions_and_the_note_stays(
    place: Place, memory: MemorySession, make: Any
) -> None:
    ref = make(memory)
    memory.sync()
    (observation, _) = memory.observations(tuple(ref.split("/")))
    with pytest.raises(InvalidInput, match="has no observation"):
        memory.erase(ref, observation="no such thing")

    remains = memory.erase(ref, observation=observation.text).remains
    assert remains == ()
    assert place.holding("zq4711vault") == []
    text = memory.observations(tuple(ref.split("/")))[0].text
    assert "more" in text


def test_a_note_written_since_at_a_former_place_keeps_its_history(
    place: Place, memory: MemorySession
) -> None:
    file(memory, command="create", path="/memories/plan.md", file_text="of zq4711vault")
    file(memory, command="rename", old_path="/memories/plan.md", new_path="/memories/later.md")
    file(memory, command="create", path="/memories/plan.md", file_text="first")
    file(memory, command="str_replace", path="/memories/plan.md", old_str="first", new_str="second")
    memory.erase("memories/later.md")
    assert place.holding("zq4711vault") == []
    memory.undo(4)
    assert memory.read("memories/plan.md").content == "first"


def test_doctor_finds_what_was_left_and_finishes_it(memory: MemorySession) -> None:
    note(memory, "plan", "text")
    memory.engine.ledger.history.keep_bytes(b"left by a change that was not made")
    memory.engine.ledger.set_erasing(
        json.dumps(
            {
                "last": 1,
                "places": [["notes", "plan.md", ""]],
                "files": [],
                "ids": [],
                "entities": {},
                "rows": [],
            }
        )
    )
    levels = {finding.code: finding.level for finding in examine(memory)}
    assert levels == {"unfinished_erase": "error", "unreferenced_text": "info"}
    repair(memory, examine(memory))
    assert examine(memory) == []
    assert changes(memory) == {2: "erase"}


def test_doctor_finds_vectors_of_texts_that_are_gone(place: Place, small_models: str) -> None:
    from memoranda.engine.embedding import Embedding

    with place.open(model=small_models) as memory:
        note(memory, "plan", "bread and cheese")
        kept_note = note(memory, "kept", "soup and dinner")
        Embedding(memory).embed_some(60)
        memory.delete("notes/plan.md")
        findings = examine(memory)
        assert [(finding.level, finding.text) for finding in findings] == [
            ("info", "1 vectors are of texts that are gone")
        ]
        repair(memory, findings)
        assert examine(memory) == []
        assert Embedding(memory).counts().embedded == 1
        memory.erase(kept_note)
        assert list((place.home / ".memoranda" / "vectors").glob("*.vectors")) == []


def test_another_open_home_sees_that_it_is_gone(place: Place) -> None:
    with place.open() as memory, place.open() as other_memory:
        ref = note(memory, "plan", "of zq4711vault")
        assert other_memory.search("zq4711vault").total == 1
        memory.erase(ref)
        assert other_memory.search("zq4711vault").total == 0
        other_memory.write(Draft("more", title="more"))
        assert other_memory.search("more").total == 1
        assert place.holding("zq4711vault") == []


@pytest.mark.promise("issue-erase")
def test_what_was_archived_superseded_and_shown_to_a_session_goes_too(place: Place) -> None:
    with place.open() as memory:
        first = memory.write(Draft("zq4712old lives in Bern", "categories", category="people"))
        second = memory.write(Draft("zq4713new lives in Basel", "categories", category="people"))
        memory.supersede(first, second)
        info = memory.memory_id(first.id)
        Upkeep(memory).archive_all([info], {})
        session_rows = memory.engine.ledger.session("claude-code", "1")
        session_rows.add(memory.clock(), notes=[first.id])
        erasure = memory.erase(first.id)
        assert len(erasure.notes) == 1
        assert erasure.remains == ()
        is_known = memory.engine.ledger.session("claude-code", "1").is_known
        assert not is_known
    assert place.holding("zq4712old", "Bern") == []
    assert place.holding("zq4713new")


def test_the_path_of_a_project_of_this_process_alone_is_no_trace_of_what_is_erased(
    place: Place,
) -> None:
    outside = place.root / "outside-2026"
    outside.mkdir()
    with place.open(projects={"outside": outside}) as memory:
        erased_note = memory.write(Draft("a secret", project="outside", title="Gone"))
        memory.write(Draft("stays", project="outside", title="Other"))
        erasure = memory.erase((erased_note.project, erased_note.path))
        assert erasure.remains == ()
        assert erasure.mentions == ()
        paths = [change.path for change in memory.log() if change.verb == "write"]
        assert paths == ["Other.md"]


def test_the_name_of_a_folder_that_other_notes_are_in_is_no_trace(memory: MemorySession) -> None:
    erased = note(memory, "first", "the secret zq4711vault", folder="project-2025/team_alpha1")
    note(memory, "second", "text", folder="project-2025/team_alpha1")
    erasure = memory.erase(erased)

    assert erasure.remains == ()
    changes = memory.log(limit=0)
    last_change = changes[0]
    assert last_change.verb == "erase"


def test_the_name_of_a_folder_that_went_with_its_only_note_is_looked_for(
    memory: MemorySession, place: Place
) -> None:
    erased = note(memory, "first", "text", folder="zq4711vault/inner")
    note(memory, "second", "text", folder="other")
    assert memory.erase(erased).remains == ()
    assert place.holding("zq4711vault") == []


def test_a_large_index_is_rewritten_by_way_of_a_file(
    memory: MemorySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoranda.index.database._VACUUM_IN_FILE_BYTES", 0)
    note = memory.write(Draft("the unspeakable zyqquop", title="N"))
    memory.write(Draft("another text", title="Other"))
    erasure = memory.erase(note.id)
    assert erasure.remains == ()
    titles = [hit.note.title for hit in memory.search("another")]
    assert titles == ["Other"]
    index = memory.engine.layout.index_for({}, frozenset())
    assert b"zyqquop" not in index.read_bytes()


def moved_away(memory: MemorySession, folder: str) -> str:
    note(memory, "Plan", "the words", folder=folder)
    memory.move(f"notes/{folder}/Plan.md", "elsewhere/Plan.md")
    return "notes/elsewhere/Plan.md"


def test_the_empty_folder_that_a_note_was_moved_out_of_goes_with_it(
    memory: MemorySession, place: Place
) -> None:
    erased = moved_away(memory, "zq4711vault/inner")
    assert (place.home / "notes/zq4711vault/inner").is_dir()
    assert memory.erase(erased).remains == ()
    assert place.holding("zq4711vault") == []


def test_the_empty_folder_that_a_note_was_deleted_from_goes_with_it(
    memory: MemorySession, place: Place
) -> None:
    erased = note(memory, "Plan", "the words", folder="zq4711vault")
    memory.delete(erased)
    (place.home / "notes/zq4711vault").mkdir(exist_ok=True)
    assert memory.erase(erased).remains == ()
    assert place.holding("zq4711vault") == []


def test_a_former_folder_that_is_used_or_is_a_link_stays(
    memory: MemorySession, place: Place
) -> None:
    erased = moved_away(memory, "shared")
    kept = place.home / "notes/shared/mine.txt"
    kept.write_text("of somebody else")
    assert memory.erase(erased).remains == ()
    assert kept.exists()

    erased = moved_away(memory, "linked")
    folder = place.home / "notes/linked"
    folder.rmdir()
    target = place.root / "target"
    target.mkdir()
    folder.symlink_to(target)
    assert memory.erase(erased).remains == ()
    assert folder.is_symlink()


def test_a_note_that_only_loses_an_observation_keeps_its_former_folder(
    memory: MemorySession, place: Place
) -> None:
    note(memory, "Plan", "- [fact] zq4711vault\n- [fact] other", folder="old")
    memory.move("notes/old/Plan.md", "new/Plan.md")
    memory.erase("notes/new/Plan.md", observation="zq4711vault")
    assert (place.home / "notes/old").is_dir()


@pytest.mark.parametrize(
    ("name", "erased"),
    [
        ("colours.json:sky", "colours"),
        ("Colours.json:sky", "Colours"),
        # No entry `sky` is in that namespace, although others have one.
        ("default.json:sky", None),
        ("COLOURS.json:sky", None),
        # The file of a namespace whose name no file can have.
        ("at_home.json:sky", "at home"),
        ("at home.json:sky", "at home"),
    ],
)
def test_an_entry_of_a_json_file_is_erased_only_by_its_own_namespace_or_file(
    place: Place, memory: MemorySession, name: str, erased: str | None
) -> None:
    entries = JsonEntryFolder(place.rows).entries(memory)
    namespaces = {"colours", "Colours", "at home"}
    for namespace in namespaces:
        entries.put(namespace, "sky", f"of {namespace}")
    if erased is None:
        with pytest.raises(NotFound):
            memory.erase(f"{place.rows}/{name}")
    else:
        memory.erase(f"{place.rows}/{name}")

    left = {tally.namespace for tally in entries.namespaces() if tally.active}
    assert left == namespaces - {erased}


def test_a_json_file_with_two_entries_of_a_key_names_neither(
    place: Place, memory: MemorySession
) -> None:
    entries = JsonEntryFolder(place.rows).entries(memory)
    for namespace in ("at home", "at-home", "at:home"):
        entries.put(namespace, "sky", f"of {namespace}")
    with pytest.raises(Ambiguous):
        memory.erase(f"{place.rows}/at_home.json:sky")
    memory.erase(f"{place.rows}/at home.json:sky")

    left = {tally.namespace for tally in entries.namespaces() if tally.active}
    assert left == {"at-home", "at:home"}
