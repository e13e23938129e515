"""Questions, ranked by the words, neighbors, speakers and dates of notes."""

from __future__ import annotations

from datetime import date

import pytest

from index.conftest import Desk
from memoranda.index import search
from memoranda.query import Query

TALK = [
    ("Mel", "Hey Ada, how was the weekend?"),
    ("Ada", "Lovely, we went to the lake with the kids."),
    ("Mel", "Did you bring the new canoe?"),
    ("Ada", "Yes! It holds three of us, and it is bright red."),
    ("Mel", "I bought a kettle yesterday, mine broke."),
    ("Ada", "Mine is old too."),
]


def talk(desk: Desk, day: str = "2023-05-08", folder: str = "talk") -> None:
    desk.put_all(
        {
            f"{folder}/{at}.md": f"---\nsource: {who}\ndate: {day}\n---\n{who}: {text}\n"
            for at, (who, text) in enumerate(TALK)
        }
    )


def asked(desk: Desk, text: str, **more: object) -> list[str]:
    return [
        hit.note.path for hit in search.search(desk.db, Query(text), viewer=None, limit=20, **more)
    ]  # type: ignore[arg-type]


def test_an_answer_that_holds_no_word_of_the_question_is_found_beside_it(desk: Desk) -> None:
    talk(desk)
    assert "talk/3.md" in asked(desk, "What color is the canoe?")[:2]


FIRST = {
    "what the named person said": (
        "What did Ada say about the kettle?",
        "Ada: a kettle is on the stove",
        "Mel: a kettle is on the stove",
    ),
    "what the person named in its header said": (
        "What did Mel say about the kettle?",
        "---\nspeaker: Mel\n---\nThe kettle is on the stove.",
        "---\nspeaker: Ada\n---\nThe kettle is on the stove.",
    ),
    "a statement before a question of the same words": (
        "does the red canoe leak?",
        "Ada: the red canoe leaks badly",
        "Mel: the red canoe leaks badly?",
    ),
    "of notes that stand alone the one that says a word more often": (
        "where is the canoe kept?",
        "The canoe leaks. We mend the canoe with tar, and the canoe floats again by evening.",
        "The canoe leaks. We mend the roof with tar, and the cellar is dry again by evening.",
    ),
    "what names a time, where somebody says it": (
        "When was the roof mended?",
        "Ada: the roof was mended last Tuesday",
        "Ada: the roof was mended by the neighbours",
    ),
}


@pytest.mark.parametrize(("text", "better", "worse"), FIRST.values(), ids=FIRST)
def test_of_two_notes_the_better_answer_comes_first(
    desk: Desk, text: str, better: str, worse: str
) -> None:
    desk.put("a/1.md", better)
    desk.put("b/1.md", worse)
    paths = asked(desk, text)
    assert paths == ["a/1.md", "b/1.md"]
    # Nor does it matter which was written first
    desk.put("c/1.md", better)
    desk.remove("a/1.md")
    paths_later = asked(desk, text)
    assert paths_later == ["c/1.md", "b/1.md"]


def test_a_time_nobody_says_counts_nothing(desk: Desk) -> None:
    desk.put("b.md", "The choir sang in 1998, and in 1999 as well, people say.")
    desk.put("a.md", "The choir sang in winter, and in spring as well, they say.")
    assert asked(desk, "When did the choir sing?")[0] == "a.md", "of equal ones the newest"


def test_a_name_is_no_hard_filter(desk: Desk) -> None:
    talk(desk)
    desk.put("plain.md", "The zeppelin belongs to Mel.")
    assert asked(desk, "Which zeppelin did Ada mean?")[0] == "plain.md"


def test_the_day_a_question_names_favours_its_notes(desk: Desk) -> None:
    for month in ("05", "06", "07"):
        desk.put(f"{month}.md", f"---\ndate: 2026-{month}-10\n---\nThe choir sang in the old barn.")
    assert asked(desk, "What did the choir sing in June?")[0] == "06.md"
    assert asked(desk, "What did the choir sing last month?", today=date(2026, 8, 3))[0] == "07.md"
    assert asked(desk, "上个月 choir 唱了什么？", today=date(2026, 6, 3))[0] == "05.md"


def test_a_long_prompt_before_a_question_changes_nothing(desk: Desk) -> None:
    talk(desk)
    prompt = (
        "You are a careful assistant with an old kettle of rules; keep answers short and friendly. "
        * 23
    )
    assert len(prompt) > 2_000
    question = "What did Ada bring to the lake?"
    assert asked(desk, prompt + question) == asked(desk, question)


def test_a_title_in_quotes_inside_a_long_turn_keeps_the_page_full(desk: Desk) -> None:
    talk(desk)
    turn = (
        'I read "The Kettle Book" last night and liked it a lot. '
        "Now help me plan the weekend at the lake, with the canoe and the kids."
    )
    assert {"talk/1.md", "talk/2.md", "talk/4.md"} <= set(asked(desk, turn))
    desk.put("own.md", turn)
    assert "talk/1.md" in asked(desk, turn), "a note that holds all of it is not the only answer"


@pytest.mark.parametrize(
    "form",
    ["{}: {}", '<{}>: "{}"', "**{}:** {}"],
)
def test_a_dialogue_finds_what_any_of_its_turns_is_about(desk: Desk, form: str) -> None:
    desk.put("lake.md", "The lake is cold in May.")
    desk.put("stove.md", "The stove is cold in May.")
    turns = [("Kim", "My stove is broken."), ("Assistant", "Oh dear, that is a pity!")]
    turns.append(("Kim", "Never mind, we leave for the lake tomorrow."))
    paths = asked(desk, "\n".join(form.format(*turn) for turn in turns))
    assert paths == ["lake.md", "stove.md"], "what the newest turn is about comes first"


@pytest.mark.parametrize("other_speaker", ["assistant", "Assistant"])
def test_what_a_person_asks_an_assistant_is_told_as_well(desk: Desk, other_speaker: str) -> None:
    request = "Can you sort the lake photos of Ada?"
    desk.put("chat/1.md", f"---\nsource: user\ndate: 2023-05-08\n---\nuser: {request}")
    desk.put(
        "chat/2.md",
        f"---\nsource: {other_speaker}\ndate: 2023-05-08\n---\n{other_speaker}: Sure, photos.",
    )
    with_assistant = desk.search("Which lake photos of Ada?", explain=True)[0]
    assert with_assistant.note.path == "chat/1.md"
    assert "asks" not in with_assistant.shares


def assisted_talk(desk: Desk) -> None:
    """A person and an assistant say the same words of the canoe, in another order."""
    head = "---\nsource: {0}\ndate: 2023-05-08\n---\n{0}: "
    desk.put("chat/1.md", head.format("user") + "My canoe is a red one and it leaks.")
    desk.put("chat/2.md", head.format("assistant") + "A canoe that leaks: a red one, you say.")


@pytest.mark.parametrize("question", ["Which red canoe leaks?", "Does the red canoe leak?"])
def test_of_equal_turns_that_of_the_person_comes_before_that_of_the_assistant(
    desk: Desk, question: str
) -> None:
    assisted_talk(desk)
    hits = desk.search(question, explain=True)
    assert [hit.note.path for hit in hits] == ["chat/1.md", "chat/2.md"]
    assert [hit.shares.get("replied", 0) < 0 for hit in hits] == [False, True]


@pytest.mark.parametrize(
    "question",
    [
        "What did you say about the red canoe?",
        "Which red canoe have you recommended?",
        "What was your advice for the red canoe?",
        "Remind me of the red canoe, what was it?",
        "What did the assistant say of the red canoe?",
        "What did the AI say of the red canoe?",
        "Tell me again about the red canoe",
        "Was hast du über red canoe gesagt?",
        "Wo ist red canoe, wovon du gesprochen hast?",
        "Was haben Sie mir über red canoe gesagt?",
        "Qu'as-tu dit sur red canoe ?",
        "Quel red canoe m'avez-vous conseillé ?",
        "¿Qué me dijiste sobre red canoe?",
        "Cosa mi hai detto di red canoe?",
        "O que você disse sobre red canoe?",
        "您推荐的 red canoe 是什么？",
        "你上回提到的 red canoe",
        "AI说的 red canoe 是什么？",
        "前に教えてくれた red canoe は？",
        "추천해 줬던 red canoe 는?",
    ],
)
def test_question_for_a_reply_lowers_no_reply(desk: Desk, question: str) -> None:
    assisted_talk(desk)
    shares = [hit.shares for hit in desk.search(question, explain=True)]
    assert len(shares) == 2
    assert all("replied" not in share for share in shares)


@pytest.mark.parametrize(
    "question",
    [
        "Was haben sie mit red canoe gemacht?",
        "Which red canoe is for AI?",
        "我说过的 red canoe 在哪？",
    ],
)
def test_question_about_others_lowers_replies(desk: Desk, question: str) -> None:
    assisted_talk(desk)
    shares = [hit.shares for hit in desk.search(question, explain=True)]
    assert any(share.get("replied", 0) < 0 for share in shares)


def test_a_note_of_an_agent_beside_notes_that_begin_with_a_label_is_no_reply(desk: Desk) -> None:
    head = "---\ndate: 2023-05-08\n"
    desk.put("home/shop.md", f"{head}---\nAddress: the shop that mends a red canoe.")
    desk.put("home/canoe.md", f"{head}source: ai\n---\nA red canoe leaks at the keel.")
    desk.put("home/model.md", f"{head}---\nModel: a red canoe of 2019.")
    hits = desk.search("Which red canoe leaks?", explain=True)
    assert len(hits) == 3
    assert all("replied" not in hit.shares for hit in hits)


def test_parts_of_a_long_reply_are_lowered_as_the_reply_itself(desk: Desk) -> None:
    parts = "\n\n".join(f"Advice {number}: " + "paint the hull. " * 60 for number in range(4))
    text = f"assistant: {parts}\n\nA red canoe leaks at the keel."
    head = "---\nsource: {}\ndate: 2023-05-08\n---\n"
    desk.put("chat/2.md", head.format("assistant") + text)
    alone = desk.search("Which red canoe leaks?", explain=True)[0]
    assert "replied" not in alone.shares, "an author is no party to a talk"
    desk.put("chat/1.md", head.format("user") + "user: Where does the canoe leak?")
    hits = desk.search("Which red canoe leaks?", explain=True)
    reply = {hit.note.path: hit.shares for hit in hits}["chat/2.md"]
    assert "passage" in reply
    assert reply["replied"] < 0


def test_turns_of_an_assistant_inside_a_session_note_are_lowered(desk: Desk) -> None:
    story = "We went out late, and the wind was high. " * 6
    said = [f"user: {story}", f"assistant: {story}", f"user: {story}"]
    desk.put("a.md", "\n\n".join([*said, "assistant: A red canoe leaks at the keel."]))
    desk.put("b.md", "\n\n".join([*said, "user: A red canoe leaks at the keel."]))
    hits = desk.search("Which red canoe leaks at the keel?", explain=True)
    assert [hit.note.path for hit in hits] == ["b.md", "a.md"]
    assert [hit.shares.get("replied", 0) < 0 for hit in hits] == [False, True]


def test_labels_inside_a_note_are_no_turns_of_an_assistant(desk: Desk) -> None:
    story = "It is kept in the shed behind the house, in winter too. " * 6
    lines = [f"Price: {story}", f"Model: {story}", f"Price: {story}", "Model: A red canoe, 2019."]
    desk.put("a.md", "\n\n".join(lines))
    (hit,) = desk.search("Which red canoe is kept?", explain=True)
    assert "replied" not in hit.shares


def test_search_for_all_words_lowers_no_reply(desk: Desk) -> None:
    assisted_talk(desk)
    hits = desk.search("canoe leaks", explain=True)
    assert all("replied" not in hit.shares for hit in hits)


def test_a_question_among_people_still_counts_less(desk: Desk) -> None:
    desk.put("chat/1.md", "---\nsource: Mel\ndate: 2023-05-08\n---\nMel: Did you sort the photos?")
    hit = desk.search("Which photos did Mel sort?", explain=True)[0]
    assert hit.shares["asks"] < 0


def test_explain_names_the_share_of_each_feature(desk: Desk) -> None:
    talk(desk)
    hit = desk.search("When did Mel buy a kettle?", explain=True)[0]
    assert hit.note.path == "talk/4.md"
    share_names = {why.split(" ")[0] for why in hit.why}
    assert {"words:", "words", "speaker", "timed", "relaxed"} <= share_names
    shares = [
        float(why.split(" ")[1])
        for why in hit.why
        if len(why.split(" ")) == 2 and why.split(" ")[1][-1].isdigit()
    ]
    assert sum(shares) == pytest.approx(hit.score, abs=0.01)


def test_neighbours_do_not_bring_in_what_filters_or_scopes_keep_out(desk: Desk) -> None:
    talk(desk)
    desk.put(
        "talk/3.md",
        "---\nsource: Ada\ndate: 2023-05-08\nscope: agent:ada\n---\nAda: Yes! It is bright red.",
    )
    assert "talk/3.md" in desk.found("What color is the canoe?", viewer="ada")
    assert "talk/3.md" not in desk.found("What color is the canoe?", viewer="bob")
    assert desk.found("What color is the canoe?", projects=("elsewhere",)) == []
    assert all(
        path == "talk/2.md" for path in desk.found("What color is the canoe?", contains="canoe")
    )


def test_pages_of_a_question_put_together_are_the_whole_list(desk: Desk) -> None:
    for day in range(1, 9):
        talk(desk, f"2023-05-0{day}", f"talk{day}")
    question = "What did Ada bring to the lake with a kettle?"
    whole = desk.found(question, limit=100)
    assert len(set(whole)) == len(whole) == desk.search(question).total
    pages = []
    for offset in range(0, len(whole), 3):
        pages.extend(desk.found(question, limit=3, offset=offset))
    assert pages == whole


def test_a_question_for_nothing_but_a_day_is_answered_by_the_notes_of_that_day(desk: Desk) -> None:
    for day in ("08", "09", "10"):
        desk.put(f"{day}.md", f"---\ndate: 2026-06-{day}\n---\nThe choir sang number {day}.")
    assert asked(desk, "What was yesterday?", today=date(2026, 6, 10)) == ["09.md"]
    assert set(asked(desk, "What did I do this week?", today=date(2026, 6, 10))) == {
        "08.md",
        "09.md",
        "10.md",
    }


def test_several_things_are_looked_for_in_several_conversations(desk: Desk) -> None:
    turn_texts = {
        "08/0": "the canoe is a fine boat",
        "08/1": "the ferry is a fine boat, too",
        "09/0": "a raft, no boat",
    }
    desk.put_all(
        {
            f"{place}.md": f"---\ndate: 2023-05-{place[:2]}\n---\nAda: {text}\n"
            for place, text in turn_texts.items()
        }
    )
    hits_for_one = desk.search("What fine boat is there?", explain=True)
    many = desk.search("What fine boats are there?", explain=True)
    for hit in hits_for_one:
        assert not any(why.startswith("several") for why in hit.why)
    reasons = {}
    for hit in many:
        for why in hit.why:
            if why.startswith("several"):
                reasons[hit.note.path] = why
    assert list(reasons.values()) == ["several -0.100"]
    assert many[0].note.path not in reasons
    assert set(reasons) < {"08/0.md", "08/1.md"}


def test_what_a_note_loses_to_better_ones_of_its_conversation_has_an_end(desk: Desk) -> None:
    desk.put_all(
        {f"a/{at}.md": f"---\ndate: 2023-05-08\n---\nAda: boat number {at}" for at in range(12)}
    )
    hits = search.search(
        desk.db, Query("What boats are there?"), viewer=None, limit=20, explain=True
    )
    lost = []
    for hit in hits:
        lost += [float(why.split(" ")[1]) for why in hit.why if why.startswith("several ")]
    assert sorted(lost) == sorted([-0.1, -0.2, -0.3, -0.4] + [-0.5] * 7)


def standing_talk(desk: Desk, wish: str, other: str) -> None:
    """A person tells an assistant a wish, and later something else."""
    head = "---\nsource: {0}\ndate: 2023-05-08\n---\n{0}: "
    desk.put("chat/1.md", head.format("user") + wish)
    desk.put("chat/2.md", head.format("assistant") + "Good.")
    desk.put("chat/3.md", head.format("user") + other)


def standing_of(desk: Desk, question: str) -> dict[str, float]:
    """What each note found gains by saying what holds from now on."""
    gains = {}
    for hit in desk.search(question, explain=True):
        path = hit.note.path
        gains[path] = hit.shares.get("standing", 0.0)
    return gains


@pytest.mark.parametrize(
    ("wish", "question"),
    [
        ("I prefer trains in the mountains.", "Can you plan trains in the mountains?"),
        ("From now on, trains in the mountains only.", "Show me trains in the mountains?"),
        ("Hello. Always take trains in the mountains.", "Should I take trains in the mountains?"),
        ("我更喜欢坐火车去山里。", "帮我看看坐火车去山里怎么走？"),
        ("以后都坐火车去山里。", "能不能推荐坐火车去山里的路线？"),
    ],
)
def test_what_holds_from_now_on_counts_more_for_a_request(
    desk: Desk, wish: str, question: str
) -> None:
    other = "The trains in the mountains were late. 坐火车去山里的人很多。"
    standing_talk(desk, wish, other)
    gains = standing_of(desk, question)
    assert gains["chat/1.md"] > 0
    assert gains["chat/3.md"] == 0


@pytest.mark.parametrize("question", ["Which trains are in the mountains?", "坐火车去山里的是谁？"])
def test_what_holds_from_now_on_counts_no_more_where_nothing_is_to_be_done(
    desk: Desk, question: str
) -> None:
    wish = "I prefer trains in the mountains. 我更喜欢坐火车去山里。"
    standing_talk(desk, wish, "Fine.")
    gains = standing_of(desk, question)
    assert gains["chat/1.md"] == 0


def test_neither_an_assistant_nor_people_among_themselves_say_what_holds(desk: Desk) -> None:
    head = "---\nsource: {0}\ndate: 2023-05-08\n---\n{0}: I prefer trains in the mountains."
    desk.put("chat/1.md", head.format("assistant"))
    desk.put("chat/2.md", head.format("user"))
    desk.put("people/1.md", head.format("Mel"))
    desk.put("alone.md", "I prefer trains in the mountains.")
    gains = standing_of(desk, "Can you plan trains in the mountains?")
    assert gains.pop("chat/2.md") > 0
    assert len(gains) == 3
    assert set(gains.values()) == {0}


def test_a_long_turn_says_what_holds_in_any_of_its_parts(desk: Desk) -> None:
    passage = "We went out late, and the wind was high. " * 24
    wish = "I prefer trains in the mountains."
    text = f"{passage}\n\n{passage}\n\n{wish}"
    standing_talk(desk, text, "Fine.")
    question = "Can you plan trains in the mountains?"
    hit = desk.search(question, explain=True)[0]
    assert hit.note.path == "chat/1.md"
    assert "passage" in hit.shares
    assert hit.shares["standing"] > 0
    total = sum(hit.shares.values())
    assert round(total, 2) == round(hit.score, 2)


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("Can you recommend a tent?", "The tent leaks.", "I recommend patience."),
        ("What did he mention about the tent?", "The tent leaks.", "He mentioned patience."),
        ("我需要推荐帐篷吗?", "帐篷漏水。", "推荐耐心。"),
    ],
)
def test_word_by_which_a_question_asks_counts_less_than_what_it_asks_about(
    desk: Desk, question: str, answer: str, other: str
) -> None:
    # Of equal notes the newest would come first.
    desk.put("notes/answer.md", answer)
    desk.put("notes/other.md", other)
    assert asked(desk, question) == ["notes/answer.md", "notes/other.md"]
