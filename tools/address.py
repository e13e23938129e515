"""Writes the project's public address wherever it must stand: `python tools/address.py
[https://github.com/OWNER/NAME]`.

Without an argument it is that of the Git remote `origin`. It goes into pyproject.toml
([project.urls]), and from there into server.json (the name in the MCP registry), README.md (the
line by which the registry knows the owner) and plugin/README.md. Until it was run once, no file
names an owner but server.json, which says OWNER. A test compares them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
URLS = "[project.urls]\nRepository = "


def owner_and_name(url: str) -> tuple[str, str]:
    """Of a repository on GitHub, by its https or ssh address. Raises ValueError."""
    match = re.fullmatch(
        r"(?:https://(?:[^@/]+@)?github\.com/|git@github\.com:)([\w-]+)/([\w.-]+?)(?:\.git)?/?", url
    )
    if match is None:
        raise ValueError(f"no repository on GitHub: {url}")
    return match[1], match[2]


def write(root: Path, url: str) -> None:
    """Write the address into the files of the checkout at `root`. Raises ValueError."""
    owner, name = owner_and_name(url)
    claim = f"<!-- mcp-name: io.github.{owner}/memoranda -->"
    for file, pattern, text in (
        (
            "pyproject.toml",
            r"\[project\.urls\]\nRepository = .*\n\n|(?=\[project\.scripts\])",
            f'{URLS}"https://github.com/{owner}/{name}"\n\n',
        ),
        ("server.json", r'(?<="name": ")io\.github\.[^/"]+/', f"io.github.{owner}/"),
        ("README.md", r"\n*<!-- mcp-name: .* -->\n\Z|\n\Z", f"\n\n{claim}\n"),
        ("plugin/README.md", r"(?<=claude plugin marketplace add )\S+", f"{owner}/{name}"),
    ):
        path = root / file
        changed_text, count = re.subn(pattern, text, path.read_text("utf-8"), count=1)
        if not count:
            raise ValueError(f"{file} has no place for the address")
        path.write_text(changed_text, "utf-8")


if __name__ == "__main__":
    addresses = sys.argv[1:] or [
        subprocess.check_output(["git", "remote", "get-url", "origin"], cwd=ROOT, text=True).strip()
    ]
    try:
        write(ROOT, addresses[0])
    except ValueError as error:
        sys.exit(f"Error: {error}")
