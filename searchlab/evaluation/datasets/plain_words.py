"""Plain English words for what is seen in everyday photos, and the forms that they take."""

from __future__ import annotations

from typing import Final

_LISTED = (
    "dog puppy horse bird cat cow fish child baby boy girl man woman crowd rider climber "
    "surfer skier snowboarder skateboarder cyclist swimmer biker runner dancer player team "
    "bride lady hand face head hair beard hat cap helmet glove shirt jacket coat dress skirt "
    "pants shorts shoe boot scarf vest costume uniform sunglasses goggles backpack bag collar "
    "leash harness necklace ball frisbee football basketball soccer tennis bat racket guitar "
    "drum camera phone umbrella flag sign balloon toy swing slide seesaw trampoline ladder "
    "rope bicycle motorcycle car truck bus train boat kayak canoe raft surfboard skateboard "
    "snowboard sled wagon cart bench chair table couch bed window door stairs railing fence "
    "gate bridge tower building house church statue fountain street road sidewalk path trail "
    "track ramp hurdle obstacle playground park stadium arena beach shore ocean wave sea lake "
    "river stream waterfall pool puddle water ice snow sand mud grass field hill mountain "
    "cliff rock forest tree bush flower leaf log stick branch sky sunset cloud fire smoke "
    "bubble food cake drink bottle cup book newspaper picnic market restaurant store tent "
    "rooftop tunnel desert carousel parade wedding race concert"
)

WORDS: Final = tuple(_LISTED.split())

_IRREGULAR: Final = {
    "bush": "bushes",
    "child": "children",
    "fish": "fishes",
    "leaf": "leaves",
    "man": "men",
    "person": "people",
    "woman": "women",
}


def forms_of(word: str) -> frozenset[str]:
    """Return a noun in the singular and in the plural."""
    plural = _IRREGULAR.get(word, f"{word}s")
    if word not in _IRREGULAR and word.endswith(("ch", "sh", "s", "x")):
        plural = f"{word}es"
    elif word.endswith("y") and word[-2] not in "aeiou":
        plural = f"{word[:-1]}ies"
    return frozenset({word, plural})
