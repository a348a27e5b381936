"""Draw the rooms of the package and the arrows between them, from the imports of today.

    python -m benchmarks.structure.draw_rooms

Writes results/readme/rooms.svg, which the README shows; a test holds it to the code.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from benchmarks.structure.imports import PACKAGE, ROOMS, arrows, shortest_arrows

DRAWING = Path(__file__).resolve().parents[2] / "results" / "readme" / "rooms.svg"

WIDTH = 846
LEFT, RIGHT = 36, 690  # of the house
FIRST = 92  # the top of the first room, under the roof
FLOOR = 42  # from one room to the next
ROOM = 34  # height of a room
HUES = {
    **dict.fromkeys(("cli", "client", "api"), "#2f6690"),
    **dict.fromkeys(("studies", "training", "evaluation"), "#b4652a"),
    **dict.fromkeys(("cluster", "library", "sources", "search", "models"), "#3a7d5c"),
}
PLAIN, INK, FAINT = "#6a6f78", "#22252a", "#d9dce1"
FONTS = "-apple-system, BlinkMacSystemFont, 'Segoe UI', Helvetica, 'DejaVu Sans', sans-serif"


def draw() -> str:
    """Draw the house; returns SVG."""
    tops = {room: FIRST + FLOOR * floor for floor, room in enumerate(ROOMS)}
    ground = FIRST + FLOOR * len(ROOMS)
    height = ground + 84
    shown = sorted(shortest_arrows(arrows()), key=lambda pair: (tops[pair[0]], tops[pair[1]]))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" font-family="{FONTS}">',
        "<title>The rooms of searchlab from top to bottom, and who imports from whom</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="12" fill="#ffffff"/>',
        *_shell(ground),
        *(_room(room, does, tops[room]) for room, does in ROOMS.items()),
        *_foundation(ground),
        *(_arrow(pair, tops, shown) for pair in shown),
        _text(LEFT, height - 16, 12, PLAIN, _LEGEND),
        "</svg>",
    ]
    return "\n".join([*parts, ""])


_LEGEND = (
    "An arrow points from a room to one that it imports from. Arrows that go by a room between "
    "are left out; none points up."
)


def _shell(ground: int) -> list[str]:
    """Draw roof and walls."""
    middle = (LEFT + RIGHT) / 2
    eaves = FIRST - 12
    roof = f"{LEFT - 22},{eaves} {middle},22 {RIGHT + 22},{eaves}"
    return [
        f'<polygon points="{roof}" fill="#f3efe9" stroke="{FAINT}" stroke-linejoin="round"/>',
        _text(middle, 64, 20, INK, "searchlab", weight=600, anchor="middle"),
        f'<rect x="{LEFT - 8}" y="{eaves}" width="{RIGHT - LEFT + 16}" '
        f'height="{ground - eaves}" fill="#fbfaf8" stroke="{FAINT}"/>',
    ]


def _room(room: str, does: str, top: int) -> str:
    hue = HUES.get(room, PLAIN)
    box = f'x="{LEFT}" y="{top}" height="{ROOM}" rx="4"'
    return "\n".join(
        [
            f'<rect {box} width="{RIGHT - LEFT}" fill="{hue}" fill-opacity="0.09"/>',
            f'<rect {box} width="5" fill="{hue}"/>',
            _text(LEFT + 18, top + 22, 15, hue, room, weight=600),
            _text(LEFT + 120, top + 22, 13, INK, does.replace("`", "")),
        ]
    )


def _foundation(ground: int) -> list[str]:
    """Draw the modules at the root of the package, below all rooms."""
    stems = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")
    return [
        f'<rect x="{LEFT - 8}" y="{ground}" width="{RIGHT - LEFT + 16}" height="32" '
        f'fill="#e9eaed" stroke="{FAINT}"/>',
        _text(LEFT + 18, ground + 21, 13, PLAIN, "under all: " + ", ".join(stems)),
    ]


def _arrow(pair: tuple[str, str], tops: dict[str, int], shown: list[tuple[str, str]]) -> str:
    """Draw an arc on the right side of the house; it is wider if it passes more floors."""
    hue = HUES.get(pair[0], PLAIN)
    y1, y2 = (tops[room] + _port(pair, room, shown) for room in pair)
    x = RIGHT + 10
    bulge = x + 14 + 0.68 * abs(y2 - y1)
    return (
        f'<path d="M{x} {y1:g} C{bulge:g} {y1:g} {bulge:g} {y2:g} {x + 8} {y2:g}" fill="none" '
        f'stroke="{hue}" stroke-width="1.8"/>'
        f'<path d="M{x} {y2:g} l10 -4.5 v9 z" fill="{hue}"/>'
    )


def _port(pair: tuple[str, str], room: str, shown: list[tuple[str, str]]) -> float:
    """Return how far below a room's top an arrow begins or ends there, so that none cross."""
    # Arrows that end here are above those that begin here; short ones are on the outside.
    incoming = [ends for ends in reversed(shown) if ends[1] == room]
    outgoing = [ends for ends in reversed(shown) if ends[0] == room]
    ports = incoming + outgoing
    return round(ROOM * (ports.index(pair) + 1) / (len(ports) + 1), 1)


def _text(
    x: float, y: float, size: int, fill: str, text: str, *, weight: int = 400, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(text, quote=False)}</text>'
    )


def main() -> None:
    """Write the drawing."""
    DRAWING.write_text(draw(), encoding="utf-8")
    print(DRAWING)


if __name__ == "__main__":
    main()
