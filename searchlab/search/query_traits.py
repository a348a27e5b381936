"""What a query's model knows of its words: for its curve, and for people who wonder at results."""

from __future__ import annotations

import math

from searchlab.config.calibration import Calibration, Curve, QueryTraits
from searchlab.errors import MismatchError
from searchlab.models.protocol import Embedder, Embeddings, TextReading, is_reader
from searchlab.search.queries import Query
from searchlab.search.words.matches import WordMatches
from searchlab.search.words.terms import LANGUAGES, fold, language_of, words_of

_SENTENCE = 3  # words from which on it matters that a model was taught names alone
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
    vector: Embeddings | None,
    matches: WordMatches | None,
    calibration: Calibration,
    model: Embedder,
) -> Curve:
    """Return the curve from the cosines of a query, with what words add, to its scores.

    Args:
        query: The query.
        vector: (dim,) unit row of it.
        matches: What its words found, under any filter; None where texts are not read.
        calibration: Curves of each kind of query.
        model: Made the row.
    """
    traits = None
    if calibration.query is not None and query.kind == "text" and vector is not None:
        traits = traits_of(query.text or "", vector, model)
    return calibration.curve(
        query.kind or "text",
        text_alpha=query.text_alpha,
        traits=traits,
        is_written=matches is not None and any(matches.counts.values()),
        share=0.0 if matches is None else matches.share,
        reach=0.0 if matches is None else matches.reach,
    )


def known_words(text: str, model: Embedder) -> frozenset[str]:
    """Return the words of a query that are no typing errors, folded: its model has met them often.

    What nothing is called may be a word of another language than the texts, and one letter from
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
    if not is_reader(model):
        return ""
    reading = model.read_text(text)
    notes = [_describe_language(text, reading)]
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
    taught = ", ".join(name.capitalize() for name in reading.sentences)
    return (
        f"was taught sentences in {taught}; of {LANGUAGES[language].capitalize()} it knows names "
        "of things at most"
    )


def _list(words: tuple[str, ...]) -> str:
    named = ", ".join(repr(word) for word in words[:_MOST_NAMED])
    more = len(words) - _MOST_NAMED
    return named if more <= 0 else f"{named} and {more} more"
