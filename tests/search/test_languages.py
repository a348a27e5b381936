"""Languages: told by function words and scripts."""

import pytest

from searchlab.search.words.languages import LANGUAGES, language_of
from searchlab.search.words.terms import words_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("a dog and a cat on the grass", "english"),
        ("ein Hund und eine Katze auf dem Gras", "german"),
        ("un chien et un chat dans l'herbe", "french"),
        ("un perro y un gato en la hierba", "spanish"),
        ("собака и кошка на траве", "russian"),
        ("σκύλος", "greek"),
        ("Windmills", None),
        ("0042", None),
    ],
)
def test_short_texts_tell_their_language(text, language):
    number = language_of(words_of(text))
    assert (None if number is None else LANGUAGES[number]) == language
