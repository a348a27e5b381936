"""Choose the pieces of words that the text tower knows.

The teacher's own vocabulary covers a hundred languages with fragments, but people search for whole
words. So the most frequent fragments are kept, and whole words of the training texts are added,
first those that name a visible thing. A word that is one piece has a vector of its own.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from searchlab.models.mini.pieces import WORD, Pieces, fold, is_unspaced
from searchlab.training.mini.corpora import LOCALES, Annotations, Caption, is_thing
from searchlab.training.mini.sentences import Name, Sentence

SCRIPTS = frozenset(
    {
        "LATIN", "CYRILLIC", "GREEK", "HEBREW", "ARABIC", "DEVANAGARI", "GUJARATI", "MALAYALAM",
        "TAMIL", "THAI", "HANGUL", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "CJK", "ARMENIAN",
        "GEORGIAN", "ETHIOPIC", "KHMER", "COMBINING", "BENGALI", "GURMUKHI", "KANNADA", "LAO",
        "MYANMAR", "ORIYA", "SINHALA", "TELUGU",
    }
)  # fmt: skip
LONGEST = 18
USED = 0.7  # Gain of a fragment for the logarithm of how often the training texts have it.
LABEL_VALUE = 100.0  # Value of words in labels: a word of one piece is learnt best.


def choose_pieces(
    teacher_pieces: Iterable[tuple[str, float]],
    annotations: Annotations,
    captions: Sequence[Caption],
    sentences: Sequence[Sentence],
    names: Sequence[Name],
    class_names: Sequence[str],
    *,
    fragments: int,
    words: int,
) -> dict[str, float]:
    """Choose pieces with their log probabilities, in the order of the table's rows.

    Args:
        teacher_pieces: The teacher's pieces with its scores, without special ones.
        annotations: CLDR's names and keywords.
        captions: Training captions.
        sentences: Training sentences.
        names: Names of things in many languages.
        class_names: Labels, of the image tower and others.
        fragments: How many of the teacher's pieces are kept.
        words: How many whole words are added.
    """
    base = _fold_pieces(teacher_pieces)
    value = _word_values(annotations, captions, sentences, names, class_names)
    used = _count_pieces(base, [*(c.text for c in captions), *(s.text for s in sentences)])

    def worth(piece: str) -> float:
        word = piece.lstrip(WORD)
        starts = piece[0] == WORD or is_unspaced(piece[0])
        gain = (0.9 * value.get(word, 0.0) if starts else 0.0) + (3.0 if len(word) == 1 else 0.0)
        gain += 0.7 if starts and len(word) > 2 else 0.0
        gain += USED * math.log1p(used[piece])
        gain -= 5.0 if len(word) > 2 and any(c.isdigit() for c in word) else 0.0
        return base[piece] + gain

    best = sorted(base, key=lambda piece: (-worth(piece), piece))
    chosen = {piece: base[piece] for piece in best[:fragments]}
    chosen.update({p: score for p, score in base.items() if len(p) == 1 and score > -15})
    cutter = Pieces(chosen)
    new_words = sorted(
        (word for word in value if _is_new_word(word, chosen)), key=lambda w: (-value[w], w)
    )
    whole_words = {}
    for word in new_words[:words]:
        piece = word if is_unspaced(word[0]) else WORD + word
        score = sum(chosen.get(part, -60.0) for part in cutter.cut(piece))
        # A little more probable than its best cut, so that the whole word wins.
        whole_words[piece] = min(max(score, -30.0) if is_unspaced(word[0]) else score, -7.0) + 1.0
    chosen.update(whole_words)
    for symbol in annotations.names["en"]:
        folded = fold(symbol)
        if is_thing(symbol) and len(folded) == 1:
            chosen.setdefault(folded, -10.0)
    return chosen


def _fold_pieces(teacher_pieces: Iterable[tuple[str, float]]) -> dict[str, float]:
    base: dict[str, float] = {}
    for piece, score in teacher_pieces:
        bare = piece.replace(WORD, "")
        folded = fold(piece.replace(WORD, " "))
        same = folded == unicodedata.normalize("NFKC", bare).lower().strip()
        if not folded or not same or " " in folded or len(folded) > LONGEST:
            continue
        if not _is_covered(folded) or not any(unicodedata.category(c)[0] in "LN" for c in folded):
            continue
        starts = piece[0] == WORD and not is_unspaced(folded[0])
        key = WORD + folded if starts else folded
        base[key] = max(base.get(key, -99.0), score)
    return base


def _count_pieces(scores: Mapping[str, float], texts: Iterable[str]) -> Counter[str]:
    """Count the pieces in texts that are cut with all of them at hand."""
    words: Counter[str] = Counter()
    for text in texts:
        words.update(fold(text).split())
    cutter = Pieces(scores)
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for piece in cutter.cut(word if is_unspaced(word[0]) else WORD + word):
            counts[piece] += count
    return counts


def _word_values(
    annotations: Annotations,
    captions: Sequence[Caption],
    sentences: Sequence[Sentence],
    names: Sequence[Name],
    class_names: Sequence[str],
) -> dict[str, float]:
    """Value each word: names of visible things highest, then keywords and caption words."""
    thing_names: Counter[str] = Counter()
    thing_keywords: Counter[str] = Counter()
    symbols: Counter[str] = Counter()
    for locale in LOCALES:
        times = 4 if locale in ("en", "en-GB") else 1
        keywords = annotations.keywords.get(locale, {})
        for symbol, name in annotations.names.get(locale, {}).items():
            in_name = fold(name).split()
            in_keys = [word for phrase in keywords.get(symbol, []) for word in fold(phrase).split()]
            symbols.update({*in_name, *in_keys})
            if is_thing(symbol):
                for word in set(in_name):
                    thing_names[word] += times
                for word in set(in_keys):
                    thing_keywords[word] += times
    in_captions = Counter(w for c in captions if c.language != "zh" for w in fold(c.text).split())
    in_sentences: Counter[str] = Counter()
    for sentence in sentences:
        in_sentences.update(fold(sentence.text).split())
    in_names = Counter(word for name in names for word in set(fold(name.text).split()))
    value: dict[str, float] = defaultdict(float)
    _add(value, thing_names, 6.0, 2.0)
    _add(value, thing_keywords, 2.0, 2.0)
    _add(value, symbols, 1.0, 0.5)
    _add(value, {word: n - 1 for word, n in in_captions.items() if n >= 3}, 4.0, 1.5)
    _add(value, {word: n - 1 for word, n in in_sentences.items() if n >= 3}, 4.0, 1.5)
    _add(value, in_names, 1.0, 0.5)
    labels = (word for name in class_names for word in fold(name).split())
    _add(value, dict.fromkeys(labels, 0), LABEL_VALUE, 0.0)
    return value


def _add(value: dict[str, float], counts: Mapping[str, int], floor: float, slope: float) -> None:
    for word, n in counts.items():
        value[word] += floor + slope * math.log1p(n)


def _is_new_word(word: str, chosen: Mapping[str, float]) -> bool:
    if is_unspaced(word[0]):
        phonetic = _script(word[0]) in ("THAI", "KHMER", "KATAKANA")
        return word not in chosen and _is_covered(word) and 2 <= len(word) <= (8 if phonetic else 4)
    known = WORD + word in chosen
    letters = any(character.isalpha() for character in word)
    return not known and letters and _is_covered(word) and 2 <= len(word) <= LONGEST


def _is_covered(text: str) -> bool:
    return all(_script(c) in SCRIPTS for c in text if unicodedata.category(c)[0] in "LM")


@lru_cache(maxsize=65536)
def _script(character: str) -> str:
    return unicodedata.name(character, "?").split(" ")[0]
