"""Where the weights and the tokenizer of a model of open_clip come from.

Untrained ("random") and file-based models never touch the network; only a pretrained tag or a hub
name may download, once, into open_clip's own cache.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from searchlab.errors import DataError, InputError, MissingExtraError, NotFoundError

_RANDOM: Final = re.compile(r"random(?:-(\d+))?")
_CHECKPOINTS: Final = (".pt", ".pth", ".bin", ".safetensors")


def import_open_clip() -> Any:
    """Import open_clip, also beside a torchvision that was built for another torch.

    Raises:
        MissingExtraError: torch or open_clip is not installed.
    """
    from searchlab.models.openclip.torchvision_shim import import_torchvision

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


def split_source(source: str) -> tuple[str, str]:
    """Split what follows `openclip:` into architecture and weights; a hub name is both.

    Raises:
        InputError: One of the two is missing.
    """
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


def is_checkpoint(weights: str) -> bool:
    """Say whether weights are named by their file, which need not be there."""
    return weights.endswith(_CHECKPOINTS) or Path(weights).is_file()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep open_clip's logging to itself."""
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


def load_weights(open_clip: Any, architecture: str, weights: str) -> Any:
    """Make a model with weights from a seed, a file, a tag or the hub.

    Args:
        open_clip: The module.
        architecture: One that open_clip knows, or `hf-hub:ORGANISATION/MODEL`.
        weights: `random`, `random-SEED`, a checkpoint file or a tag; empty for the hub.

    Raises:
        InputError: open_clip knows no such architecture or tag, or a file is of another one.
        NotFoundError: A file is not there, or a download failed.
        DataError: A file is damaged.
    """
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
    if is_checkpoint(weights):
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
    except Exception as error:  # torch raises another exception for each kind of damage
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
    except Exception as error:  # failures of the network, the hub or the disk have no common base
        raise _not_downloaded("the weights " + architecture + "/" + tag, error) from error
    return open_clip.create_model(
        architecture, pretrained=tag, force_quick_gelu=bool(config.get("quick_gelu", False))
    )


def _load_from_hub(open_clip: Any, architecture: str) -> Any:
    try:
        return open_clip.create_model(architecture, require_pretrained=True)
    except Exception as error:  # as above
        raise _not_downloaded("the weights " + architecture, error) from error


def _not_downloaded(what: str, error: Exception) -> NotFoundError:
    first_line = str(error).strip().partition("\n")[0][:200]
    msg = (
        f"{what} must be on this machine or in reach, got {first_line!r}; "
        "connect to the network once, or give a checkpoint file: "
        "'openclip:ARCH/path/to/checkpoint.pt'"
    )
    return NotFoundError(msg)


def load_tokenizer(open_clip: Any, architecture: str) -> Any:
    """Load the tokenizer of an architecture.

    Raises:
        MissingExtraError: It needs transformers.
        NotFoundError: It could not be downloaded.
    """
    try:
        return open_clip.get_tokenizer(architecture)
    except ImportError as error:
        msg = (
            f"the tokenizer of {architecture} must have transformers, got {str(error)!r}; "
            "pip install transformers sentencepiece"
        )
        raise MissingExtraError(msg) from error
    except Exception as error:  # tokenizers of SigLIP and others are downloaded, too
        raise _not_downloaded("the tokenizer of " + architecture, error) from error
