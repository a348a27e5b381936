"""Any model of open_clip: its image and its text tower, run by torch."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from PIL import Image

from searchlab.models.batching import group_by_length
from searchlab.models.openclip.weights import (
    import_open_clip,
    is_checkpoint,
    load_tokenizer,
    load_weights,
    quiet,
    split_source,
)
from searchlab.models.preprocess import Preprocess
from searchlab.models.protocol import (
    Embedder,
    Embeddings,
    readable_texts,
    rgb_images,
    short_hash,
    unit_rows,
)

MAX_TEXT: Final = 2_000
"""Code points of a text that are read; a context holds some 77 tokens anyway."""

_PRECISIONS: Final = ("bf16", "fp16")
_BATCH: Final = 32
_ACCELERATED_BATCH: Final = 128
_MOST_CACHED_WORDS: Final = 100_000


class OpenClipEmbedder(Embedder):
    """A model of open_clip.

    Args:
        source: What follows `openclip:` in a spec: `ARCH/random`, `ARCH/random-SEED`, `ARCH/TAG`,
            `ARCH/path/to/checkpoint` or `hf-hub:ORGANISATION/MODEL`. With `:bf16` or `:fp16` behind
            it, pictures are embedded in that precision, which moves their rows a little and so
            gives another `model_id`; texts stay in float32.
        device: Where to compute: `"cpu"`, `"cuda"`, `"mps"`, `"auto"`...; the variable
            `SEARCHLAB_DEVICE` if left out, else the processor. It is no part of the model.

    Raises:
        MissingExtraError: torch or open_clip is not installed.
        InputError: open_clip knows no such architecture or tag, a file is of another one, or there
            is no such device.
        NotFoundError: A file is not there, or a download failed.
        DataError: A file is damaged.

    Attributes:
        precision: Precision of the image tower: `"fp32"`, `"bf16"` or `"fp16"`.
        images_at_once: How many pictures are best embedded in one call.
    """

    def __init__(self, source: str, *, device: str | None = None) -> None:
        self.name = f"openclip:{source}"
        open_clip = import_open_clip()
        from searchlab.models.devices import Feed, choose_device

        self._device = choose_device(device)
        rest, colon, precision = source.rpartition(":")
        if not colon or precision not in _PRECISIONS:
            rest, precision = source, "fp32"
        architecture, weights = split_source(rest)
        if is_checkpoint(weights):  # the whole path: a library is opened from other folders too
            weights = str(Path(weights).expanduser().resolve())
            self.name = f"openclip:{architecture}/{weights}{source[len(rest) :]}"
        with quiet():
            self._model = load_weights(open_clip, architecture, weights)
            self._tokenizer = load_tokenizer(open_clip, architecture)
        self._config = open_clip.get_model_config(architecture)
        self._model.eval().requires_grad_(False)
        self.preprocess = Preprocess.from_config(self._model.visual.preprocess_cfg)
        self.dim = int(self._config["embed_dim"])
        self.reads: Literal["image", "text"] = "image"
        self.input_size = min(self.preprocess.height, self.preprocess.width)
        short = re.sub(r"[^A-Za-z0-9]+", "-", architecture.removeprefix("hf-hub:"))
        self._fingerprints, digest = self._digests()
        if precision != "fp32":
            short = f"{short}-{precision}"
            self._fingerprints["weights"] = short_hash(self._fingerprints["weights"] + precision)
        self.model_id = f"openclip-{short}-{digest}"
        self._model.to(self._device)
        self._cut_text_tower, self._image_tower = self._find_towers()
        self.images_at_once = _BATCH if self._device.type == "cpu" else _ACCELERATED_BATCH
        self.precision = precision
        self._feed = Feed(self.preprocess, self._device, precision, self.images_at_once)

    @property
    def module(self) -> Any:
        """The torch module, in evaluation mode."""
        return self._model

    @property
    def tokenizer(self) -> Any:
        """The model's own tokenizer, of open_clip."""
        return self._tokenizer

    @property
    def cut_text_tower(self) -> Any | None:
        """The text tower that takes texts without padding, where that changes nothing."""
        return self._cut_text_tower

    @property
    def image_tower(self) -> Any:
        """What turns (n, 3, height, width) pixels into (n, dim) rows, not of unit length."""
        return self._image_tower

    @property
    def device(self) -> str:
        """Where it computes."""
        return str(self._device)

    def fingerprints(self) -> dict[str, str]:
        """Hash weights and architecture, preprocessing, and the tokenizer's vocabulary."""
        return dict(self._fingerprints)

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed queries; (n_texts, dim). An empty text, too, gives a row that is not zero."""
        import torch

        readable = readable_texts(texts, max_length=MAX_TEXT)
        rows = np.zeros((len(readable), self.dim), dtype=np.float32)
        if not readable:
            return rows
        tokens = self._tokenize(readable)
        tower = self._cut_text_tower
        lengths = tokens.ne(0).sum(dim=1) if tower is None else tower.ends(tokens) + 1
        with torch.inference_mode():
            for group in group_by_length(lengths.tolist(), most=_BATCH):
                batch = tokens[group].to(self._device)
                if tower is None:
                    vectors = self._model.encode_text(batch)
                else:
                    vectors = tower(batch[:, : int(lengths[group].max())])
                rows[group] = vectors.float().cpu().numpy()
        return unit_rows(rows)

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed RGB pictures of any size; (n_images, dim)."""
        return unit_rows(self._feed.rows(rgb_images(images), self._image_tower, self.dim))

    def _tokenize(self, texts: list[str]) -> Any:
        cache = getattr(self._tokenizer, "cache", None)
        if cache is not None and len(cache) > _MOST_CACHED_WORDS:
            # open_clip keeps every word it has seen, so a server's memory would grow without end.
            self._tokenizer.cache = {word: word for word in list(cache) if word[0] == "<"}
        return self._tokenizer(texts)

    def _find_towers(self) -> tuple[Any | None, Any]:
        from searchlab.models.openclip.towers import (
            CutTextTower,
            image_tower,
            reads_only_before_end,
        )

        text = CutTextTower(self._model).eval() if reads_only_before_end(self._model) else None
        return text, image_tower(self._model)

    def _digests(self) -> tuple[dict[str, str], str]:
        digest = hashlib.sha256()
        for key, tensor in sorted(self._model.state_dict().items()):
            digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(np.ascontiguousarray(tensor.float().numpy()).data)
        # Some settings, such as the activation function, are in the configuration only.
        settings = [self._config, self.preprocess.to_config(), _tokenizer_identity(self._tokenizer)]
        architecture, preprocessing, tokenizer = (
            json.dumps(part, sort_keys=True, default=str) for part in settings
        )
        hashes = {
            "weights": short_hash(f"{digest.hexdigest()} {architecture}"),
            "preprocessing": short_hash(preprocessing),
            "tokenizer": short_hash(tokenizer),
        }
        digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
        return hashes, digest.hexdigest()[:12]


def _tokenizer_identity(tokenizer: Any) -> list[str]:
    vocabulary = getattr(tokenizer, "encoder", None)
    if vocabulary is None:
        vocabulary = tokenizer.tokenizer.get_vocab()
    listed = repr(sorted(vocabulary.items())) + repr(getattr(tokenizer, "bpe_ranks", ""))
    cleaning = getattr(tokenizer.clean_fn, "__name__", "")
    digest = hashlib.sha256(listed.encode("utf-8", "replace")).hexdigest()
    return [type(tokenizer).__name__, cleaning, str(tokenizer.context_length), digest]
