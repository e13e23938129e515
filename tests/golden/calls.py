"""The calls of the golden replies: every tool of every preset, every command, every view of /api.

Each list is played in order on one home. A later call sees what an earlier one did.
"""

from __future__ import annotations

from typing import Any

Call = tuple[str, dict[str, Any]]

PLAN = """# Harbour plan

The harbour opens in May. See [[Tides]] and [[Not There]].

- [decision] Dredge the basin first #sea #2026 (agreed by all)
- [risk] Storms in autumn

- requires [[Tides]] (every hour)
- part of [[Not There]]

## Steps

First the basin.

### Details

Then the quay.
"""
TIDES = "Tides of the harbour: high at noon.\n\n- [fact] High at noon\n\n- feeds [[Harbour plan]]\n"

MEMORY: list[Call] = [
    ("memory", {"command": "view", "path": "/memories"}),
    ("memory", {"command": "create", "path": "/memories/plan.md", "file_text": "# Plan\nOne\n"}),
    ("memory", {"command": "view", "path": "/memories/plan.md"}),
    ("memory", {"command": "view", "path": "/memories/plan.md", "view_range": [2, 2]}),
    (
        "memory",
        {"command": "str_replace", "path": "/memories/plan.md", "old_str": "One", "new_str": "Two"},
    ),
    (
        "memory",
        {
            "command": "insert",
            "path": "/memories/plan.md",
            "insert_line": 1,
            "insert_text": "Half\n",
        },
    ),
    (
        "memory",
        {"command": "rename", "old_path": "/memories/plan.md", "new_path": "/memories/b.md"},
    ),
    ("memory", {"command": "view", "path": "/memories/none.md"}),
    ("memory", {"command": "delete", "path": "/memories/b.md"}),
    ("memory", {"command": "delete", "path": "/memories/b.md"}),
    ("memory", {"command": "fly"}),
]

_JSON = {"output_format": "json"}

NOTES: list[Call] = [
    ("list_memory_projects", {}),
    ("list_memory_projects", _JSON),
    ("write_note", {"title": "Tides", "directory": "sea", "content": TIDES}),
    (
        "write_note",
        {"title": "Harbour plan", "directory": "sea", "content": PLAN, "tags": ["harbour"]},
    ),
    ("write_note", {"title": "Harbour plan", "directory": "sea", "content": "Again"}),
    (
        "write_note",
        {"title": "Log", "directory": "", "content": "Day one", "note_type": "log"} | _JSON,
    ),
    (
        "write_note",
        {"title": "Log", "directory": "", "content": "Day two", "overwrite": True},
    ),
    ("write_note", {"title": "Log", "directory": "../x", "content": "No"}),
    ("read_note", {"identifier": "Harbour plan"}),
    ("read_note", {"identifier": "Harbour plan"} | _JSON),
    ("read_note", {"identifier": "Harbour plan", "start_line": 4, "end_line": 6}),
    ("read_note", {"identifier": "Nothing here"}),
    ("read_note", {"identifier": "Tides", "include_content": False}),
    ("search_notes", {"query": "harbour"}),
    ("search_notes", {"query": "harbour"} | _JSON),
    ("search_notes", {"query": "harbour", "page_size": 1}),
    ("search_notes", {"query": "harbour", "page": 9}),
    ("search_notes", {"query": "zebra"}),
    ("search_notes", {}),
    ("search_notes", {"tags": ["harbour"]}),
    ("search_notes", {"query": "storms", "entity_types": ["observation"]}),
    ("search_notes", {"query": "", "categories": ["decision"]}),
    ("build_context", {"url": "memory://sea/tides"}),
    ("build_context", {"url": "memory://sea/*"} | _JSON),
    ("build_context", {"url": "memory://none/*"}),
    ("recent_activity", {}),
    ("recent_activity", {"timeframe": "1d"} | _JSON),
    ("recent_activity", {"timeframe": "soon"}),
    ("list_directory", {}),
    ("list_directory", {"dir_name": "sea"} | _JSON),
    ("list_directory", {"dir_name": "nowhere"}),
    ("list_directory", {"file_name_glob": "*.md", "depth": 3, "page_size": 1}),
    (
        "edit_note",
        {"identifier": "Log", "operation": "append", "content": "\nDay three"},
    ),
    (
        "edit_note",
        {
            "identifier": "Log",
            "operation": "find_replace",
            "find_text": "two",
            "content": "2",
        }
        | _JSON,
    ),
    (
        "edit_note",
        {"identifier": "Log", "operation": "find_replace", "find_text": "no", "content": "2"},
    ),
    (
        "edit_note",
        {
            "identifier": "Harbour plan",
            "operation": "replace_section",
            "section": "Steps",
            "content": "Only one.",
        },
    ),
    (
        "edit_note",
        {
            "identifier": "Harbour plan",
            "operation": "replace_section",
            "section": "Nope",
            "content": "x",
        },
    ),
    ("edit_note", {"identifier": "Gone", "operation": "prepend", "content": "Made"}),
    ("move_note", {"identifier": "Log", "destination_path": "old/Log.md"}),
    ("move_note", {"identifier": "old/Log.md", "destination_path": "sea/Tides.md"}),
    ("move_note", {"identifier": "old", "destination_path": "older", "is_directory": True}),
    ("move_note", {"identifier": "Nope", "destination_path": "x.md"} | _JSON),
    ("delete_note", {"identifier": "Gone"}),
    ("delete_note", {"identifier": "Gone"} | _JSON),
    ("delete_note", {"identifier": "older", "is_directory": True}),
    ("create_memory_project", {"project_name": "work", "project_path": "{HOME}/work"}),
    ("create_memory_project", {"project_name": "work", "project_path": "{HOME}/work"} | _JSON),
    ("write_note", {"title": "Wide", "directory": "", "content": "At work", "project": "work"}),
    ("read_note", {"identifier": "Wide", "project": "nowork"}),
    ("search_notes", {"query": "work", "project": "work"} | _JSON),
    ("delete_project", {"project_name": "work"}),
    ("delete_project", {"project_name": "work"}),
]

GRAPH: list[Call] = [
    (
        "memory_create_entities",
        {
            "entities": [
                {"name": "Anna", "entityType": "person", "observations": ["likes tea", "sails"]},
                {"name": "Harbour", "entityType": "place", "observations": []},
            ]
        },
    ),
    (
        "memory_create_relations",
        {"relations": [{"from": "Anna", "to": "Harbour", "relationType": "works at"}]},
    ),
    (
        "memory_add_observations",
        {"observations": [{"entityName": "Anna", "contents": ["likes tea", "reads"]}]},
    ),
    ("memory_add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
    ("memory_read_graph", {}),
    ("memory_search_nodes", {"query": "tea"}),
    ("memory_open_nodes", {"names": ["Anna", "Nobody"]}),
    (
        "memory_delete_observations",
        {"deletions": [{"entityName": "Anna", "observations": ["reads"]}]},
    ),
    (
        "memory_delete_relations",
        {"relations": [{"from": "Anna", "to": "Harbour", "relationType": "works at"}]},
    ),
    ("memory_delete_entities", {"entityNames": ["Harbour"]}),
    ("memory_read_graph", {}),
    ("memory_create_entities", {"entities": "no list"}),
]

BANK: list[Call] = [
    ("list", {}),
    ("activate", {"bank_type": "global", "bank_id": "auto"}),
    (
        "update",
        {
            "bank_type": "global",
            "bank_id": "auto",
            "trigger_type": "decision",
            "content": "We use tabs",
            "conversation_id": "c1",
        },
    ),
    ("activate", {"bank_type": "project", "bank_id": "auto", "project_name": "harbour"}),
    ("update", {"bank_type": "project", "bank_id": "harbour", "content": "No trigger"}),
    ("list", {"bank_type": "project"}),
    ("list", {"bank_type": "nothing"}),
]

KV: list[Call] = [
    ("memory_remember", {"key": "editor", "value": "vim"}),
    ("memory_remember", {"key": "shell", "value": "fish", "namespace": "tools", "format": "json"}),
    ("memory_recall", {"key": "editor"}),
    ("memory_recall", {"key": "editor", "format": "json"}),
    ("memory_recall", {"key": "none"}),
    ("memory_search", {"query": "vim"}),
    ("memory_search", {"query": "fish", "format": "json"}),
    ("memory_list_namespaces", {}),
    ("memory_stats", {"format": "json"}),
    ("memory_forget", {"key": "editor"}),
    ("memory_clear_namespace", {"namespace": "tools"}),
    ("memory_remember", {"key": "", "value": ""}),
]

AGENT: list[Call] = [
    ("memory_write", {"content": "Anna likes tea", "category": "preferences", "tags": ["anna"]}),
    ("memory_write", {"content": "The harbour opens in May", "category": "knowledge"}),
    ("memory_write", {"content": " "}),
    ("memory_list", {}),
    ("memory_list", {"category": "preferences", "limit": 1}),
    ("memory_read", {"id": "{ID1}"}),
    ("memory_read", {"id": "ffff"}),
    ("memory_tag", {"id": "{ID1}", "add": ["tea"], "remove": ["anna"]}),
    ("memory_search", {"query": "harbour"}),
    ("memory_search", {"query": "may", "from": "2025-05-07", "to": "2025-05-07"}),
    ("memory_smart_search", {"query": "tea harbour"}),
    ("memory_delete", {"id": "{ID1}"}),
]

THEIRS: list[Call] = [
    ("list_memory_projects", {}),
    ("list_memory_projects", _JSON),
    ("write_note", {"title": "Tides", "directory": "sea", "content": TIDES}),
    ("write_note", {"title": "Harbour plan", "folder": "sea", "content": PLAN, "tags": "harbour"}),
    ("write_note", {"title": "Tides", "directory": "sea", "content": "Again"} | _JSON),
    ("write_note", {"title": "Log", "directory": "", "content": "Day one"} | _JSON),
    ("read_note", {"identifier": "Harbour plan"}),
    ("read_note", {"identifier": "Harbour plan"} | _JSON),
    ("read_note", {"identifier": "Tides", "start_line": 1, "end_line": 3} | _JSON),
    ("read_note", {"identifier": "Tides", "include_content": False} | _JSON),
    ("read_note", {"identifier": "Nothing tides"}),
    ("read_note", {"identifier": "Nothing"} | _JSON),
    ("view_note", {"identifier": "Tides"}),
    ("read_content", {"path": "sea/Tides.md"}),
    ("search_notes", {"query": "harbour"}),
    ("search_notes", {"query": "harbour"} | _JSON),
    ("search_notes", {"query": "storms", "entity_types": ["observation"]} | _JSON),
    ("search_notes", {"query": "Tides", "entity_types": ["relation"]} | _JSON),
    ("search_notes", {"query": "zebra"}),
    ("search_notes", {}),
    ("build_context", {"url": "memory://sea/tides"}),
    ("build_context", {"url": "memory://sea/tides", "output_format": "text"}),
    ("build_context", {"url": "memory://none"}),
    ("recent_activity", {}),
    ("recent_activity", {"type": ["entity", "observation", "relation"]} | _JSON),
    ("list_directory", {"dir_name": "/"}),
    ("list_directory", {"dir_name": "sea"} | _JSON),
    ("edit_note", {"identifier": "Log", "operation": "append", "content": "Day two"}),
    (
        "edit_note",
        {
            "identifier": "Log",
            "operation": "find_replace",
            "find_text": "nope",
            "content": "x",
        }
        | _JSON,
    ),
    ("edit_note", {"identifier": "Log", "operation": "fly", "content": "x"}),
    ("move_note", {"identifier": "Log", "destination_path": "old/Log.md"}),
    ("move_note", {"identifier": "old/Log", "destination_folder": "sea"} | _JSON),
    ("move_note", {"identifier": "sea", "destination_path": "wet", "is_directory": True} | _JSON),
    ("move_note", {"identifier": "Nope", "destination_path": "x.md"} | _JSON),
    ("delete_note", {"identifier": "Log"} | _JSON),
    ("delete_note", {"identifier": "Log"}),
    ("delete_note", {"identifier": "wet", "is_directory": True} | _JSON),
    ("create_memory_project", {"project_name": "more", "project_path": "{HOME}/more"}),
    ("create_memory_project", {"project_name": "more", "project_path": "{HOME}/more"} | _JSON),
    ("delete_project", {"project_name": "more"}),
    ("delete_project", {"project_name": "main"}),
]

PRESETS: dict[str, list[Call]] = {
    "memory": MEMORY,
    "notes": NOTES,
    "graph": GRAPH,
    "bank": BANK,
    "kv": KV,
    "agent": AGENT,
    "as-server-memory": [(name.removeprefix("memory_"), args) for name, args in GRAPH],
    "as-basic-memory": THEIRS,
}
"""The calls by toolset, and by preset where it has tools that no toolset has."""

COMMANDS = r"""
write Anna likes tea --category preferences --tags anna
write The harbour opens in May, see [[Tides]] --category knowledge --source radio
write A thought
write
read {ID1}
read ffff
read {ID1} {ID2}
tag {ID1} --add tea --remove anna
link {ID1} {ID2}
unlink {ID1} {ID2}
resolve-links --dry-run
supersede {ID2} The harbour opens in June
call write_note {"title":"Tides","directory":"sea","content":"High_at_noon_[[Harbour]]"}
call read_note {"identifier":"Tides"}
call nothing
read notes/sea/Tides.md
list
list --category preferences
list --project notes
list --tags tea
list --category nothing
recent --since 1d
search tea
search tea --ranked
search tea --ranked --explain
search tag:tea
search tag:tea likes
search zebra
search noon --project notes
context what does Anna like
backlinks {ID2}
orphans
profile
edit {ID1}
pin {ID1}
unpin {ID1}
archive {ID3}
archive --help
status
log
log -p -n 1
log {ID1}
diff {ID1}
undo
restore notes/sea/Tides.md
doctor
embed
review
remind Call Anna tomorrow at 9am
remind --list
notify
upgrade {ID3} --category knowledge
decay --dry-run
consolidate --dry-run
dream --dry-run
tidy --dry-run
kv set editor vim
kv get editor
kv get none
kv list
kv del editor
config list
config get timezone
config set timezone UTC
config set timezone Nowhere/Land
config unset timezone
project list
project add work {HOME}/work
project default work
project remove work
token add laptop --expires 90d
token list
space list
graph show Anna
graph export
export
agent --list-tools --tools kv
delete {ID1}
delete notes/sea/Tides.md
delete sea/tides
delete notes/sea/none.md
erase {ID2}
reindex
transcripts status
transcripts search harbour
project add ship {HOME}/ship
project access ship
project check ship
""".strip().splitlines()
"""Each is run without and with --json, each time on a new home."""

NOT_RUN = {
    "serve": "does not end",
    "mcp": "does not end",
    "hook": "has its own tests for every client",
    "install": "writes files of other programs",
    "uninstall": "writes files of other programs",
    "page": "needs a daemon",
    "ingest": "reads other programs' files",
    "import": "is export's other half, tested for loss",
    "backup": "answers with a folder",
    "bench": "answers with measurements",
    "mirror": "answers with a folder",
    "move-home": "answers with a folder",
    "completion": "is a script of the shell",
    "man": "is docs/memory.1",
    "help": "is docs/cli.md",
}
"""Commands that are tested elsewhere, and why they are not run here."""

API = (
    "/api/changes",
    "/api/change/1",
    "/api/note?ref=notes/sea/Tides.md",
    "/api/note?ref=none",
    "/api/review",
    "/api/search?q=harbour",
    "/api/search?q=zebra",
    "/api/graph",
    "/api/calendar",
    "/api/health",
)

NOT_CALLED = ("cat", "grep", "ls", "find", "tail", "schema_validate", "schema_infer", "schema_diff")
"""Tools of Basic Memory that amendment 8 takes away."""
