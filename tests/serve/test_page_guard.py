"""Who is let in to the page and to /api, and what a hostile note, name or request can do there
(docs/page.md).
"""

from __future__ import annotations

import re
from itertools import chain
from time import process_time

import pytest

from memoranda import Draft
from memoranda.serve.page.addresses import note_url
from memoranda.serve.page.note_text import LinkTargets, as_html
from memoranda.serve.page.visit import BODY
from serve.web import Browser, bearer

pytestmark = pytest.mark.anyio

HOSTILE = """<script>alert(1)</script> <img src=x onerror=alert(2)> <svg onload=alert(3)><style>*{display:none}</style>
[a](javascript:alert(4)) [b](JaVaScRiPt&#58;alert(5)) [c](data:text/html,<script>x</script>) [d](vbscript:x)
![i](https://evil.example/pixel.png) ![j](javascript:alert(6)) <https://evil.example/"onmouseover=x> [[<b>]]
[e]: javascript:alert(7)
[e] [[x"onclick="y]] \x1b[31m\u202etxt\u2066 \x00 `<script>` [f](//evil.example/x) [g](/page/leave "t\\"x<y>")
[h](page/../../../etc/passwd) [k](\\\\evil.example\\x) [l](http:evil) <iframe src="https://evil.example"></iframe>
"""


@pytest.mark.promise("page-refused")
async def test_a_stranger_sees_nothing_and_changes_nothing(web, client):
    note = web.memory.write(Draft("secret tea", title="Tea"))
    address = note_url(note.project, note.path)
    for path in (
        "/page",
        address,
        address + "?part=text",
        "/page/change/1",
        "/page/review",
        "/page/find?ref=tea",
        "/api/changes",
        "/api/note?ref=tea",
        "/api/change/1",
        "/api/review",
    ):
        answer = await client.get(path)
        assert (answer.status_code, "tea" in answer.text.lower()) == (401, False), path
    assert (await client.get("/page/live")).status_code == 204
    for path in (address, "/page/undo", "/page/review", "/page/leave", "/api/undo", "/api/note"):
        assert (await client.post(path, data={"do": "delete", "change": "1"})).status_code == 401, (
            path
        )
    assert (await client.get("/page/static/base.css")).status_code == 200
    for name in ("../visit.py", "%2e%2e/visit.py", "..%2fvisit.py", "/etc/passwd"):
        # An address that leads out of the folder is one that nobody knows, so it asks who is there.
        assert (await client.get(f"/page/static/{name}")).status_code in (401, 404), name
    for code in ("", "x", "x" * 10_000, "\x00", "茶"):
        assert (await client.get("/page/enter", params={"code": code})).status_code == 401
    for cookie in ("x", "é", "a" * 5000):
        headers = {"cookie": f"memoranda-8377={cookie}".encode()}
        assert (await client.get("/page", headers=headers)).status_code == 401
    assert web.memory.read("tea").text


async def status_of_code(client, code):
    answer = await client.get("/page/enter", params={"code": code})
    return answer.status_code


@pytest.mark.promise("page-refused")
async def test_code_is_good_once_and_not_used_up_by_a_look_ahead(web, client):
    visitor = Browser(web, client)
    code = visitor.code()
    response = await client.head("/page/enter", params={"code": code})
    assert response.status_code == 401
    status = await status_of_code(client, code)
    assert status == 200
    client.cookies.clear()
    later_status = await status_of_code(client, code)
    assert later_status == 401


@pytest.mark.promise("page-refused")
async def test_code_is_good_for_minutes(web, client):
    code = Browser(web, client).code()
    web.later(minutes=6)
    assert await status_of_code(client, code) == 401


@pytest.mark.promise("page-refused")
async def test_cookie_of_a_code_is_for_this_site_and_for_no_script(web, client):
    visitor = Browser(web, client)
    code = visitor.code()
    answer = await client.get("/page/enter", params={"code": code})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


@pytest.mark.promise("page-refused")
async def test_cookie_is_good_for_days(web, page):
    web.later(minutes=6)
    await page.see("/page")
    web.later(days=8)
    answer = await page.client.get("/page")
    assert answer.status_code == 401


@pytest.mark.promise("page-refused")
async def test_cookie_is_good_until_its_owner_leaves(web, page):
    answer = await page.send("/page/leave")
    assert answer.status_code == 200
    answer = await page.client.get("/page")
    assert answer.status_code == 401


@pytest.mark.promise("page-refused")
async def test_secret_of_a_visit_is_not_stored(web, page):
    rows = str(web.access.rows())
    assert "cpl_" not in rows


@pytest.mark.promise("page-refused")
async def test_another_site_in_the_same_browser_can_do_nothing(web, page):
    web.memory.write(Draft("tea", title="Tea"))
    client = page.client
    good = {"csrf": page.csrf, "change": "1"}
    other_browser = Browser(web, client)
    foreign = [
        (421, {"host": "evil.example"}),
        (421, {"host": "127.0.0.1.evil.example:8377"}),
        (403, {"origin": "https://evil.example"}),
        (403, {"origin": "null"}),
        (403, {"origin": "http://127.0.0.1:3000"}),
        (403, {"origin": "http://localhost:8377"}),
        (403, {"sec-fetch-site": "cross-site"}),
        (403, {"sec-fetch-site": "same-site"}),
        (403, {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"}),
    ]
    for status, headers in foreign:
        assert (
            await client.post("/page/undo", data=good, headers=headers)
        ).status_code == status, headers
        json = {"change": "1"}
        answer = await client.post(
            "/api/undo", json=json, headers=headers | {"x-csrf-token": page.csrf}
        )
        assert answer.status_code == status, headers
    for headers in ({"sec-fetch-site": "same-site"}, {"sec-fetch-site": "cross-site"}):
        assert (await client.get("/api/changes", headers=headers)).status_code == 403
        assert (await client.get("/page/live", headers=headers)).status_code == 204
    walk = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    # A link somewhere; the browser itself keeps the strict cookie back
    await page.see("/page", **walk)
    stale = page.csrf
    await other_browser.enter()
    for csrf in ("", "x", stale, other_browser.csrf[:-1], "é"):
        answer = await client.post("/page/undo", data={"csrf": csrf, "change": "1"})
        assert answer.status_code == 403, csrf
    assert (await client.post("/api/undo", json={"change": "1"})).status_code == 403
    assert (
        await client.post("/api/undo", data={"csrf": other_browser.csrf, "change": "1"})
    ).status_code == 415
    answered = await client.post(
        "/page/undo",
        data={"csrf": other_browser.csrf, "change": "1", "back": "https://evil.example"},
    )
    assert answered.headers["location"].startswith("/page?done=")
    assert web.memory.log(limit=1)[0].undoes == 1


HALVES_OF_CHARACTERS = {
    '{"ref": "in-work\\ud800", "do": "tag", "tags": "a"}': 400,
    '{"ref": "in-work", "do": "tag", "tags": "a\\udc00"}': 400,
    '{"ref": "in-work", "do": "tag", "tags": "a", "\\udc00": "x"}': 400,
}
"""Bodies of `/api/note` that UTF-8 cannot carry, with the status of the answer."""


class TokenCaller:
    """Requests with one token."""

    def __init__(self, client, secret):
        self.client = client
        self.secret = secret

    async def get(self, path):
        return await self.client.get(path, headers=bearer(self.secret))

    async def post(self, path, **data):
        return await self.client.post(path, json=data, headers=bearer(self.secret))


@pytest.fixture
def notes_of_all(web):
    """A note of the project work, one of notes, and one that only an agent may see."""
    web.memory.add_project("work", str(web.memory.home.parent / "work"))
    web.memory.write(Draft("mine alone", title="Private", scope="agent:ann"))
    for project in ("work", "notes"):
        web.memory.write(Draft("of all", title=f"In {project}", project=project))


@pytest.fixture
def reader(web, client, notes_of_all):
    """A caller that may read."""
    return TokenCaller(client, web.token("reader", scope="read"))


@pytest.fixture
def limited(web, client, notes_of_all):
    """A caller that may write, in the project work alone."""
    return TokenCaller(client, web.token("bob", projects=["work"]))


@pytest.mark.promise("page-api")
async def test_token_opens_no_page(reader):
    response = await reader.get("/page")
    assert response.status_code == 401


@pytest.mark.promise("page-api")
async def test_token_reads_at_the_api_what_everybody_may_see(reader):
    note = (await reader.get("/api/note?ref=in-work")).json()["note"]
    assert note["content"] == "of all"
    runs = (await reader.get("/api/changes?limit=2")).json()["runs"]
    assert len(runs) == 2


@pytest.mark.promise("page-api")
async def test_token_finds_no_note_of_another_agent(reader):
    response = await reader.get("/api/note?ref=private")
    assert response.status_code == 404


@pytest.mark.promise("page-api")
async def test_token_that_may_read_changes_nothing(reader):
    refused = await reader.post("/api/note", ref="in-work", do="delete")
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "refused"


@pytest.mark.promise("page-api")
async def test_token_of_a_project_sees_notes_and_changes_of_that_project_alone(web, limited):
    response = await limited.get("/api/note?ref=in-notes")
    assert response.status_code == 404
    text = (await limited.get("/api/search?q=of+all")).text
    assert "in-work" in text
    assert "in-notes" not in text
    runs = (await limited.get("/api/changes")).json()["runs"]
    projects = {change["project"] for change in chain.from_iterable(runs)}
    assert projects == {"work"}
    foreign = next(change.number for change in web.memory.log() if change.project == "notes")
    response = await limited.get(f"/api/change/{foreign}")
    assert response.status_code == 404


@pytest.mark.promise("page-api")
async def test_token_takes_back_no_change_of_others(web, limited):
    runs = (await limited.get("/api/changes")).json()["runs"]
    foreign = next(change.number for change in web.memory.log() if change.project == "notes")
    for undo in ({"change": str(foreign)}, {"change": runs[0][0]["change"]}, {"run": "1"}, {}):
        response = await limited.post("/api/undo", **undo)
        assert response.status_code == 409, undo


@pytest.mark.promise("page-api")
async def test_token_tags_a_note_as_its_agent_and_takes_it_back(web, limited):
    answer = await limited.post("/api/note", ref="in-work", do="tag", tags="a,b")
    assert answer.json()["note"]["tags"] == ["a", "b"]
    assert web.memory.log(limit=1)[0].agent == "bob"
    undone = await limited.post("/api/undo", change=str(answer.json()["change"]))
    assert undone.status_code == 200


@pytest.mark.promise("page-api")
async def test_token_is_asked_no_questions_of_review_and_answers_none(limited):
    assert (await limited.get("/api/review")).json() == {"items": []}
    response = await limited.post("/api/review", key="x", choice="y")
    assert response.status_code in (400, 404)


@pytest.mark.promise("page-api")
async def test_form_of_the_api_that_is_wrong_is_refused(limited):
    for wrong in (
        {"do": "erase"},
        {"do": "nothing"},
        {"do": "tag"},
        {"do": "edit", "text": "x"},
        {},
    ):
        response = await limited.post("/api/note", ref="in-work", **wrong)
        assert response.status_code == 400, wrong
    response = await limited.post("/api/note", ref="in-work", do="tag", tags="a, " * 4_000)
    assert response.status_code == 413


@pytest.mark.promise("page-api")
async def test_body_of_the_api_that_is_no_object_is_refused(client, limited):
    headers = bearer(limited.secret) | {"content-type": "application/json"}
    bodies = HALVES_OF_CHARACTERS | {
        "{": 400,
        "[]": 400,
        '"x"': 400,
        "[" * 100_000: 400,
        "x" * (BODY + 1): 413,
    }
    for body, status in bodies.items():
        answer = await client.post("/api/note", content=body, headers=headers)
        assert answer.status_code == status, body[:9]


@pytest.mark.promise("page-api")
async def test_unknown_token_is_told_how_to_be_let_in(client):
    answer = await TokenCaller(client, "cpl_no").get("/api/changes")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.promise("page-api")
async def test_an_archived_memory_returns_when_a_token_that_may_write_reads_it(web, client):
    stored = web.memory.write(Draft("likes heron tea", "categories", category="knowledge"))
    reader = web.token("reader", scope="read")
    writer = web.token("all")
    archive = {"ref": stored.id, "do": "archive"}

    answer = await client.post("/api/note", json=archive, headers=bearer(writer))
    assert answer.json()["note"]["phase"] == "archived"

    # Who only reads changes nothing by it
    for secret, phase in ((reader, "archived"), (writer, "organized")):
        answer = await client.get(f"/api/note?ref={stored.id}", headers=bearer(secret))
        assert answer.json()["note"]["phase"] == phase


@pytest.mark.promise("page-api")
async def test_the_api_of_a_space_is_its_members_by_their_roles(web, client):
    web.access.add_space("team")
    web.access.set_member("team", "ann", "member")
    web.access.set_member("team", "rob", "reader")
    ann = web.token("ann", member="ann")
    rob = web.token("rob", member="rob")
    mine = web.token("mine")
    web.memory.write(Draft("of the owner", title="Own"))
    for secret, path, status in (
        (ann, "/s/team/api/changes", 200),
        (rob, "/s/team/api/changes", 200),
        (mine, "/s/team/api/changes", 404),
        (ann, "/api/changes", 404),
        (ann, "/s/other/api/changes", 404),
        (ann, "/s/team/api/note?ref=own", 404),
    ):
        answer = await client.get(path, headers=bearer(secret))
        assert answer.status_code == status, path

    answer = await client.post("/s/team/api/undo", json={}, headers=bearer(rob))
    assert answer.status_code == 403
    answer = await client.post("/s/team/api/undo", json={}, headers=bearer(ann))
    assert answer.status_code == 409


@pytest.mark.promise("page-hostile")
async def test_what_a_note_holds_acts_on_nobody(web, page):
    names = [
        "Q\"uo'te <b>",
        "日本/茶 & 50%?#x",
        "back\\slash",
        "<script>alert(1)</script>",
        "x\x1b\u202ey",
        "a..b",
        "{{ 1 }} {n}",
    ]
    notes = [
        web.memory.write(Draft(HOSTILE, title=name, tags=['"><script>', "{x}"], type="<i>{q}"))
        for name in names
    ]
    web.memory.write(Draft(HOSTILE, project="categories", category="inbox", source="<script>x"))
    addresses = [note_url(note.project, note.path) for note in notes]
    parts = []
    for address in addresses:
        parts += [f"{address}?part={part}" for part in ("history", "edit")]
    for path in ("/page", "/page/review?list=1", "/page/change/1", *addresses, *parts):
        answer = await page.client.get(path)
        # \x00 would be lost in a form
        assert answer.status_code == (400 if path.endswith("edit") else 200), path
        text = answer.text
        scripts = re.findall(r"<script[^>]*>", text)
        assert all(
            re.fullmatch(r'<script src="/page/static/[0-9a-f]{12}/page.js" type="module">', script)
            for script in scripts
        ), path
        # The links of the frame itself, and the icons of its buttons
        own = r'<nav id="rail".*?</nav>|<svg class="icon" [^>]*>.*?</svg>'
        inner = re.sub(own, "", text, flags=re.DOTALL)
        assert not re.search(r"<(img|svg|style|iframe|object|i>)", inner), path
        assert not re.search(r"<[^>]*\son\w+=", re.sub('"[^"]*"', '""', text)), path
        assert not re.search(r'(href|src|action)="(?!/|https?://evil.example|file:///|#)', text), (
            path
        )
        assert not re.search(r'src="(?!/page/static/)', text), path
        assert not re.search("[\x00\x1b\u202e\u2066]", text), path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    answer = await page.client.get(addresses[0] + "?part=text")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-security-policy"] == "sandbox"
    redirect = await page.client.get("/page/find", params={"ref": names[1]})
    assert redirect.headers["location"] == addresses[1]


@pytest.mark.promise("page-hostile")
async def test_a_note_of_megabytes_is_shown_by_its_beginning(web, page):
    place = web.memory.home / "notes" / "big.md"
    place.parent.mkdir(exist_ok=True)
    place.write_text("# Big\n" + "words and words\n" * (3 << 20 >> 4))
    html = await page.see("/page/note/notes/big.md")
    assert "This note is long" in html
    assert len(html) < 2_000_000
    answer = await page.client.get("/page/note/notes/big.md?part=edit")
    assert answer.status_code == 400
    assert (
        len((await page.client.get("/page/note/notes/big.md?part=text")).content)
        == place.stat().st_size
    )


@pytest.mark.promise("page-hostile")
def test_no_text_takes_long_to_render():
    for text in (
        "[",
        "![",
        "*a_",
        "`",
        "<",
        "[[",
        "> ",
        "- ",
        "~~",
        "|a|\n|-|\n",
        "[\n",
        "[a](",
        "_a ",
        "- [[a]]\n",
    ):
        begin = process_time()
        assert as_html(text * 30_000, "notes", "x.md", LinkTargets())
        assert process_time() - begin < 2, text


async def test_a_damaged_file_of_tokens_is_told_to_who_opens_the_page(web, page):
    code = page.code()
    (web.memory.home / ".memoranda" / "access.json").write_text("{")
    for path in (f"/page/enter?code={code}", "/page/live", "/page"):
        answer = await page.client.get(path)
        assert answer.status_code == 503, path
        assert "access.json of the home cannot be read" in answer.text
