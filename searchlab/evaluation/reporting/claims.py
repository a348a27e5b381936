"""Claims: every number in prose that was measured names its source, and is held to it.

A number is followed by an HTML comment, which no reader of the rendered page sees:

    68.6 %<!-- = mini/flickr8k/shipped.json metrics.recall@10.en x100 -->

`=` holds the number to the value at its printed precision, `about` to the digits before its
trailing zeros, `below` and `above` to a side; two references may be joined by ` - ` or ` / `; see
`searchlab.evaluation.reporting.lookup`. `asserted:` names an assertion of the same notebook, and
`given:` says why a number is chosen and not measured. A decimal or percent number without such a
comment is a problem, except in code, links, generated tables and versions.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from searchlab.errors import InputError, SearchlabError
from searchlab.evaluation.reporting.lookup import Results, interval_of

TABLE = re.compile(r"(<!-- table: (?P<spec>[^\n]+?) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)

_COMMENT = re.compile(
    r"<!--\s*(?P<verb>=|about|below|above|asserted:|given:)(?P<rest>.*?)-->", re.S
)
_NUMBER = re.compile(
    r"(?<![\w.@])(?<![A-Za-z]-)[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\.?\d)(?:\s?%)?"
)
_REACH = 40  # characters between a number and its comment
_FACTOR = re.compile(r"\s+x(\d+(?:\.\d+)?)\s*\Z")
_JOINED = re.compile(r"\s+([-/])\s+")
_FILE = re.compile(r"\S+?\.(?:json|tsv)(?:\[[^]]*])?")
# What is no prose: fences, code, generated tables, other comments, link targets, addresses.
_NO_PROSE = (
    re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE),
    re.compile(r"(`+)[^\n]*?[^`\n]\1(?!`)"),
    TABLE,
    re.compile(r"(?<=])\([^)\s]*\)"),
    re.compile(r"https?://[^\s)>]+"),
)
# Numbers that are words: levels of intervals, versions of Python, numbers of headings.
_NO_CLAIM = (
    re.compile(r"(?<=\[)95\s?%(?=])"),
    re.compile(r"95\s?%(?=\s(?:bootstrap\s|confidence\s)?intervals?\b)"),
    re.compile(r"(?<=Python )3\.\d+"),
    re.compile(r"^#+ \d+(?:\.\d+)*", re.MULTILINE),
)


@dataclass(frozen=True)
class Problem:
    """A number that disagrees with its source, or has none.

    Attributes:
        where: File, and the cell of a notebook.
        line: From 1.
        says: What is wrong.
    """

    where: str
    line: int
    says: str

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.says}"


def check_file(path: Path, results: Results) -> list[Problem]:
    """Check the prose of a Markdown file, or of a notebook's Markdown cells.

    Args:
        path: Ends in `.md` or `.ipynb`.
        results: That its numbers come from.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return check_text(text, results, where=path.name)
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    code = "\n".join(source for kind, source in cells if kind == "code")
    asserted = [line.strip() for line in code.splitlines() if line.strip().startswith("assert")]
    return [
        problem
        for place, (kind, source) in enumerate(cells, start=1)
        if kind == "markdown"
        for problem in check_text(
            source, results, where=f"{path.name}, cell {place}", asserted=asserted
        )
    ]


def check_text(
    text: str,
    results: Results,
    *,
    where: str = "text",
    asserted: Sequence[str] = (),
) -> list[Problem]:
    """Check the numbers of a piece of Markdown.

    Args:
        text: Markdown.
        results: That its numbers come from.
        where: Name in problems.
        asserted: Lines of code that begin with `assert`.

    Returns:
        What is wrong, in the order of the text; empty if nothing is.
    """
    prose = _blanked(text, _NO_PROSE)
    found = []
    sourced: set[int] = set()
    end = 0
    for comment in _COMMENT.finditer(prose):
        numbers = [n for n in _NUMBER.finditer(prose, end, comment.start()) if n.end() > end]
        end = comment.end()
        if not numbers or comment.start() - numbers[-1].end() > _REACH:
            found.append((comment.start(), "a source must stand behind its number, got none there"))
            continue
        try:
            told = _held(comment["verb"], comment["rest"].strip(), numbers, results, asserted)
            sourced.update(number.start() for number in told)
        except SearchlabError as error:
            sourced.update(number.start() for number in numbers)
            found.append((numbers[-1].start(), str(error)))
    bare = _blanked(prose, [re.compile(r"<!--.*?-->", re.DOTALL), *_NO_CLAIM])
    for number in _NUMBER.finditer(bare):
        is_figure = "." in number[0] or "%" in number[0]
        if is_figure and number.start() not in sourced:
            found.append((number.start(), f"{number[0]} must name its source, got none"))
    return [Problem(where, text.count("\n", 0, start) + 1, says) for start, says in sorted(found)]


def _held(
    verb: str,
    rest: str,
    numbers: Sequence[re.Match[str]],
    results: Results,
    asserted: Sequence[str],
) -> Sequence[re.Match[str]]:
    """Check the last numbers against what a comment says; returns those that it speaks of."""
    if not rest:
        msg = f"a comment {verb!r} must say more, got nothing"
        raise InputError(msg)
    if verb == "given:":
        return numbers[-1:]
    if verb == "asserted:":
        _check_asserted(rest, numbers[-1][0], asserted)
        return numbers[-1:]
    values = _values(rest, results)
    told = numbers[-len(values) :]
    if len(told) < len(values):
        msg = f"{rest} holds {len(values)} numbers, got {len(told)} before it"
        raise InputError(msg)
    for number, value in zip(told, values, strict=True):
        if not _agrees(verb, number[0], value):
            word = "" if verb == "=" else f"{verb} "
            msg = f"the text says {word}{number[0]}, {rest} says {value:.6g}"
            raise InputError(msg)
    return told


def _check_asserted(condition: str, printed: str, asserted: Sequence[str]) -> None:
    """Find a condition among assertions, and the number in it, or between its two bounds."""
    if not any(condition in line for line in asserted):
        msg = f"{condition!r} must stand in an assertion of the notebook, got none"
        raise InputError(msg)
    plain = abs(_plain(printed))
    said = [Decimal(n[0]) for n in re.finditer(r"(?<![\w.])\d+(?:\.\d+)?", condition)]
    as_share = plain / 100
    between = len(said) == 2 and any(min(said) < one < max(said) for one in (plain, as_share))
    if not between and plain not in said and as_share not in said:
        msg = f"the text says {printed}, the assertion {condition!r} does not"
        raise InputError(msg)


def _values(expression: str, results: Results) -> list[float]:
    """Work out `FILE PATH`, or two of them joined by ` - ` or ` / `, times a factor."""
    factor = _FACTOR.search(expression)
    times = float(factor[1]) if factor else 1.0
    terms = expression[: factor.start()] if factor else expression
    try:
        return [times * value for value in _figures(results.find(terms), expression)]
    except InputError:
        # The sign may be part of a key; only what names nothing as a whole is taken apart.
        joined = _JOINED.search(terms)
        if joined is None:
            raise
    first, second = terms[: joined.start()], terms[joined.end() :]
    file = _FILE.match(first)
    if file is not None and not _FILE.match(second):
        second = f"{file[0]} {second}"
    (a,), (b,) = (_figures(results.find(term), expression)[:1] for term in (first, second))
    return [times * (a - b if joined[1] == "-" else a / b)]


def _figures(value: Any, said: str) -> list[float]:
    value = interval_of(value)
    figures = value if isinstance(value, list) else [value]
    if not figures or any(isinstance(n, bool) or not isinstance(n, int | float) for n in figures):
        msg = f"{said} must name a number or a list of numbers, got {str(value)[:60]}"
        raise InputError(msg)
    return [float(figure) for figure in figures]


def _agrees(verb: str, printed: str, value: float) -> bool:
    plain = _plain(printed)
    if verb == "below":
        return value < plain
    if verb == "above":
        return value > plain
    place = int(plain.as_tuple().exponent)
    if verb == "about":
        place = int(plain.normalize().as_tuple().exponent)
    slack = 0.5 * 10.0**place
    return abs(value - float(plain)) <= slack * (1 + 1e-9)


def _plain(printed: str) -> Decimal:
    return Decimal(printed.replace("%", "").replace(",", "").replace("−", "-").strip())


def _blanked(text: str, patterns: Iterable[re.Pattern[str]]) -> str:
    """Put spaces in the place of what matches, so that all else keeps its place."""
    for pattern in patterns:
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return text


def _main(names: Sequence[str]) -> Iterator[str]:
    root = Path.cwd()
    results = Results(root / "results")
    for name in names:
        yield from (str(problem) for problem in check_file(Path(name), results))


if __name__ == "__main__":
    PROBLEMS = list(_main(sys.argv[1:]))
    sys.stdout.write("".join(f"{problem}\n" for problem in PROBLEMS))
    sys.exit(bool(PROBLEMS))
