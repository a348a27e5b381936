"""Writes a model folder as a wheel, which pip installs and whose name is then a model spec.

my_model-1.0-py3-none-any.whl
    searchlab_model_my_model/__init__.py    calls `open_packed`
    searchlab_model_my_model/packed.json    kind, model_id, and the vectors of two probes
    searchlab_model_my_model/model/         the files of the folder, MODEL_CARD.md among them
    my_model-1.0.dist-info/                 metadata with licence and card, the entry point
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from searchlab import __version__
from searchlab.errors import ConflictError, InputError, NotFoundError
from searchlab.models.adapted import CARD_FILE, HEADS_FILE, MODEL_FILE
from searchlab.models.canaries import CanaryCheck
from searchlab.models.onnx.embedder import MANIFEST
from searchlab.models.packed import FOLDER, PACKED_FILE
from searchlab.models.protocol import Embedder
from searchlab.models.registry import MODELS, construct_model

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_VERSION: Final = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?")
_LICENSE: Final = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")
_LICENSE_FILES: Final = ("LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # so that equal models are equal wheels
_BASES_OF_OTHERS: Final = ("mini", "palette", "openclip")


def pack_model(
    folder: Path | str,
    out: Path | str,
    *,
    name: str,
    license_id: str,
    license_file: Path | None = None,
    card: Path | None = None,
    version: str = "1.0",
) -> Path:
    """Write a wheel of an `onnx:` or `adapted:` folder.

    Args:
        folder: What `searchlab models export` or `searchlab models adapt` wrote.
        out: Folder of the wheel.
        name: What the model is called once the wheel is installed.
        license_id: SPDX expression of the weights' licence, such as `"Apache-2.0"`.
        license_file: Its text; a LICENSE in the folder if left out, if there is one.
        card: Model card; MODEL_CARD.md in the folder if left out, or else a short one is written.
        version: Of the wheel.

    Returns:
        The wheel.

    Raises:
        InputError: The folder holds no such model, a name, version or licence is malformed, or the
            model stands on another folder, which the wheel could not bring along.
        NotFoundError: A file is not there.
        ConflictError: The name is that of a model that ships with searchlab.
    """
    place = Path(folder).expanduser().resolve()
    _check_names(name, version, license_id)
    kind, files = _files_of(place)
    model = construct_model(f"{kind}:{place}")
    base = getattr(model, "base", None)
    if isinstance(base, Embedder) and base.name.partition(":")[0] not in _BASES_OF_OTHERS:
        msg = (
            f"{place} must stand on a model that others have too, one of "
            f"{', '.join(_BASES_OF_OTHERS)}, got {base.name}; a wheel holds one folder"
        )
        raise InputError(msg)
    package = f"searchlab_model_{re.sub('[^a-z0-9]+', '_', name)}"
    text = _card(card, place, model, license_id)
    contents = {f"{package}/{FOLDER}/{file}": (place / file).read_bytes() for file in files}
    contents[f"{package}/{FOLDER}/{CARD_FILE}"] = text.encode()
    contents[f"{package}/{PACKED_FILE}"] = _packed(kind, model)
    contents[f"{package}/__init__.py"] = _INIT.format(name=name).encode()
    licences = _licence(license_file, place)
    return _write_wheel(Path(out), package, name, version, license_id, licences, text, contents)


def _check_names(name: str, version: str, license_id: str) -> None:
    rules = (
        ("name", name, _NAME, "a lower-case word"),
        ("version", version, _VERSION, "numbers with points, such as 1.0"),
        ("licence", license_id, _LICENSE, "an SPDX expression, such as Apache-2.0"),
    )
    for what, value, form, words in rules:
        if not form.fullmatch(value):
            msg = f"the {what} must be {words}, got {value!r}"
            raise InputError(msg)
    if name in MODELS:
        msg = f"the name of a model must be free, got {name!r}; choose another"
        raise ConflictError(msg)


def _files_of(place: Path) -> tuple[str, list[str]]:
    """Tell what kind of model a folder holds, and which of its files belong to it."""
    if (place / MANIFEST).is_file():
        manifest = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
        return "onnx", [MANIFEST, *sorted(manifest["files"])]
    if (place / HEADS_FILE).is_file():
        return "adapted", [MODEL_FILE, HEADS_FILE]
    msg = (
        f"{place} must be a folder of `searchlab models export` or `searchlab models adapt`, "
        f"got neither {MANIFEST} nor {HEADS_FILE}"
    )
    raise InputError(msg)


def _packed(kind: str, model: Embedder) -> bytes:
    values = {
        "kind": kind,
        "model_id": model.model_id,
        "canaries": CanaryCheck.record(model),
        "searchlab": __version__,
    }
    return (json.dumps(values, indent=1) + "\n").encode()


def _card(card: Path | None, place: Path, model: Embedder, license_id: str) -> str:
    path = card or place / CARD_FILE
    if path.is_file():
        return path.read_text(encoding="utf-8")
    if card is not None:
        msg = f"the card must be a file, got none at {card}"
        raise NotFoundError(msg)
    return (
        f"# {model.model_id}\n\n{model.dim} components, pictures of {model.input_size} pixels a "
        f"side or more. Licence of the weights: {license_id}.\n\nNobody wrote a card for this "
        "model: what it was trained on, and what it must not be used for, is not known.\n"
    )


def _licence(license_file: Path | None, place: Path) -> dict[str, bytes]:
    if license_file is not None and not license_file.is_file():
        msg = f"the licence must be a file, got none at {license_file}"
        raise NotFoundError(msg)
    there = [place / name for name in _LICENSE_FILES if (place / name).is_file()]
    chosen = there[:1] if license_file is None else [license_file]
    return {path.name: path.read_bytes() for path in chosen}


_INIT: Final = '''"""The model {name!r} for searchlab."""

from pathlib import Path


def load():
    """Load the model, and check that it embeds its probes as when it was packed."""
    from searchlab.models.packed import open_packed

    return open_packed({name!r}, Path(__file__).parent)
'''


def _write_wheel(
    out: Path,
    package: str,
    name: str,
    version: str,
    license_id: str,
    licences: Mapping[str, bytes],
    card: str,
    contents: dict[str, bytes],
) -> Path:
    stem = f"{re.sub('[-_.]+', '_', name)}-{version}"
    info = f"{stem}.dist-info"
    head = [
        "Metadata-Version: 2.4",
        f"Name: {name}",
        f"Version: {version}",
        f"Summary: The model {name} for searchlab",
        f"License-Expression: {license_id}",
        *(f"License-File: {file}" for file in licences),
        f"Requires-Dist: searchlab>={__version__}",
        "Description-Content-Type: text/markdown",
    ]
    contents |= {f"{info}/licenses/{file}": data for file, data in licences.items()}
    contents[f"{info}/METADATA"] = ("\n".join(head) + f"\n\n{card}").encode()
    contents[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: searchlab {__version__}\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n"
    ).encode()
    contents[f"{info}/entry_points.txt"] = (
        f"[searchlab.models]\n{name} = {package}:load\n"
    ).encode()
    contents[f"{info}/RECORD"] = _record(contents, f"{info}/RECORD")
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{stem}-py3-none-any.whl"
    partial = wheel.with_suffix(".part")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data in sorted(contents.items()):
            entry = zipfile.ZipInfo(file, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    partial.replace(wheel)
    return wheel


def _record(contents: Mapping[str, Any], itself: str) -> bytes:
    lines = []
    for file, data in sorted(contents.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{file},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{itself},,\n"]).encode()
