from __future__ import annotations

from contract.tables import tables
from memoranda.engine import open_session
from memoranda.faces.notes import toolset
from memoranda.faces.tool import Registry

TABLES = tables("note_projects")


def test_the_built_in_projects_are_listed_with_their_notes(face):
    face.write("A")
    reply = face.call("list_memory_projects")
    projects = {project["name"]: project for project in reply.data["projects"]}
    assert list(projects) == ["categories", "memories", "notes", "graph", "banks", "kv"]
    place = {"name": "notes", "path": str(face.memory.home / "notes")}
    assert projects["notes"] == {**place, "notes": 1, "default": True, "built_in": True}
    assert f"notes: 1 note, {face.memory.home / 'notes'} (default)" in reply.text


def test_a_vault_is_used_in_place_and_unchanged(face, tmp_path):
    vault = tmp_path / "My Vault"
    vault.mkdir()
    (vault / "One.md").write_text("a wordofthevault")
    reply = face.call("create_memory_project", project_name="My Vault", project_path=str(vault))
    assert reply.data == {"action": "created", "name": "My Vault", "path": str(vault), "notes": 1}
    assert reply.text.startswith("# Created project\nname: My Vault\n")
    names = [path.name for path in vault.iterdir()]
    assert names == ["One.md"]
    project = face("search_notes", query="wordofthevault")["results"][0]["project"]
    assert project == "My Vault"
    again = face("create_memory_project", project_name="My Vault", project_path=str(vault))
    assert again["action"] == "unchanged"


def test_an_unknown_project_is_answered_with_those_there_are(face):
    for tool, arguments in TABLES["unknown"]:
        text = face.refused(tool, "project_not_found", **arguments)
        assert text.startswith('No project "nope". Projects: ')
        assert "notes" in text
        assert text.endswith("Add one with create_memory_project.")


def test_an_unknown_project_id_is_answered_like_an_unknown_name(face):
    replies = [
        face.refused("recent_activity", "project_not_found", **{argument: "nope"})
        for argument in ("project", "project_id")
    ]
    assert replies[0] == replies[1]


def test_a_persons_own_folder_and_what_is_hidden_in_it_are_refused(face, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for folder in ("~", "~/.ssh", "~/.config/notes", str(tmp_path / "me")):
        face.refused(
            "create_memory_project", "project_refused", project_name="p", project_path=folder
        )
    created = face("create_memory_project", project_name="p", project_path="~/vault")

    assert created["path"] == str(tmp_path / "me" / "vault")


def test_a_graph_file_that_should_become_the_default_is_refused_by_its_kind(face, tmp_path):
    graph_file = tmp_path / "team.jsonl"
    graph_file.write_text('{"type": "entity", "name": "Tea", "entityType": "drink"}\n')
    face.memory.add_project("team", str(graph_file))
    arguments = {"project_name": "team", "project_path": str(graph_file), "set_default": True}
    text = face.refused("create_memory_project", "invalid", **arguments)
    assert "graph file team.jsonl" in text
    assert "project_name" not in text


def test_the_owner_may_keep_adding_to_themselves(tmp_path):
    registry = Registry([toolset(agents_may_add_projects=False)])
    with open_session(tmp_path / "home", watch=False) as memory:
        reply = registry.call(
            memory,
            "create_memory_project",
            {"project_name": "v", "project_path": str(tmp_path / "v")},
        )
        assert reply.is_error
        assert reply.data["code"] == "project_refused"
        assert "memory project add" in reply.text
        assert not (tmp_path / "v").exists()
