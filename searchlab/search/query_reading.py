"""What a model reads in a query: a vector of text or picture or both, and how well it knows words.

Vectors of texts are cached. How well it knows words counts in the curve of the scores, and is told
to people who wonder at results.

Texts of several threads are embedded one by one. In one batch a large text tower in float32 would
take half the time, but the last bits of a vector would then depend on the other texts of the batch,
and the pages of one query, which several processes may answer, would no longer be slices of one
ranking. A tower in eight bits, which is cheaper still, embeds texts one by one anyway.
"""

from __future__ import annotations

import math
import threading
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Literal

import numpy as np

from searchlab.config import Config
from searchlab.config.calibration import Calibration, Curve, QueryTraits
from searchlab.errors import DataError, MismatchError, rebuild_remedy
from searchlab.models.canaries import CanaryCheck
from searchlab.models.protocol import Embedder, Embeddings, TextReading, is_reader
from searchlab.search.indexes import VectorIndex
from searchlab.search.mixing import EVERYDAY, Background, Mixed, add, background_rows
from searchlab.search.queries import Picture, Query
from searchlab.search.words.languages import LANGUAGES, language_of
from searchlab.search.words.matches import WordMatches
from searchlab.search.words.terms import fold, words_of

MAX_BYTES = 64 * 2**20
# Scripts as Unicode calls them, and languages that are written in them, where these are few.
_SCRIPTS = {
    "BENGALI": {"bengali"},
    "ETHIOPIC": {"amharic", "tigrinya"},
    "GUJARATI": {"gujarati"},
    "GURMUKHI": {"punjabi"},
    "KANNADA": {"kannada"},
    "KHMER": {"khmer"},
    "LAO": {"lao"},
    "MALAYALAM": {"malayalam"},
    "MYANMAR": {"burmese"},
    "ORIYA": {"odia"},
    "SINHALA": {"sinhala"},
    "TAMIL": {"tamil"},
    "TELUGU": {"telugu"},
    "THAANA": {"dhivehi"},
    "TIBETAN": {"tibetan", "dzongkha"},
}
# What Python needs for a text and an array beside their contents, at most.
_OVERHEAD_BYTES = 400
_LONGEST = 2.0  # that a stored vector may be, which is a unit row but for rounding


class TextVectors:
    """Embeds texts with one model and caches the vectors; those unused for longest go first.

    Safe for several threads. All engines of the model can share it.

    Attributes:
        model_id: Name of the model, with the hash of its weights.
        n_bytes: Memory in use, estimated.
    """

    def __init__(self, model: Embedder, *, max_bytes: int = MAX_BYTES) -> None:
        """Start empty.

        Args:
            model: Embeds the texts.
            max_bytes: Memory that the vectors may take.
        """
        self.model_id = model.model_id
        self.n_bytes = 0
        self._model = model
        self._max_bytes = max_bytes
        self._vectors: OrderedDict[str, Embeddings] = OrderedDict()
        self._everyday: Embeddings | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._vectors)

    def of_model(self, model: Embedder) -> TextVectors:
        """Return this cache if it is of the given model, otherwise an empty one of that model."""
        if model.model_id == self.model_id:
            return self
        return TextVectors(model, max_bytes=self._max_bytes)

    def of(self, text: str) -> Embeddings:
        """Return the (dim,) vector of a text."""
        with self._lock:
            vector = self._vectors.get(text)
            if vector is not None:
                self._vectors.move_to_end(text)
        if vector is None:
            vector = _frozen(self._model.encode_texts([text])[0])
            self._keep([text], [vector])
        return vector

    @property
    def everyday(self) -> Embeddings:
        """(n_words, dim) vectors of `EVERYDAY`, which are always one batch."""
        if self._everyday is None:
            self._everyday = _frozen(self._model.encode_texts(EVERYDAY))
        return self._everyday

    def warm(self, texts: Sequence[str]) -> None:
        """Embed texts in one batch and keep their vectors."""
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._keep(new, [_frozen(row) for row in self._model.encode_texts(new)])

    def _keep(self, texts: Sequence[str], rows: Sequence[Embeddings]) -> None:
        with self._lock:
            for text, row in zip(texts, rows, strict=True):
                if text not in self._vectors:
                    self.n_bytes += _size(text, row)
                self._vectors[text] = row
            while self.n_bytes > self._max_bytes:
                self.n_bytes -= _size(*self._vectors.popitem(last=False))


def _frozen(vectors: Embeddings) -> Embeddings:
    """Copy vectors, since a row would keep its whole batch alive, so that nobody changes them."""
    copied = vectors.copy()
    copied.flags.writeable = False
    return copied


def _size(text: str, row: Embeddings) -> int:
    return _OVERHEAD_BYTES + 4 * len(text) + row.nbytes


class QueryVectors:
    """Embeds queries, after a check that the model still is the one that embedded the photos."""

    def __init__(
        self,
        model: Embedder,
        texts: TextVectors,
        canary_check: CanaryCheck,
        photos: VectorIndex,
        config: Config,
    ) -> None:
        """Take the parts.

        Args:
            model: The model that made the vectors.
            texts: The cache of text vectors of the same model.
            canary_check: Probes that the model embedded together with the photos.
            photos: Vectors of the library.
            config: How words are mixed with a picture, and how much they count.
        """
        self._model = model
        self._texts = texts
        self._canary_check = canary_check
        self._checked: set[str] = set()
        self._photos = photos
        self._config = config
        self._background: Background | None = None

    def warm(self, texts: Sequence[str]) -> None:
        """Embed texts in one batch and keep their vectors."""
        self._check_tower("text")
        self._texts.warm(texts)

    def of_text(self, text: str) -> Embeddings:
        """Return the (dim,) embedding of words."""
        self._check_tower("text")
        return self._texts.of(text)

    def of_picture(self, picture: Picture) -> Embeddings:
        """Return the (dim,) embedding of a picture.

        Raises:
            ImageError: The picture is refused.
        """
        from searchlab.photos.images.decode import WORKING_SIDE, as_rgb, for_model

        self._check_tower("image")
        side = self._model.input_size
        small = for_model(as_rgb(picture, min_side=max(WORKING_SIDE, side)), side)
        return np.array(self._model.encode_images([small])[0])

    def of_photo(self, row: int) -> Embeddings:
        """Return the (dim,) vector of a photo of the library.

        Raises:
            DataError: It is no unit row, as in a file that somebody else has written.
        """
        vector: Embeddings = self._photos.read_rows(np.array([row]))[0]
        if not 0 <= float(np.linalg.norm(vector)) < _LONGEST:
            msg = f"the vector of row {row} must be a unit row, got another; {rebuild_remedy()}"
            raise DataError(msg)
        return vector

    def mix(self, picture: Embeddings, text: str, text_alpha: float) -> Mixed:
        """Mix a picture with words.

        Args:
            picture: (dim,) unit row.
            text: Words.
            text_alpha: How much the words count; at 0 the picture stays what it is.
        """
        words = self.of_text(text)
        weight = self._config.steering * text_alpha
        if self._config.mixing == "sum":
            return add(picture, words, weight)
        if self._background is None:
            some = self._photos.read_rows(background_rows(len(self._photos)))
            self._background = Background(some, self._texts.everyday)
        return self._background.mix(picture, words, weight)

    def _check_tower(self, kind: Literal["text", "image"]) -> None:
        if kind not in self._checked:
            self._canary_check.check(self._model, kind)
            self._checked.add(kind)


# -- what the model knows of the words ----------------------------------------------------------

_SENTENCE = 3  # words from which on a text may be a sentence
_UNSPACED = ("KHMER", "LAO", "MYANMAR", "TIBETAN")
_LETTERS = 15  # of a sentence in a script without spaces, at least
_MOST_NAMED = 5


def traits_of(text: str, vector: Embeddings, model: Embedder) -> QueryTraits | None:
    """Return what the score of a text query depends on beside the cosine.

    Args:
        text: The query.
        vector: (dim,) unit row of it.
        model: Made the row.

    Returns:
        The traits; None where the model does not tell.
    """
    if not is_reader(model):
        return None
    reading = model.read_text(text)
    length = math.log(max(reading.n_pieces, 1))
    return QueryTraits(model.at_large.background(vector), reading.familiarity, length)


def curve_of(
    query: Query,
    words: Embeddings | None,
    matches: WordMatches | None,
    calibration: Calibration,
    model: Embedder,
) -> Curve:
    """Return the curve from the cosines of a query, with what words add, to its scores.

    Args:
        query: The query.
        words: (dim,) unit row of its words; None where it has none.
        matches: What its words found, under any filter; None where texts are not read.
        calibration: Curves of each kind of query.
        model: Made the row.
    """
    traits = None
    if calibration.query is not None and words is not None:
        traits = traits_of(query.text or "", words, model)
    return calibration.curve(
        query.kind or "text",
        text_alpha=query.text_alpha,
        traits=traits,
        is_written=matches is not None and any(matches.counts.values()),
        share=0.0 if matches is None else matches.share,
        reach=0.0 if matches is None else matches.reach,
    )


def known_words(text: str, model: Embedder) -> frozenset[str]:
    """Return the words of a query that its model knows well, so that they are no typos, folded.

    A word that no text has may be of another language than the texts, and one letter from
    another word by chance. Typing errors are hardly ever known as one piece.
    """
    if not is_reader(model):
        return frozenset()
    return frozenset(fold(word) for word in model.read_text(text).whole)


def check_reader(calibration: Calibration, model: Embedder) -> None:
    """Check that a model tells the traits that a calibration was fitted with.

    Raises:
        MismatchError: It does not, or its photos at large are others.
    """
    weights = calibration.query
    if weights is None:
        return
    at_large = model.at_large.digest if is_reader(model) else "none"
    if at_large != weights.at_large:
        msg = (
            f"scores must be computed with the photos at large that they were fitted with, "
            f"{weights.at_large!r}, got {at_large!r} of {model.name}; fit the calibration again"
        )
        raise MismatchError(msg)


def describe_reading(text: str, model: Embedder) -> str:
    """Say which words of a query its model does not know; empty if it knows them all."""
    if not text or not is_reader(model):
        return ""
    reading = model.read_text(text)
    notes = [_describe_language(text, reading) or _describe_script(text, reading)]
    if reading.unknown:
        notes.append(f"knows nothing of {_list(reading.unknown)}")
    if reading.spelled:
        notes.append(f"knows {_list(reading.spelled)} only in pieces")
    said = "; ".join(note for note in notes if note)
    return f"{model.name} {said}" if said else ""


def _describe_language(text: str, reading: TextReading) -> str:
    words = words_of(text) if reading.sentences else []
    language = language_of(words) if len(words) >= _SENTENCE else None
    if language is None or LANGUAGES[language] in reading.sentences:
        return ""
    return (
        f"is not known to read sentences of {LANGUAGES[language].capitalize()}, though of "
        f"{len(reading.sentences)} other languages; try names of things, or one of those"
    )


def _describe_script(text: str, reading: TextReading) -> str:
    """Name the script of a sentence that none of the languages that are read is written in."""
    if text.isascii() or not reading.sentences:
        return ""
    scripts = Counter(unicodedata.name(one, "").partition(" ")[0] for one in text if one != " ")
    (script, n_letters), *_ = scripts.most_common(1) or [("", 0)]
    if script not in _SCRIPTS or not _SCRIPTS[script].isdisjoint(reading.sentences):
        return ""
    is_long = n_letters >= _LETTERS if script in _UNSPACED else len(words_of(text)) >= _SENTENCE
    if not is_long or 2 * n_letters < scripts.total():
        return ""
    return (
        f"is not known to read sentences in {script.capitalize()} script; try names of things, or "
        "another one"
    )


def _list(words: tuple[str, ...]) -> str:
    named = ", ".join(repr(word) for word in words[:_MOST_NAMED])
    more = len(words) - _MOST_NAMED
    return named if more <= 0 else f"{named} and {more} more"
