"""Derive searchlab's colour families from the XKCD colour survey and the Stitch Fix hierarchy.

    python datasets/colour-names/derive_families.py > searchlab/photos/colors/families.py

1. A name's family is that of its head noun, the last word: "dark forest green" is green. What is
   said with two basic words ("blue/green", "greenblue", "green blue") belongs to neither and is
   left out. A name without a known head ("algae") takes the head of its design colour, then of its
   common colour, in the Stitch Fix hierarchy.
2. `BY_EYE` settles shades which look different from what they are called; see the remarks there.
3. A shade whose five nearest neighbours mostly belong to one other family is left out
   (Wilson, Asymptotic properties of nearest neighbor rules using edited data, 1972).
4. `RAMP`, `CSS` and `DULL` add the grey axis, a few light neutrals and some dull shades of
   photos, where the survey has nothing.
5. Nobody else's prototype lies within 21 units (OKLab times 255) of a family's representative, so
   that the representative passes at tolerance 0.
6. Within a family a shade nearer than 7 units to one already kept is left out.
"""

from __future__ import annotations

import collections
import csv
import math
import sys
from pathlib import Path

Place = tuple[float, float, float]
Labelled = tuple[Place, str, str, str]  # place, shade, name, family

HERE = Path(__file__).parent
NEIGHBOURS = 5
CORE = 21.0
SPACING = 7.0

# In the order of the families; a tie goes to the earlier one. The survey's own shade of the plain
# name, but for gray, white and beige, where its shades are tinted.
REPRESENTATIVES = {
    "black": "#000000",
    "white": "#ffffff",
    "gray": "#707070",
    "beige": "#e0c48c",
    "brown": "#653700",
    "red": "#e50000",
    "orange": "#f97306",
    "yellow": "#ffff14",
    "green": "#15b01a",
    "teal": "#029386",
    "blue": "#0343df",
    "purple": "#7e1e9c",
    "pink": "#ff81c0",
}

HEADS = {
    "black": "black",
    "white": "white",
    "gray": "grey greyish bluegrey gunmetal silver slate steel cement charcoal",
    "beige": "beige tan sand taupe toupe ecru fawn putty parchment mushroom desert sandy "
    "sandstone wheat bland dust cream creme eggshell ivory buff",
    "brown": "brown brownish chocolate cocoa coffee mocha umber sienna siena sepia leather "
    "chestnut hazel mud dirt earth poo poop shit caramel cinnamon russet auburn bronze camel clay",
    "red": "red reddish scarlet crimson maroon ruby cherry burgundy claret carmine blood merlot "
    "bordeaux vermillion vermilion tomato wine cranberry brick rouge lipstick strawberry",
    "orange": "orange orangish orangeish orangered tangerine pumpkin mango apricot peach cotta "
    "terracotta terracota rorange rust amber",
    "yellow": "yellow yellowish mustard gold golden goldenrod rod lemon banana canary dandelion "
    "custard sunflower straw maize butter manilla marigold saffron ochre ocher ocre dandelion",
    "green": "green greenish lime olive mint moss sage fern forest grass pine pea avocado emerald "
    "jade kiwi leaf celadon asparagus pistachio shamrock spearmint evergreen wintergreen viridian "
    "darkgreen lightgreen apple camo drab algae seafoam seaweed celery lichen pear spruce tea snot "
    "booger bile puke vomit swamp soup chartreuse yellowgreen wintergreen",
    "teal": "teal tealish turquoise aqua aquamarine cyan petrol",
    "blue": "blue bluish navy azure azul cobalt sapphire royal cerulean denim ultramarine sky "
    "cornflower darkblue lightblue midnight periwinkle perrywinkle blueberry marine",
    "purple": "purple purplish purpleish purpley purply violet lavender lavendar lilac liliac "
    "eggplant aubergine plum grape amethyst indigo mauve heather wisteria iris orchid urple "
    "barney heliotrope velvet",
    "pink": "pink pinkish pinky rose rosa magenta fuchsia bubblegum carnation watermelon "
    "raspberry cerise salmon blush coral",
}
FAMILY_OF = {word: family for family, words in HEADS.items() for word in words.split()}
BASIC = {f: f for f in REPRESENTATIVES if f != "gray"} | {"grey": "gray"}

# What a shade looks like, where that is not what it is called, or where editing (step 3) would
# empty a small family. Nothing (`None`) where people would not agree.
BY_EYE: dict[str, str | None] = {
    **dict.fromkeys(["black", "almost black", "very dark brown", "dark"], "black"),
    **dict.fromkeys(["white", "pale grey", "off white", "very light pink"], "white"),
    **dict.fromkeys(
        [
            *("grey", "dark grey", "charcoal", "slate grey", "medium grey", "cool grey", "silver"),
            *("warm grey", "light grey", "greyish", "slate", "purplish grey"),
        ],
        "gray",
    ),
    **dict.fromkeys(
        [
            *("tan", "light tan", "taupe", "toupe", "light peach", "pale peach", "camel"),
            *("dark tan", "ecru", "stone", "pale", "very light brown"),
        ],
        "beige",
    ),
    **dict.fromkeys(["dark taupe", "greyish brown", "clay", "light brown"], "brown"),
    **dict.fromkeys(["robin's egg", "robin's egg blue", "light sky blue", "pale blue"], "blue"),
    **dict.fromkeys(["very light blue", "sea blue", "deep sea blue"], "blue"),
    **dict.fromkeys(["light greenish blue", "tiffany blue", "seafoam blue", "aqua blue"], "teal"),
    **dict.fromkeys(["neon blue", "violet blue", "purplish blue", "purpleish blue"], None),
    **dict.fromkeys(["periwinkle", "perrywinkle", "purply blue", "purpley blue"], None),
    **dict.fromkeys(["coral", "pinkish tan", "khaki", "berry", "bluey grey", "velvet"], None),
    **dict.fromkeys(["brownish purple", "purplish brown", "reddish grey", "dark mauve"], None),
    **dict.fromkeys(["brownish pink"], None),
    # A grey with a tint that is plain to see is called by the tint.
    **dict.fromkeys(
        ["greyblue", "light grey blue", "grey blue", "bluegrey", "cloudy blue"], "blue"
    ),
    **dict.fromkeys(["buff"], "yellow"),
    **dict.fromkeys(["steel", "steel grey", "bluish grey", "battleship grey"], None),
    **dict.fromkeys(["grey green", "green grey", "greenish grey", "greeny grey"], None),
}

# The survey has next to no light warm neutrals: these fill the gap, from the colour names of CSS 4.
CSS = {
    "beige": "antiquewhite bisque wheat tan burlywood",
    "purple": "thistle",
    "blue": "lightsteelblue lightblue powderblue",
}

# Nor the dull shades of wood, leaves, sky, sand and skin, so common in photos.
DULL = {
    "brown": ["#3d2d20", "#4d3a2a", "#5f4b39"],
    "green": ["#26331f", "#3d4a33", "#5c6344", "#7d8762"],
    "blue": ["#33405a", "#8fa6c4", "#c3d3e6"],
    "beige": ["#d8c7b5", "#c0ab95"],
    "pink": ["#e6c6c0"],
}

# Nor does it hold the plain grey axis: every so many greys, cut where people stop saying black
# and begin to say white.
RAMP = {
    "black": range(0x00, 0x28, 0x0D),
    "gray": range(0x30, 0xEF, 0x10),
    "white": range(0xF5, 0x100, 0x0A),
}


def heads(name: str) -> set[str]:
    """Families of a name: one by its head noun, two if it joins two basic words."""
    words = name.replace("/", " ").split()
    for basic in BASIC:  # "greenblue" joins two as "green blue" does.
        if words[-1] != basic and words[-1].endswith(basic) and words[-1][: -len(basic)] in BASIC:
            words[-1:] = [words[-1][: -len(basic)], basic]
    joined = {BASIC[word] for word in words if word in BASIC}
    if len(joined) > 1:
        return joined
    return {FAMILY_OF[words[-1]]} if words[-1] in FAMILY_OF else set()


def label(row: dict[str, str]) -> str | None:
    """Family of one row of the hierarchy, or nothing where it belongs to none or to two."""
    name = row["xkcd_color"]
    if name in BY_EYE:
        return BY_EYE[name]
    for said in (name, row["design_color"], row["common_color"]):
        found = heads(said)
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def oklab(shade: str) -> Place:
    """OKLab times 255, written out so that this script needs nothing but Python."""
    r, g, b = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (int(shade[i : i + 2], 16) / 255 for i in (1, 3, 5))
    )
    l_ = math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
    m_ = math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
    s_ = math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
    return (
        255 * (0.2104542553 * l_ + 0.7936177850 * m_ - 0.0040720468 * s_),
        255 * (1.9779984951 * l_ - 2.4285922050 * m_ + 0.4505937099 * s_),
        255 * (0.0259040371 * l_ + 0.7827717662 * m_ - 0.8086757660 * s_),
    )


def derive() -> dict[str, list[tuple[str, str]]]:
    """Family -> its prototypes as (shade, survey name)."""
    with (HERE / "stitchfix_colornamer_hierarchy.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (HERE / "css4_148.tsv").open(encoding="utf-8") as file:
        css = dict(line.rstrip("\n").split("\t") for line in file)
    shades = [(row["xkcd_color_hex"], row["xkcd_color"], label(row)) for row in rows]
    labelled = [(oklab(s), s, name, family) for s, name, family in shades if family]
    added = [(f"#{v:02x}{v:02x}{v:02x}", f) for f, levels in RAMP.items() for v in levels]
    added += [(shade, f) for f, shades in DULL.items() for shade in shades]
    added += [(css[name], f) for f, names in CSS.items() for name in names.split()]
    wanted = [(oklab(h), h, "its representative", f) for f, h in REPRESENTATIVES.items()]
    wanted += [(oklab(h), h, "added", f) for h, f in added]
    # By-eye decisions and plain names first, then the rest in the order of the survey.
    labelled.sort(key=lambda it: (it[2] not in BY_EYE, len(it[2].split())))
    wanted += [it for it in labelled if it[2] in BY_EYE or agrees(*it, labelled=labelled)]

    cores = {f: oklab(h) for f, h in REPRESENTATIVES.items()}
    kept: dict[str, list[tuple[str, str]]] = {family: [] for family in REPRESENTATIVES}
    places: dict[str, list[Place]] = {family: [] for family in REPRESENTATIVES}
    for place, shade, name, family in wanted:
        in_core = any(math.dist(place, c) < CORE for f, c in cores.items() if f != family)
        repeats = any(math.dist(place, other) < SPACING for other in places[family])
        if not in_core and not repeats:
            kept[family].append((shade, name))
            places[family].append(place)
    return kept


def agrees(place: Place, shade: str, name: str, family: str, *, labelled: list[Labelled]) -> bool:
    """Whether no other family holds the majority of the nearest neighbours."""
    others = sorted((math.dist(place, p), f) for p, s, _, f in labelled if s != shade)
    votes = collections.Counter(f for _, f in others[:NEIGHBOURS])
    winner, count = votes.most_common(1)[0]
    return winner == family or count <= NEIGHBOURS // 2


def render(kept: dict[str, list[tuple[str, str]]]) -> str:
    """Python source of `searchlab.photos.colors.families`."""
    lines = [
        '"""The colour families and their prototype shades, as data.',
        "",
        "Written by `datasets/colour-names/derive_families.py`, which says how; edit that.",
        "Shades: XKCD colour survey (CC0), grouped with the help of the Stitch Fix hierarchy of",
        "colour names (Apache-2.0), and a few others.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        "# Name -> the one shade that stands for it. A tie goes to the earlier family.",
        "FAMILIES: Final[dict[str, str]] = {",
        *(f'    "{name}": "{shade}",' for name, shade in REPRESENTATIVES.items()),
        "}",
        "",
        "# fmt: off",
        "PROTOTYPES: Final[dict[str, tuple[str, ...]]] = {",
    ]
    for family, shades in kept.items():
        lines.append(f'    "{family}": (')
        quoted = [f'"{shade}",' for shade, _ in sorted(shades)]
        lines.extend("        " + " ".join(quoted[i : i + 8]) for i in range(0, len(quoted), 8))
        lines.append("    ),")
    lines += ["}", "# fmt: on", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(render(derive()))
