"""What each source takes from a folder of its kind: the rows of contract 001, 11."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda import config
from memoranda.ingest.sources import SOURCES, Tree, logseq_page

DATA = Path(__file__).parents[1] / "data" / "ingest"
FOUND = {}
for source_name, source in SOURCES.items():
    documents = source.scan(Tree(DATA / source_name))
    FOUND[source_name] = {document.source_ref.partition(":")[2]: document for document in documents}


def scanned(name, root, **files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return {document.title: document for document in SOURCES[name].scan(Tree(root))}


@pytest.mark.parametrize(
    ("source", "path", "title", "tags"),
    [
        ("claude", "CLAUDE.md", "CLAUDE", ["claude", "instructions"]),
        ("claude", "projects/-srv-heron/CLAUDE.md", "CLAUDE", ["claude", "instructions"]),
        ("claude", "templates/SMALL-CLAUDE.md", "SMALL-CLAUDE", ["claude", "instructions"]),
        (
            "claude",
            "projects/-srv-heron/memory/counting.md",
            "counting",
            ["claude", "project-memory"],
        ),
        (
            "claude",
            "projects/-srv-heron/memory/house-rules.md",
            "house-rules",
            ["claude", "project-memory"],
        ),
        (
            "claude",
            "projects/-srv-heron/deep/er/memory/湿地.md",
            "湿地",
            ["claude", "project-memory"],
        ),
        ("car-agent", ".logs/first.md", "first", ["car-agent"]),
        ("car-agent", "garage/charging-cards.md", "charging-cards", ["car-agent"]),
        ("car-agent", "garage/保养.md", "保养", ["car-agent"]),
        ("car-agent", "long/manual.md", "manual", ["car-agent"]),
        ("car-agent", "trips/2026-04-18 coast.md", "2026-04-18 coast", ["car-agent"]),
        ("fingersaver", "chat.md", "chat", ["fingersaver", "chat"]),
        ("logseq", "pages/Garden.md", "Garden", ["logseq", "garden", "soil", "spring work", "a/b"]),
        (
            "logseq",
            "pages/Projects%2FGreenhouse.md",
            "Projects/Greenhouse",
            ["logseq", "projects/greenhouse", "money"],
        ),
        (
            "logseq",
            "pages/Projects___Rainwater.md",
            "Projects/Rainwater",
            ["logseq", "projects/rainwater"],
        ),
        ("logseq", "pages/archive/Ann Becker.md", "Ann Becker", ["logseq", "ann becker"]),
        (
            "logseq",
            "pages/Percent 100%.md",
            "One hundred per cent",
            ["logseq", "one hundred per cent"],
        ),
        ("logseq", "pages/读书.md", "读书", ["logseq", "读书", "书/自然", "阅读中"]),
        (
            "logseq",
            "journals/2026_05_07.md",
            "2026_05_07",
            ["logseq", "journal", "2026_05_07", "bees"],
        ),
        (
            "logseq",
            "journals/2026/2026_05_08.md",
            "2026_05_08",
            ["logseq", "journal", "2026_05_08"],
        ),
        ("obsidian", "Home.md", "Home", ["obsidian", "index", "map-of-content", "start", "首页"]),
        (
            "obsidian",
            "Projects/Heron.md",
            "Heron",
            [
                "obsidian",
                "projects",
                "project",
                "birds/counting",
                "bird counter",
                "status/active",
                "build",
            ],
        ),
        ("obsidian", "Nature/Heron.md", "Heron", ["obsidian", "nature", "birds", "水边"]),
        (
            "obsidian",
            "Nature/2026/四月观察.md",
            "四月观察",
            ["obsidian", "nature-2026", "观察/春天", "湿地", "not-a-heading"],
        ),
        ("obsidian", "People/Lina.md", "Lina", ["obsidian", "people", "lina park", "朴丽娜"]),
        ("obsidian", "People/小王.md", "小王", ["obsidian", "people"]),
        ("obsidian", "Reading/Deep Work.md", "Deep Work", ["obsidian", "reading", "book"]),
        ("obsidian", "Reading/Broken header.md", "Broken header", ["obsidian", "reading", "kept"]),
    ],
)
def test_a_file_gives_its_title_and_tags(source, path, title, tags):
    document = FOUND[source][path]
    assert (document.title, list(document.tags), document.source) == (title, tags, source)


def test_every_source_may_be_configured():
    assert tuple(SOURCES) == config.SOURCES


def test_the_content_is_the_text_trimmed_byte_for_byte(tmp_path):
    documents = scanned("claude", tmp_path, **{"CLAUDE.md": "\n\n  a\r\n\r\n---\nb \n\n"})
    assert documents["CLAUDE"].content == "a\r\n\r\n---\nb"


def test_only_the_first_5000_characters_of_a_long_file_are_taken(tmp_path):
    long = FOUND["car-agent"]["long/manual.md"].content
    assert len(long) == 5003
    assert long.endswith("...")
    documents = scanned("fingersaver", tmp_path, **{"chat.md": " " + "鹭" * 5000 + " \n"})
    assert documents["chat"].content == "鹭" * 5000


def test_obsidian_frontmatter_leaves_the_content_and_a_broken_one_stays():
    assert FOUND["obsidian"]["Home.md"].content.startswith("# Home\n")
    assert FOUND["obsidian"]["Reading/Broken header.md"].content.startswith(
        "---\ntags: [never closed\n"
    )
    tree = Tree(DATA / "obsidian")
    list(SOURCES["obsidian"].scan(tree))
    assert tree.warnings == [
        "Reading/Broken header.md: its frontmatter is not valid YAML and stays in the text"
    ]


def test_logseq_properties_stay_in_the_content():
    assert FOUND["logseq"]["pages/Garden.md"].content.startswith("alias:: Allotment,")


@pytest.mark.parametrize(
    ("source", "path", "aliases"),
    [
        ("obsidian", "Home.md", ["Start", "首页"]),
        ("obsidian", "Projects/Heron.md", ["Bird counter", "Projects/Heron"]),
        ("obsidian", "People/Lina.md", ["Lina Park", "朴丽娜"]),
        ("obsidian", "People/小王.md", []),
        ("logseq", "pages/Garden.md", ["Allotment", "Plot, the lower one", "Kitchen garden"]),
        ("logseq", "pages/读书.md", ["书单", "阅读"]),
        ("logseq", "pages/archive/Ann Becker.md", ["Ann"]),
    ],
)
def test_a_file_gives_its_aliases(source, path, aliases):
    assert list(FOUND[source][path].aliases) == aliases


def test_only_the_properties_of_the_page_give_aliases(tmp_path):
    text = "- alias:: First\n  icon:: x\n- text\n  alias:: Of a block\n"
    aliases = scanned("logseq", tmp_path, **{"pages/a.md": text})["a"].aliases
    assert aliases == ("First",)
    text = "---\ntitle: Real name\nalias: [One]\n---\n\naliases:: Two\n"
    document = scanned("logseq", tmp_path, **{"pages/a.md": text})["Real name"]
    assert document.aliases == ("Two", "One")
    assert document.content == text.strip()


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("a%2Fb", "a/b"),
        ("a___b___c", "a/b/c"),
        ("50%25", "50%"),
        ("100% x", "100% x"),
        ("%E4%B9%A6", "书"),
        ("%FF", "%FF"),
        ("a_b", "a_b"),
    ],
)
def test_a_logseq_file_name_is_the_page(name, page):
    assert logseq_page(name) == page


def test_the_day_of_a_journal_and_of_a_note_is_kept():
    assert FOUND["logseq"]["journals/2026_05_07.md"].date == "2026-05-07"
    assert FOUND["obsidian"]["Home.md"].date == "2026-02-14"
    assert FOUND["logseq"]["pages/Garden.md"].date is None


def test_a_day_that_is_none_is_left_out(tmp_path):
    documents = scanned(
        "logseq", tmp_path, **{"journals/2026_13_45.md": "- x", "journals/2026-05-07.md": "- y"}
    )
    assert [documents[name].date for name in ("2026_13_45", "2026-05-07")] == [None, "2026-05-07"]


def test_tags_in_a_vaults_frontmatter_come_in_every_usual_form(tmp_path):
    documents = scanned(
        "obsidian",
        tmp_path,
        **{
            "a.md": "---\ntags: '#One two, three'\n---\nx",
            "b.md": "---\nTags:\n  - '#Four'\n  - five: six\n  -\n---\nx",
            "c.md": "---\ntag: seven\naliases: Eight Nine, Ten\n---\nx",
            "d.md": "---\n---\nx",
            "e.md": "---\nx",
        },
    )
    assert [documents[name].tags[1:] for name in "abcde"] == [
        ("one", "two", "three"),
        ("four",),
        ("seven", "eight nine", "ten"),
        (),
        (),
    ]
    assert [documents[name].content for name in "de"] == ["x", "---\nx"]


def test_a_name_composed_differently_by_the_file_system_is_the_same_file(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first = scanned("obsidian", tmp_path / "one", **{"Cafe\u0301.md": "x"})
    second = scanned("obsidian", tmp_path / "two", **{"Caf\u00e9.md": "x"})

    assert [document.source_ref for document in first.values()] == [
        document.source_ref for document in second.values()
    ]
    assert list(first) == ["Caf\u00e9"]
