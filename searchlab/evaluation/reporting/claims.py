"""Claims: every measured number in prose names its source, and is checked against it.

The sources are listed in one comment at the end of the text, which readers of the rendered page do
not see. Each phrase there is quoted from the text, with `{}` in the place of each number, and the
lines under it name the sources of those numbers, in order:

    <!-- numbers: ...

    mini finds {} of the English captions among the first ten
        = mini/flickr8k/shipped.json metrics.recall@10.en x100
    -->

With `=` a number must equal the value at its printed precision, with `about` in the digits before
its trailing zeros, with `below` and `above` the value must lie on that side of it. A source that is
a list needs a number for each entry; two sources may be joined by ` - ` or ` / `; see
`searchlab.evaluation.reporting.lookup`. `asserted:` names an assertion of the same notebook, and
`given:` says why a number is chosen and not measured. A phrase must occur in the text once. A
decimal or percent number in no phrase is a problem, except in code, links, generated tables and
versions. What the record says of its scope must stand beside the number too; see
`searchlab.evaluation.reporting.scope`.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from searchlab.errors import InputError, SearchlabError
from searchlab.evaluation.reporting.lookup import Results, interval_of
from searchlab.evaluation.reporting.scope import needs_of, section_needs

TABLE = re.compile(r"(<!-- table: (?P<spec>[^\n]+?) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)

_NUMBERS = re.compile(r"<!-- numbers\b[^\n]*\n(?P<body>.*?)-->", re.DOTALL)
_SOURCE = re.compile(r"(?P<verb>=|about |below |above |asserted:|given:)(?P<rest>.*)")
_NUMBER = re.compile(
    r"(?<![\w.@])(?<![A-Za-z]-)[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\.?\d)(?:\s?%)?"
)
_FACTOR = re.compile(r"\s+x(\d+(?:\.\d+)?)\s*\Z")
_JOINED = re.compile(r"\s+([-/])\s+")
_FILE = re.compile(r"\S+?\.(?:json|tsv)(?:\[[^]]*])?")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Parts that phrases may not quote, then parts that they may quote but whose numbers are no claims.
_NO_TEXT = (
    _NUMBERS,
    re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE),
    TABLE,
)
_NO_PROSE = (
    re.compile(r"(`+)[^\n]*?[^`\n]\1(?!`)"),
    re.compile(r"(?<=])\([^)\s]*\)"),
    re.compile(r"https?://[^\s)>]+"),
)
# Numbers that were not measured: levels of intervals, versions of Python, numbers of headings.
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
        line: Line in the text, from 1.
        message: What is wrong.
    """

    where: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Claim:
    """A phrase of the text, and where its numbers come from.

    Attributes:
        phrase: Quotation from the text, with `{}` in the place of each number.
        start: Offset of the phrase in the comment, in characters of the whole text.
        sources: Verb and reference, or verb and reason, in the order of the numbers.
    """

    phrase: str
    start: int
    sources: tuple[tuple[str, str], ...]


def check_file(path: Path, results: Results) -> list[Problem]:
    """Check the prose of a Markdown file, or of a notebook's Markdown cells.

    Args:
        path: File that ends in `.md` or `.ipynb`.
        results: The results that its numbers come from.

    Returns:
        What is wrong, in the order of the text; empty if nothing is.
    """
    text = path.read_text(encoding="utf-8")
    root = results.folder.resolve().parent
    name = path.resolve().relative_to(root) if path.resolve().is_relative_to(root) else path
    if path.suffix != ".ipynb":
        return check_text(text, results, where=str(name))
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    code = "\n".join(source for kind, source in cells if kind == "code")
    asserted = [line.strip() for line in code.splitlines() if line.strip().startswith("assert")]
    return [
        problem
        for place, (kind, source) in enumerate(cells, start=1)
        if kind == "markdown"
        for problem in check_text(source, results, where=f"{name}, cell {place}", asserted=asserted)
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
        results: The results that its numbers come from.
        where: Name of the text in problems.
        asserted: Lines of code that begin with `assert`.

    Returns:
        What is wrong, in the order of the text; empty if nothing is.
    """
    readable = _blank(text, _NO_TEXT)
    prose = _blank(readable, [*_NO_PROSE, _COMMENT])
    numbers = {number.start(): number for number in _NUMBER.finditer(prose)}
    problems = []
    sourced: set[int] = set()
    for claim in read_claims(text):
        places = _places(claim.phrase, readable, numbers)
        if len(places) != 1 or not places[0]:
            problems.append((claim.start, _misquoted(claim.phrase, len(places))))
            continue
        sourced.update(number.start() for number in places[0])
        problems.extend(_disagreements(claim, places[0], results, asserted))
        problems.extend(_bare_claims(claim, places[0], readable, results))
    problems.extend(_bare_tables(text, results))
    bare = _blank(prose, _NO_CLAIM)
    for number in _NUMBER.finditer(bare):
        is_figure = "." in number[0] or "%" in number[0]
        if is_figure and number.start() not in sourced:
            problems.append((number.start(), f"{number[0]} must name its source, got none"))
    return [
        Problem(where, text.count("\n", 0, start) + 1, message)
        for start, message in sorted(problems)
    ]


def read_claims(text: str) -> list[Claim]:
    """Read the claims in the comment of a text, in their order.

    Args:
        text: Markdown; without such a comment it makes no claims.
    """
    claims: list[Claim] = []
    for comment in _NUMBERS.finditer(text):
        start = comment.start("body")
        for line in comment["body"].splitlines(keepends=True):
            source = _SOURCE.fullmatch(line.strip())
            if claims and line[0].isspace() and source is not None:
                sources = (*claims[-1].sources, (source["verb"].strip(), source["rest"].strip()))
                claims[-1] = replace(claims[-1], sources=sources)
            elif line.strip():
                claims.append(Claim(" ".join(line.split()), start, ()))
            start += len(line)
    return claims


def _places(
    phrase: str, text: str, numbers: Mapping[int, re.Match[str]]
) -> list[list[re.Match[str]]]:
    """Find the places of a phrase, however its lines are broken; returns its numbers at each."""
    words = (re.escape(word).replace(r"\{\}", f"({_NUMBER.pattern})") for word in phrase.split())
    quotes = re.finditer(r"\s+".join(words), text)
    starts = [[quote.start(n + 1) for n in range(phrase.count("{}"))] for quote in quotes]
    return [[numbers[n] for n in some] for some in starts if all(n in numbers for n in some)]


def _misquoted(phrase: str, times: int) -> str:
    if "{}" not in phrase:
        return f"{phrase!r} must be a phrase with {{}} for each number, or begin with a verb"
    return f"{phrase!r} must stand once in the text, a number for each {{}}, got it {times} times"


def _disagreements(
    claim: Claim,
    numbers: Sequence[re.Match[str]],
    results: Results,
    asserted: Sequence[str],
) -> Iterator[tuple[int, str]]:
    """Check the numbers of a phrase against its sources; yields offsets and what is wrong."""
    left = list(numbers)
    for verb, rest in claim.sources:
        try:
            used = _check_source(verb, rest, left, results, asserted)
        except SearchlabError as error:
            yield (left or numbers)[0].start(), str(error)
            return
        del left[:used]
    if left:
        sources = f"{len(claim.sources)} source{'s' * (len(claim.sources) != 1)}"
        message = f"{claim.phrase!r} must have a source for each number, got {sources}"
        yield left[0].start(), message


def _bare_claims(
    claim: Claim, numbers: Sequence[re.Match[str]], text: str, results: Results
) -> Iterator[tuple[int, str]]:
    """Find numbers without the words that their record asks for; yields offsets and what lacks."""
    left = list(numbers)
    for verb, rest in claim.sources:
        if not left:
            return
        number = left[0]
        if verb not in ("asserted:", "given:"):
            for need in needs_of(rest, results):
                if not need.is_met(text, number.start()):
                    yield number.start(), f"{number[0]}: {need}"
        with suppress(SearchlabError):
            del left[: 1 if verb in ("asserted:", "given:") else len(_values(rest, results))]


def _bare_tables(text: str, results: Results) -> Iterator[tuple[int, str]]:
    """Find generated tables whose section does not say what their records were measured on."""
    for table in TABLE.finditer(text):
        words = shlex.split(table["spec"])
        columns = [re.sub(r"(:\d[^=]*)?(=.*)?\Z", "", word) for word in words[3:]]
        if words[0] not in ("rows", "files") or len(words) < 2:
            continue
        lacking = {
            str(need)
            for path in results.files(words[1])
            for need in section_needs(results.values(path), columns)
            if not need.is_met(_blank(text, (_NUMBERS, TABLE)), table.start())
        }
        yield from ((table.start(), f"the table of {words[1]}: {need}") for need in sorted(lacking))


def _check_source(
    verb: str,
    rest: str,
    numbers: Sequence[re.Match[str]],
    results: Results,
    asserted: Sequence[str],
) -> int:
    """Check the first numbers against a source; returns how many of them it covers."""
    if not rest:
        msg = f"a source {verb!r} must say more, got nothing"
        raise InputError(msg)
    values = [0.0] if verb in ("asserted:", "given:") else _values(rest, results)
    if len(numbers) < len(values):
        msg = f"{rest} holds {len(values)} numbers, got {len(numbers)} in the phrase"
        raise InputError(msg)
    if verb == "asserted:":
        _check_asserted(rest, numbers[0][0], asserted)
    elif verb != "given:":
        for number, value in zip(numbers, values, strict=False):
            if not _agrees(verb, number[0], value):
                word = "" if verb == "=" else f"{verb} "
                msg = f"the text says {word}{number[0]}, {rest} says {value:.6g}"
                raise InputError(msg)
    return len(values)


def _check_asserted(condition: str, printed: str, asserted: Sequence[str]) -> None:
    """Find a condition among assertions, and the number in it, or between its two bounds."""
    if not any(condition in line for line in asserted):
        msg = f"{condition!r} must stand in an assertion of the notebook, got none"
        raise InputError(msg)
    number = abs(_parse_number(printed))
    bounds = [Decimal(n[0]) for n in re.finditer(r"(?<![\w.])\d+(?:\.\d+)?", condition)]
    as_share = number / 100
    between = len(bounds) == 2 and any(
        min(bounds) < one < max(bounds) for one in (number, as_share)
    )
    if not between and number not in bounds and as_share not in bounds:
        msg = f"the text says {printed}, the assertion {condition!r} does not"
        raise InputError(msg)


def _values(expression: str, results: Results) -> list[float]:
    """Compute `FILE PATH`, or two of them joined by ` - ` or ` / `, times a factor."""
    factor = _FACTOR.search(expression)
    times = float(factor[1]) if factor else 1.0
    terms = expression[: factor.start()] if factor else expression
    try:
        return [times * value for value in _figures(results.find(terms), expression)]
    except InputError:
        # The sign may be part of a key, so only an expression that names nothing is split.
        joined = _JOINED.search(terms)
        if joined is None:
            raise
    first, second = terms[: joined.start()], terms[joined.end() :]
    file = _FILE.match(first)
    if file is not None and not _FILE.match(second):
        second = f"{file[0]} {second}"
    (a,), (b,) = (_figures(results.find(term), expression)[:1] for term in (first, second))
    return [times * (a - b if joined[1] == "-" else a / b)]


def _figures(value: Any, source: str) -> list[float]:
    value = interval_of(value)
    figures = value if isinstance(value, list) else [value]
    if not figures or any(isinstance(n, bool) or not isinstance(n, int | float) for n in figures):
        msg = f"{source} must name a number or a list of numbers, got {str(value)[:60]}"
        raise InputError(msg)
    return [float(figure) for figure in figures]


def _agrees(verb: str, printed: str, value: float) -> bool:
    number = _parse_number(printed)
    if verb == "below":
        return value < number
    if verb == "above":
        return value > number
    place = int(number.as_tuple().exponent)
    if verb == "about":
        place = int(number.normalize().as_tuple().exponent)
    slack = 0.5 * 10.0**place
    return abs(value - float(number)) <= slack * (1 + 1e-9)


def _parse_number(printed: str) -> Decimal:
    return Decimal(printed.replace("%", "").replace(",", "").replace("−", "-").strip())


def _blank(text: str, patterns: Iterable[re.Pattern[str]]) -> str:
    """Replace matches by spaces, so that all other text keeps its offset."""
    for pattern in patterns:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
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
