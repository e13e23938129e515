"""Opening the chosen model."""

from __future__ import annotations

from commonplace.index.vectors import others
from commonplace.index.vectors.model import Choice, Embedder, identify


def open_model(choice: Choice) -> Embedder:
    """The chosen model, ready for texts. Raises NoModel."""
    identity = identify(choice)
    if choice.endpoint:
        return others.Endpoint(choice.endpoint, identity.name, choice.key)
    if identity.folder is not None:
        from commonplace.index.vectors.folder import open_folder

        return open_folder(identity.folder)
    library = (choice.model or "").partition(":")[0]
    return others.FastEmbed(identity.name) if library == "fastembed" else others.SentenceTransformers(identity.name)
