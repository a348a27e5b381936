"""What the text tower of `mini` knows of the words of a text."""

from __future__ import annotations

from searchlab.models.mini.text import WORD, Pieces, fold, is_unspaced
from searchlab.models.reading import TextReading

SENTENCES = ("arabic", "chinese", "czech", "english", "french", "german")
"""Languages that it was taught captions in; of some sixty others it was taught names of things."""

_LEAST = -6.0
_STRANGE = -12.0  # log probability of a character that is in no piece: that of the rarest pieces
_LETTERS = 3  # that a character of a script without spaces stands for
_SPELLED = 2.0  # letters a piece, at most, of a word that is put together from letters
_SHORT = 4  # letters up to which every word is short pieces


def read_pieces(pieces: Pieces, text: str) -> TextReading:
    """Say how a text is cut into pieces, and which of its words they are no help with."""
    n_pieces, n_letters, log_probability = 0, 0, 0.0
    unknown, spelled, whole = [], [], []
    for word in fold(text).split():
        unspaced = is_unspaced(word[0])
        cut = pieces.cut(word if unspaced else WORD + word)
        letters = [part.replace(WORD, "") for part in cut]
        n_strange = len(word) - sum(map(len, letters))
        n_pieces += len(cut)
        n_letters += sum(_LETTERS if is_unspaced(letter) else 1 for letter in word)
        log_probability += sum(map(pieces.log_probability, cut)) + _STRANGE * n_strange
        if not any(letters):
            unknown.append(word)
        elif not unspaced and len(word) >= _SHORT and word.isalpha():
            n_parts = len(cut) + n_strange
            whole += [word] if n_parts == 1 else []
            spelled += [word] if len(word) <= _SPELLED * n_parts else []
    familiarity = log_probability / n_letters if n_letters else _LEAST
    return TextReading(
        n_pieces=n_pieces,
        familiarity=max(_LEAST, familiarity),
        unknown=tuple(dict.fromkeys(unknown)),
        spelled=tuple(dict.fromkeys(spelled)),
        whole=tuple(dict.fromkeys(whole)),
        sentences=SENTENCES,
    )
