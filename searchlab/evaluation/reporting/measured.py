"""Any sealed measurement as HTML: its figures, charts and tables, and its manifest."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchlab.evaluation.charts import chart, look, svg_of
from searchlab.evaluation.reporting.markup import figure, note, table

_ROWS = 60
_DRAWN = ("bins", "curve", "points")  # lists with one of these words in their name are drawn
_LEFT_OUT = {"schema", "metrics", "manifest", "files", "digest", "config", "parameters"}


def measurement_html(path: Path, values: Mapping[str, Any]) -> str:
    """Render a measurement.

    Charts that belong to it are embedded; if there are none, lists of records whose name says that
    they are a curve are drawn.

    Args:
        path: Path of its JSON.
        values: Its values, as `read_measurement` returns them.
    """
    parts = [f"<h3>{html.escape(str(values['name']))}</h3>"]
    figures = [[name, format_value(value)] for name, value in values["metrics"].items()]
    if figures:
        parts.append(table(["figure", "value"], figures, left=["figure"]))
    charts = [path.parent / name for name in values["files"] if name.endswith(".svg")]
    parts += [_embed_file(file) for file in charts]
    for name, records in record_lists(values):
        if not charts and any(part in name for part in _DRAWN):
            parts.append(_curve(name, records))
        body = records_table(records[:_ROWS])
        more = note(f"{len(records) - _ROWS} rows more in the file.") if records[_ROWS:] else ""
        parts.append(f"<details><summary>{html.escape(name)}</summary>{body}{more}</details>")
    return "".join(parts) + manifest_html(values)


def manifest_html(values: Mapping[str, Any], *, title: str = "Manifest") -> str:
    """Render what the figures depend on, in a section that is closed at first."""
    named = ("config_id", "config", "parameters", "manifest", "files", "digest")
    parts = {name: values[name] for name in named if name in values}
    text = json.dumps(parts, indent=1, ensure_ascii=False)
    return (
        f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"
    )


def record_lists(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Find the lists of records in plain values; yields dotted paths and lists."""
    for name, value in values.items():
        if not prefix and name in _LEFT_OUT:
            continue
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from record_lists(value, f"{path}.")
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            yield path, value


def records_table(records: list[Mapping[str, Any]]) -> str:
    """Render records as a table, with a column for each plain value that any of them has."""
    columns = list(
        dict.fromkeys(
            name
            for record in records
            for name, value in record.items()
            if not isinstance(value, Mapping)
        )
    )
    rows = [[format_value(record.get(name, "")) for name in columns] for record in records]
    words = [c for c in columns if any(isinstance(record.get(c), str) for record in records)]
    return table(columns, rows, left=words)


def format_value(value: Any) -> str:
    """Format a value for a table: numbers to four digits, lists separated by commas."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(format_value(one) for one in value[:8]) + (", ..." if value[8:] else "")
    return str(value)


def _embed_file(file: Path) -> str:
    data = base64.b64encode(file.read_bytes()).decode()
    words = html.escape(file.stem)
    return f'<figure><img alt="{words}" src="data:image/svg+xml;base64,{data}"></figure>'


def _curve(name: str, records: list[Mapping[str, Any]]) -> str:
    """Draw the shares (0 to 1) of records against their first number."""
    numbers = [key for key in records[0] if all(_is_number(record.get(key)) for record in records)]
    shares = [key for key in numbers[1:] if all(0 <= record[key] <= 1 for record in records)]
    if len(records) < 3 or not shares:
        return ""
    x = [record[numbers[0]] for record in records]
    try:
        with chart(6.4, 3.4) as (drawing, axes):
            for number, key in enumerate(shares[:6]):
                axes.plot(x, [record[key] for record in records], label=key, **look(number))
            axes.set_xlabel(numbers[0])
            axes.set_ylabel("share")
            axes.legend()
            svg = svg_of(drawing)
    except ImportError:
        return ""
    return figure(svg, name, words=f"{', '.join(shares)} against {numbers[0]}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
