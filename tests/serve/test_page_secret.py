"""A secret in a form of the page: asked about before it is saved, masked, and named nowhere."""

from __future__ import annotations

import re

import pytest

from editing import replace_in
from memoranda import Draft
from memoranda.note.edit import Append
from memoranda.serve.page.addresses import id_url, note_url
from memoranda.serve.page.words.wording import words
from memoranda.text.gate import SECRET, default_rules
from serve.test_page import memory
from serve.web import Web, browser, plain

pytestmark = pytest.mark.anyio

SECRET_WORD = "hunter2Xq9"
TEXT = f"The password is {SECRET_WORD}"
MASK = {"secret_choice": "mask"}
KEEP = {"secret_choice": "keep"}


def choices_of(answer):
    """The choices that a form offers for a secret."""
    return re.findall(r'name="secret_choice" value="(\w+)"', answer.text)


def alert_of(answer):
    """The words of the warning above a form."""
    return plain(re.search(r'role="alert" class="warn">.*?</div>', answer.text, re.S)[0])


def head_and_toast_of(answer):
    """The title and the message of a page, and its address."""
    head = re.search(r"<title>.*?</title>", answer.text, re.S)[0]
    toast = re.search(r'id="toast".*?</div>', answer.text, re.S)[0]
    return f"{answer.url} {head} {toast}"


async def followed(page, answer):
    """The page to which a form led."""
    assert answer.status_code == 303, answer.text
    page_shown = await page.client.get(answer.headers["location"], follow_redirects=True)
    assert page_shown.status_code == 200
    return page_shown


async def test_a_new_note_with_a_secret_is_asked_about_before_it_is_saved(web, page):
    form = {"title": "Router", "text": f"At home.\n{TEXT}", "tags": "wifi", "until": "2027-01-01"}
    answer = await page.send("/page/new", **form)
    assert answer.status_code == 400
    assert choices_of(answer) == ["mask", "keep"]
    assert "a password" in alert_of(answer)
    assert "line 2" in alert_of(answer)
    assert SECRET_WORD not in alert_of(answer)
    assert SECRET_WORD not in head_and_toast_of(answer)
    # Nothing typed is lost.
    for text in (SECRET_WORD, 'value="Router"', 'value="wifi"', 'value="2027-01-01"'):
        assert text in answer.text
    assert web.memory.log() == []

    answered = await followed(page, await page.send("/page/new", **form, **MASK))
    text = web.memory.read("Router").text
    assert SECRET_WORD not in text
    assert "[redacted: " in text
    assert "Masked: what looks like a password" in plain(answered.text)
    assert SECRET_WORD not in answered.text


async def test_every_secret_of_a_form_is_named(web, page):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    text = f"{TEXT}\n\nAnd {token}.\n"
    answer = await page.send("/page/new", title="Router", text=text)
    alert = alert_of(answer)
    assert "a password beside its word (line 1" in alert
    assert re.search(r"Also .*\(line 3\)", alert)
    assert token not in alert
    assert SECRET_WORD not in alert
    answer = await page.send("/page/new", title="Router", text=TEXT)
    alert = alert_of(answer)
    assert "Also" not in alert


async def test_one_secret_in_a_line_without_a_title_is_named_once(web, page):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    answer = await page.send("/page/new", title="", text=f"The token is {token}")
    alert = alert_of(answer)
    assert "a GitHub token" in alert
    assert "Also" not in alert


async def test_only_what_was_masked_just_now_is_said_to_be_masked(web, page):
    form = {"title": "Router", "text": TEXT}
    await page.send("/page/new", **form, **MASK)
    router = web.memory.find("Router")
    await page.send(note_url(router.project, router.path), do="delete")
    answered = await followed(
        page, await page.send("/page/undo", change=str(web.memory.log()[0].number))
    )
    assert "Taken back" in plain(answered.text)
    assert "Masked" not in plain(answered.text)
    web.note("House", "x")
    house = web.memory.find("House")
    answer = await page.send(
        note_url(house.project, house.path), do="merge", other="Router", sure="yes"
    )
    answered = await followed(page, answer)
    assert "Merged “Router” into “House”." in plain(answered.text)
    assert "Masked" not in plain(answered.text)


async def test_lists_are_shown_where_the_owners_rules_cannot_be_read(web, page):
    web.note("Router", TEXT)
    web.memory.home.joinpath("config.yaml").write_text("gate:\n  rules: mine.rules\n")
    for address in ("/page", "/page/search?q=password", "/page/calendar"):
        assert "Router" in await page.see(address), address


async def test_a_secret_is_saved_as_it_is_only_when_the_owner_says_so(web, page):
    form = {"title": "Router", "text": TEXT}
    answer = await page.send("/page/new", **form)
    assert answer.status_code == 400
    answered = await followed(page, await page.send("/page/new", **form, **KEEP))
    text = web.memory.read("Router").text
    assert SECRET_WORD in text
    assert "Masked" not in plain(answered.text)


@pytest.mark.parametrize("category", ["", "knowledge"])
async def test_a_note_without_a_title_is_named_by_its_secret_nowhere(web, page, category):
    form = {"text": TEXT, "category": category}
    answer = await page.send("/page/new", **form)
    assert choices_of(answer) == ["mask", "keep"]
    answered = await followed(page, await page.send("/page/new", **form, **KEEP))
    assert SECRET_WORD.lower() not in head_and_toast_of(answered).lower()
    (note,) = web.memory.list()[0]
    assert str(answered.url).partition("?")[0].endswith(id_url(note.id))
    assert SECRET_WORD in answered.text

    form = await page.client.get(f"{id_url(note.id)}?part=erase")
    assert f'href="{id_url(note.id)}?part=erase"' in answered.text
    assert form.status_code == 200
    assert SECRET_WORD.lower() not in head_and_toast_of(form).lower()
    assert f'action="{id_url(note.id)}"' in form.text
    erased = await page.send(id_url(note.id), do="erase", sure="yes")
    assert erased.status_code == 200
    assert SECRET_WORD.lower() not in head_and_toast_of(erased).lower()
    infos, _ = web.memory.list()
    assert infos == []


@pytest.mark.parametrize("category", ["", "knowledge"])
async def test_a_note_without_a_title_can_be_masked(web, page, category):
    form = {"text": TEXT, "category": category}
    answered = await followed(page, await page.send("/page/new", **form, **MASK))
    assert SECRET_WORD.lower() not in (str(answered.url) + answered.text).lower()
    (note,) = web.memory.list()[0]
    assert SECRET_WORD.lower() not in (note.path + web.memory.read(note).text).lower()


async def test_a_secret_in_a_title_cannot_be_masked(web, page):
    answer = await page.send("/page/new", title=TEXT, text="Remember it.")
    assert choices_of(answer) == ["keep"]
    assert "cannot be masked" in alert_of(answer)
    assert web.memory.list()[0] == []


async def test_an_edit_with_a_secret_is_asked_about(web, page):
    note = web.memory.write(Draft("Under the stairs.\n", title="Router"))
    address = note_url(note.project, note.path)
    form = {"do": "edit", "checksum": note.checksum, "base": note.text, "text": note.text + TEXT}
    answer = await page.send(address, **form)
    assert answer.status_code == 400
    assert choices_of(answer) == ["mask", "keep"]
    assert SECRET_WORD in answer.text
    assert SECRET_WORD not in alert_of(answer)
    assert web.memory.read(note.id).text == note.text
    answered = await followed(page, await page.send(address, **form, **MASK))
    assert "Masked: what looks like a password" in plain(answered.text)
    text = web.memory.read(note.id).text
    assert SECRET_WORD not in text
    # What was in the note before is not asked about again.
    web.memory.edit(note.id, Append(f"\n{TEXT}"))
    changed = web.memory.read(note.id)
    form |= {"checksum": changed.checksum, "base": changed.text, "text": f"{changed.text}\nMore"}
    answer = await page.send(address, **form)
    assert answer.status_code == 303


async def test_the_answers_of_a_conflict_are_asked_about(web, page):
    note = web.memory.write(Draft("one\ntwo\nthree\n", title="Router"))
    address = note_url(note.project, note.path)
    web.memory.edit(note.id, Append("theirs\n"))
    changed = web.memory.read(note.id)
    mine = f"{note.text}{TEXT}\n"
    form = {"do": "edit", "checksum": note.checksum, "base": note.text, "text": mine}
    answer = await page.send(address, **form)
    assert answer.status_code == 409
    decision = {
        "do": "edit",
        "checksum": changed.checksum,
        "base": note.text,
        "mine": mine,
        "place0": "both",
    }
    answer = await page.send(address, **decision)
    assert answer.status_code == 400
    assert choices_of(answer) == ["mask", "keep"]
    # The form has what was decided, as one text.
    typed = re.search(r'<textarea id="text"[^>]*>(.*?)</textarea>', answer.text, re.S)[1]
    assert SECRET_WORD in typed
    assert "theirs" in typed
    assert web.memory.read(note.id).text == changed.text
    await followed(page, await page.send(address, **decision, **MASK))
    text = web.memory.read(note.id).text
    assert "theirs" in text
    assert "[redacted: " in text


async def test_a_reminder_with_a_secret_is_asked_about(web, page):
    form = {"text": f"{TEXT}, change it tomorrow at 9:00"}
    answer = await page.send("/page/remind", **form)
    assert answer.status_code == 400
    assert choices_of(answer) == ["mask", "keep"]
    assert SECRET_WORD in answer.text
    assert SECRET_WORD not in alert_of(answer)
    infos, _ = web.memory.list()
    assert infos == []
    answered = await followed(page, await page.send("/page/remind", **form, **MASK))
    assert SECRET_WORD not in answered.text
    assert "Masked: what looks like a password" in plain(answered.text)
    (note,) = web.memory.list()[0]
    text = web.memory.read(note).text
    assert SECRET_WORD not in text


async def test_any_other_form_is_asked_about_on_a_page_of_its_own(web, page):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    note = web.memory.write(Draft("x\n", title="Router"))
    address = note_url(note.project, note.path)
    answer = await page.send(address, do="tag", tags=token, back=address)
    assert answer.status_code == 400
    assert choices_of(answer) == ["keep"]
    tags = web.memory.read(note.id).tags
    assert tags == ()
    hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', answer.text)
    fields = {name: text for name, text in hidden if name in ("do", "tags", "back")}
    assert fields == {"do": "tag", "tags": token, "back": address}
    answer = await page.send(address, **fields, **KEEP)
    assert answer.status_code == 303
    tags = web.memory.read(note.id).tags
    assert len(tags) == 1


@pytest.mark.parametrize(
    ("mode", "status", "is_saved"), [("refuse", 400, False), ("redact", 303, True)]
)
async def test_what_the_settings_decide_is_not_asked(home, mode, status, is_saved):
    home.mkdir()
    home.joinpath("config.yaml").write_text(f"gate:\n  own_secrets: {mode}\n", "utf-8")
    web = Web(home)
    async with browser(web) as page:
        answer = await page.send("/page/new", title="Router", text=TEXT)
        assert answer.status_code == status
        assert choices_of(answer) == []
        if is_saved:
            answered = await followed(page, answer)
            assert "Masked: what looks like a password" in plain(answered.text)
            assert SECRET_WORD not in web.memory.read("Router").text
        else:
            assert "own_secrets" in alert_of(answer)
            assert SECRET_WORD in answer.text
            # No choice of a form goes round the settings.
            refused = await page.send("/page/new", title="Router", text=TEXT, **KEEP)
            assert refused.status_code == 400
            assert web.memory.list()[0] == []
    web.close()


async def test_deleting_a_note_that_is_named_by_its_secret_names_it_not(web, page):
    note = memory(web, TEXT)
    answer = await page.send(note_url(note.project, note.path), do="delete", back="/page")
    answered = await followed(page, answer)

    assert "Deleted" in head_and_toast_of(answered)
    assert SECRET_WORD.lower() not in head_and_toast_of(answered).lower()


def test_what_a_secret_looks_like_is_said_in_chinese():
    reasons = {rule.why for rule in default_rules() if rule.kind == SECRET}
    assert len(reasons) > 30
    assert reasons - words("zh").keys() == set()


@pytest.mark.parametrize(
    ("back", "way_back"),
    [(None, "/page/note/notes/Tea.md"), ("/page/search?q=tea", "/page/search?q=tea")],
)
async def test_back_leads_from_the_question_about_a_secret_to_the_page_with_the_form(
    web, page, back, way_back
):
    web.note("Tea", "At four.")
    fields = {"do": "tag", "tags": "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"} | (
        {"back": back} if back else {}
    )
    answered = await page.send(note_url("notes", "Tea.md"), **fields)

    assert answered.status_code == 400
    assert f'<a class="button quiet" href="{way_back}">Back</a>' in answered.text


@pytest.mark.parametrize("category", ["", "knowledge"])
async def test_lists_name_a_note_by_its_secret_neither_in_links_nor_in_addresses(
    web, page, category
):
    project = {"project": "categories", "category": category} if category else {"project": "notes"}
    note = web.memory.write(Draft(TEXT, **project))
    await page.send(note_url(note.project, note.path), do="pin")
    web.note("Copy", f"[[{note.id}]] Copied: {TEXT}")
    lists = ("/page", "/page/search", "/page/search?q=password", "/page/palette?q=password")
    other_addresses = (
        "/page/titles?q=password",
        "/page/calendar",
        "/page/rail",
        "/page/graph?part=list",
    )
    for address in (*lists, *other_addresses):
        html = await page.see(address)
        for link in re.findall(r"<a [^>]*>.*?</a>", html, re.S):
            words = re.sub("<small>.*?</small>", "", link)
            # Only a memory is named by its text alone.
            assert SECRET_WORD not in words, (address, words)
            if category:
                assert SECRET_WORD.lower() not in words.lower(), (address, words)
    erase = await page.see(f"/page/id/{note.id}?part=erase")

    assert SECRET_WORD.lower() not in erase.partition("<main")[2].lower()


async def test_the_message_does_not_repeat_a_secret_in_a_tag(web, page):
    web.note("Router", "Where the Wi-Fi is.")
    form = {"do": "tag", "tags": f"wifi, password={SECRET_WORD}"} | KEEP
    answered = await followed(page, await page.send(note_url("notes", "Router.md"), **form))

    assert "a note with a secret” has the tags" in plain(answered.text)
    assert SECRET_WORD not in head_and_toast_of(answered)


async def test_a_hit_is_named_without_the_secret_of_its_title(web, page):
    memory(web, TEXT)
    html = await page.see("/page/search?q=password")
    names = re.findall('aria-label="(Choose “[^"]*)"', html)
    assert len(names) == 1
    assert SECRET_WORD not in names[0]


async def test_an_address_has_no_secret_of_a_file_that_a_person_named(web, page):
    secret = "AKIAIOSFODNN7EXAMPLE"
    file = web.memory.home / "categories" / "people" / f"{secret}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("The key of the cloud.\n")
    web.memory.sync()
    address = note_url("categories", f"people/{secret}.md")

    assert secret not in address
    text = await page.text(address)
    assert "The key of the cloud." in text


async def test_titles_are_masked_where_two_notes_are_merged_and_where_titles_are_offered(web, page):
    tea = web.note("Tea", "Green.")
    title = f"{TEXT} of the router"
    router = web.note(title, "At home.")
    offered = await page.see("/page/titles?q=The+password")
    assert SECRET_WORD not in offered
    assert f'data-title="{router.id}"' in offered
    unknown = await page.client.get(f"/page/merge?note={router.id}&other=zzz")
    assert unknown.status_code == 404
    assert SECRET_WORD not in unknown.text
    html = await page.see(f"/page/merge?note={tea.id}&other={router.id}")
    assert "Merge these two?" in html
    assert SECRET_WORD not in html
    form = {"do": "merge", "other": router.id, "sure": "yes"}
    answer = await page.send(note_url("notes", "Tea.md"), **form)
    assert answer.status_code == 303


async def test_a_secret_over_the_end_of_a_shown_title_is_masked_too(web, page):
    key = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
    web.note("Ann", "A person.", type="person")
    # The list of links shows 100 characters of a title, the others 120.
    linking = f"{'w' * 85} {key}"
    web.note(linking, "[[Ann]] came.")
    web.note(f"{'v' * 105} {key}", "Ann was here.")
    about = await page.see("/page/about?name=Ann")
    assert re.search("w{85} [^<]*redact", about)
    assert re.search("v{105} [^<]*redact", about)
    assert key[:8] not in plain(about)
    # The panel beside a graph shows the beginning of a text, and blanks count once.
    text = f"Tea.{' ' * 1180}{key}"
    note = web.note("Cup", text)
    panel = await page.see(f"/page/graph?part=panel&note={note.id}")
    assert "Tea." in panel
    assert key[:8] not in panel


async def test_a_secret_over_the_end_of_a_title_on_today_is_masked_too(web, page):
    key = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
    # A row of Today shows 220 characters of a title.
    kept = web.note(f"{'w' * 200} {key}", "x")
    gone = web.note(f"{'v' * 200} {key}", "x")
    web.memory.delete(gone.id)
    change = web.memory.log()[0].number
    for address in ("/page", f"/page/change/{change}"):
        html = await page.see(address)
        text = plain(html)
        assert key[:8] not in text, address
        assert re.search("v{200} [^<]*redact", html), address
    web.later(minutes=5)
    file = web.memory.home / "notes" / kept.path
    replace_in(file, "\nx", "\ny")
    html = await page.see("/page")

    assert "Outside of memory" in html
    text = plain(html)
    assert key[:8] not in text


async def test_a_person_with_a_secret_for_a_name_is_not_offered(web, page):
    key = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD3fG6"
    for title in (f"Ann {key}", "Ann Archer"):
        web.note(title, "x", folder="people")
    for address in ("/page/palette?q=Ann", "/page/search?q=Ann"):
        html = await page.see(address)
        assert "name=Ann+Archer" in html, address
        assert f"name=Ann+{key}" not in html, address


async def test_the_page_of_an_erasure_shows_the_text_that_goes_without_its_secret(web, page):
    note = web.note("Door", f"The door of the lab. {TEXT}\n")
    html = await page.see(f"{id_url(note.id)}?part=erase")
    assert "The door of the lab." in html
    assert SECRET_WORD.lower() not in html.lower()
