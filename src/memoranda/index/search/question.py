"""Read a question: its words, and the days that it names.

A question is the newest turn of a dialogue, the part of a long text that asks, or a whole text. For
queries of words, phrases and operators see `parse`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from memoranda.index.search import weights
from memoranda.text.dialogue import newest_turn, turns_of, without_roles
from memoranda.text.pattern import lazy_pattern
from memoranda.text.tokens import is_cjk, pairs, stop_words, tokens, words

# If a text has this many times the words of its questions, only the questions count.
_MIN_TEXT_TO_QUESTIONS = 5
# If a text is this many times as long as its last question, the rest is pasted.
_MIN_PASTED_TO_QUESTION = 30
# A question with more words is cut to the part that asks.
_MAX_QUESTION_WORDS = 30
# How many sentences before a very short question are searched for words that say what it is about.
# All of a long text without words, such as a drawn table, would take seconds.
_MAX_SENTENCES_BEFORE = 20
# A text that tells something has at least this many words.
_MIN_TOLD_WORDS = 12
# A question after a pasted text needs this many words to be enough without the text.
_MIN_QUESTION_WORDS = 3
# The weights of a period: a year says little, a month or a day more. A relative time such as
# "yesterday" is meant as a day most surely.
_YEAR_WEIGHT = 0.3
_WRITTEN_WEIGHT = 1.0
_RELATIVE_WEIGHT = 1.3

# A question mark at the end.
_MARK = lazy_pattern(r"[?？]\W*$")
# A particle that makes a sentence of Chinese or Japanese a question.
_PARTICLE = lazy_pattern(r"(?:[吗呢嗎]|(?:です|ます|した|せん|だろう|でしょう)か)\W*$")
# A sentence with its closing signs.
_SENTENCE = lazy_pattern(r"[^.!?。！？\n]+[.!?。！？]*")
# A question mark in the address of a page, with what is around it: `h?v` of `watch?v=1`.
_IN_ADDRESS = lazy_pattern(r"[!-~]\?[0-9A-Za-z]")
_ASKING = (
    "what",
    "when",
    "where",
    "who",
    "whom",
    "whose",
    "which",
    "why",
    "how",
    "did",
    "does",
    "do",
    "is",
    "are",
    "was",
    "were",
    "has",
    "have",
    "had",
    "can",
    "could",
    "will",
    "would",
    "should",
)
# An asking word with a capital: a question begins there even without a sign before it.
_START = lazy_pattern(rf"\b(?:{'|'.join(word.title() for word in _ASKING)})\b")
# Asking words of Chinese, Japanese and Korean. They may be anywhere in a sentence.
_ASIAN = lazy_pattern(
    "什么|怎么|怎样|如何|为什么|哪|多少|几[个点号月岁次时位]|多[大久长远]|谁|啥|咋|何时|何处|是否|有没有"
    "|什麼|怎麼|為什麼|誰|なに|何|いつ|どこ|だれ|なぜ|どう|どの|どれ|どちら|いくつ|いくら|누구|언제|어디|무엇|어떻게"
)
# A question for a time.
_WHEN = lazy_pattern(
    r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow long\b"
    "|什么时候|何时|哪天|哪年|哪一|几[点号月]|多久|いつ|何時|언제",
    re.I,
)
# A question for what an assistant said: "what did you suggest", "the plan you gave me".
_QUESTIONS_FOR_A_REPLY = (
    # English
    r"\b(?:did|had|have|were) you\b",
    r"\byou(?:[’']ve|[’']d| have| had)?"
    r" (?:[a-z]{2,}ed|said|told|gave|given|wrote|written|made|showed|shown|sent|found|chose|put)\b",
    r"\byour (?:advice|answer|explanation|idea|recommendation|reply|response|suggestion)s?\b",
    r"\bremind me\b|\btell me again\b",
    r"\bour (?:last|previous|earlier) (?:chat|conversation|discussion|talk)\b|\bassistant\b",
    r"\b(?:ai|(?:chat)?bot|chatgpt|claude|copilot|gemini|gpt)"
    r" (?:say|said|tell|told|give|gave|write|wrote|(?:answer|explain|mention|recommend|suggest)(?:ed)?)\b",
    # German
    r"\b(?:hast|hattest|sagtest|meintest|empfahlst|rietst|gabst|schriebst|nanntest) du\b",
    r"\bdu\b[^.!?]{1,60}\bha(?:tte)?st\b",
    # `sie` may be anybody.
    r"\b(?:haben|hatten|sagten|meinten|empfahlen|rieten|gaben|schrieben|nannten) (?-i:Sie)\b",
    r"(?-i:\bSie)\b[^.!?]{1,60}\bha(?:ben|tten)\b",
    r"\b(?:dein|ihr)(?:e[mnrs]?)? (?:antwort|empfehlung|erklärung|rat|tipp|vorschlag|vorschläge)\b",
    r"\berinnere? mich\b|\bsag(?:e|en sie)? mir noch ?mal\b",
    r"\b(?:ki|assistent(?:in)?)\b[^.!?]{1,60}\b(?:gesagt|geraten|empfohlen|vorgeschlagen|geschrieben)\b",
    # French
    r"\b(?:as-tu|avez-vous|avais-tu|aviez-vous|tu (?:m['’])?(?:as|avais)|vous (?:m['’])?(?:avez|aviez))\b",
    r"\b(?:ta|tes|votre|vos) (?:explication|recommandation|réponse|suggestion)s?\b"
    r"|\b(?:ton|tes|votre|vos) conseils?\b",
    r"\brappel(?:le|ez)-moi\b|\bassistante?\b",
    # Spanish
    r"\b(?:aconsejaste|contaste|dijiste|diste|escribiste|explicaste|mencionaste|propusiste|recomendaste"
    r"|sugeriste)\b",
    r"\b(?:me|nos) (?:has|habías)\b|\btus? (?:consejo|explicación|recomendación|respuesta|sugerencia)\b",
    r"\brecuérdame\b|\basistente\b",
    # Italian
    r"\b(?:mi|ci) (?:hai|avevi)\b|\b(?:hai|avevi) (?:consigliato|detto|proposto|scritto|spiegato|suggerito)\b",
    r"\bricordami\b|\bassistente\b",
    # Portuguese
    r"\bvocê (?:me )?(?:aconselhou|deu|disse|escreveu|explicou|mencionou|recomendou|sugeriu|tinha)\b",
    r"\b(?:tua|sua) (?:explicação|recomendação|resposta|sugestão)\b|\bme lembre\b|\blembra-me\b",
    # Chinese
    "[你您妳](?:上次|上回|之前|刚才|剛才|曾|给|給|说|說|讲|講|写|寫|列|提|推荐|推薦|建议|建議|告诉|告訴|回答)",
    "助手|助理|(?:ai|chatgpt|claude)(?:上次|之前)?(?:说|說|推荐|推薦|建议|建議|告诉|告訴|回答)",
    # Japanese
    "(?:教え|言っ|話し|すすめ|勧め|薦め|提案し|推薦し|おすすめし|説明し|書い|答え)て(?:くれ|くださ|いただ)",
    "(?:あなた|君|きみ)が(?:教え|言っ|話し|すすめ|勧め|薦め|提案し|推薦し|書い|答え)|アシスタント",
    # Korean
    "(?:추천|설명|제안|말|얘기|대답)해 ?(?:줬|준|주었|주신|주셨)|알려 ?(?:줬|준|주었|주신|주셨)",
    "(?:네가|니가|당신이) ?(?:말|추천|제안|설명|알려)|어시스턴트",
)
_ASKS_ASSISTANT = lazy_pattern("|".join(_QUESTIONS_FOR_A_REPLY), re.I)
# A request to an assistant: "can you", "show me", "should I", "I'm planning". To remind is none.
_REQUEST = lazy_pattern(
    r"\b(?:can|could|would|will) you\b(?! (?:remind|recall|remember))"
    r"|\b(?:should|shall|can|could|may|might|do) (?:I|we)\b"
    r"|\b(?:help|show|give|tell|teach|find|write|make|draft|recommend|suggest) (?:me|us)\b"
    r"|\bI(?:[’']d| would) like\b|\bI(?:[’']m| am) (?:\w+ly )?[a-z]+ing\b|\bI (?:want|need|have to)\b"
    r"|\badvice\b|\b(?:recommendation|suggestion|idea|tip)s\b"
    "|帮我|请(?!问)|教我|给我|(?:能|可)(?:不能|不可以|以|否)?(?:帮|给|教|推荐|建议)"
    "|我(?:们)?(?:想|要|需要|打算|准备|正在|该|应该|应当|可以|能)",
    re.I,
)
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_NAME = "|".join([*_MONTHS, *(name[:3] for name in _MONTHS if name != "may"), "sept"])
# A year that is not a part of a longer number or name.
_YEAR = lazy_pattern(r"(?<![\da-z-])((?:19|20)\d\d)(?![\da-z])")
# Words before "may" that make it the month.
_BEFORE_MAY = lazy_pattern(r"\b(?:in|of|since|during|until|last|this)\s+$")


_HELPS = "is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|might|may|must"
_ASKS = r"\b(?:what|which|who|whom|where)\b"
_WORD = r"[\w+'’/-]+"
SEVERAL = lazy_pattern(
    # What are, where has
    rf"{_ASKS}\s+(?:are|were|have|has)\b"
    # Which of her friends have
    rf"|{_ASKS}(?:\s+(?!(?:{_HELPS})\b){_WORD}){{1,4}}\s+(?:are|were|have|has)\b"
    rf"|\b(?:what|which)\s+(?:(?!(?:{_HELPS})\b){_WORD}\s+){{0,4}}?(?!(?:{_HELPS}|this|always)\b)[\w+/-]{{2,}}(?<![sui])s"
    # What kinds of, which books did
    rf"(?=\s+(?:{_HELPS}|in|of|to|for|from|on|with|at|that|and|or)\b|\s*[,?])"
    r"|\bhow many\b|\bboth\b"
    r"|哪些|哪几|几[个种次本位家]|都有|都.{0,8}过",
    re.I,
)
"""Matches a question for several things: a plural ("which books"), the perfect tense ("where has
she worked"), or a number ("how many")."""


# The names of times, by (unit, how many such units ago).
_NAMES_OF_TIMES = {
    ("day", 0): ("today", "tonight", "this morning", "今天", "今日"),
    ("day", 1): ("yesterday", "last night", "昨天", "昨晚", "昨日"),
    ("day", 2): ("the day before yesterday", "前天"),
    ("week", 0): ("this week", "本周", "这周", "这个星期", "今週"),
    ("week", 1): ("last week", "上周", "上个星期", "上星期", "先週"),
    ("month", 0): ("this month", "本月", "这个月", "今月"),
    ("month", 1): ("last month", "上个月", "上月", "先月"),
    ("year", 0): ("this year", "今年"),
    ("year", 1): ("last year", "去年", "昨年"),
    ("year", 2): ("前年",),
}
# Each name of a time → (unit, how many such units ago).
_NAMED_TIMES = {name: time for time, names in _NAMES_OF_TIMES.items() for name in names}
# Unit -> its length in days. A rough length is enough: the period gets a margin of half a unit.
_UNITS = {
    "day": 1,
    "week": 7,
    "month": 30,
    "year": 365,
    "天": 1,
    "日": 1,
    "周": 7,
    "个星期": 7,
    "个月": 30,
    "年": 365,
}
# Counts as people write them.
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_NUMBERS |= {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6}


def _one_of(names: Iterable[str]) -> str:
    """Return a pattern for any of these texts, the longest first."""
    return "|".join(sorted(names, key=len, reverse=True))


# A time relative to today: a name (`last week`), or a count of units (`two days ago`).
_RELATIVE = lazy_pattern(
    rf"(?P<named>{_one_of(_NAMED_TIMES)})"
    rf"|(?:\b|(?<![\d一两二三四五六]))(?P<count>\d{{1,4}}|{_one_of(_NUMBERS)})\s*"
    rf"(?P<unit>{_one_of(_UNITS)})(?:s?\s+ago\b|前)"
)


@dataclass(frozen=True, slots=True)
class Period:
    """Days that a question names.

    first, last: the first and the last day, as YYYY-MM-DD. MM-DD if no year is named.
    weight: the share that a note of these days gets. A year has a lower weight than a month or day.
    """

    first: str
    last: str
    weight: float

    def share(self, day: str) -> float:
        """Return the weight if `day` (YYYY-MM-DD) is in the period, otherwise 0."""
        # Without a year in the period, only the month and day are compared.
        if self.first <= day[-len(self.first) :] <= self.last:
            return self.weight
        return 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """A question as words and dates.

    words: the words in lower case, each once. Chinese and Japanese runs are cut into pairs.
    weak: the pairs across a stop word, which say little.
    periods: the days that the question names.
    when: whether the question asks for a time.
    only_days: whether the question names nothing but days.
    asks_assistant: whether the question asks for what an assistant said.
    is_request: whether an assistant is to do or to advise something.
    beside: the words of a long text or a dialogue that are outside its question. Each has its
        weight relative to a word of the question.
    asking: the words by which the question asks, such as `recommend` and `mentioned`.
    newest: the words of the newest turn of a dialogue, if the question has turns before it, too.
        Empty for any other question.
    """

    words: tuple[str, ...]
    weak: frozenset[str]
    periods: tuple[Period, ...]
    when: bool
    only_days: bool = False
    asks_assistant: bool = False
    is_request: bool = False
    beside: Mapping[str, float] = field(default_factory=dict)
    asking: frozenset[str] = frozenset()
    newest: frozenset[str] = frozenset()

    def share_of(self, word: str) -> float:
        """Return how much a word counts, relative to a word of the question that does not ask."""
        share = self.beside.get(word, 1.0)
        if word in self.asking:
            share *= weights.WEIGHTS.asking
        return share


def read_question(text: str, today: date | None = None) -> Question:
    """Read the question in a text: the newest turn of a dialogue, or the questions of a long text.

    All other words of the text count less (`Question.beside`). They are left out if the text was
    pasted before a question that has enough words.

    today: the day from which "last week" counts. None means that only written dates are understood.
    """
    # Find the question, and the texts beside it.
    turns = turns_of(text)
    is_dialogue = bool(turns) and turns[-1] != ""
    newest: frozenset[str] = frozenset()
    if is_dialogue:
        newest = _words_of_newest_turn(turns[-1])
        turns = [without_roles(turn) for turn in turns]
    focus = Focus(turns[-1]) if is_dialogue else focus_of(text)
    question_text = focus.text
    is_enough_alone = focus.is_buried and len(words(question_text)) >= _MIN_QUESTION_WORDS
    texts_beside: list[str] = []
    if is_dialogue:
        texts_beside = turns[:-1]
    elif len(question_text) < len(text) and not is_enough_alone:
        texts_beside = [text]

    # Find the words of both.
    question_words, weak_in_question = _pairs_of(question_text)
    beside, weak_beside = _words_beside(texts_beside, question_words)
    # The words of the question come first, then the others in the order of the text.
    ordered_words = list(question_words)
    if beside:
        words_of_text, _ = _pairs_of(text)
        ordered_words += [word for word in words_of_text if word in beside]

    # Does the question name nothing but times?
    named_periods = periods(question_text, today)
    text_without_times = _RELATIVE.sub(" ", question_text.lower())
    only_days = bool(named_periods) and stop_words().issuperset(words(text_without_times))

    # Words by which the question asks, such as `recommend`. Where something is told, such words
    # tell, too: what somebody recommended is the matter.
    is_request = _REQUEST.search(question_text) is not None
    asking: frozenset[str] = frozenset()
    if not is_told(text):
        asking = _asking_words(is_request=is_request).intersection(ordered_words)
    return Question(
        words=tuple(ordered_words),
        weak=weak_in_question | weak_beside,
        periods=tuple(named_periods),
        when=_WHEN.search(question_text) is not None,
        only_days=only_days,
        asks_assistant=_ASKS_ASSISTANT.search(question_text) is not None,
        is_request=is_request,
        beside=beside,
        asking=asking,
        newest=newest,
    )


def _words_of_newest_turn(turns: str) -> frozenset[str]:
    """Return the words of the newest of joined turns. Empty if there is only one turn."""
    newest = newest_turn(turns)
    if newest == turns:
        return frozenset()
    return frozenset(_pairs_of(without_roles(newest))[0])


class Focus(NamedTuple):
    """The part of a text that asks.

    text: this part.
    is_buried: whether the rest of the text is long and was pasted before the question.
    """

    text: str
    is_buried: bool = False


def focus_of(text: str) -> Focus:
    """Return the part of a text that asks.

    The result is the first of these that applies:
    - the last question, if the text is more than _MIN_PASTED_TO_QUESTION times as long;
    - all questions, if the text has _MIN_TEXT_TO_QUESTIONS times their words;
    - the whole text: a short text around a question may say what the question is about.
    """
    if "?" not in text and "？" not in text:
        return Focus(text)
    sentences, positions = _sentences_with_questions(text)
    if not positions:
        return Focus(text)
    last_question = _last_question(sentences, positions[-1])
    if len(text) > _MIN_PASTED_TO_QUESTION * len(last_question):
        return Focus(last_question, is_buried=True)

    questions = "".join(sentences[position] for position in positions)
    question_words = set(words(questions))
    text_words = set(words(text))
    is_short_text = len(text_words) < _MIN_TEXT_TO_QUESTIONS * len(question_words)
    if is_short_text:
        return Focus(text)
    # `last_question` may include the sentence before a very short question.
    if len(positions) == 1:
        return Focus(last_question)
    return Focus(questions)


def _sentences_with_questions(text: str) -> tuple[list[str], list[int]]:
    """Return the sentences of a text, and the positions of the questions among them."""
    sentences: list[str] = []
    positions: list[int] = []
    for match in _SENTENCE.finditer(text):
        sentence = match.group()
        if not sentence.strip():
            continue
        # The question mark of `watch?v=1` ends no sentence.
        ends_in_address = _IN_ADDRESS.match(text, match.end() - 2) is not None
        if sentence.endswith(("?", "？")) and not ends_in_address:
            positions.append(len(sentences))
        sentences.append(sentence)
    return sentences, positions


def _last_question(sentences: Sequence[str], position: int) -> str:
    """Return the question at a position, shortened or extended to a useful length.

    A long question is cut to the part from its last question word on. Sentences before it are put
    in front of a question of a single word: `The tram is late. Why?`.

    position: the position of the question in `sentences`.
    """
    # Cut a long one.
    question = sentences[position]
    if len(tokens(question)) > _MAX_QUESTION_WORDS:
        starts = [match.start() for match in _START.finditer(question)]
        if starts:
            last_part = question[starts[-1] :]
            # A question word alone, as in `… and then, What?`, says nothing.
            if len(words(last_part)) > 1:
                question = last_part

    # Extend a short one to the front.
    first_position = max(0, position - _MAX_SENTENCES_BEFORE)
    while position > first_position and len(words(question)) < 2:
        position -= 1
        question = sentences[position] + question
    return question


def _words_beside(
    texts: Sequence[str], question_words: Mapping[str, None]
) -> tuple[dict[str, float], frozenset[str]]:
    """Return the words of the texts beside a question with their weights, and the weak ones.

    The words of the last text weigh most, the words of each earlier text less.

    texts: the texts in order, such as the turns of a dialogue.
    question_words: the words of the question, which are left out.
    """
    weights_beside: dict[str, float] = {}
    weak: frozenset[str] = frozenset()
    # The last text comes first, and has the highest weight.
    weight = weights.WEIGHTS.beside
    for text in reversed(texts):
        words_of_text, weak_in_text = _pairs_of(text)
        for word in words_of_text.keys() - question_words.keys() - weights_beside.keys():
            weights_beside[word] = weight
        weak |= weak_in_text & weights_beside.keys()
        weight *= weights.WEIGHTS.earlier
    return weights_beside, weak


def _pairs_of(text: str) -> tuple[dict[str, None], frozenset[str]]:
    """Return (the informative words of a text, the weak words among them).

    Chinese and Japanese runs are cut into pairs. A pair across a stop word is weak: it says little.
    The words are the keys of a dict, in the order of the text. The values are always None.
    """
    # A text in ASCII has no runs.
    if text.isascii():
        return dict.fromkeys(words(text)), frozenset()
    # The pairs of words. `words` cuts runs at stop words and leaves these out.
    word_pairs: dict[str, None] = {}
    for word in words(text):
        word_pairs.update(dict.fromkeys(pairs(word)))
    # The pairs of whole runs. Those that words do not have are across a stop word.
    run_pairs: dict[str, None] = {}
    for token in tokens(text):
        if is_cjk(token):
            run_pairs.update(dict.fromkeys([pair for pair in pairs(token) if len(pair) > 1]))
    weak = frozenset(run_pairs.keys() - word_pairs.keys())
    return word_pairs | run_pairs, weak


@cache
def _asking_words(*, is_request: bool) -> frozenset[str]:
    """Return the words by which people ask, from asking.toml.

    is_request: whether to add the words that only ask in a request, such as `best`.
    """
    path = Path(__file__).with_name("asking.toml")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    words_that_ask = table["always"].split()
    if is_request:
        words_that_ask += table["in_a_request"].split()
    return frozenset(words_that_ask)


def periods(text: str, today: date | None = None) -> list[Period]:
    """Return the days that `text` names: dates, months, years, and days relative to `today`.

    `in May 2026` → 2026-05-01 to 2026-05-31, and with less weight the year 2026.
    """
    lower_text = text.lower()
    periods_found: list[Period] = []
    for match in _dates().finditer(lower_text):
        periods_found += _written(match)
    for year in _YEAR.findall(lower_text):
        periods_found.append(Period(f"{year}-01-01", f"{year}-12-31", _YEAR_WEIGHT))
    if today is not None:
        for first, last in _relative(lower_text, today):
            period = Period(first.isoformat(), last.isoformat(), _RELATIVE_WEIGHT)
            periods_found.append(period)
    return periods_found


@cache
def _dates() -> re.Pattern[str]:
    """Return the pattern for written dates: `2026-05-01`, `5月1日`, `1st of May 2026`, `May 1`."""
    return re.compile(
        r"(?<!\d)(?P<y1>(?:19|20)\d\d)\s*[-/年]\s*(?P<m1>\d{1,2})(?:\s*[-/月]\s*(?P<d1>\d{1,2}))?(?!\d)"
        r"|(?<!\d)(?P<m2>\d{1,2})月(?:(?P<d2>\d{1,2})[日号])?"
        rf"|(?:\b(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b(?P<name>{_NAME})\b\.?"
        r"(?:\s+(?P<d4>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?P<y3>(?:19|20)\d\d))?"
    )


def _written(match: re.Match[str]) -> list[Period]:
    """Return the periods that a written date means: its month and, if it names one, its day.

    "may" counts as a month only with a day, a year or a word such as "in" before it. Returns an
    empty list if the match is not a date.

    match: a match of `_dates`.
    """
    # Only one of the ways of writing a date has matched. The groups of the others are None.
    year = match["y1"] or match["y3"]
    day = match["d1"] or match["d2"] or match["d3"] or match["d4"]
    means_month = day or year or _BEFORE_MAY.search(match.string, 0, match.start())
    if match["name"] == "may" and not means_month:
        return []
    month = _month_of(match)
    if not 1 <= month <= 12:
        return []
    month_text = f"{year}-{month:02}" if year else f"{month:02}"
    # Days are compared as texts, so every month may end with the 31st.
    periods_found = [Period(f"{month_text}-01", f"{month_text}-31", _WRITTEN_WEIGHT)]
    if day and 1 <= int(day) <= 31:
        day_text = f"{month_text}-{int(day):02}"
        periods_found.append(Period(day_text, day_text, _WRITTEN_WEIGHT))
    return periods_found


def _month_of(match: re.Match[str]) -> int:
    """Return the number of the month in a match of `_dates`. It may be over 12."""
    name = match["name"]
    if name:
        beginnings = [month_name[:3] for month_name in _MONTHS]
        return beginnings.index(name[:3]) + 1
    return int(match["m1"] or match["m2"])


def _relative(lower_text: str, today: date) -> list[tuple[date, date]]:
    """Return (first day, last day) of each time named relative to `today`.

    `yesterday` is one day, `two weeks ago` a week around the day two weeks before.

    lower_text: a text in lower case.
    """
    spans: list[tuple[date, date]] = []
    for match in _RELATIVE.finditer(lower_text):
        # A name such as `last week`.
        if match["named"]:
            unit, units_ago = _NAMED_TIMES[match["named"]]
            spans.append(_calendar_span(unit, units_ago, today))
            continue
        # A count of units such as `two days ago`.
        if match["count"].isdecimal():
            count = int(match["count"])
        else:
            count = _NUMBERS[match["count"]]
        days_in_unit = _UNITS[match["unit"]]
        days_ago = count * days_in_unit
        # Nobody means a day more than a century ago. `date` may not even have such a year.
        if days_ago <= 40_000:
            # "two weeks ago" is hardly meant to the day, so half a unit on both sides counts.
            margin = timedelta(days=days_in_unit // 2)
            middle = today - timedelta(days=days_ago)
            spans.append((middle - margin, middle + margin))
    return spans


def _calendar_span(unit: str, units_ago: int, today: date) -> tuple[date, date]:
    """Return the first and the last day of a day, week, month or year of the calendar.

    unit: `day`, `week`, `month` or `year`.
    units_ago: how many of these units it is before the present one. 0 is the present one.
    """
    if unit == "day":
        day = today - timedelta(days=units_ago)
        return day, day
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * units_ago)
        return monday, monday + timedelta(days=6)
    if unit == "month":
        # Counted from January of the year 0, months go on over the end of a year.
        year, month_index = divmod(today.year * 12 + today.month - 1 - units_ago, 12)
        first = date(year, month_index + 1, 1)
        # 31 days after the first of a month is a day of the next one.
        first_of_next_month = (first + timedelta(days=31)).replace(day=1)
        return first, first_of_next_month - timedelta(days=1)
    year = today.year - units_ago
    return date(year, 1, 1), date(year, 12, 31)


def is_told(text: str) -> bool:
    """Whether a query is a text that tells something, such as a pasted paragraph.

    Otherwise it is a question, or a list of terms that must all match. A text that tells has at
    least two sentences or lines of several words, and 12 words in all.
    """
    sentence_count = 0
    for match in _SENTENCE.finditer(text):
        has_several_words = len(tokens(match.group())) > 1
        if has_several_words:
            sentence_count += 1
        # The rest of a long text need not be cut into sentences.
        if sentence_count == 2:
            return len(tokens(text)) >= _MIN_TOLD_WORDS
    return False


def is_question(text: str) -> bool:
    """Whether `text` is a question in plain language, by its end or its first word."""
    if is_short_question(text):
        return True
    first_words = tokens(text.strip()[:40])
    return bool(first_words) and first_words[0].lower() in _ASKING


def is_short_question(text: str) -> bool:
    """Whether even a short `text` is a question.

    It needs a question mark, or a question word in Chinese, Japanese or Korean. An English question
    word is not enough: `will smith` is a name.
    """
    end = text.strip()[-40:]
    last_signs = end[-8:]
    if _MARK.search(last_signs) or _PARTICLE.search(last_signs):
        return True
    return _ASIAN.search(end) is not None


def is_certain_question(text: str) -> bool:
    """Whether `text` is certainly a question in Chinese, Japanese or Korean.

    Such a text has a question word and ends in a question mark, or ends in a particle such as `吗`.
    A text with only a question word may be part of a sentence that somebody looks for.
    """
    end = text.strip()[-40:]
    last_signs = end[-8:]
    if _PARTICLE.search(last_signs):
        return True
    return _MARK.search(last_signs) is not None and _ASIAN.search(end) is not None
