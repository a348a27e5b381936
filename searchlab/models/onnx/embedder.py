"""Models that `searchlab.models.onnx.export` wrote, run by onnxruntime without torch.

A folder holds both towers, tokenizer, preprocessing and a manifest with the SHA-256 of each file
and with canaries. Reading the manifest is all that happens until a tower is used: then its file is
checked against its hash, loaded, and its canaries are embedded.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from PIL import Image

from searchlab.errors import DataError, InputError, NotFoundError
from searchlab.files import sha256_of
from searchlab.models.batching import group_by_length
from searchlab.models.canaries import Canary, canary_image, check_canaries
from searchlab.models.onnx.clip_text import ClipTokenizer
from searchlab.models.preprocess import Preprocess
from searchlab.models.protocol import (
    Embedder,
    Embeddings,
    readable_texts,
    rgb_images,
    short_hash,
    unit_rows,
)

SCHEMA: Final = 1
MANIFEST: Final = "manifest.json"
MAX_TEXT: Final = 2_000
"""Code points of a text that are read, as in `searchlab.models.openclip.embedder`."""

_BATCH = 32
_PRECISIONS = ("fp32", "int8")


class OnnxEmbedder(Embedder):
    """An exported model.

    Args:
        folder: What `export_onnx` wrote.
        precision: `"fp32"` or `"int8"`; by default what the manifest recommends. An int8 model
            embeds one input at a time: its activations are scaled by the batch, and a vector must
            not depend on its neighbours.

    Raises:
        NotFoundError: The folder holds no export.
        InputError: It holds no such precision.
        DataError: The manifest is damaged or of another version. Damaged towers show on first use.
    """

    def __init__(self, folder: str | Path, *, precision: str | None = None) -> None:
        # The whole path, since a library with this model is opened from other folders too.
        self._folder = Path(folder).expanduser().resolve()
        manifest = _read_manifest(self._folder)
        try:
            self._precision = precision or manifest["default"]
            self._files: dict[str, str] = manifest["files"]
            self._towers: dict[str, dict[str, Any]] = manifest["precisions"].get(
                self._precision, {}
            )
            self._tokenizer_file = manifest["tokenizer"]
            self._context_length = int(manifest["context_length"])
            self.preprocess = Preprocess.from_config(manifest["preprocess"])
            self.dim = int(manifest["dim"])
            short = re.sub(r"[^A-Za-z0-9]+", "-", manifest["architecture"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _damage(self._folder / MANIFEST, f"{type(error).__name__}: {error}") from error
        if not self._towers:
            listed = " or ".join(sorted(manifest["precisions"]))
            msg = f"the precision of {self._folder} must be {listed}, got {precision!r}"
            if self._precision in manifest.get("refused", {}):
                figures = manifest["refused"][self._precision]
                agreement = ", ".join(f"{name} {value}" for name, value in figures.items())
                msg += f", which was not kept because it agreed too little with torch ({agreement})"
            raise InputError(msg)
        # An explicit precision stays in the name; the default may differ in the next export.
        self.name = f"onnx:{self._folder}" + (f":{precision}" if precision else "")
        self.reads: Literal["image", "text"] = "image"
        self.input_size = min(self.preprocess.height, self.preprocess.width)
        self.model_id = f"onnx-{short}-{self._precision}-{self._digest()}"
        self._lock = threading.Lock()
        self._sessions: dict[str, Any] = {}
        self._tokenizers: dict[str, ClipTokenizer] = {}

    @property
    def folder(self) -> Path:
        """Where the export lies."""
        return self._folder

    @property
    def precision(self) -> str:
        """`"fp32"` or `"int8"`."""
        return self._precision

    def fingerprints(self) -> dict[str, str]:
        """Hash what the manifest records of both towers, preprocessing and tokenizer.

        The files are compared with it when they are first used.
        """
        towers = [self._files[self._towers[tower]["file"]] for tower in ("text", "image")]
        tokenizer = [self._files[self._tokenizer_file], self._context_length]
        return {
            "weights": short_hash(json.dumps(towers)),
            "preprocessing": short_hash(json.dumps(self.preprocess.to_config(), sort_keys=True)),
            "tokenizer": short_hash(json.dumps(tokenizer)),
        }

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed queries; (n_texts, dim).

        Raises:
            DataError: The text tower or the tokenizer is damaged.
            MismatchError: The text tower does not reproduce its canaries.
        """
        readable = readable_texts(texts, max_length=MAX_TEXT)
        self._prepare("text")
        return self._text_rows(readable)

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed RGB pictures of any size; (n_images, dim).

        Raises:
            DataError: The image tower is damaged.
            MismatchError: The image tower does not reproduce its canaries.
        """
        pictures = rgb_images(images)
        self._prepare("image")
        return self._image_rows(pictures)

    def _digest(self) -> str:
        used = [self._towers["text"]["file"], self._towers["image"]["file"], self._tokenizer_file]
        identity = [self._files[file] for file in used]
        settings = [identity, self.preprocess.to_config(), self._context_length]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]

    def _prepare(self, tower: str) -> None:
        """Load a tower on its first use, and check that it is the one that was exported."""
        with self._lock:
            if tower in self._sessions:
                return
            session = self._session(self._towers[tower]["file"])
            if tower == "text":
                file = self._check_tower(self._tokenizer_file)
                tokenizer = ClipTokenizer(file, context_length=self._context_length)
                self._tokenizers[tower] = tokenizer
            self._sessions[tower] = session
            try:
                self._check_canaries(tower)
            except Exception:
                del self._sessions[tower]
                raise

    def _session(self, file: str) -> Any:
        import onnxruntime

        path = self._check_tower(file)
        options = onnxruntime.SessionOptions()
        # Threads that wait by spinning take the processor from whatever runs beside the model.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3  # errors only: a user can do nothing about its warnings
        try:
            return onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the errors of onnxruntime have no common base class
            raise _damage(path, f"{type(error).__name__}") from error

    def _check_tower(self, file: str) -> Path:
        path = self._folder / file
        if not path.is_file():
            raise _damage(path, "no such file")
        digest = sha256_of(path)
        if digest != self._files.get(file):
            raise _damage(
                path, f"SHA-256 {digest[:12]}, recorded {str(self._files.get(file))[:12]}"
            )
        return path

    def _check_canaries(self, tower: str) -> None:
        recorded = self._towers[tower]["canaries"]
        canaries = [Canary(probe, tuple(expected)) for probe, expected in recorded]
        if tower == "text":
            rows = self._text_rows([str(canary.probe) for canary in canaries])
        else:
            rows = self._image_rows([canary_image(int(canary.probe)) for canary in canaries])
        check_canaries(f"{self.name}, {tower} tower,", canaries, rows)

    def _text_rows(self, texts: Sequence[str]) -> Embeddings:
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        tokens = self._tokenizers["text"](texts)
        lengths = [len(one) for one in tokens]
        for group in group_by_length(lengths, most=self._at_once):
            length = max(len(tokens[i]) for i in group)
            padded = np.zeros((len(group), length), dtype=np.int64)
            for slot, i in zip(padded, group, strict=True):
                slot[: len(tokens[i])] = tokens[i]
            rows[group] = self._sessions["text"].run(None, {"tokens": padded})[0]
        return unit_rows(rows)

    def _image_rows(self, images: Sequence[Image.Image]) -> Embeddings:
        rows = np.zeros((len(images), self.dim), dtype=np.float32)
        for start in range(0, len(images), self._at_once):
            pixels = self.preprocess.pixels(images[start : start + self._at_once])
            vectors = self._sessions["image"].run(None, {"pixels": pixels})[0]
            rows[start : start + self._at_once] = vectors
        return unit_rows(rows)

    @property
    def _at_once(self) -> int:
        return 1 if self._precision == "int8" else _BATCH


def load_onnx(source: str) -> OnnxEmbedder:
    """Load an export: `FOLDER`, or `FOLDER:fp32` or `FOLDER:int8` to choose the precision."""
    folder, colon, precision = source.rpartition(":")
    if colon and precision in _PRECISIONS:
        return OnnxEmbedder(folder, precision=precision)
    return OnnxEmbedder(source)


def _read_manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    if not file.is_file():
        msg = (
            f"an onnx model must be a folder with {MANIFEST}, got {str(folder)!r}; export it first"
        )
        raise NotFoundError(msg)
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damage(file, str(error)) from error
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        schema = manifest.get("schema") if isinstance(manifest, dict) else type(manifest).__name__
        raise _damage(file, f"schema {schema!r}, this version reads {SCHEMA}")
    return manifest


def _damage(path: Path, problem: str) -> DataError:
    msg = f"{path} must be as exported, got {problem}; export the model again"
    return DataError(msg)
