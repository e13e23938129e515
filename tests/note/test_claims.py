"""What sentences claim: the same subject however it is worded, and values that cannot both hold."""

from __future__ import annotations

import pytest

from memoranda.note.claims import claim_of, claims, differ, sentences_in

CONTRADICTIONS = [
    ("The staging server's port is 8080", "The port of the staging server is now 9090"),
    ("Anna lives in Berlin.", "Anna lives in Munich"),
    ("Dr. Lindqvist's phone number is 030 1", "Dr. Lindqvist's phone number is 030 2"),
    ("My favorite color is blue", "User's favorite color is green"),
    ("The API rate limit is 100 requests per minute", "API rate limit: 200 req/min"),
    ("The default branch is main", "The default branch was changed to trunk"),
    ("The release deadline is June 3", "Deadline for the release: 2026-06-10"),
    ("I prefer tabs over spaces", "User prefers spaces over tabs"),
    ("The timeout for uploads is 30 seconds", "The upload timeout is 30 minutes"),
    ("The feature flag for beta is enabled", "The beta feature flag is disabled"),
    ("The billing service is written in Go", "The billing service is written in Rust"),
    ("Remember that my manager is Sarah", "As of May, my manager is Tom Lee"),
    ("The staging server is called heron", "The staging server is called egret"),
    ("The backup runs on Sundays", "The backup runs on Mondays"),
    ("The standup time is 9:30", "The standup time is 10 am"),
    ("办公室的无线密码是 a1", "办公室的无线密码是 b2"),
    ("测试环境的端口是 8080", "测试环境端口改为 9090"),
    ("王芳住在上海。", "王芳住在杭州"),
    # Said the other way round, or of who does it
    ("Elena leads the mobile team", "The mobile team is led by Marco"),
    ("Max is the maintainer of the parser", "The maintainer of the parser is Ines"),
    ("We store sessions in Redis", "Sessions are stored in Postgres"),
    ("We use Sentry for error tracking", "For error tracking we use Honeybadger"),
    # So or not so
    ("I am allergic to nuts", "I am no longer allergic to nuts"),
    ("Anna drinks coffee", "Anna doesn't drink coffee"),
    ("用户喜欢喝茶", "用户不喜欢喝茶"),
    # Numbers of things, ages, times and how often
    ("The team has 12 engineers", "The team has 14 engineers"),
    ("Jonas is 34 years old", "Jonas is 35 years old"),
    ("The SLA for support tickets is 4 hours", "Support tickets have an SLA of 8 hours"),
    ("Backups are kept for 30 days", "Backups are kept for 90 days"),
    ("The on-call rotation is weekly", "The on-call rotation is biweekly"),
    ("The board meets on the first Monday of the month", "The board meets on the last Monday"),
    # Done to a thing
    ("Invoices are approved by Dana", "Invoices are approved by Lukas"),
    ("Alerts go to PagerDuty", "Alerts go to Opsgenie"),
    ("The car is parked at level 3", "The car is parked at level 5"),
    ("服务器在上海机房", "服务器在北京机房"),
]
AGREEMENTS = [
    ("The API rate limit is 1,000 requests per minute", "API rate limit: 1000 req/min"),
    ("The release deadline is June 3", "Deadline for the release: 2026-06-03"),
    ("The standup time is 9:30 am", "The standup time is 9:30"),
    ("Anna lives in Berlin.", "Anna lives in Berlin, in the Weserstraße."),
    ("The project's license is MIT", "The project's license is MIT, as before"),
    ("Der Port ist 80", "Der Port ist 90"),
    ("The user is a nurse", "The user is 34"),
    ("Anna likes tea", "Anna likes coffee"),
    ("The budget is tight", "The budget is $500"),
    ("We met Bob on Monday", "We met Bob on Tuesday"),
    ("The price of the ticket was 20 euros", "The price of the ticket is 30 euros"),
    ("If the port of staging is 80, restart it", "The port of staging is 90"),
    ("The port of staging might be 80", "The port of staging is 90"),
    ("Is the port of staging 80?", "The port of staging is 90"),
    ("The old password of the router is a1", "The new password of the router is b2"),
    ("The port of staging is 80 (until 2026-01-01)", "The port of staging is 90"),
    ("Our team is growing", "Our team is winning"),
    ("The frontend uses React", "The frontend uses npm"),
    ("The parser is tested by Dana", "The parser is tested by Lukas"),
    ("Anna owns a house", "Anna owns a boat"),
    ("The backup has 3 errors", "The backup has 5 errors"),
    ("The team has 12 engineers", "The team has 3 designers"),
    ("The bug is in parser.py", "The bug is in lexer.py"),
    ("Docker manages the containers", "docker manages the containers"),
    ("We deploy the API to Frankfurt", "We deploy the site to Oslo"),
    ("I like running", "I don't like swimming"),
    ("The name is locked down", "The name is up for a vote"),
]


def contradict(first: str, second: str) -> bool:
    a = claim_of(first)
    b = claim_of(second)
    return a is not None and b is not None and a.subject == b.subject and differ(a, b)


@pytest.mark.parametrize(("first", "second"), CONTRADICTIONS)
def test_two_values_of_one_subject_contradict(first, second):
    assert contradict(first, second)


@pytest.mark.parametrize(("first", "second"), AGREEMENTS)
def test_what_can_be_true_together_does_not_contradict(first, second):
    assert not contradict(first, second)


def test_claims_have_the_place_of_their_sentence():
    text = "# Servers\n\nWe run two. The port of staging is 80. Nothing else.\n"
    [claim] = claims(sentences_in(text))
    assert text[claim.start : claim.stop] == "The port of staging is 80."
    assert (claim.name, claim.value) == ("The port of staging", "80")


@pytest.mark.parametrize(
    "text",
    [
        "```\nport of staging: 80\nThe port of staging is 80\n```\n",
        "> The port of staging is 80.\n",
        "| The port of staging is 80 |\n",
        # Whose price it is was said before.
        "Two tents:\n- Price: $160\n- Weight: 2 kg\n",
    ],
)
def test_code_quotations_tables_and_parts_of_lists_claim_nothing(text):
    assert claims(sentences_in(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "She prefers dark mode",
        "She prefers tea over coffee",
        "She lives in Berlin",
        "She is not allergic to nuts",
        "She has 12 engineers",
        "She uses Sentry for error tracking",
        "It is off in production",
        "It was renamed to trunk",
    ],
)
def test_a_sentence_about_a_pronoun_claims_nothing(text):
    assert claim_of(text) is None
