"""The face `bank`: three tools that keep banks of Markdown files for kinds of conversation (contract 003)."""

from __future__ import annotations

import json

from commonplace.faces.bank.responses import parse_response
from commonplace.faces.texts import text_file
from commonplace.faces.tool import Toolset

__all__ = ["parse_response", "toolset"]

_ALSO = {"activate": {"conversation_type": {"type": "string"}}}


def toolset(
    *,
    debug: bool = False,
    llm_url: str | None = None,
    llm_model: str | None = None,
    llm_key: str | None = None,
) -> Toolset:
    """The toolset of one server; what it remembers between calls is its own.

    `debug` writes a dump beside each updated bank. With `llm_url` and `llm_model` an OpenAI-compatible endpoint
    may choose the file of an update that names none.
    """
    from commonplace.faces.bank.activating import activate
    from commonplace.faces.bank.listing import list_banks
    from commonplace.faces.bank.replies import answering
    from commonplace.faces.bank.session import Session
    from commonplace.faces.bank.updating import update

    session = Session(debug)
    if llm_url and llm_model:
        from commonplace.llm import Endpoint

        session.llm = Endpoint(llm_url, llm_model, llm_key)
    runs = {"activate": activate, "list": list_banks, "update": update}
    tools = [
        answering(session, each, runs[each["name"]], _ALSO.get(each["name"], {}))
        for each in json.loads(text_file("bank-tools.json"))
    ]
    return Toolset("bank", tools)
