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


class JsonWriter:
    """Writes random JSON values in one style."""

    def __init__(self, random: Random, *, comments: bool) -> None:
        self.random = random
        self.has_comments = comments
        self.end = random.choice(["\n", "\n", "\r\n"])
        self.unit = random.choice(["  ", "    ", "\t"])

    def blank(self, indent: str) -> str:
        """What may be between two tokens."""
        choice = self.random.random()
        if choice < 0.35:
            return self.end + indent
        if choice < 0.75 or not self.has_comments:
            blanks = ["", "", " ", "  ", self.end, self.end + self.end + indent]
            return self.random.choice(blanks)
        text = self.random.choice(COMMENTS)
        forms = [
            f" // {text}{self.end}",
            f"/* {text} */",
            f"{self.end}{indent}// {text} {self.end}",
            f" /*{text}{self.end}*/ ",
        ]
        return self.random.choice(forms)

    def value(self, depth: int) -> str:
        choice = self.random.random()
        if depth <= 3 and choice >= 0.5:
            return self.container(depth, "[]" if choice < 0.65 else "{}")
        scalars = ["1", "-0.5e+3", "true", "false", "null", "1E400", None, None, None]
        scalar = self.random.choice(scalars)
        if scalar:
            return scalar
        word = self.random.choice(WORDS)
        return json.dumps(word, ensure_ascii=self.random.random() < 0.5)

    def container(self, depth: int, brackets: str, names: list[str] | None = None) -> str:
        """An array or object with members of these names, random ones by default."""
        if names is None:
            names = self.random.sample(WORDS, self.random.randrange(4))
        is_pretty = self.random.random() < 0.5
        parts = [self.member(name, depth, brackets, is_pretty) for name in names]
        if is_pretty and parts:
            closing = self.end + self.unit * depth
        else:
            closing = self.blank(self.unit * depth)
        trail = ""
        if self.has_comments and parts and self.random.random() < 0.3:
            trail = ","
        return brackets[0] + ",".join(parts) + trail + closing + brackets[1]

    def member(self, name: str, depth: int, brackets: str, is_pretty: bool) -> str:
        indent = self.unit * (depth + 1)
        gap = self.end + indent if is_pretty else self.blank(indent)
        label = ""
        if brackets == "{}":
            label = json.dumps(name) + ("" if is_pretty else self.blank(indent)) + ": "
        if depth == 0 and name == "mcpServers":
            content = self.servers(depth + 1)
        else:
            content = self.value(depth + 1)
        return gap + label + content + ("" if is_pretty else self.blank(indent))

    def servers(self, depth: int) -> str:
        names = self.random.sample(["a", "other", "x y"], self.random.randrange(4))
        return self.container(depth, "{}", names)


def json_file(random: Random, *, comments: bool = True) -> str:
    """A JSON object, with comments and trailing commas if wanted."""
    writer = JsonWriter(random, comments=comments)
    keys = random.sample(WORDS, random.randrange(6))
    if random.random() < 0.6 and "mcpServers" not in keys:
        keys.insert(random.randrange(len(keys) + 1), "mcpServers")
    text = writer.container(0, "{}", keys)
    around = writer.blank("") if random.random() < 0.3 else ""
    mark = random.choice(["", "", "\ufeff"])
    return mark + around + text + random.choice(["", writer.end, writer.end * 2, " "])


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


class YamlWriter:
    """Writes random YAML mappings in one style, line by line."""

    SCALARS = (
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
    )
    BLOCKS = ("|", "|-", "|+", ">", ">-")

    def __init__(self, random: Random) -> None:
        self.random = random
        self.end = random.choice(["\n", "\n", "\r\n"])
        self.step = random.choice(["  ", "    "])
        self.lines: list[str] = []

    def noise(self, indent: str) -> None:
        """Blank lines and comments."""
        kinds = ["", f"{indent}# note", "# left", f"{indent}  # deep"]
        self.lines += self.random.choices(kinds, k=self.random.choice([0, 0, 1, 2]))

    def pair(self, name: str, indent: str, depth: int) -> None:
        choice = self.random.random()
        if choice < 0.6 or depth > 2:
            self.scalar(name, indent)
        elif choice < 0.75:
            self.block(name, indent)
        elif choice < 0.85:
            self.lines.append(f"{indent}{name}:")
            items = ["a", "'b'", "c: 1"][: self.random.randrange(1, 4)]
            self.lines += [f"{indent}- {item}" for item in items]
        else:
            self.lines.append(f"{indent}{name}:" + self.random.choice(["", " # here"]))
            for number in range(self.random.randrange(1, 3)):
                self.pair(f"n{number}", indent + self.step, depth + 1)
        self.noise(indent)

    def scalar(self, name: str, indent: str) -> None:
        line = f"{indent}{name}: {self.random.choice(self.SCALARS)}".rstrip()
        self.lines.append(line + self.random.choice(["", "", "  # why"]))

    def block(self, name: str, indent: str) -> None:
        self.lines.append(f"{indent}{name}: {self.random.choice(self.BLOCKS)}")
        item_lines = ["text: x", "# no comment", "- more"][: self.random.randrange(1, 4)]
        self.lines += [indent + self.step + item_line for item_line in item_lines]
        self.lines += [""] * self.random.randrange(3)

    def servers(self, key: str, *, of_list: bool) -> None:
        """The member that holds the servers: without a value, in brackets, or as a block."""
        choice = self.random.random()
        if choice < 0.15:
            nothing = self.random.choice(["", " ", "  # none yet"])
            self.lines.append(f"{key}:{nothing}")
        elif choice < 0.3:
            value = "[]"
            if not of_list:
                value = self.random.choice(["{}", "{a: {b: 1}}", "{ a: 1, b: 2 }"])
            self.lines.append(f"{key}: {value}")
        else:
            comment = self.random.choice(["", "  # servers"])
            self.lines.append(f"{key}:{comment}")
            self.noise(self.step)
            if of_list:
                self.list_of_servers()
            else:
                for number in range(self.random.randrange(1, 4)):
                    self.pair(f"s{number}", self.step, 1)

    def list_of_servers(self) -> None:
        indent = self.random.choice(["", self.step])
        for number in range(self.random.randrange(1, 4)):
            self.lines.append(f"{indent}- name: s{number}")
            self.lines.append(f"{indent}  args: [x]")
            if self.random.random() < 0.3:
                self.pair("more", indent + "  ", 2)
            self.noise(indent)


def yaml_file(random: Random, key: str = "extensions", *, of_list: bool = False) -> str:
    """Block mappings with scalars of all kinds, comments, lists, a few things in brackets; `key` in
    many forms.
    """
    writer = YamlWriter(random)
    writer.noise("")
    if random.random() < 0.2:
        writer.lines.append("---")
    count = random.randrange(4)
    place = random.randrange(5)
    for number in range(count):
        if number == place:
            writer.servers(key, of_list=of_list)
        writer.pair(f"top{number}", "", 0)
    if place >= count and random.random() < 0.7:
        writer.servers(key, of_list=of_list)
    text = writer.end.join(writer.lines)
    end = writer.end
    mark = random.choice(["", "", "\ufeff"])
    return mark + text + random.choice(["", end, end, end * 2, f"{end}# end"])


MAKERS: dict[str, Callable[[Random], str]] = {
    "json": json_file,
    "toml": toml_file,
    "yaml": yaml_file,
}
