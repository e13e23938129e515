"""The plugin, the extension, the bundle and the registry's file say what the program is."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import address
from memoranda import __version__
from memoranda.clients.hook_events import CLIENTS
from memoranda.clients.table import agents_md, clients

pytestmark = pytest.mark.promise("install-5")

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugin"
MANIFESTS = {
    "marketplace": ROOT / ".claude-plugin" / "marketplace.json",
    "plugin": PLUGIN / ".claude-plugin" / "plugin.json",
    "gemini": PLUGIN / "gemini" / "gemini-extension.json",
    "mcpb": PLUGIN / "mcpb" / "manifest.json",
    "registry": ROOT / "server.json",
}


def load(name: str) -> Any:
    return json.loads(MANIFESTS[name].read_text("utf-8"))


def test_all_have_the_programs_version() -> None:
    (listed,) = load("marketplace")["plugins"]
    (package,) = load("registry")["packages"]
    bundle = tomllib.loads((PLUGIN / "mcpb" / "pyproject.toml").read_text("utf-8"))["project"]
    versions = [load(name)["version"] for name in ("plugin", "gemini", "mcpb", "registry")]
    assert {*versions, listed["version"], package["version"], bundle["version"]} == {__version__}
    assert bundle["dependencies"] == [f"memoranda>={__version__}"]


def test_the_marketplace_leads_to_the_plugin() -> None:
    (listed,) = load("marketplace")["plugins"]
    assert (ROOT / listed["source"]).resolve() == PLUGIN
    assert (listed["name"], load("marketplace")["name"]) == (load("plugin")["name"], "memoranda")
    assert clients()["claude-code"].plugin["key"][-1] == "memoranda@memoranda"


@pytest.mark.parametrize(("name", "client"), [("plugin", "claude-code"), ("gemini", "gemini-cli")])
def test_a_bundle_brings_the_server_and_hooks_that_install_writes(name: str, client: str) -> None:
    client_entry = clients()[client]
    expected = {
        key: value for key, value in client_entry.stdio.items() if key not in ("command", "args")
    }
    assert load(name)["mcpServers"] == {
        "memory": {**expected, "command": "memory", "args": ["mcp"]}
    }
    place = PLUGIN / ("hooks" if name == "plugin" else "gemini/hooks") / "hooks.json"
    hooks = json.loads(place.read_text("utf-8"))["hooks"]
    assert list(hooks) == list(CLIENTS[client].events)
    commands = set()
    for groups in hooks.values():
        for group in groups:
            commands |= {hook["command"] for hook in group["hooks"]}
    assert commands == {f"memory hook {client} 2>/dev/null || true"}


def claims(root: Path) -> tuple[str, ...]:
    """Who owns the project, as four files say it."""
    urls = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"].get("urls", {})
    patterns = {
        "server.json": r'"name": "io\.github\.(.+?)/',
        "README.md": r"mcp-name: io\.github\.(.+?)/memoranda ",
        "plugin/README.md": r"claude plugin marketplace add (.+?)/\S+",
    }
    matches = [
        re.search(pattern, (root / file).read_text("utf-8")) for file, pattern in patterns.items()
    ]
    return (*urls.values(), *(match[1] for match in matches if match))


def test_nobody_is_named_as_the_owner_or_all_files_name_the_same(tmp_path: Path) -> None:
    if claims(ROOT) != ("OWNER",):
        url, *owners = claims(ROOT)
        assert {url.split("/")[3]} == set(owners)
    for file in ("pyproject.toml", "server.json", "README.md", "plugin/README.md"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    for url, owner in (
        ("git@github.com:ann/notes.git", "ann"),
        ("https://github.com/b-o/memoranda", "b-o"),
    ):
        address.write(tmp_path, url)
        name = url.split("/")[-1].removesuffix(".git")
        assert claims(tmp_path) == (f"https://github.com/{owner}/{name}", owner, owner, owner)
    with pytest.raises(ValueError, match="no repository"):
        address.write(tmp_path, "/srv/notes.git")


def test_the_registrys_file_fits_its_limits() -> None:
    server = load("registry")
    assert len(server["description"]) <= 100
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    (package,) = server["packages"]
    # Which is what its runner starts
    assert package["identifier"] in scripts
    assert package["packageArguments"] == [{"type": "positional", "value": "mcp"}]


def test_the_skill_says_when_it_is_for() -> None:
    head, _, body = (
        (PLUGIN / "skills" / "memory" / "SKILL.md")
        .read_text("utf-8")
        .removeprefix("---\n")
        .partition("---\n")
    )
    about = yaml.safe_load(head)
    assert about["name"] == "memory"
    assert "Use when" in about["description"]
    assert len(about["description"]) <= 1024
    assert len(body.split()) < 400


def test_the_context_file_of_gemini_is_the_paragraph_for_agents_that_install_writes() -> None:
    name = load("gemini")["contextFileName"]
    assert (PLUGIN / "gemini" / name).read_bytes() == (PLUGIN / "AGENTS.md").read_bytes()
    assert agents_md(ROOT).stdio["text"] == (PLUGIN / "AGENTS.md").read_text("utf-8").strip()
