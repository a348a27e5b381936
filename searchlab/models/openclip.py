"""Any model of open_clip: its image and its text tower, run by torch.

Untrained ("random") and file-based models never touch the network; only a pretrained tag or a hub
name may download, once, into open_clip's own cache.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from PIL import Image

from searchlab.errors import DataError, InputError, MissingExtraError, NotFoundError
from searchlab.models.inputs import readable_texts, rgb_images
from searchlab.models.preprocess import Preprocess
from searchlab.models.protocol import Embedder, Embeddings, short_hash, unit_rows

MAX_TEXT: Final = 2_000
"""Code points of a text that are read; a context holds some 77 tokens anyway."""

_BATCH = 32
_RANDOM = re.compile(r"random(?:-(\d+))?")
_CHECKPOINTS = (".pt", ".pth", ".bin", ".safetensors")
_MOST_CACHED_WORDS = 100_000


class OpenClipEmbedder:
    """A model of open_clip.

    Args:
        source: What follows `openclip:` in a spec: `ARCH/random`, `ARCH/random-SEED`, `ARCH/TAG`,
            `ARCH/path/to/checkpoint` or `hf-hub:ORGANISATION/MODEL`.

    Raises:
        MissingExtraError: torch or open_clip is not installed.
        InputError: open_clip knows no such architecture or tag, or a file is of another one.
        NotFoundError: A file is not there, or a download failed.
        DataError: A file is damaged.
    """

    def __init__(self, source: str) -> None:
        self.name = f"openclip:{source}"
        open_clip = _import_open_clip()
        architecture, weights = _split(source)
        with _quiet():
            self._model = _load(open_clip, architecture, weights)
            self._tokenizer = _load_tokenizer(open_clip, architecture)
        self._config = open_clip.get_model_config(architecture)
        self._model.eval().requires_grad_(False)
        self.preprocess = Preprocess.from_config(self._model.visual.preprocess_cfg)
        self.dim = int(self._config["embed_dim"])
        self.reads: Literal["image", "text"] = "image"
        self.input_size = min(self.preprocess.height, self.preprocess.width)
        short = re.sub(r"[^A-Za-z0-9]+", "-", architecture.removeprefix("hf-hub:"))
        self._fingerprints, digest = self._digests()
        self.model_id = f"openclip-{short}-{digest}"
        self._cut_text_tower = self._find_cut_text_tower()

    @property
    def parts(self) -> tuple[tuple[Embedder, float], ...]:
        """The model itself, with weight 1."""
        return ((self, 1.0),)

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

    def fingerprints(self) -> dict[str, str]:
        """Hash weights and architecture, preprocessing, and the tokenizer's vocabulary."""
        return dict(self._fingerprints)

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed queries; (n_texts, dim). A text without a token still is one to the tower."""
        import torch

        readable = readable_texts(texts, max_length=MAX_TEXT)
        rows = np.zeros((len(readable), self.dim), dtype=np.float32)
        if not readable:
            return rows
        tokens = self._tokenize(readable)
        tower = self._cut_text_tower
        # Texts of like length together: the longest of a batch decides what all of it costs.
        lengths = tokens.ne(0).sum(dim=1) if tower is None else tower.ends(tokens) + 1
        order = np.argsort(lengths.numpy(), kind="stable")
        with torch.inference_mode():
            for start in range(0, len(order), _BATCH):
                chosen = order[start : start + _BATCH]
                batch = tokens[chosen]
                if tower is None:
                    found = self._model.encode_text(batch)
                else:
                    found = tower(batch[:, : int(lengths[chosen].max())])
                rows[chosen] = found.float().numpy()
        return unit_rows(rows)

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Embed RGB pictures of any size; (n_images, dim)."""
        import torch

        pictures = rgb_images(images)
        rows = np.zeros((len(pictures), self.dim), dtype=np.float32)
        with torch.inference_mode():
            for start in range(0, len(pictures), _BATCH):
                pixels = self.preprocess.pixels(pictures[start : start + _BATCH])
                found = self._model.encode_image(torch.from_numpy(pixels))
                rows[start : start + _BATCH] = found.float().numpy()
        return unit_rows(rows)

    def _tokenize(self, texts: list[str]) -> Any:
        cache = getattr(self._tokenizer, "cache", None)
        if cache is not None and len(cache) > _MOST_CACHED_WORDS:
            # open_clip remembers every word it ever saw; a server sees no end of them.
            self._tokenizer.cache = {word: word for word in list(cache) if word[0] == "<"}
        return self._tokenizer(texts)

    def _find_cut_text_tower(self) -> Any | None:
        from searchlab.models.openclip_towers import CutTextTower, reads_only_before_end

        return CutTextTower(self._model).eval() if reads_only_before_end(self._model) else None

    def _digests(self) -> tuple[dict[str, str], str]:
        digest = hashlib.sha256()
        for key, tensor in sorted(self._model.state_dict().items()):
            digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(np.ascontiguousarray(tensor.float().numpy()).data)
        # The activation function, for one, is in the configuration only.
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


def _import_open_clip() -> Any:
    from searchlab.models.torchvision_shim import import_torchvision

    try:
        import_torchvision()
        import open_clip
    except ImportError as error:
        msg = (
            f"openclip models must have torch and open_clip, got {str(error)!r}; "
            "pip install 'searchlab[clip]'"
        )
        raise MissingExtraError(msg) from error
    return open_clip


def _split(source: str) -> tuple[str, str]:
    if source.startswith("hf-hub:"):
        return source, ""
    architecture, _, weights = source.partition("/")
    if not (architecture and weights):
        msg = (
            "an openclip spec must be 'openclip:ARCH/WEIGHTS', such as "
            f"'openclip:ViT-B-32/laion2b_s34b_b79k', got {'openclip:' + source!r}"
        )
        raise InputError(msg)
    return architecture, weights


@contextmanager
def _quiet() -> Iterator[None]:
    # open_clip warns through the root logger, which would configure logging for the whole process.
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    root.addFilter(_is_not_open_clip)
    try:
        yield
    finally:
        root.removeFilter(_is_not_open_clip)
        root.removeHandler(handler)


def _is_not_open_clip(record: logging.LogRecord) -> bool:
    return "open_clip" not in record.pathname


def _load(open_clip: Any, architecture: str, weights: str) -> Any:
    if architecture.startswith("hf-hub:"):
        return _load_from_hub(open_clip, architecture)
    if architecture not in open_clip.list_models():
        msg = (
            f"the architecture must be one that open_clip knows, got {architecture!r}; "
            "open_clip.list_models() lists them, for example 'ViT-B-32'"
        )
        raise InputError(msg)
    if untrained := _RANDOM.fullmatch(weights):
        return _create(open_clip, architecture, seed=int(untrained[1] or 0))
    if weights.endswith(_CHECKPOINTS) or Path(weights).is_file():
        return _load_from_file(open_clip, architecture, Path(weights))
    return _load_by_tag(open_clip, architecture, weights)


def _create(open_clip: Any, architecture: str, *, seed: int = 0, **options: Any) -> Any:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return open_clip.create_model(
            architecture, load_weights=False, pretrained_text=False, **options
        )


def _load_from_file(open_clip: Any, architecture: str, file: Path) -> Any:
    if not file.is_file():
        msg = f"the checkpoint must be a file, got {str(file)!r}, which is not there"
        raise NotFoundError(msg)
    model = _create(open_clip, architecture)
    try:
        # weights_only: a checkpoint is data, and a pickle in it may not run code.
        open_clip.load_checkpoint(model, str(file), strict=True, weights_only=True)
    except Exception as error:  # each kind of damage surfaces as another exception of torch
        first_line = str(error).strip().partition("\n")[0][:160]
        if "loading state_dict" in str(error) or "size mismatch" in str(error):
            msg = (
                f"{file} must hold weights of {architecture}, got those of another architecture "
                f"({first_line}); name the architecture that it was trained with"
            )
            raise InputError(msg) from error
        msg = (
            f"{file} must be a checkpoint of open_clip, got {type(error).__name__} ({first_line}); "
            "it is damaged or holds something else, download it again"
        )
        raise DataError(msg) from error
    return model


def _load_by_tag(open_clip: Any, architecture: str, tag: str) -> Any:
    tags = open_clip.list_pretrained_tags_by_model(architecture)
    if tag not in tags:
        listed = ", ".join(tags) or "none for this architecture"
        msg = (
            f"weights of {architecture} must be 'random', a checkpoint file or a tag of open_clip "
            f"({listed}), got {tag!r}"
        )
        raise InputError(msg)
    config = open_clip.get_pretrained_cfg(architecture, tag)
    try:
        open_clip.download_pretrained(config)
    except Exception as error:  # whatever the network, the hub or the disk had to say
        raise _not_downloaded(architecture + "/" + tag, error) from error
    return open_clip.create_model(
        architecture, pretrained=tag, force_quick_gelu=bool(config.get("quick_gelu", False))
    )


def _load_from_hub(open_clip: Any, architecture: str) -> Any:
    try:
        return open_clip.create_model(architecture, require_pretrained=True)
    except Exception as error:  # as above
        raise _not_downloaded(architecture, error) from error


def _not_downloaded(what: str, error: Exception) -> NotFoundError:
    first_line = str(error).strip().partition("\n")[0][:200]
    msg = (
        f"the weights {what} must be on this machine or in reach, got {first_line!r}; "
        "connect to the network once, or give a checkpoint file: "
        "'openclip:ARCH/path/to/checkpoint.pt'"
    )
    return NotFoundError(msg)


def _load_tokenizer(open_clip: Any, architecture: str) -> Any:
    try:
        return open_clip.get_tokenizer(architecture)
    except ImportError as error:
        msg = (
            f"the tokenizer of {architecture} must have transformers, got {str(error)!r}; "
            "pip install transformers sentencepiece"
        )
        raise MissingExtraError(msg) from error
    except Exception as error:  # tokenizers of SigLIP and others are downloaded, too
        raise _not_downloaded("of the tokenizer of " + architecture, error) from error


def _tokenizer_identity(tokenizer: Any) -> list[str]:
    vocabulary = getattr(tokenizer, "encoder", None)
    if vocabulary is None:
        vocabulary = tokenizer.tokenizer.get_vocab()
    listed = repr(sorted(vocabulary.items())) + repr(getattr(tokenizer, "bpe_ranks", ""))
    cleaning = getattr(tokenizer.clean_fn, "__name__", "")
    digest = hashlib.sha256(listed.encode("utf-8", "replace")).hexdigest()
    return [type(tokenizer).__name__, cleaning, str(tokenizer.context_length), digest]
