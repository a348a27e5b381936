"""The contract of models: every promise of `Embedder`, tried on one model at a time.

`searchlab models check SPEC` runs it over any model, the tests over those of the registry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from PIL import Image

from searchlab.errors import InputError, MismatchError, SearchlabError
from searchlab.models.canaries import canary_image
from searchlab.models.protocol import Embedder, Embeddings, is_mapped, towers_of
from searchlab.models.registry import construct_model, load_model

TEXTS: Final = (
    "a red bicycle",
    "",
    "dark blue sea and white sand",
    "Ein gelbes Haus",
    "赤い花",
    "🐈 👩‍👩‍👧 #ff8800",
    "NUL\0inside",
    "lone \ud800 surrogate",
    "green " * 1_700,  # 10,200 characters
    "red",
)
_BATCH_TOLERANCE: Final = 1e-5
_LOAD_TOLERANCE: Final = 1e-6


@dataclass(frozen=True)
class Subject:
    """A model under test.

    Attributes:
        spec: What `load_model` reads.
    """

    spec: str

    @cached_property
    def model(self) -> Embedder:
        """The model, loaded once, and not refused for what the checks are to find."""
        return construct_model(self.spec, trusted=True)

    @property
    def reads_pixels(self) -> bool:
        """Whether it embeds pictures."""
        return "image" in towers_of(self.model)

    @cached_property
    def pictures(self) -> list[Image.Image]:
        """RGB pictures of several shapes: square, a single pixel, slender, grey, upright."""
        return [
            canary_image(1, size=64),
            Image.new("RGB", (1, 1), "#d01010"),
            canary_image(2, size=300).resize((3_000, 7)),
            canary_image(3, size=200).convert("L").convert("RGB"),
            canary_image(4, size=97).resize((97, 501)),
        ]


Check = Callable[[Subject], None]


def check_model(spec: str) -> Iterator[tuple[str, str]]:
    """Try every promise on a model.

    Yields:
        The promise, and how it is broken; empty where it is kept.

    Raises:
        SearchlabError: The model cannot be loaded.
    """
    subject = Subject(spec)
    _ = subject.model
    for check in CHECKS:
        if check in OF_TEXTS and "text" not in towers_of(subject.model):
            continue  # stored vectors, without the model that made them
        problem = ""
        try:
            check(subject)
        except SearchlabError as error:
            problem = str(error)
        except Exception as error:  # the model may be a plugin's, which may raise anything
            problem = f"{type(error).__name__}: {error}"
        yield promise_of(check), problem


def promise_of(check: Check) -> str:
    """Return what a check tries, in words."""
    return (check.__doc__ or "").partition("\n")[0].rstrip(".")


def check_attributes(subject: Subject) -> None:
    """It has the attributes of an Embedder, and a model_id that ends with 12 hex digits."""
    model: Any = subject.model
    _demand(isinstance(model, Embedder), "offer all that Embedder lists", dir(type(model)))
    _demand(model.dim > 0, "have a dim above 0", model.dim)
    _demand(model.reads in ("image", "text"), "read 'image' or 'text'", model.reads)
    fits = (model.input_size > 0) == (model.reads == "image")
    _demand(fits, "have an input_size above 0 if it reads pixels, else 0", model.input_size)
    id_match = re.fullmatch(r".+-[0-9a-f]{12}", model.model_id)
    _demand(id_match is not None, "have a model_id such as toy-0123456789ab", model.model_id)


def check_fingerprints(subject: Subject) -> None:
    """Its weights, preprocessing and tokenizer have a hash each, the same at every load."""
    hashes = subject.model.fingerprints()
    names = ["preprocessing", "tokenizer", "weights"]
    _demand(sorted(hashes) == names, f"hash {', '.join(names)}", sorted(hashes))
    well_formed = all(re.fullmatch("[0-9a-f]{12}", digest) for digest in hashes.values())
    _demand(well_formed, "have fingerprints of 12 hex digits", hashes)
    _demand(len(set(hashes.values())) == 3, "have three different fingerprints", hashes)
    again = construct_model(subject.spec, trusted=True).fingerprints()
    _demand(again == hashes, f"have the fingerprints {hashes} at the next load", again)


def check_name(subject: Subject) -> None:
    """Its name is a spec that loads the same model."""
    model = subject.model
    again = load_model(model.name)
    same = (again.name, again.model_id) == (model.name, model.model_id)
    _demand(same, f"be {model.name} {model.model_id} at the next load", again.model_id)


def check_parts(subject: Subject) -> None:
    """Its parts are plain models whose weights sum to 1."""
    total = sum(weight for _, weight in subject.model.parts)
    _demand(abs(total - 1) < 1e-5, "have parts whose weights sum to 1", total)
    for part, _ in subject.model.parts:
        plain = [(inner, weight) for inner, weight in part.parts] == [(part, 1.0)]
        _demand(plain, "have parts that are plain models", part.name)


def check_text_rows(subject: Subject) -> None:
    """Texts of any kind give rows of unit length, or zero rows where they say nothing."""
    _demand_rows(subject, subject.model.encode_texts(TEXTS), len(TEXTS))


def check_picture_rows(subject: Subject) -> None:
    """Pictures of any shape give rows of unit length."""
    if subject.reads_pixels:
        rows = subject.model.encode_images(subject.pictures)
        _demand_rows(subject, rows, len(subject.pictures))
        _demand(bool(rows.any(axis=1).all()), "give every picture a row that is not zero", rows)


def check_plain_text(subject: Subject) -> None:
    """A text that says something has a row that is not zero."""
    norm = float(np.linalg.norm(subject.model.encode_texts(["a red car"])))
    _demand(abs(norm - 1) < 1e-5, "embed 'a red car' with a row of length 1", norm)


def check_nothing(subject: Subject) -> None:
    """No inputs give no rows."""
    _demand_rows(subject, subject.model.encode_texts([]), 0)
    if subject.reads_pixels:
        _demand_rows(subject, subject.model.encode_images([]), 0)


def check_text_batches(subject: Subject) -> None:
    """The row of a text does not depend on the texts beside it."""
    _demand_batches(subject.model.encode_texts, list(TEXTS))


def check_picture_batches(subject: Subject) -> None:
    """The row of a picture depends neither on the pictures beside it nor on when it is mapped."""
    model, pictures = subject.model, subject.pictures
    if subject.reads_pixels:
        _demand_batches(model.encode_images, pictures)
    if is_mapped(model):
        mapped = model.map_rows(model.base.encode_images(pictures))
        _demand_rows(subject, mapped, len(pictures))
        _demand_close(mapped, model.encode_images(pictures), _BATCH_TOLERANCE)


def check_differences(subject: Subject) -> None:
    """Different inputs give different rows."""
    texts = subject.model.encode_texts(["a red car", "green grass"])
    _demand(texts[0] @ texts[1] < 0.9999, "tell 'a red car' from 'green grass'", texts)
    if subject.reads_pixels:
        rows = subject.model.encode_images(subject.pictures[:2])
        _demand(rows[0] @ rows[1] < 0.9999, "tell two pictures apart", rows)


def check_second_load(subject: Subject) -> None:
    """Loaded a second time it is the same model."""
    model, again = subject.model, construct_model(subject.spec, trusted=True)
    _demand(again.model_id == model.model_id, f"be {model.model_id} again", again.model_id)
    _demand_close(again.encode_texts(TEXTS), model.encode_texts(TEXTS), _LOAD_TOLERANCE)
    if subject.reads_pixels:
        picture = [canary_image(9, size=80)]
        rows = again.encode_images(picture)
        _demand_close(rows, model.encode_images(picture), _LOAD_TOLERANCE)


def check_threads(subject: Subject) -> None:
    """Four threads get what one gets, also from a model that was just loaded."""
    fresh = construct_model(subject.spec, trusted=True)
    expected = subject.model.encode_texts(TEXTS[:4])
    with ThreadPoolExecutor(4) as pool:
        for rows in pool.map(lambda _: fresh.encode_texts(TEXTS[:4]), range(8)):
            _demand_close(rows, expected, _BATCH_TOLERANCE)


def check_refused_texts(subject: Subject) -> None:
    """A single string in place of a list of texts is refused with an InputError."""
    _demand_refusal(subject.model.encode_texts, "a dog")


def check_refused_pictures(subject: Subject) -> None:
    """Anything but a list of pictures that have pixels is refused with an InputError."""
    encode, picture = subject.model.encode_images, subject.pictures[0]
    pixels = np.zeros((4, 4, 3), dtype=np.uint8)
    refused: list[Any] = [picture, ["x"], [None], [pixels], [Image.new("RGB", (0, 5))]]
    for images in refused if subject.reads_pixels else [[picture]]:
        _demand_refusal(encode, images)


def check_modes(subject: Subject) -> None:
    """A picture of another mode is read as RGB."""
    if subject.reads_pixels:
        grey = canary_image(3).convert("L")
        encode = subject.model.encode_images
        _demand_close(encode([grey]), encode([grey.convert("RGB")]), _LOAD_TOLERANCE)


CHECKS: Final[tuple[Check, ...]] = (
    check_attributes,
    check_fingerprints,
    check_name,
    check_parts,
    check_text_rows,
    check_picture_rows,
    check_plain_text,
    check_nothing,
    check_text_batches,
    check_picture_batches,
    check_differences,
    check_second_load,
    check_threads,
    check_refused_texts,
    check_refused_pictures,
    check_modes,
)
"""Every promise, the cheap ones first."""

OF_TEXTS: Final = frozenset(
    {
        check_text_rows,
        check_plain_text,
        check_nothing,
        check_text_batches,
        check_differences,
        check_second_load,
        check_threads,
    }
)
"""Checks that embed their own texts."""


def _demand(holds: bool, what: str, got: object) -> None:
    if not holds:
        msg = f"the model must {what}, got {got!r}"
        raise MismatchError(msg)


def _demand_rows(subject: Subject, rows: Embeddings, n_rows: int) -> None:
    shape = (n_rows, subject.model.dim)
    _demand(rows.shape == shape, f"give rows of shape {shape}", rows.shape)
    _demand(rows.dtype == np.float32, "give rows of float32", rows.dtype)
    _demand(rows.flags["C_CONTIGUOUS"], "give C-contiguous rows", rows.strides)
    norms = np.linalg.norm(rows, axis=1)
    unit_or_zero = (np.abs(norms - 1) < 1e-5) | (norms == 0)
    _demand(bool(unit_or_zero.all()), "give rows of length 1 or 0", norms)


def _demand_batches(encode: Callable[[Any], Embeddings], inputs: list[Any]) -> None:
    together = encode(inputs)
    alone = np.vstack([encode([one]) for one in inputs])
    _demand_close(alone, together, _BATCH_TOLERANCE)
    _demand_close(encode(inputs[::-1])[::-1], together, _BATCH_TOLERANCE)


def _demand_close(rows: Embeddings, expected: Embeddings, tolerance: float) -> None:
    apart = float(np.abs(rows - expected).max())
    _demand(apart <= tolerance, f"give the same rows to {tolerance:g}", f"{apart:.2g} apart")


def _demand_refusal(encode: Callable[[Any], Embeddings], inputs: Any) -> None:
    try:
        encode(inputs)
    except InputError:
        return
    _demand(False, f"refuse {inputs!r:.60} with an InputError", "rows")
