"""Read the photographs of Debian's `gcompris-qt-data`: their bytes, credits, texts and words.

Pictures, the credits beside them (`README`) and words in 44 languages (`content-*.json`) lie in Qt
resource files (`.rcc`), translations of messages in `.qm` files. Which pictures are photographs is
listed by hand in `demo/gcompris.tsv`; where it gives no title, the activity's own is taken.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from searchlab.photos.licenses import license_url, normal_license

PACKAGE = "gcompris-qt-data"
RESOURCES = ("categorization", "clickgame", "erase", "explore_farm_animals", "explore_monuments",
             "explore_world_animals", "explore_world_music", "lang")  # fmt: skip
ROOT = "gcompris/src/activities"
CATEGORIES = {
    "categorization/resource/images/fishes": ("Fishes",),
    "categorization/resource/images/monuments": ("Monuments",),
    "categorization/resource/images/others": ("Objects",),
    "categorization/resource/images/renewable": ("Renewable energy",),
    "categorization/resource/images/tools": ("Tools",),
    "clickgame/resource": ("Sea",),
    "erase/resource": ("Animals",),
    "explore_farm_animals/resource/animals": ("Animals", "Farm"),
    "explore_monuments/resource/egypt": ("Monuments", "Egypt"),
    "explore_monuments/resource/france": ("Monuments", "France"),
    "explore_monuments/resource/germany": ("Monuments", "Germany"),
    "explore_monuments/resource/india": ("Monuments", "India"),
    "explore_monuments/resource/usa": ("Monuments", "United States"),
    "explore_monuments/resource/wonders": ("Monuments", "World wonders"),
    "explore_world_animals/resource/animals": ("Animals",),
    "explore_world_music/resource/music": ("Music",),
}
MESSAGES = {"Fishes": "Fishes", "Monuments": "Monuments", "Renewable energy": "Renewable",
            "Tools": "Tools"}  # fmt: skip
"""Category -> the message that names it; those of the activity that sorts photos by category."""
_MISSPELT = {"screDriver.webp": "screwDriver.webp", "audaPalatina.webp": "aulaPalatina.webp"}
_STRING = r'"((?:[^"\\]|\\.)*)"'


class Credit(NamedTuple):
    """Who made a picture, under which licence, and where it was found."""

    author: str
    license_type: str
    address: str


def is_needed(name: str) -> bool:
    """Whether a file of the package is read, by its path inside."""
    path = PurePosixPath(name)
    return path.suffix == ".qm" or (path.suffix == ".rcc" and path.stem in RESOURCES)


def read_rcc(data: bytes) -> dict[str, bytes]:
    """Return the files of a Qt resource file by their paths inside; versions 1 to 3.

    Raises:
        ValueError: It is another kind of file, or compressed by another way than zlib.
    """
    magic, version, tree, blobs, names = struct.unpack_from(">4sIIII", data)
    if magic != b"qres" or version not in (1, 2, 3):
        msg = f"a resource file must begin with qres and a version from 1 to 3, got {data[:8]!r}"
        raise ValueError(msg)
    size = 14 if version == 1 else 22
    files = {}
    todo = [(0, "")]
    while todo:
        number, folder = todo.pop()
        at = tree + size * number
        name_at, flags = struct.unpack_from(">IH", data, at)
        (length,) = struct.unpack_from(">H", data, names + name_at)
        start = names + name_at + 6  # after the length and a hash
        name = data[start : start + 2 * length].decode("utf-16-be") if number else ""
        path = f"{folder}/{name}".lstrip("/")
        if flags & 2:
            count, first = struct.unpack_from(">II", data, at + 6)
            todo += [(first + i, path) for i in range(count)]
            continue
        (blob,) = struct.unpack_from(">I", data, at + 10)
        (length,) = struct.unpack_from(">I", data, blobs + blob)
        content = data[blobs + blob + 4 : blobs + blob + 4 + length]
        if flags & 4:
            msg = f"{path} must be stored plain or by zlib, got zstd"
            raise ValueError(msg)
        files[path] = zlib.decompress(content[4:]) if flags & 1 else content
    return files


def read_qm(data: bytes) -> dict[str, str]:
    """Return the translations of a compiled Qt translation file by their English messages.

    Of a message that stands in several places the first translation is taken.
    """
    sections, at = {}, 16
    while at < len(data):
        tag, length = struct.unpack_from(">BI", data, at)
        sections[tag] = data[at + 5 : at + 5 + length]
        at += 5 + length
    hashes, messages = sections.get(0x42, b""), sections.get(0x69, b"")
    translations: dict[str, str] = {}
    for (at,) in struct.iter_unpack(">4xI", hashes):
        source = translation = ""
        while messages[at] != 1:
            tag, length = struct.unpack_from(">BI", messages, at)
            at += 5
            if tag == 5 or length == 0xFFFFFFFF:
                continue
            text = messages[at : at + length]
            at += length
            if tag == 3 and not translation:
                translation = text.decode("utf-16-be")
            elif tag == 6:
                source = text.decode()
        if source and translation:
            translations.setdefault(source, translation)
    return translations


def read_credits(readme: str) -> dict[str, Credit]:
    """Return who made each file that a README names, as far as licence and address are told."""
    found = {}
    for paragraph in re.split(r"\n\s*\n", readme):
        lines = paragraph.strip().splitlines()
        fields: dict[str, str] = {}
        name = ""
        for line in lines:
            head = re.match(r"(Copyright|License|Source|Files|Comments?):\s*(.*)", line)
            if head:
                name = head[1]
            fields[name] = f"{fields.get(name, '')}\n{head[2] if head else line}"
        values = {key: value.strip() for key, value in fields.items()}
        license_type = _license(values.get("License", ""))
        address = values.get("Source", "")
        if license_type and address.startswith("http"):
            credit = Credit(_author(values.get("Copyright", "")), license_type, address)
            for file in values.get("Files", "").split():
                found[_MISSPELT.get(PurePosixPath(file).name, PurePosixPath(file).name)] = credit
    return found


def _license(said: str) -> str:
    if said.startswith("GPLv2+"):
        return "gpl-2.0-or-later"
    return normal_license(re.sub(r"(?<=\w) (?=\d)", "-", said))


def _author(said: str) -> str:
    name = re.sub(r"^©?\s*(?:\d{4},?\s*)?|,\s*\d{4}$|\s*/ Wikimedia Commons$", "", said.strip())
    return "Anonymous" if name.lower() == "anonymous" else name


class Gcompris:
    """What the package holds.

    Attributes:
        files: Path below the activities -> bytes.
        messages: Locale -> English message -> translation.
    """

    def __init__(self, members: Mapping[str, bytes]) -> None:
        self.files: dict[str, bytes] = {}
        self.messages: dict[str, dict[str, str]] = {}
        for name, data in sorted(members.items()):
            path = PurePosixPath(name)
            if path.suffix == ".qm":
                self.messages[path.stem.removeprefix("gcompris_")] = read_qm(data)
            else:
                entries = read_rcc(data).items()
                self.files |= {p.removeprefix(f"{ROOT}/"): content for p, content in entries}
        self.messages.pop("en_GB", None)
        self._credits = {
            path.removesuffix("/README"): read_credits(data.decode())
            for path, data in self.files.items()
            if path.endswith("/README")
        }
        self._boards: dict[str, tuple[str, str]] = {}
        for path, data in self.files.items():
            if path.startswith("explore_") and path.endswith(".qml"):
                self._read_board(data.decode())

    def _read_board(self, text: str) -> None:
        for block in text.split("{"):
            said = dict(re.findall(rf'"(title|text|image2)":\s*(?:qsTr\()?{_STRING}', block))
            if said.keys() == {"title", "text", "image2"}:
                picture = said["image2"].split(f"{ROOT}/", 1)[1].removesuffix(".webp")
                self._boards[picture] = said["title"], said["text"].replace('\\"', '"')

    def words(self, locale: str) -> dict[str, str]:
        """Return what things are called in a language, by their English keys; empty if unknown."""
        data = self.files.get(f"lang/resource/content-{locale}.json", b"{}")
        return {key.removesuffix(".ogg"): text for key, text in json.loads(data).items()}

    def readmes(self, paths: Iterable[str]) -> str:
        """Return the credits as upstream tells them, of the folders that the paths are in."""
        places = {
            place for path in paths for place in self._credits if path.startswith(f"{place}/")
        }
        texts = (f"{place}\n{'=' * len(place)}\n{self.files[f'{place}/README'].decode().strip()}\n"
                 for place in sorted(places))  # fmt: skip
        return "\n".join(texts)

    @property
    def locales(self) -> list[str]:
        """Languages that words or messages are in, English first; British English is not told."""
        names = [PurePosixPath(path).stem for path in self.files if "/content-" in path]
        found = {name.removeprefix("content-") for name in names} | self.messages.keys()
        return ["en", *sorted(found - {"en", "en_GB"})]

    def record(self, path: str, title: str) -> dict[str, Any]:
        """Return the record of a photo, without `file`.

        Args:
            path: Below the activities, without the ending.
            title: Its title; empty for that of the activity.

        Raises:
            KeyError: There is no such picture, no credit for it, or no title.
        """
        folder, _, name = path.rpartition("/")
        credit = next(
            known[f"{name}.webp"]
            for place, known in self._credits.items()
            if folder.startswith(place) and f"{name}.webp" in known
        )
        board_title, board_text = self._boards.get(path, ("", ""))
        group = {"clickgame/resource": "sea", "erase/resource": "animals"}.get(
            folder,
            folder.rsplit("/", 1)[-1] if "animals" not in folder else folder.split("_")[1],
        )
        return {
            "source": PACKAGE,
            "source_photo_id": f"gcompris-{group}-{re.sub(r'[^a-z0-9]+', '-', name.lower())}",
            "source_image_url": credit.address,
            "photographer_username": None,
            "photographer_full_name": credit.author,
            "photographer_url": None,
            "title": title or board_title,
            "source_description": board_text or _page_title(credit.address) or title,
            "alt_description": None,
            "license_type": credit.license_type,
            "license_url": license_url(credit.license_type),
            "uploaded_on": None,
            "tags": list(CATEGORIES[folder]),
        }


def _page_title(address: str) -> str:
    """Return what the page of a photo is called: the name of its file there."""
    parts = urlsplit(address)
    picture = parse_qs(parts.query).get("picture")
    if picture:
        return picture[0].replace("-", " ").capitalize()
    if "/File:" not in parts.path:
        return ""
    name = unquote(parts.path.split("/File:", 1)[1]).replace("_", " ")
    return re.sub(r"\.(?:jpe?g|png)$", "", name, flags=re.IGNORECASE)
