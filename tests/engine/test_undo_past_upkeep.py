"""An undo steps over links that upkeep made later, and over nothing else."""

from __future__ import annotations

from random import Random

import pytest

from jobs.homes import Home, tree
from memoranda import Draft
from memoranda.engine import MemorySession
from memoranda.engine.history.refusals import later_changes_in_the_way, refused_undos
from memoranda.engine.upkeep import Upkeep
from memoranda.errors import CannotUndo
from memoranda.note.edit import Append, FindReplace

TEA = "Tea is green."
CAKE = "Cake is sweet."


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    yield home
    home.memory.close()


def job_of(home: Home) -> MemorySession:
    """A session whose changes are those of one run of a job."""
    session = home.memory.as_caller(None, "daemon")
    session.run = 0
    return session


def link_by_upkeep(home: Home, first: str, second: str) -> int:
    """Link two memories as upkeep does, and return the number of the change."""
    home.later(minutes=1)
    Upkeep(job_of(home)).link(home.info(first), home.info(second))
    return last(home)


def last(home: Home) -> int:
    return home.memory.log(limit=1)[0].number


def edited(home: Home, memory_id: str, old: str, new: str) -> int:
    """Change words of a memory, and return the number of the change."""
    home.later(minutes=1)
    home.memory.edit(memory_id, FindReplace(old, new))
    return last(home)


def content(home: Home, memory_id: str) -> str:
    return home.memory.read(memory_id, count=False).content


def test_a_text_is_taken_back_at_once_and_keeps_its_links(home):
    tea = home.write(TEA, "knowledge")
    cake = home.write(CAKE, "knowledge")
    change = edited(home, tea, "green", "black")
    link_by_upkeep(home, tea, cake)
    refusals = refused_undos(home.memory, [change])
    assert refusals == {}
    home.memory.undo(change)
    text = content(home, tea)
    assert text == TEA
    links = home.info(tea).links
    assert links == (cake,)
    links = home.info(cake).links
    assert links == (tea,)


def test_an_undo_past_links_can_be_taken_back(home):
    tea = home.write(TEA, "knowledge")
    cake = home.write(CAKE, "knowledge")
    change = edited(home, tea, "green", "black")
    link_by_upkeep(home, tea, cake)
    before = home.tree()
    undo = home.memory.undo(change)
    home.memory.undo(undo.number)
    after = home.tree()
    assert after == before


def test_a_memory_that_goes_leaves_no_link_behind(home):
    cake = home.write(CAKE, "knowledge")
    tea = home.write(TEA, "knowledge")
    change = last(home)
    link_by_upkeep(home, tea, cake)
    linked = home.tree()
    undo = home.memory.undo(change)
    ids = home.ids()
    assert ids == {cake}
    links = home.info(cake).links
    assert links == ()
    text = content(home, cake)
    assert text == CAKE
    file = home.file(cake)
    file_text = file.read_text()
    assert "links:" not in file_text
    others = undo.count_of_others()
    assert others == 0
    home.memory.undo(undo.number)
    again = home.tree()
    assert again == linked


def test_a_memory_that_goes_back_to_its_category_keeps_its_links(home):
    cake = home.write(CAKE, "knowledge")
    tea = home.write(TEA, "knowledge")
    info = home.info(tea)
    home.upkeep.change(info, {}, "category", category="people")
    change = last(home)
    link_by_upkeep(home, tea, cake)
    home.memory.undo(change)
    category = home.category(tea)
    assert category == "knowledge"
    links = home.info(tea).links
    assert links == (cake,)
    links = home.info(cake).links
    assert links == (tea,)


@pytest.mark.parametrize("is_text_changed_first", [True, False])
def test_what_somebody_wrote_after_it_stays_in_the_way(home, is_text_changed_first):
    tea = home.write(TEA, "knowledge")
    cake = home.write(CAKE, "knowledge")
    change = edited(home, tea, "green", "black")
    if is_text_changed_first:
        edit = Append("It was a gift.\n")
        home.memory.edit(tea, edit)
        theirs = last(home)
        link_by_upkeep(home, tea, cake)
    else:
        link_by_upkeep(home, tea, cake)
        edit = Append("It was a gift.\n")
        home.memory.edit(tea, edit)
        theirs = last(home)
    before = home.tree()
    with pytest.raises(CannotUndo, match=rf"changed later \(#{theirs}\)"):
        home.memory.undo(change)
    after = home.tree()
    assert after == before
    later_changes = later_changes_in_the_way(home.memory, change)
    in_the_way = [later.number for later in later_changes]
    assert in_the_way == [theirs]
    home.memory.undo_together([change, theirs])
    text = content(home, tea)
    assert text == TEA
    links = home.info(tea).links
    assert links == (cake,)


def test_what_was_saved_outside_stays_in_the_way(home):
    tea = home.write(TEA, "knowledge")
    cake = home.write(CAKE, "knowledge")
    change = edited(home, tea, "green", "black")
    link_by_upkeep(home, tea, cake)
    file = home.file(tea)
    text = file.read_text()
    file.write_text(f"{text}By hand.\n")
    with pytest.raises(CannotUndo, match="changed later"):
        home.memory.undo(change)
    text = content(home, tea)
    assert "By hand." in text


def test_a_link_that_a_person_made_stays_in_the_way(home):
    tea = home.write(TEA, "knowledge")
    change = last(home)
    cake = home.write(CAKE, "knowledge")
    home.memory.link(tea, cake)
    with pytest.raises(CannotUndo, match="changed later"):
        home.memory.undo(change)
    links = home.info(cake).links
    assert links == (tea,)


def test_a_merge_by_upkeep_stays_in_the_way_since_it_removed_a_text(home):
    tea = home.write(TEA, "knowledge")
    other = home.write("Tea is black.", "knowledge")
    change = edited(home, tea, "green", "black")
    job = job_of(home)
    upkeep = Upkeep(job)
    survivor = home.info(tea)
    merged = home.info(other)
    upkeep.merge(survivor, merged)
    with pytest.raises(CannotUndo, match="changed later"):
        home.memory.undo(change)
    text = content(home, tea)
    assert text == "Tea is black."


def test_a_link_of_upkeep_that_was_taken_back_is_not_in_the_way(home):
    tea = home.write(TEA, "knowledge")
    cake = home.write(CAKE, "knowledge")
    milk_text = "Milk is white."
    milk = home.write(milk_text, "knowledge")
    change = edited(home, tea, "green", "black")
    first_link = link_by_upkeep(home, tea, cake)
    link_by_upkeep(home, tea, milk)
    home.memory.undo(first_link)
    home.memory.undo(change)
    text = content(home, tea)
    assert text == TEA
    links = home.info(tea).links
    assert links == (milk,)
    file = home.file(tea)
    file_text = file.read_text()
    assert f"link:{cake}" in file_text


def test_all_that_an_agent_did_goes_past_the_links_of_each_day(home):
    agent = home.memory.as_caller("claude", "mcp")
    cake = home.write(CAKE, "knowledge")
    tea = home.write(TEA, "knowledge")
    milk = home.write("Milk is white.", "knowledge")
    agent.edit(tea, FindReplace("green", "black"))
    link_by_upkeep(home, tea, cake)
    agent.edit(tea, FindReplace("black", "red"))
    link_by_upkeep(home, tea, milk)
    before = home.tree()
    undo, undone = home.memory.undo_changes_of("claude")
    assert len(undone) == 2
    text = content(home, tea)
    assert text == TEA
    links = home.info(tea).links
    assert sorted(links) == sorted([cake, milk])
    home.memory.undo(undo.number)
    after = home.tree()
    assert after == before


def test_memories_that_upkeep_linked_with_each_other_go_together(home):
    agent = home.memory.as_caller("claude", "mcp")
    cake = home.write(CAKE, "knowledge")
    draft = _draft("Tea is green.")
    first = agent.write(draft).id
    draft = _draft("Tea is greener.")
    second = agent.write(draft).id
    link_by_upkeep(home, first, second)
    link_by_upkeep(home, second, cake)
    agent.edit(first, Append("It was a gift.\n"))
    home.memory.undo_changes_of("claude")
    ids = home.ids()
    assert ids == {cake}
    links = home.info(cake).links
    assert links == ()
    text = content(home, cake)
    assert text == CAKE


def test_a_whole_run_of_links_is_taken_back_past_the_links_of_later_runs(home):
    tea = home.write(TEA, "knowledge")
    cake = home.write(CAKE, "knowledge")
    milk = home.write("Milk is white.", "knowledge")
    run = link_by_upkeep(home, tea, cake)
    link_by_upkeep(home, tea, milk)
    home.memory.undo_run(run)
    links = home.info(tea).links
    assert links == (milk,)
    links = home.info(cake).links
    assert links == ()


def test_reads_that_were_counted_since_stay_counted(home):
    tea = home.write(TEA, "knowledge")
    cake = home.write(CAKE, "knowledge")
    change = edited(home, tea, "green", "black")
    home.memory.read(tea)
    home.upkeep.fold()
    link_by_upkeep(home, tea, cake)
    home.memory.read(tea)
    home.upkeep.fold()
    home.memory.undo(change)
    home.upkeep.fold()
    text = content(home, tea)
    assert text == TEA
    reads = home.info(tea).access_count
    assert reads == 2
    links = home.info(tea).links
    assert links == (cake,)


def _draft(text: str) -> Draft:
    return Draft(text, project="categories", category="knowledge")


def sort_by_upkeep(home: Home, memory_id: str, category: str) -> None:
    """Move a memory to a category as upkeep does."""
    home.later(minutes=1)
    info = home.info(memory_id)
    keys = {"phase": "organized"}
    Upkeep(job_of(home)).change(info, keys, "classify", category=category)


def test_a_text_is_taken_back_where_upkeep_sorted_it(home):
    tea = home.write(TEA)
    cake = home.write(CAKE, "knowledge")
    change = edited(home, tea, "green", "black")
    sort_by_upkeep(home, tea, "knowledge")
    link_by_upkeep(home, tea, cake)
    before = home.tree()
    undo = home.memory.undo(change)
    text = content(home, tea)
    assert text == TEA
    info = home.info(tea)
    assert info.category == "knowledge"
    assert info.phase == "organized"
    assert info.links == (cake,)
    home.memory.undo(undo.number)
    after = home.tree()
    assert after == before


def test_a_text_whose_reads_were_counted_before_it_was_sorted_is_taken_back(home):
    tea = home.write(TEA)
    change = edited(home, tea, "green", "black")
    home.memory.read(tea)
    home.upkeep.fold()
    sort_by_upkeep(home, tea, "knowledge")
    home.memory.undo(change)
    text = content(home, tea)
    assert text == TEA
    category = home.info(tea).category
    assert category == "knowledge"


def test_a_memory_goes_from_where_upkeep_sorted_it_twice(home):
    tea = home.write(TEA)
    change = last(home)
    cake = home.write(CAKE, "knowledge")
    sort_by_upkeep(home, tea, "knowledge")
    link_by_upkeep(home, tea, cake)
    sort_by_upkeep(home, tea, "lessons")
    before = home.tree()
    undo = home.memory.undo(change)
    ids = home.ids()
    assert ids == {cake}
    links = home.info(cake).links
    assert links == ()
    home.memory.undo(undo.number)
    after = home.tree()
    assert after == before


def test_a_memory_that_a_person_sorted_is_in_the_way(home):
    tea = home.write(TEA)
    change = last(home)
    info = home.info(tea)
    home.upkeep.change(info, {}, "category", category="people")
    with pytest.raises(CannotUndo, match="changed later"):
        home.memory.undo(change)


def test_what_somebody_wrote_after_the_sorting_stays(home):
    tea = home.write(TEA)
    change = edited(home, tea, "green", "black")
    sort_by_upkeep(home, tea, "knowledge")
    edit = Append("It was a gift.\n")
    home.memory.edit(tea, edit)
    before = home.tree()
    with pytest.raises(CannotUndo, match="changed later"):
        home.memory.undo(change)
    after = home.tree()
    assert after == before


@pytest.mark.parametrize("is_linked_first", [True, False])
def test_a_move_is_taken_back_where_upkeep_sorted_and_linked_it(home, is_linked_first):
    cake = home.write(CAKE, "knowledge")
    tea = home.write(TEA, "knowledge")
    info = home.info(tea)
    home.upkeep.change(info, {}, "move", category="people")
    change = last(home)
    if is_linked_first:
        link_by_upkeep(home, tea, cake)
    sort_by_upkeep(home, tea, "lessons")
    if not is_linked_first:
        link_by_upkeep(home, tea, cake)
    before = home.tree()
    undo = home.memory.undo(change)
    info = home.info(tea)
    assert info.category == "knowledge"
    assert info.links == (cake,)
    links = home.info(cake).links
    assert links == (tea,)
    home.memory.undo(undo.number)
    after = home.tree()
    assert after == before


def test_a_memory_that_is_back_and_was_sorted_since_does_not_come_back_twice(home):
    tea = home.write(TEA, "knowledge")
    undo = home.memory.undo(last(home))
    home.memory.undo(undo.number)
    sort_by_upkeep(home, tea, "people")
    sorting = last(home)
    before = home.tree()
    refusals = refused_undos(home.memory, [undo.number])
    assert list(refusals) == [undo.number]
    with pytest.raises(CannotUndo, match=rf"changed later \(#{sorting}\)"):
        home.memory.undo(undo.number)
    after = home.tree()
    assert after == before


def test_a_copy_by_hand_does_not_keep_a_memory_from_coming_back(home):
    tea = home.write(TEA, "knowledge")
    file = home.file(tea)
    copy = file.with_name("copy.md")
    copy.write_bytes(file.read_bytes())
    home.memory.delete("categories/knowledge/" + file.stem)
    home.memory.undo()
    assert file.exists()
    assert copy.exists()


KINDS = ("write", "add", "change", "link", "link", "link", "read", "fold", "sort")
CATEGORIES = ("knowledge", "lessons", "people")


class Notebook:
    """Knows which sentences each change of a person or an agent brought and took."""

    def __init__(self, home: Home, seed: int):
        self.home = home
        self.random = Random(seed)
        self.count = 0
        self.changes: dict[int, tuple[set[str], set[str]]] = {}
        """By number of a change: the sentences that it added, and those that it removed."""

    def sentence(self) -> str:
        self.count += 1
        return f"Sentence number {self.count} is here."

    def sentences(self) -> set[str]:
        texts = [content(self.home, memory_id) for memory_id in self.home.ids()]
        return {line for text in texts for line in text.split("\n") if line}

    def note_change(self, before: set[str]) -> None:
        after = self.sentences()
        self.changes[last(self.home)] = (after - before, before - after)

    def act(self) -> None:
        """Let somebody or upkeep do something."""
        self.home.later(minutes=3)
        # By their texts, so that a seed leads to the same acts each time.
        ids = sorted(self.home.ids(), key=lambda memory_id: content(self.home, memory_id))
        writer = self.random.choice((self.home.memory, self.home.memory.as_caller("claude", "mcp")))
        kind = self.random.choice(
            ("write", "add", "change", "link", "link", "link", "read", "fold")
        )
        if kind == "write" or len(ids) < 2:
            before = self.sentences()
            draft = _draft(self.sentence())
            writer.write(draft)
            self.note_change(before)
        elif kind == "link":
            first, second = self.random.sample(ids, 2)
            link_by_upkeep(self.home, first, second)
        elif kind == "sort":
            memory_id = self.random.choice(ids)
            category = self.random.choice(CATEGORIES)
            sort_by_upkeep(self.home, memory_id, category)
        elif kind == "read":
            memory_id = self.random.choice(ids)
            self.home.memory.read(memory_id)
        elif kind == "fold":
            self.home.upkeep.fold()
        else:
            memory_id = self.random.choice(ids)
            self.edit(writer, memory_id, kind)

    def edit(self, writer: MemorySession, memory_id: str, kind: str) -> None:
        before = self.sentences()
        if kind == "add":
            sentence = self.sentence()
            writer.edit(memory_id, Append(f"{sentence}\n"))
        else:
            text = content(self.home, memory_id)
            old = self.random.choice(text.split("\n"))
            sentence = self.sentence()
            writer.edit(memory_id, FindReplace(old, sentence))
        self.note_change(before)

    def undo_one(self) -> bool:
        """Take back a change, check what is there then, and return whether it was taken back."""
        number = self.random.choice(list(self.changes))
        files = tree(self.home.memory.home)
        before = self.sentences()
        is_refused = number in refused_undos(self.home.memory, [number])
        try:
            undo = self.home.memory.undo(number)
        except CannotUndo:
            assert is_refused
            assert tree(self.home.memory.home) == files
            return False
        assert not is_refused
        added, removed = self.changes.pop(number)
        assert self.sentences() == (before - added) | removed
        self.check_links()
        if self.random.random() < 0.5:
            self.home.memory.undo(undo.number)
            assert self.sentences() == before
            self.changes[number] = (added, removed)
            self.check_links()
        return True

    def check_links(self) -> None:
        """Each link leads to a memory that is there and links back."""
        ids = self.home.ids()
        for memory_id in ids:
            info = self.home.info(memory_id)
            for partner in info.links:
                assert partner in ids
                partner_info = self.home.info(partner)
                assert memory_id in partner_info.links


@pytest.mark.slow
def test_no_undo_loses_or_brings_another_sentence_than_its_own(home):
    undone = 0
    for seed in range(6):
        notebook = Notebook(home, seed)
        for _ in range(25):
            notebook.act()
        for _ in range(8):
            undone += notebook.undo_one()
        for _ in range(10):
            notebook.act()
        for _ in range(8):
            undone += notebook.undo_one()
        home.memory.delete(*home.ids())
    assert undone > 30
