"""CLIP's tokenizer without torch, open_clip and ftfy, for exported models.

open_clip cleans a text (mends Unicode, resolves HTML entities, folds case), then cuts it into byte
pairs. Here the cleaning is Python and the byte pairs are a `tokenizers` file that
`save_clip_tokenizer` derives from open_clip's own vocabulary. The one step left out is ftfy's
guessing of wrongly decoded text ("dÃ©jÃ " for "déjà"); a query arrives as Unicode.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchlab.errors import DataError, MissingExtraError

START, END = "<start_of_text>", "<end_of_text>"
_SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_TERMINAL = re.compile(r"\x1b\[[0-9;]*[a-zA-Z]")


@cache
def _replacements() -> dict[int, str]:
    """Map the characters that cleaning replaces, as `str.translate` wants them."""
    table: dict[int, str] = {}
    for code in range(0x80, 0xA0):  # control characters that Windows-1252 prints
        table[code] = bytes([code]).decode("cp1252", errors="ignore") or chr(code)
    ligatures = [
        *range(0xFB00, 0xFB07),
        0x132,
        0x133,
        0x149,
        *range(0x1C4, 0x1CD),
        *range(0x1F1, 0x1F4),
    ]
    for code in ligatures:
        _, *codes = unicodedata.decomposition(chr(code)).split()
        table[code] = "".join(chr(int(part, 16)) for part in codes)
    for code in [0x3000, *range(0xFF01, 0xFFEF)]:  # full and half width
        table[code] = unicodedata.normalize("NFKC", chr(code))
    table |= dict.fromkeys([0x2BC, *range(0x2018, 0x201C)], "'")
    table |= dict.fromkeys(range(0x201C, 0x2020), '"')
    table[0x149] = "'n"
    removed = [*range(0x09), 0x0B, *range(0x0E, 0x20), 0x7F, *range(0x206A, 0x2070), 0xFEFF]
    return table | dict.fromkeys([*removed, *range(0xFFF9, 0xFFFD)], "")


def clean(text: str) -> str:
    """Clean a text as open_clip does before it cuts it up."""
    if "<" not in text:
        text = html.unescape(text)
    text = _TERMINAL.sub("", text).translate(_replacements())
    text = unicodedata.normalize("NFC", text)
    return " ".join(html.unescape(html.unescape(text)).split()).lower()


def save_clip_tokenizer(tokenizer: Any, file: Path) -> None:
    """Write open_clip's `SimpleTokenizer` as a `tokenizers` file."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

    ranked = sorted(tokenizer.bpe_ranks, key=tokenizer.bpe_ranks.__getitem__)
    byte_pairs = models.BPE(
        vocab=dict(tokenizer.encoder), merges=ranked, end_of_word_suffix="</w>", fuse_unk=False
    )
    converted = Tokenizer(byte_pairs)
    converted.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    converted.add_special_tokens(
        [AddedToken(START, normalized=False), AddedToken(END, normalized=False)]
    )
    converted.save(str(file))


class ClipTokenizer:
    """Reads what `save_clip_tokenizer` wrote.

    Args:
        file: The tokenizer.
        context_length: Largest number of tokens of a text, start and end included.

    Raises:
        MissingExtraError: tokenizers is not installed.
        DataError: The file cannot be read.
    """

    def __init__(self, file: Path, *, context_length: int) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            msg = (
                f"an exported model must have tokenizers for its texts, got {str(error)!r}; "
                "pip install 'searchlab[onnx]'"
            )
            raise MissingExtraError(msg) from error
        try:
            self._tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises nothing narrower
            msg = f"{file} must be a tokenizer, got {error}; export the model again"
            raise DataError(msg) from error
        self._context_length = context_length
        self._start = self._tokenizer.token_to_id(START)
        self._end = self._tokenizer.token_to_id(END)

    def __call__(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Tokenize; each text as its own array, from start token to end token."""
        rows = []
        for text in texts:
            tokens = self._tokenizer.encode(clean(text), add_special_tokens=False).ids
            fitting = tokens[: self._context_length - 2]
            rows.append(np.array([self._start, *fitting, self._end], dtype=np.int64))
        return rows
