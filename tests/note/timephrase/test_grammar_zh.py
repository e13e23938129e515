"""Chinese time phrases beyond the table."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from commonplace.errors import TimeRefused
from commonplace.note.timephrase import read

ZONE = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 5, 6, 10, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("晚上12点", "2026-05-07 00:00"),
        ("今晚1点", "2026-05-07 01:00"),
        ("中午1点", "2026-05-06 13:00"),
        ("明天24点", "2026-05-08 00:00"),
        ("零点", "2026-05-07 00:00"),
        ("中午", "2026-05-06 12:00"),
        ("明天傍晚", "2026-05-07 19:00"),
        ("明天上午9点30分", "2026-05-07 09:30"),
        ("今晚八点半", "2026-05-06 20:30"),
        ("二十五号下午三点", "2026-05-25 15:00"),
        ("十二月二十五号", "2026-12-25 09:00"),
        ("5月底", "2026-05-31 09:00"),
        ("下个月的15号", "2026-06-15 09:00"),
        ("明年5月7日", "2027-05-07 09:00"),
        ("二〇二六年五月二十日", "2026-05-20 09:00"),
        ("下周末", "2026-05-16 09:00"),
        ("下周三下午三点", "2026-05-13 15:00"),
        ("这周五", "2026-05-08 09:00"),
        ("半个月后", "2026-05-21 09:00"),
        ("一年半后", "2027-11-06 09:00"),
        ("两个半小时后", "2026-05-06 12:30"),
        ("1小时30分钟后", "2026-05-06 11:30"),
        ("三刻钟后", "2026-05-06 10:45"),
        ("过3天", "2026-05-09 09:00"),
        ("后天的下午3点", "2026-05-08 15:00"),
        ("周五前提交", "2026-05-08 09:00"),
        ("５月２０日 下午３点", "2026-05-20 15:00"),
    ],
)
def test_a_phrase_is_read_in_full(text, due):
    assert f"{read(text, NOW, ZONE).due:%Y-%m-%d %H:%M}" == due


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("每周一三五早上7点", "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYHOUR=7;BYMINUTE=0"),
        ("每周一到周五上午9点", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0"),
        ("每两周周一", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0"),
        ("每隔一天", "FREQ=DAILY;INTERVAL=2;BYHOUR=9;BYMINUTE=0"),
        ("每月1号和15号", "FREQ=MONTHLY;BYMONTHDAY=1,15;BYHOUR=9;BYMINUTE=0"),
        ("每月底", "FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9;BYMINUTE=0"),
        ("每年底", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=31;BYHOUR=9;BYMINUTE=0"),
        ("每2小时", "FREQ=HOURLY;INTERVAL=2"),
        ("每晚十点", "FREQ=DAILY;BYHOUR=22;BYMINUTE=0"),
        ("每天凌晨2点", "FREQ=DAILY;BYHOUR=2;BYMINUTE=0"),
    ],
)
def test_a_repetition_gives_its_rule(text, rule):
    assert read(text, NOW, ZONE).repeat == rule


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("一号线", "no_time"),
        ("15号楼", "no_time"),
        ("早一点", "no_time"),
        ("有一点累", "no_time"),
        ("3天内", "no_time"),
        ("下午", "no_time"),
        ("第三点", "no_time"),
        ("一周一次", "no_time"),
        ("三点半", "ambiguous_time"),
        ("明天凌晨", "ambiguous_time"),
        ("每周一次", "ambiguous_time"),
        ("每月", "ambiguous_time"),
        ("上周五", "past_time"),
        ("3小时前", "past_time"),
        ("每3分钟", "invalid_time"),
        ("每年2月30日", "invalid_time"),
        ("早上15点", "invalid_time"),
        ("改天再说", "vague_time"),
        ("几天后", "vague_time"),
        ("明天下午3点,过会儿再说", "vague_time"),
    ],
)
def test_what_is_no_single_time_is_refused_by_its_code(text, code):
    with pytest.raises(TimeRefused) as refused:
        read(text, NOW, ZONE)
    assert refused.value.code == code


def test_the_phrase_is_the_users_own_text():
    reading = read("提醒我明天下午３点到５点开会", NOW, ZONE)
    assert (reading.phrase, reading.others) == ("明天下午３点", ("５点",))
