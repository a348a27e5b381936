"""Manifests: what a snapshot says of itself, and the checksums of its files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import msgspec

from searchlab.config import Config
from searchlab.errors import DataError, InputError, damaged_file
from searchlab.files import sha256_of, sync_file
from searchlab.library.roots import Root

FORMAT = 4


class _Sealed(msgspec.Struct):
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class _StoredRoot(msgspec.Struct):
    folder: str
    records: str | None
    source: str
    is_dump: bool = False
    allowed: list[str] = []


class _Manifest(msgspec.Struct):
    """What a manifest must hold; names of files have no folder in them."""

    config: dict[str, Any]
    config_id: str
    n_photos: Annotated[int, msgspec.Meta(ge=0)]
    next_label: Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
    canaries: dict[str, list[float]]
    roots: list[_StoredRoot]
    files: dict[Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9.-]*$")], _Sealed]


def read_manifest(place: Path, *, of_any_format: bool = False) -> dict[str, Any]:
    """Read the manifest of a snapshot.

    Args:
        place: The snapshot.
        of_any_format: Whether to read one of another version too, whose files may differ.

    Raises:
        DataError: It is missing, damaged or of another version.
    """
    path = place / "manifest.json"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise broken(path, str(error)) from error
    return parse_manifest(content, place, of_any_format=of_any_format)


def parse_manifest(content: bytes, place: Path, *, of_any_format: bool = False) -> dict[str, Any]:
    """Check the bytes of the manifest of the snapshot at `place`; see `read_manifest`.

    Raises:
        DataError: It is damaged or of another version; its cause says how.
    """
    try:
        if not place.name.endswith(hashlib.sha256(content).hexdigest()[:8]):
            msg = "another checksum than its folder's name"
            raise ValueError(msg)
        manifest = json.loads(content)
        if manifest["format"] != FORMAT and not of_any_format:
            msg = f"format {manifest['format']}, this searchlab reads {FORMAT}"
            raise ValueError(msg)
        msgspec.convert(manifest, _Manifest)
        Config.from_dict(manifest["config"])
    except (ValueError, KeyError, TypeError, InputError, RecursionError) as error:
        raise broken(place / "manifest.json", str(error)) from error
    return dict(manifest)


def read_roots(place: Path, *, of_any_format: bool = False) -> tuple[Root, ...]:
    """Read which folders a snapshot covers; see `read_manifest`.

    Raises:
        DataError: Its manifest is missing, damaged or of another version.
    """
    return tuple(
        Root(
            Path(root["folder"]),
            root["records"] and Path(root["records"]),
            root["source"],
            is_dump=root.get("is_dump", False),
            allowed=tuple(root.get("allowed", ())),
        )
        for root in read_manifest(place, of_any_format=of_any_format)["roots"]
    )


def root_entry(root: Root) -> dict[str, Any]:
    """Return what a manifest says of a folder or dump."""
    entry: dict[str, Any] = {
        "folder": str(root.folder),
        "records": root.records and str(root.records),
        "source": root.source,
    }
    return entry | ({"is_dump": True, "allowed": list(root.allowed)} if root.is_dump else {})


def check_file(path: Path, sealed: dict[str, Any], *, whole: bool) -> None:
    """Compare a file with its size and, if `whole`, its checksum.

    Raises:
        DataError: They differ.
    """
    try:
        size = path.stat().st_size
        if size != sealed["bytes"]:
            raise broken(path, f"{size:,} bytes instead of {sealed['bytes']:,}")
        if whole and sha256_of(path) != sealed["sha256"]:
            raise broken(path, "another checksum")
    except OSError as error:
        raise broken(path, error.strerror or str(error)) from error


def seal(path: Path) -> dict[str, Any]:
    """Wait until a file is on the disk; returns its size and checksum."""
    sync_file(path)
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}


def broken(path: Path, problem: str) -> DataError:
    """Return the error on a damaged file, with the remedy."""
    return damaged_file(path, "be as it was written", problem)
