"""A model that reads what was written of a photo instead of its pixels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from PIL import Image

from searchlab.errors import InputError
from searchlab.models.mini.artefacts import MINI_DATA, fingerprint, read_record
from searchlab.models.mini.text import TEXT_FILES, TEXT_WEIGHTS, TOKENIZER_FILES, TextTower
from searchlab.models.protocol import Embedder, Embeddings
from searchlab.models.registry import load_model


class CaptionsEmbedder(Embedder):
    """Embed descriptions and queries alike with the text tower of `mini`.

    A photo that comes with words (title, description, keywords) is found through them in any of
    the tower's languages, whichever they were written in. Photos without words have no row here.

    Args:
        folder: Where the text tower's files lie; the shipped ones if not given.
    """

    name = "captions"
    reads: Literal["image", "text"] = "text"
    input_size = 0

    def __init__(self, folder: Path = MINI_DATA) -> None:
        self.folder = folder
        self.dim = int(read_record(folder)["dim"])
        self.model_id = f"captions-{fingerprint(folder, TEXT_FILES, 'summed')}"
        self._tower = TextTower(folder, dim=self.dim)

    def fingerprints(self) -> dict[str, str]:
        """Hash the text tower and its pieces; descriptions are read as they are."""
        return {
            "weights": fingerprint(self.folder, TEXT_WEIGHTS, "weights"),
            "preprocessing": fingerprint(self.folder, (), "summed"),
            "tokenizer": fingerprint(self.folder, TOKENIZER_FILES, "tokenizer"),
        }

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Embed queries, or the descriptions of photos; a text that says nothing gives a zero row.

        Args:
            texts: Of any length and language.

        Returns:
            (n_texts, dim) float32, unit rows.

        Raises:
            DataError: A file of the text tower is missing or damaged.
        """
        return self._tower.encode(texts)

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Refuse pictures.

        Raises:
            InputError: Always; the model reads descriptions.
        """
        msg = (
            f"captions reads the descriptions of photos, got {len(images)} images; "
            "give their descriptions to encode_texts, or use a model that reads pixels such as mini"
        )
        raise InputError(msg)


def load_captions() -> CaptionsEmbedder:
    """Load the model of descriptions, whose files are those of `mini` and are checked with it."""
    load_model("mini")
    return CaptionsEmbedder()
