"""The doctor: what goes wrong silently in embedding models, looked for from outside.

Every trait is seen on a few probes, without a look into the model: does a row change with the case
of letters, with a full stop; how many words are read; is red told from blue; is a picture smoothed
before it is made small; what becomes of the sides of a wide one. A model that is a port of another
must have the traits of that one (`reference`). Where all traits agree and rows do not, the weights
or the activation (GELU or QuickGELU) are others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from searchlab.models.canaries import canary_image
from searchlab.models.protocol import Embedder, towers_of

Verdict = Literal["sound", "note", "suspect"]

_TEXTS: Final = (
    "a red car",
    "two children play football on the beach",
    "an old wooden house at a lake",
    "ein Hund im Schnee",
)
_CASED: Final = ("A Red CAR", "Two Children PLAY Football on the Beach")
_SHADES: Final = {"red": "#e01010", "blue": "#1020e0", "yellow": "#f0e010", "orange": "#ff8800"}
_FILLER: Final = ("the", "old", "grey", "wall", "of", "a", "quiet", "street")
_LENGTHS: Final = (6, 10, 14, 20, 30, 45, 60, 100, 200)
_SAME: Final = 0.999
_AGREES: Final = 0.995
_SMOOTH: Final = 0.85
_OTHERWISE: Final = 0.08
_SIDE: Final = 512


@dataclass(frozen=True)
class Finding:
    """What was seen of one trait.

    Attributes:
        topic: The trait, such as `"colour order"`.
        verdict: `"sound"`, `"note"` where it may be meant, `"suspect"` where it hardly is.
        text: What was seen, and what is usually the cause.
    """

    topic: str
    verdict: Verdict
    text: str

    def __str__(self) -> str:
        return f"{self.verdict:<8}{self.topic}: {self.text}"


def examine(model: Embedder, reference: Embedder | None = None) -> list[Finding]:
    """Look for what goes wrong silently.

    Args:
        model: Any model, also one that breaks the contract of models.
        reference: The model that it is a port of, if there is one.

    Returns:
        One finding a trait, and one on the rows where there is a reference.
    """
    findings = [_examine_lengths(model)]
    findings += [*_examine_texts(model, reference), *_examine_pictures(model, reference)]
    if reference is not None:
        findings += _compare(model, reference, findings)
    return findings


def _rows(rows: Any) -> NDArray[np.float64]:
    wide = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(lengths > 0, lengths, 1)


def _cosine(rows: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    return float(np.mean(np.sum(rows * others, axis=1)))


def _examine_lengths(model: Embedder) -> Finding:
    lengths: list[float] = []
    if "text" in towers_of(model):
        lengths += np.linalg.norm(np.asarray(model.encode_texts(_TEXTS[:2])), axis=1).tolist()
    if "image" in towers_of(model):
        rows = model.encode_images([canary_image(1, size=64)])
        lengths += np.linalg.norm(np.asarray(rows), axis=1).tolist()
    lengths = [length for length in lengths if length]  # what says nothing has a row of zeros
    if not lengths:
        return Finding("length of rows", "note", "there is nothing that it embeds")
    spread = max(lengths) - min(lengths)
    if max(abs(length - 1) for length in lengths) < 1e-3:
        return Finding("length of rows", "sound", "1")
    seen = " ".join(f"{length:.4g}" for length in lengths)
    if spread < 1e-2 * max(lengths):
        return Finding(
            "logit scale",
            "suspect",
            f"all rows have length {lengths[0]:.4g}, as if the logit scale were multiplied in",
        )
    return Finding("length of rows", "suspect", f"{seen}; the rows are not scaled to length 1")


# -- texts ------------------------------------------------------------------------------------


def _examine_texts(model: Embedder, reference: Embedder | None) -> Iterator[Finding]:
    if "text" not in towers_of(model):
        return
    yield _invariance(
        model,
        reference,
        "letter case",
        [text.lower() for text in _CASED],
        list(_CASED),
        "its tokenizer does not make letters small, as that of CLIP does",
        "its texts are made lower case, and its tokenizer would tell them apart",
    )
    yield _invariance(
        model,
        reference,
        "punctuation",
        list(_TEXTS[:3]),
        [f"{text}." for text in _TEXTS[:3]],
        "punctuation is kept, where SigLIP's tokenizer takes it away",
        "punctuation is taken away, where CLIP's tokenizer keeps it",
    )
    yield _examine_padding(model)
    n_read = _words_read(model)
    n_expected = None if reference is None else _words_read(reference)
    seen = "all words of a long text" if n_read is None else f"about the first {n_read} words"
    differs = reference is not None and n_read != n_expected
    short = n_read is not None and n_read < 30
    expected = "all" if n_expected is None else f"about {n_expected}"
    why = (
        f"it reads {seen}, the reference {expected}: see the tokenizer's length"
        if differs
        else f"it reads {seen}" + ("; CLIP reads 75 tokens" if short else "")
    )
    yield Finding("length of texts", "suspect" if differs or short else "sound", why)


def _invariance(
    model: Embedder,
    reference: Embedder | None,
    topic: str,
    plain: Sequence[str],
    changed: Sequence[str],
    if_kept: str,
    if_dropped: str,
) -> Finding:
    def is_ignored(one: Embedder) -> tuple[bool, float]:
        cosine = _cosine(_rows(one.encode_texts(plain)), _rows(one.encode_texts(changed)))
        return cosine > _SAME, cosine

    ignored, cosine = is_ignored(model)
    seen = "makes no difference" if ignored else f"moves rows to a cosine of {cosine:.3f}"
    if reference is None:
        return Finding(topic, "sound" if ignored else "note", f"{topic} {seen}")
    expected, _ = is_ignored(reference)
    if ignored == expected:
        return Finding(topic, "sound", f"{topic} {seen}, as in the reference")
    return Finding(topic, "suspect", f"{topic} {seen}; {if_dropped if ignored else if_kept}")


def _examine_padding(model: Embedder) -> Finding:
    text, beside = _TEXTS[0], " ".join(_FILLER * 4)
    alone = _rows(model.encode_texts([text]))
    batched = _rows(model.encode_texts([text, beside]))[:1]
    cosine = _cosine(alone, batched)
    if cosine > 1 - 1e-5:
        return Finding("padding", "sound", "a longer text beside it makes no difference")
    return Finding(
        "padding",
        "suspect",
        f"a longer text beside it moves a row to a cosine of {cosine:.4f}: mask the padding, or "
        "pad to one length always",
    )


def _words_read(model: Embedder) -> int | None:
    """Return after how many words a text is no longer read; None if all are."""
    words = [_FILLER[number % len(_FILLER)] for number in range(max(_LENGTHS))]
    texts = ["castle", "elephant"]
    for length in _LENGTHS:
        start = " ".join(words[:length])
        texts += [f"{start} castle", f"{start} elephant"]
    rows = _rows(model.encode_texts(texts))
    if _cosine(rows[:1], rows[1:2]) > _SAME or not rows[:2].any():
        return None  # words that it does not know
    rows = rows[2:]
    for place, length in enumerate(_LENGTHS):
        if _cosine(rows[2 * place : 2 * place + 1], rows[2 * place + 1 : 2 * place + 2]) > 1 - 1e-6:
            return length
    return None


# -- pictures ---------------------------------------------------------------------------------


def _examine_pictures(model: Embedder, reference: Embedder | None) -> Iterator[Finding]:
    if "image" not in towers_of(model):
        return
    yield _examine_colors(model, reference)
    seen = _smoothness(model)
    if reference is not None and abs(_smoothness(reference) - seen) > _OTHERWISE:
        why = (
            f"a fine pattern looks like grey at a cosine of {seen:.3f}, otherwise than in the "
            "reference: see the resize filter (bicubic with antialiasing, or nearest)"
        )
        yield Finding("resize filter", "suspect", why)
    elif seen < _SMOOTH:
        why = (
            f"a fine pattern is at a cosine of {seen:.3f} to plain grey: pictures are probably "
            "made small without antialiasing"
        )
        yield Finding("resize filter", "note", why)
    else:
        yield Finding("resize filter", "sound", "pictures are smoothed before they are made small")
    way = _way_of_cropping(model)
    way_expected = None if reference is None else _way_of_cropping(reference)
    differs = reference is not None and way != way_expected
    yield Finding(
        "crop",
        "suspect" if differs else "sound",
        f"of a wide picture it sees {way}" + (f", the reference {way_expected}" if differs else ""),
    )


def _swap(image: Image.Image) -> Image.Image:
    return Image.merge("RGB", image.split()[::-1])


def _examine_colors(model: Embedder, reference: Embedder | None) -> Finding:
    plain = [Image.new("RGB", (64, 64), shade) for shade in _SHADES.values()]
    pictures = [*plain, canary_image(3, size=96), canary_image(4, size=96)]
    if reference is not None and reference.dim == model.dim:
        rows = _rows(model.encode_images(pictures))
        same = _cosine(rows, _rows(reference.encode_images(pictures)))
        swapped = _cosine(rows, _rows(reference.encode_images([_swap(one) for one in pictures])))
        by = "to those of the reference"
    elif "text" in towers_of(model):
        texts = _rows(model.encode_texts([f"{name} colour background" for name in _SHADES]))
        same = _cosine(texts, _rows(model.encode_images(plain)))
        swapped = _cosine(texts, _rows(model.encode_images([_swap(one) for one in plain])))
        by = "to the names of colours"
    else:
        return Finding("colour order", "note", "cannot be seen without texts or a reference")
    if swapped > same + 0.01:
        return Finding(
            "colour order",
            "suspect",
            f"pictures are nearer {by} when red and blue are swapped, {swapped:.3f} to "
            f"{same:.3f}: its channels are BGR",
        )
    return Finding("colour order", "sound", "red is red")


def _smoothness(model: Embedder) -> float:
    # Squares of 3 pixels: any smoothing makes them grey, a single pixel picked is black or white.
    rows, columns = np.mgrid[0:_SIDE, 0:_SIDE]
    fine = np.where(((rows // 3) + (columns // 3)) % 2, 255, 0).astype(np.uint8)
    side = max(8, model.input_size)
    repeats = -(-4 * side // _SIDE)
    tiled = np.tile(fine, (repeats, repeats))[: 4 * side, : 4 * side]
    pattern = Image.fromarray(np.ascontiguousarray(tiled)).convert("RGB")
    grey = Image.new("RGB", pattern.size, "#808080")
    pair = _rows(model.encode_images([pattern, grey]))
    return _cosine(pair[:1], pair[1:])


def _way_of_cropping(model: Embedder) -> str:
    side = max(48, model.input_size)
    middle = canary_image(7, size=side)
    wide = []
    for shade in ("#d02020", "#2040d0"):
        picture = Image.new("RGB", (3 * side, side), shade)
        picture.paste(middle, (side, 0))
        wide.append(picture)
    squashed = wide[0].resize((side, side), Image.Resampling.BICUBIC)
    padded = Image.new("RGB", (3 * side, 3 * side))
    padded.paste(wide[0], (0, side))
    rows = _rows(model.encode_images([*wide, squashed, padded]))
    cosines = rows[0] @ rows[1:].T
    if cosines[0] > 1 - 1e-4:
        return "the middle only"
    names = ("squashed to a square", "with bars added")
    best = int(np.argmax(cosines[1:]))
    return f"all, {names[best]}" if cosines[1 + best] > _AGREES else "all, in a way of its own"


# -- rows -------------------------------------------------------------------------------------


def _compare(
    model: Embedder, reference: Embedder, findings: Sequence[Finding]
) -> Iterator[Finding]:
    if model.dim != reference.dim:
        why = f"rows have {model.dim} components, those of the reference {reference.dim}"
        yield Finding("rows", "suspect", why)
        return
    pictures: list[Any] = [canary_image(seed, size=128) for seed in (1, 2, 3)]
    inputs: list[tuple[Literal["text", "image"], str, list[Any]]] = [
        ("text", "encode_texts", list(_TEXTS)),
        ("image", "encode_images", pictures),
    ]
    explained = any(finding.verdict == "suspect" for finding in findings)
    for tower, method, probes in inputs:
        if tower in towers_of(model) & towers_of(reference):
            rows = _rows(getattr(model, method)(probes))
            cosine = _cosine(rows, _rows(getattr(reference, method)(probes)))
            seen = f"{tower} rows are at a cosine of {cosine:.4f} to those of the reference"
            if cosine >= _AGREES:
                yield Finding(f"{tower} rows", "sound", seen)
            elif explained:
                yield Finding(f"{tower} rows", "note", f"{seen}; see what is suspect above")
            else:
                why = (
                    "all traits agree, so the activation (GELU or QuickGELU), the normalisation of "
                    "pixels or the weights are others"
                )
                yield Finding(f"{tower} rows", "suspect", f"{seen}; {why}")
