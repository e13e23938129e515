"""Random configuration files in every style people write, from one seed each."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

WORDS = [
    "theme",
    "dark",
    "mcpServers",
    "a b",
    "日本語",
    "x\\y",
    'quo"te',
    "// no",
    "/* no */",
    "#no",
    "",
    "é",
    "🎈",
    "}",
    "[x]",
]
COMMENTS = ["it's", 'a "b', "{", "memory", "日本", "*"]


def json_file(random: Random, *, comments: bool = True) -> str:
    """A JSON object, with comments and trailing commas if wanted."""
    end = random.choice(["\n", "\n", "\r\n"])
    unit = random.choice(["  ", "    ", "\t"])

    def blank(indent: str) -> str:
        choice = random.random()
        if choice < 0.35:
            return end + indent
        if choice < 0.75 or not comments:
            return random.choice(["", "", " ", "  ", end, end + end + indent])
        text = random.choice(COMMENTS)
        forms = [
            f" // {text}{end}",
            f"/* {text} */",
            f"{end}{indent}// {text} {end}",
            f" /*{text}{end}*/ ",
        ]
        return random.choice(forms)

    def value(depth: int) -> str:
        choice = random.random()
        if depth > 3 or choice < 0.5:
            scalar = random.choice(
                ["1", "-0.5e+3", "true", "false", "null", "1E400", None, None, None]
            )
            return scalar or json.dumps(random.choice(WORDS), ensure_ascii=random.random() < 0.5)
        return container(depth, "[]" if choice < 0.65 else "{}")

    def container(depth: int, brackets: str, keys: list[str] | None = None) -> str:
        indent = unit * (depth + 1)
        parts = []
        if keys is not None:
            names = keys
        else:
            names = random.sample(WORDS, random.randrange(4))
        pretty = random.random() < 0.5
        for name in names:
            gap = end + indent if pretty else blank(indent)
            if brackets == "{}":
                label = json.dumps(name) + ("" if pretty else blank(indent)) + ": "
            else:
                label = ""
            if depth == 0 and name == "mcpServers":
                content = servers(depth + 1)
            else:
                content = value(depth + 1)
            parts.append(gap + label + content + ("" if pretty else blank(indent)))
        if pretty and parts:
            closing = end + unit * depth
        else:
            closing = blank(unit * depth)
        if comments and parts and random.random() < 0.3:
            trail = ","
        else:
            trail = ""
        return brackets[0] + ",".join(parts) + trail + closing + brackets[1]

    def servers(depth: int) -> str:
        return container(depth, "{}", random.sample(["a", "other", "x y"], random.randrange(4)))

    keys = random.sample(WORDS, random.randrange(6))
    if random.random() < 0.6 and "mcpServers" not in keys:
        keys.insert(random.randrange(len(keys) + 1), "mcpServers")
    text = container(0, "{}", keys)
    around = blank("") if random.random() < 0.3 else ""
    return (
        random.choice(["", "", "\ufeff"]) + around + text + random.choice(["", end, end * 2, " "])
    )


def toml_file(random: Random) -> str:
    """Tables, arrays of tables, strings of all kinds, comments."""
    end = random.choice(["\n", "\n", "\r\n"])
    lines = []
    number = 0
    strings = [
        '"a # b"',
        "'c:\\d'",
        '"""\n[mcp_servers.memory]\n"" x"""',
        "'''\n[t]\n'''",
        '"\\"]"',
        '"""a\\"""" """"',
    ]
    values = [
        *strings[:-1],
        "1",
        "1.5",
        "nan",
        "true",
        "1979-05-27T07:32:00Z",
        "[1, 2]",
        '[\n  "a", # ]\n  "[b",\n]',
        '{ x = 1, "y z" = "}" }',
        "[]",
        "inf",
    ]

    def pairs(indent: str) -> None:
        nonlocal number
        for _ in range(random.randrange(4)):
            number += 1
            key = random.choice([f"k{number}", f'"k {number}"', f"k{number}.sub", f"'k{number}'"])
            comment = random.choice(["", "", "  # why", " # [mcp_servers.memory]"])
            lines.append(f"{indent}{key} = {random.choice(values)}{comment}")
            lines.extend(random.choices(["", "# note", "  # note ", ""], k=random.randrange(2)))

    pairs("")
    heads = [
        "[mcp_servers.other]",
        "[ mcp_servers . 'x y' ] # here",
        "[mcp_servers]",
        "[[list]]",
        "[[list]]",
        "[table]",
        "[table.sub]",
        "[mcp_servers.other.env]",
        '["mcp_servers".third]',
        "  [indented]",
    ]
    used: set[str] = set()
    for head in random.sample(heads, random.randrange(len(heads))):
        if head in used and not head.startswith("[["):
            continue
        used.add(head)
        lines.extend(random.choices(["", "# about it", " "], k=random.randrange(3)))
        lines.append(head)
        pairs(random.choice(["", "  "]))
    text = end.join(line.replace("\n", end) for line in lines)
    return (
        random.choice(["", "", "\ufeff"])
        + text
        + random.choice(["", end, end, end * 2, "  ", f"{end}# end"])
    )


def yaml_file(random: Random, key: str = "extensions", *, of_list: bool = False) -> str:
    """Block mappings with scalars of all kinds, comments, lists, a few things in brackets; `key` in
    many forms.
    """
    end = random.choice(["\n", "\n", "\r\n"])
    lines = []
    step = random.choice(["  ", "    "])
    scalars = [
        "1",
        "plain text",
        "'it''s # no'",
        '"a: b"',
        "~",
        "",
        "2020-01-01",
        "[a, b]",
        "{a: 1}",
        "true",
        "é",
    ]
    blocks = ["|", "|-", "|+", ">", ">-"]

    def noise(indent: str) -> None:
        kinds = ["", f"{indent}# note", "# left", f"{indent}  # deep"]
        lines.extend(random.choices(kinds, k=random.choice([0, 0, 1, 2])))

    def pair(name: str, indent: str, depth: int) -> None:
        choice = random.random()
        if choice < 0.6 or depth > 2:
            lines.append(
                f"{indent}{name}: {random.choice(scalars)}".rstrip()
                + random.choice(["", "", "  # why"])
            )
        elif choice < 0.75:
            lines.append(f"{indent}{name}: {random.choice(blocks)}")
            item_lines = ["text: x", "# no comment", "- more"][: random.randrange(1, 4)]
            lines.extend(indent + step + item_line for item_line in item_lines)
            lines.extend([""] * random.randrange(3))
        elif choice < 0.85:
            lines.append(f"{indent}{name}:")
            lines.extend(
                f"{indent}- {list_item}"
                for list_item in ["a", "'b'", "c: 1"][: random.randrange(1, 4)]
            )
        else:
            lines.append(f"{indent}{name}:" + random.choice(["", " # here"]))
            for number in range(random.randrange(1, 3)):
                pair(f"n{number}", indent + step, depth + 1)
        noise(indent)

    def member() -> None:
        choice = random.random()
        if choice < 0.15:
            lines.append(f"{key}:" + random.choice(["", " ", "  # none yet"]))
        elif choice < 0.3:
            lines.append(
                f"{key}: "
                + ("[]" if of_list else random.choice(["{}", "{a: {b: 1}}", "{ a: 1, b: 2 }"]))
            )
        else:
            lines.append(f"{key}:" + random.choice(["", "  # servers"]))
            noise(step)
            if of_list:
                indent = random.choice(["", step])
                for number in range(random.randrange(1, 4)):
                    lines.append(f"{indent}- name: s{number}")
                    lines.append(f"{indent}  args: [x]")
                    if random.random() < 0.3:
                        pair("more", indent + "  ", 2)
                    noise(indent)
            else:
                for number in range(random.randrange(1, 4)):
                    pair(f"s{number}", step, 1)

    noise("")
    if random.random() < 0.2:
        lines.append("---")
    count = random.randrange(4)
    place = random.randrange(5)
    for number in range(count):
        if number == place:
            member()
        pair(f"top{number}", "", 0)
    if place >= count and random.random() < 0.7:
        member()
    text = end.join(lines)
    return (
        random.choice(["", "", "\ufeff"])
        + text
        + random.choice(["", end, end, end * 2, f"{end}# end"])
    )


MAKERS: dict[str, Callable[[Random], str]] = {
    "json": json_file,
    "toml": toml_file,
    "yaml": yaml_file,
}
