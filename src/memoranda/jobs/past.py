"""Tells a day on which something happened from a day that is to come.

"Seen again on Thursday" and "周四又看到了" tell what happened. "Moved to Thursday" and "周四约了牙医"
tell what is to come, though their verbs are in the past, too.
"""

from __future__ import annotations

import re

# Where a clause ends.
_CLAUSE_END = re.compile(r"[,;:—–，；：]|\b(?:and|but|so|then)\b", re.I)
# Verbs in the past without "-ed" that arrange nothing.
_IRREGULAR = (
    "was|were|went|saw|seen|met|came|spoke|began|ran|lost|broke|ate|drove|flew|fell|felt|slept|spent"
    "|won|woke"
)
# Who does something, before a verb with "-ed". Elsewhere such a word may describe: "a shared dinner".
_ARTICLE = r"(?:[Tt]he|[Aa]n?|[Oo]ur|[Mm]y|[Hh]is|[Hh]er|[Tt]heir|[Yy]our)\b"
_SUBJECT = rf"(?:[Ww]e|[Yy]ou|[Hh]e|[Ss]he|[Ii]t|[Tt]hey|(?!{_ARTICLE})[A-Z]\w*|{_ARTICLE}\s+\w+)"
_PAST = re.compile(
    rf"(?i:\b(?:{_IRREGULAR})\b)"
    rf"|(?:\A\s*(?:[-*+•]\s+)?|\b{_SUBJECT}\s+)(?:(?:just|already|also|\w+ly)\s+)?[A-Za-z]\w+[^\We]ed\b"
)
# Verbs whose past arranges what is to come, and words of what is to be done.
_ARRANGING = re.compile(
    r"\b(?:plan\w*|schedul\w*|reschedul\w*|agreed|booked|promised|invited|asked|confirmed|arranged"
    r"|reserved|offered|wanted|needed|expected|moved|postponed|shifted|decided|announced|reminded"
    r"|will|shall|must|should|needs?|to)\b",
    re.I,
)
# Words right before a day that make it the aim of what was done.
_AIM = re.compile(r"\b(?:to|for|until|till|by|before|next|this|coming)\s+(?:the\s+)?\Z", re.I)
# Signs of the past after a verb, and words before it.
_PAST_ZH = re.compile(r"[\u4e00-\u9fff](?:了|过(?![期来去程敏]))(?!解)|曾|已经|刚刚|刚才")
# Words of what is arranged or is to be done, and words that only look like the past.
_ARRANGING_ZH = re.compile(
    r"要|将|得|应该|必须|准备|打算|计划|忘了|为了|除了|[约定订排改推期]了|预约|安排|答应|通过|[改移挪换]到|推迟|不过|下周|下个"
)


def is_past(sentence: str, phrase: str) -> bool:
    """Whether a sentence tells that something happened on a day.

    phrase: the words of the day in it, such as "Thursday".
    """
    before, _, after = sentence.partition(phrase)
    has_chinese_past = _PAST_ZH.search(after) or _PAST_ZH.search(before)
    if has_chinese_past:
        return not _ARRANGING_ZH.search(sentence)
    # In English, the verb is in the same clause, before the day: "We met her on Thursday"
    clause_before = _CLAUSE_END.split(before)[-1]
    # "We worked for Thursday", "we spoke about next Thursday"
    is_aim = _AIM.search(clause_before) or re.match(r"(?:next|coming)\b", phrase, re.I)
    if is_aim:
        return False
    is_arranged = _ARRANGING.search(clause_before) is not None
    return _PAST.search(clause_before) is not None and not is_arranged
