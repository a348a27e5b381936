"""What kinds of thing the tower's classes are: a beagle is also a hound, a dog and an animal.

The kinds come from WordNet's nouns. The tower knows 1,000 names, most of them narrower than what
people search for; with the wider names above them, the named part of a photo's row has both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from searchlab.models.openclip.torchvision_shim import import_torchvision
from searchlab.training.mini.heads import Floats

FEWEST, MOST = 2, 250
"""A kind is kept if it has so many classes: one class is no kind, and hundreds say nothing."""


@dataclass
class Nouns:
    """WordNet's nouns, with the two fields that are needed.

    Attributes:
        names: Offset of a synset -> its first name.
        parents: Offset -> offsets of the synsets of which it is a kind.
    """

    names: dict[str, str] = field(default_factory=dict)
    parents: dict[str, list[str]] = field(default_factory=dict)

    def find_above(self, synset: str) -> dict[str, int]:
        """Find everything that a synset is a kind of, with the least number of steps to it."""
        steps_to: dict[str, int] = {}
        front = [synset]
        steps = 0
        while front:
            steps += 1
            front = [p for s in front for p in self.parents.get(s, []) if p not in steps_to]
            steps_to.update(dict.fromkeys(front, steps))
        return steps_to


def read_nouns(path: Path) -> Nouns:
    """Read `data.noun` of WordNet 3.0 (Debian's wordnet-base)."""
    nouns = Nouns()
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith(" "):  # The licence.
                continue
            fields = line.split(" | ")[0].split()
            count = int(fields[3], 16)
            nouns.names[fields[0]] = fields[4].replace("_", " ")
            pointers = fields[4 + 2 * count + 1 :]
            nouns.parents[fields[0]] = [
                pointers[at + 1]
                for at in range(0, 4 * int(fields[4 + 2 * count]), 4)
                if pointers[at] in ("@", "@i")
            ]
    return nouns


def list_class_synsets() -> list[str]:
    """List the offsets of the 1,000 ImageNet classes in the order of the tower's logits."""
    import_torchvision()
    from timm.data import ImageNetInfo

    info = ImageNetInfo()
    return [info.index_to_label_name(n)[1:] for n in range(info.num_classes())]


def find_kinds(nouns: Nouns, classes: Sequence[str]) -> tuple[list[str], Floats]:
    """Find the kinds that classes are of.

    Args:
        nouns: WordNet.
        classes: Offsets of the classes.

    Returns:
        Names of the kinds, and (n_classes, n_kinds) ones where a class is of a kind, else zeros.
    """
    above = [nouns.find_above(synset) for synset in classes]
    members = Counter(kind for kinds in above for kind in kinds)
    chosen_kinds = sorted(kind for kind, count in members.items() if FEWEST <= count <= MOST)
    column = {kind: number for number, kind in enumerate(chosen_kinds)}
    memberships = np.zeros((len(classes), len(chosen_kinds)), dtype=np.float32)
    for row, kinds in zip(memberships, above, strict=True):
        row[[column[kind] for kind in kinds if kind in column]] = 1
    return [nouns.names[kind] for kind in chosen_kinds], memberships
