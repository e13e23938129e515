"""Write realistic vaults of any size, the same ones every time.

    python bench/vault.py DIR --notes 10000 [--seed 1]

Every note is a pure function of (number, notes, seed), so a benchmark can ask `questions` and
knows which notes must answer, without reading the folder. About one note in ten is Chinese.
Nothing is synced to disk: the folder is a throw-away.
"""

from __future__ import annotations

import argparse
import os
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from random import Random

FOLDER_SIZE = 150
"""Notes per folder; always fewer than 200 files."""
NEWEST = 1_767_225_600
"""2026-01-01T00:00:00Z: no note is younger, none older than three years before."""
SPAN = 3 * 365 * 86_400


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FUNCTION_WORDS = _listed("""
the of and to a in is it that for was on with as be at by this from or not are have an they which you
one all we can her has there been if more when will would who so no out up into them then its over some
these could time two may first any only new our other after also how most made before where through
""")

BASE_WORDS = _listed("""
river garden window bridge harbour market winter summer morning evening letter engine border forest
valley village station platform carriage ticket journey lantern candle shadow mirror carpet kettle
bottle basket hammer ladder bucket needle thread button pocket jacket feather pepper butter bread
cheese onion tomato potato carrot lemon apple cherry barley wheat flour sugar salt honey coffee tea
doctor teacher farmer baker painter sailor soldier lawyer singer writer reader keeper builder driver
brother sister father mother daughter cousin neighbour stranger partner student captain manager
memory question answer reason habit pattern method model theory measure number figure table column
record index store cache query buffer record branch commit merge release version server client socket
thread process kernel driver signal packet router cable battery sensor screen keyboard folder archive
budget invoice contract payment account balance credit interest profit market auction tariff customs
history battle empire treaty council election senate parliament minister office border province
mountain glacier canyon desert island peninsula lagoon meadow orchard vineyard pasture hedge marsh
heron warbler sparrow falcon eagle pigeon swallow magpie otter beaver badger hedgehog squirrel salmon
trout spider beetle butterfly granite marble copper silver iron timber bamboo cotton linen leather
paper pencil ink chapter sentence verse novel essay poem legend riddle language grammar accent vowel
music rhythm melody chorus violin cello trumpet drum concert rehearsal theatre costume curtain stage
colour crimson amber violet yellow purple orange silver golden narrow gentle steady bitter hollow
sudden silent modern ancient common public private local foreign central northern southern eastern
western early late quick heavy bright broken empty careful honest patient clever curious stubborn
carry gather follow measure compare repair deliver explain remember forget discover prepare replace
publish borrow return collect travel wander listen whisper answer decide suggest consider improve
protect connect divide review confirm cancel extend reduce observe predict translate practise
health fever vaccine muscle shoulder kidney stomach allergy recipe oven dinner breakfast supper
bicycle pedal saddle helmet puncture tyre chain brake gear mirror tunnel signal junction roundabout
weather thunder drizzle blizzard humidity pressure compass latitude harvest season equinox eclipse
""")

SUFFIXES = ("s", "ing", "ed", "er", "less", "ful", "like", "ward", "proof", "work", "side", "land")

CATEGORIES = (
    "fact",
    "decision",
    "idea",
    "rule",
    "lesson",
    "tip",
    "question",
    "cause",
    "measured",
    "habit",
)
RELATIONS = (
    "relates_to",
    "part_of",
    "depends_on",
    "follows",
    "caused_by",
    "refines",
    '"was inspired by"',
)
TYPES = ("note", "note", "note", "decision", "person", "project", "howto", "meeting", "book")
AREAS = (
    "work",
    "life",
    "reading",
    "people",
    "projects",
    "research",
    "travel",
    "kitchen",
    "journal",
)
TAGS = tuple(BASE_WORDS[k] for k in range(0, 240, 6))
HEADINGS = (
    "Background",
    "What we know",
    "Findings",
    "Next steps",
    "Details",
    "Notes",
    "Why it matters",
)

ZH_WHEN = _listed("""
今天早上 昨天下午 上个星期 去年冬天 春天的时候 下雨以后 会议结束以后 半夜里 周末 每天晚上 国庆节前
考试之前 停电那天 开学以后 中秋节 吃完晚饭 天亮之前 最近几天 三月初 台风过后
""")
ZH_WHO = _listed("""
我们 老师 邻居 小王 同事们 志愿者 管理员 修车师傅 奶奶 项目组 医生 船长 编辑 园丁 翻译 记者 木匠 会计
厨师 司机
""")
ZH_SURNAMES = "赵钱孙李周吴郑王冯陈卫蒋沈韩杨朱秦许何吕张孔曹严金魏陶姜谢邹"
ZH_GIVEN = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰飞鹏宁雪梅松柏航晨欣怡嘉文博"
ZH_WHERE = _listed("""
湖边 厨房里 火车上 办公室 芦苇丛里 旧书店 山脚下 车站旁边 菜市场 院子里 实验室 码头 图书馆 茶馆里 江对岸
操场上 仓库里 机房 屋顶上 博物馆 温室里 桥下 渡口 村口 隧道里
""")
ZH_DID = _listed("""
讨论了 记录了 修好了 发现了 整理了 忘记了 找到了 比较了 解释了 推迟了 买了 观察了 借走了 翻译了 检查了
改写了 测量了 拍下了 归还了 删除了 恢复了 估算了 抄写了 打听了 预订了
""")
ZH_HOW = _listed("""
旧的 新的 临时的 去年的 完整的 第一版 破损的 手写的 公开的 私人的 便宜的 罕见的 冬季 夏季 本地 远程 备用
主要 失踪的 共享
""")
ZH_WHAT = _listed("""
索引 苍鹭 发布计划 小说 检索结果 链条 豆腐 作业 水质 地图 备份 预算 会议记录 版本 门票 电源 日志 合同
发票 药方 菜谱 航线 标本 照片 望远镜 词典 毛笔 砚台 古琴 乐谱 棋盘 灯笼 风筝 自行车 轮胎 帐篷 睡袋
地铁票 护照 签证 行李 账本 保险 工资表 温度计 湿度 雨量 潮汐 候鸟 白鹤 芦苇 荷花 桂花 银杏 竹笋 辣椒
花椒 豆瓣酱 酸菜 馒头 饺子 粽子 月饼 龙井茶 咖啡豆 服务器 数据库 缓存 线程 内存 硬盘 网线 路由器 密码
证书 补丁 测试用例 错误报告 需求文档 接口 算法 词频表 分词器 量词 成语 唐诗 宋词 方言
""")
ZH_THEN = _listed("""
非常顺利 有点麻烦 需要再检查一遍 大家都很高兴 结果和去年一样 还没有结论 应该写进手册 值得记住
花了三个小时 下次提前准备 没有人反对 价格比想象的高 原因是粗心 后来才明白 已经告诉所有人 暂时先这样
""")
ZH_TITLES = _listed(
    "湿地观察 读书笔记 菜谱 会议纪要 骑行计划 数据库笔记 语言学习 故障复盘 天气记录 家庭账本"
)
ZH_HEADINGS = ("背景", "经过", "结论", "下一步", "细节")
ZH_CATEGORIES = ("事实", "决定", "想法", "经验", "问题")
RARE_CHARACTERS = "".join(map(chr, range(0x9E80, 0x9E80 + 40)))
"""Forty uncommon characters (deer and their kin) that no other text of a vault has."""


@dataclass(frozen=True)
class Question:
    """A sample query. `kind`: rare, common, both, phrase, prefix, chinese, rare_chinese or
    glued (a Latin word between Chinese characters).

    `note` is the number of a note that must be among the hits; `only` tells that no other note
    of the vault holds the text. Queries are plain words (a phrase is in double quotes).
    """

    kind: str
    text: str
    note: int
    only: bool


@lru_cache(maxsize=1)
def vocabulary() -> tuple[tuple[str, ...], tuple[float, ...]]:
    """All English words, commonest first, and their cumulative weights, about 1 / rank (Zipf)."""
    base = list(dict.fromkeys(BASE_WORDS))
    derived = []
    for suffix in SUFFIXES:
        derived += [word + suffix for word in base]
    compounds = []
    for at, first in enumerate(base):
        compounds += [first + second for second in base[at % 17 :: 17] if second != first]
    tail = [*derived, *compounds]
    Random(0).shuffle(tail)
    words = tuple(dict.fromkeys([*FUNCTION_WORDS, *base, *tail]))
    word_weights = [(rank + 2.7) ** -1.12 for rank in range(len(words))]
    return words, tuple(accumulate(word_weights))


def rare_word(number: int) -> str:
    """The made-up word that stands once in note `number` and nowhere else (below 1,000,000)."""
    code = (number * 7919 + 104_729) % 1_000_000
    syllables = (divmod(code // 100**power % 100, 5) for power in range(3))
    return "qx" + "".join("bcdfghjklmnpqrstvwxz"[a] + "aeiou"[b] for a, b in syllables)


def rare_name(number: int) -> str:
    """Three characters that stand once in the Chinese note `number` and nowhere else (below
    640,000).
    """
    code = (number // 10 * 7919 + 104_729) % 64_000
    return "".join(RARE_CHARACTERS[code // 40**power % 40] for power in range(3))


def is_chinese(number: int) -> bool:
    """Whether note `number` is a Chinese one: every tenth."""
    return number % 10 == 7


def title_of(number: int) -> str:
    """The title of note `number`, unique in a vault."""
    if is_chinese(number):
        return f"{ZH_TITLES[number // 10 % len(ZH_TITLES)]} {number}"
    base = BASE_WORDS
    first = base[number * 31 % len(base)]
    place = number * 17 + number // len(base) + 5
    second = base[place % len(base)]
    return f"{first.capitalize()} {second} {number}"


def path_of(number: int) -> str:
    """The path of note `number` from the vault's root, with `/`."""
    folder = number // FOLDER_SIZE
    return f"{AREAS[folder % len(AREAS)]}/{folder:03d}/{title_of(number)}.md"


def time_of(number: int, seed: int = 1) -> int:
    """The mtime of note `number`: seconds since 1970, within the three years before NEWEST."""
    return NEWEST - Random(f"{seed}:time:{number}").randrange(SPAN)


def note_text(number: int, notes: int, seed: int = 1) -> str:
    """The whole text of note `number` in a vault of `notes`; relations point to titles of that
    vault.
    """
    seed_of_note = f"{seed}:{number}"
    chance = Random(seed_of_note)
    lines = list(_header(number, seed, chance))
    if is_chinese(number):
        lines += _chinese_body(number, notes, chance)
    else:
        lines += _english_body(number, notes, chance)
    return "\n".join(lines) + "\n"


def make_vault(folder: str | Path, notes: int, seed: int = 1) -> list[str]:
    """Write `notes` notes below `folder` (made if missing) and give their paths in order.

    Files of the same name are replaced, others are left alone. Modification times are set.
    Raises ValueError for a number outside 0 … 640,000, OSError when the disk refuses.
    """
    if not 0 <= notes <= 640_000:
        raise ValueError(f"notes must be between 0 and 640000, got {notes}")
    root = os.fspath(folder)
    paths = [path_of(number) for number in range(notes)]
    for parent in {path.rpartition("/")[0] for path in paths}:
        os.makedirs(os.path.join(root, parent), exist_ok=True)
    for number, path in enumerate(paths):
        place = os.path.join(root, path)
        stamp = time_of(number, seed)
        with open(place, "wb") as stream:
            stream.write(note_text(number, notes, seed).encode())
        os.utime(place, (stamp, stamp))
    return paths


def questions(notes: int, seed: int = 1, per_kind: int = 20) -> list[Question]:
    """`per_kind` sample queries of every kind for a vault of `notes`; kinds take turns. ValueError
    below 10 notes.
    """
    if notes < 10:
        raise ValueError(f"questions need a vault of at least 10 notes, got {notes}")
    chance = Random(f"{seed}:questions")
    sample: list[Question] = []
    for _ in range(per_kind):
        sample.extend(_one_of_each(notes, seed, chance))
    return sample


def _one_of_each(notes: int, seed: int, chance: Random) -> Iterator[Question]:
    english = next(number for number in _numbers(notes, chance) if not is_chinese(number))
    chinese = next(number for number in _numbers(notes, chance) if is_chinese(number))
    words = _sentence_of(english, notes, seed, chance)
    start = chance.randrange(len(words) - 2)
    longest = max(words, key=len)
    second = longest if longest != words[0] else words[1]
    phrase = " ".join(words[start : start + 3])

    common = _common_word_of(words, chance)
    chinese_word = _chinese_word_of(chinese, notes, seed, chance)

    yield Question("rare", rare_word(english), english, True)
    yield Question("common", common, english, False)
    yield Question("both", f"{words[0]} {second}", english, False)
    yield Question("phrase", f'"{phrase}"', english, False)
    yield Question("prefix", longest[:4], english, False)
    yield Question("chinese", chinese_word, chinese, False)
    yield Question("rare_chinese", rare_name(chinese), chinese, True)
    yield Question("glued", rare_word(chinese), chinese, True)


def _numbers(notes: int, chance: Random) -> Iterator[int]:
    while True:
        yield chance.randrange(notes)


def _sentence_of(number: int, notes: int, seed: int, chance: Random) -> list[str]:
    """The words of one sentence of an English note's prose, in lower case; seven or more."""
    lines = note_text(number, notes, seed).split("\n")
    prose = [line.rstrip(".") for line in lines if line.endswith(".") and "[[" not in line]
    sentences = []
    for line in prose:
        sentences += line.split(". ")
    return chance.choice(sentences).lower().replace(",", "").split(" ")


def _common_word_of(words: list[str], chance: Random) -> str:
    frequent = [word for word in words if len(word) > 2 and word in FUNCTION_WORDS]
    return chance.choice(frequent or words)


def _chinese_word_of(number: int, notes: int, seed: int, chance: Random) -> str:
    """A word of two to four characters of the Chinese note."""
    text = note_text(number, notes, seed)
    words = [*ZH_WHAT, *ZH_WHO, *ZH_WHERE, *ZH_WHEN, *ZH_THEN]
    return chance.choice([word for word in words if len(word) < 5 and word in text])


def _header(number: int, seed: int, chance: Random) -> Iterator[str]:
    day = time.strftime("%Y-%m-%d", time.gmtime(time_of(number, seed)))
    yield "---"
    yield f"title: {title_of(number)}"
    yield f"type: {chance.choice(TYPES)}"
    yield f"tags: [{', '.join(sorted(set(chance.choices(TAGS, k=3))))}]"
    if number % 3 == 0:
        yield f"date: {day}"
    if number % 5 == 0:
        yield f"permalink: vault/{number}"
    if number % 7 == 0:
        yield f"status: {chance.choice(('open', 'active', 'done'))}"
    yield from ("---", "")


def _english_body(number: int, notes: int, chance: Random) -> Iterator[str]:
    words = _words(chance, 400)
    yield f"# {title_of(number)}"
    yield ""
    yield _paragraph(words, chance, 3)
    planted = chance.randrange(3)
    for part, heading in enumerate(chance.sample(HEADINGS, 3)):
        yield from ("", f"## {heading}")
        yield _paragraph(words, chance, chance.randint(2, 4))
        if part == planted:
            yield f"The code name here was {rare_word(number)} and {_link(number, notes, chance)} knows why."
        for _ in range(chance.randint(1, 3)):
            if chance.random() < 0.6:
                tag = f" #{chance.choice(TAGS)}"
            else:
                tag = ""
            if chance.random() < 0.2:
                context = f" ({next(words)} {next(words)})"
            else:
                context = ""
            text = " ".join(next(words) for _ in range(chance.randint(5, 11)))
            yield f"- [{chance.choice(CATEGORIES)}] {text}{tag}{context}"
    if chance.random() < 0.02:
        yield from ("", *(_paragraph(words, chance, 5) for _ in range(3)))
    yield from ("", "## Relations")
    yield from _relations(number, notes, chance)


def _chinese_body(number: int, notes: int, chance: Random) -> Iterator[str]:
    yield f"# {title_of(number)}"
    yield ""
    yield _chinese(chance, 4)
    planted = chance.randrange(3)
    for part, heading in enumerate(chance.sample(ZH_HEADINGS, 3)):
        yield from ("", f"## {heading}")
        yield _chinese(chance, chance.randint(3, 6))
        if part == planted:
            planted_text = f"这次的代号是{rare_name(number)},也写作{rare_word(number)}号"
            yield f"{planted_text},参见{_link(number, notes, chance)}。"
        for _ in range(chance.randint(1, 3)):
            yield f"- [{chance.choice(ZH_CATEGORIES)}] {_chinese(chance, 1)[:-1]} #{chance.choice(ZH_TITLES)}"
    yield from ("", "## 相关")
    yield from _relations(number, notes, chance)


def _relations(number: int, notes: int, chance: Random) -> Iterator[str]:
    for _ in range(chance.randint(1, 5)):
        yield f"- {chance.choice(RELATIONS)} {_link(number, notes, chance)}"


def _link(number: int, notes: int, chance: Random) -> str:
    """A link to another note: low numbers are linked often (hubs), one in thirty is not written
    yet.
    """
    if chance.random() < 1 / 30:
        return f"[[Later {chance.choice(BASE_WORDS)} {chance.randrange(notes)}]]"
    target = int(notes * chance.random() ** 3)
    return f"[[{title_of(target if target != number else (number + 1) % notes)}]]"


def _words(chance: Random, batch: int) -> Iterator[str]:
    words, weights = vocabulary()
    total = weights[-1]
    while True:
        yield from (words[bisect_left(weights, chance.random() * total)] for _ in range(batch))


def _paragraph(words: Iterator[str], chance: Random, sentences: int) -> str:
    return " ".join(_sentence(words, chance) for _ in range(sentences))


def _sentence(words: Iterator[str], chance: Random) -> str:
    length = chance.randint(7, 18)
    drawn = [next(words) for _ in range(length)]
    if length > 13 and chance.random() < 0.5:
        drawn[length // 2] += ","
    return " ".join(drawn).capitalize() + "."


def _chinese(chance: Random, sentences: int) -> str:
    return "".join(_chinese_sentence(chance) for _ in range(sentences))


def _chinese_sentence(chance: Random) -> str:
    pick = chance.choice
    if chance.random() < 0.6:
        who = pick(ZH_WHO)
    else:
        who = pick(ZH_SURNAMES) + pick(ZH_GIVEN) + pick(ZH_GIVEN)
    topic = ZH_WHAT[int(len(ZH_WHAT) * chance.random() ** 2)]
    how = pick(ZH_HOW) if chance.random() < 0.5 else ""
    when = pick(ZH_WHEN)
    where = pick(ZH_WHERE)
    did = pick(ZH_DID)
    then = pick(ZH_THEN)
    return f"{when}{who}在{where}{did}{how}{topic},{then}。"


def main() -> None:
    """Command line of this module: see its first lines."""
    parser = argparse.ArgumentParser(description="Write a realistic vault of Markdown notes.")
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    paths = make_vault(options.folder, options.notes, options.seed)
    seconds = time.perf_counter() - began
    size = 0
    for path in paths:
        size += os.path.getsize(os.path.join(options.folder, path))
    print(f"{len(paths)} notes, {size / 1e6:.1f} MB, {seconds:.1f} s")


if __name__ == "__main__":
    main()
