"""Languages: in which one a short text is written, and the stems of its words.

A text is told by its script where that has one language of ours, else by its function words: the
handful of short words that stand in nearly every sentence and in no other language as often. The
words of what has none of them are stemmed as English. Stems are Snowball's (Porter,
"Snowball: a language for stemming algorithms", 2001; http://snowballstem.org).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Protocol

from searchlab.search.filters.photographers.folding import fold

# Order counts: the first one wins a tie, and the numbers of languages on disk are places in here.
_FUNCTION_WORDS = {
    "english": (
        "a an the of and or in on at to for with from by is are was were be it its this that as "
        "into near over under behind between s two three his her their he she they while "
        "through next top"
    ),
    "german": (
        "der die das den dem des ein eine einer eines einem einen und oder in im am an auf mit "
        "von vom zu zum zur bei aus ist sind nicht für über unter vor nach sich es er sie auch "
        "wie zwei ihre ihren sein seine durch neben"
    ),
    "french": (
        "le la les l un une des du de d et ou à au aux en dans sur avec pour par est sont qui "
        "que ne pas son sa ses ce cette il elle sous entre deux près devant vers"
    ),
    "spanish": (
        "el la los las un una unos unas de del y o en con por para al es son que se su sus no "
        "lo como sobre entre dos está están junto"
    ),
    "italian": (
        "il lo la i gli le un uno una di del della dei delle dello degli e o in nel nella con "
        "su sul sulla per da al alla è sono che si non suo sua due tra mentre"
    ),
    "portuguese": (
        "o a os as um uma uns umas de do da dos das e ou em no na nos nas com por para ao à é "
        "são que se não seu sua sobre dois duas está perto entre"
    ),
    "dutch": (
        "de het een van en of in op met voor bij aan uit is zijn niet naar door over onder "
        "tussen die dat hij zij haar ze twee langs naast wordt"
    ),
    "swedish": (
        "en ett och eller i på med av för till från är som den det de inte vid under över sin "
        "sitt mellan två bredvid står"
    ),
    "danish": (
        "en et og eller i på med af for til fra er som den det de ikke ved under over sin sit "
        "mellem to ved siden står"
    ),
    "norwegian": (
        "en ei et og eller i på med av for til fra er som den det de ikke ved under over sin "
        "sitt mellom to står"
    ),
    "finnish": (
        "ja tai on ei se ne joka jossa kanssa sekä myös kuin hän ovat oli kaksi päällä edessä "
        "vieressä"
    ),
    "polish": (
        "i w we z ze na do od po za nad pod przed przy dla jest są nie się to ten ta te jego "
        "jej oraz lub dwa dwie obok"
    ),
    "czech": (
        "a i v ve s se na do od po za nad pod před při pro je jsou není ten ta to jeho její "
        "nebo k ke u z ze dva dvě vedle"
    ),
    "hungarian": (
        "a az egy és vagy van nem hogy is mint ez közben mellett előtt két alatt fölött között"
    ),
    "romanian": (
        "un o și sau în pe cu de la din pentru este sunt nu care al ale lui ei lângă sub doi două"
    ),
    "turkish": (
        "bir ve veya bu şu ile için de da çok olan üzerinde altında iki gibi yanında içinde"
    ),
    "indonesian": (
        "dan atau di ke dari yang ini itu dengan untuk pada adalah tidak dalam sebuah seorang "
        "dua sedang oleh para"
    ),
    "lithuanian": "ir ar yra su į iš ant prie po nuo už per kad tai du dvi šalia kuris",
    "estonian": "ja või on ei see need mis kes koos ka kui oma kaks juures peal ees",
    "catalan": (
        "el la els les un una uns unes de del i o en amb per al és són que se no sobre dos dues"
    ),
    "irish": "an na agus nó i ar le ag do de is tá seo sin dhá",
    "basque": "eta edo bat da dira ez hau hori bi ere duen dago",
    "serbian": "i ili u na sa od do za je su nije se ovaj taj dva pored koji",
    "esperanto": "la kaj aŭ en sur kun de al por estas ne kiu tiu du apud",
    "greek": (
        "ο η το οι τα του της των και ή σε με από για στο στη στην στον είναι δεν που ένα ένας "
        "μια δύο"
    ),
    "russian": (
        "и в во на с со к по за из от до у о не это что как для под над при его её их или он "
        "она они два две стоит"
    ),
    "arabic": "في من على إلى عن مع و أو هو هي هذا هذه التي الذي لا ما",
    "persian": "در از به با و یا که این آن را است یک برای بر هم",
    "hindi": "का की के में है हैं और या पर से को एक यह वह नहीं ने हुए",
    "nepali": "को मा छ छन् र वा एक यो त्यो बाट लाई गर्दै",
    "tamil": "ஒரு மற்றும் இந்த அந்த உள்ள என்று மீது",
    "armenian": "և ու է են մի այս այն մեջ վրա հետ",
}
LANGUAGES = tuple(_FUNCTION_WORDS)
"""Languages with a stemmer, by Snowball's names."""

UNTOLD = LANGUAGES.index("english")
"""Place in `LANGUAGES` of what texts are stemmed in that tell none, such as titles of one word.

English rules take off a plural and little more, so that they do no harm to other languages: those
of Spanish would make one of "gato" and "gate".
"""

_SCRIPTS = (
    ("\u0370", "\u03ff", ("greek",)),
    ("\u0400", "\u04ff", ("russian",)),
    ("\u0530", "\u058f", ("armenian",)),
    ("\u0600", "\u06ff", ("arabic", "persian")),
    ("\u0900", "\u097f", ("hindi", "nepali")),
    ("\u0b80", "\u0bff", ("tamil",)),
)
_IN_SCRIPTS = {language for *_, languages in _SCRIPTS for language in languages}
_OF_SCRIPT = 1e-6  # what the script of a word counts beside a function word
_stemming = threading.local()


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802


@cache
def _languages_by_word() -> dict[str, tuple[int, ...]]:
    by_word: dict[str, tuple[int, ...]] = {}
    for number, words in enumerate(_FUNCTION_WORDS.values()):
        for word in dict.fromkeys(words.split()):
            by_word[word] = (*by_word.get(word, ()), number)
    return by_word


def language_of(words: Iterable[str]) -> int | None:
    """Tell the language of a text by its words.

    Args:
        words: Lower case, with accents.

    Returns:
        A place in `LANGUAGES`; None where no word tells.
    """
    return choose_language(languages_of_word(word) for word in words)


def languages_of_word(word: str) -> tuple[int, ...]:
    """Return the languages that a word tells of: it is a function word of theirs.

    Args:
        word: Lower case, with accents.

    Returns:
        Places in `LANGUAGES`; those of a script that few languages share are negative, less one:
        they count where no function word does.
    """
    known = _languages_by_word().get(word, ())
    return known or (() if word.isascii() else tuple(~number for number in _of_script(word)))


def choose_language(languages: Iterable[tuple[int, ...]]) -> int | None:
    """Return the language that most words tell of, the first of `LANGUAGES` among equals.

    Args:
        languages: For each word of a text, as `languages_of_word` gives them.
    """
    counts: dict[int, float] = {}
    for some in languages:
        for number in some:
            if number >= 0:
                counts[number] = counts.get(number, 0) + 1
            else:
                counts[~number] = counts.get(~number, 0) + _OF_SCRIPT
    return max(counts, key=lambda number: (counts[number], -number)) if counts else None


def _of_script(word: str) -> tuple[int, ...]:
    for first, last, languages in _SCRIPTS:
        if first <= word[0] <= last:
            return tuple(LANGUAGES.index(language) for language in languages)
    return ()


def is_function_word(word: str, language: int | None) -> bool:
    """Say whether a word carries no meaning of its own in a language; in none without one."""
    return language is not None and language in _languages_by_word().get(word, ())


@lru_cache(maxsize=2**16)
def stem_key(word: str, language: int) -> str | None:
    """Return what the forms of a word have in common in one language, and only there.

    Args:
        word: Lower case, with accents.
        language: A place in `LANGUAGES`.

    Returns:
        Language and stem; None for words without one: numbers, and those of another script.
    """
    name = LANGUAGES[language]
    if len(word) < 3 or any(character.isdigit() for character in word):
        return None
    if name in _IN_SCRIPTS and word.isascii():
        return None
    return f"{name}:{fold(_stemmer(name).stemWord(word))}"


def _stemmer(name: str) -> _Stemmer:
    # Snowball's stemmers are not safe for several threads.
    stemmers: dict[str, _Stemmer] = _stemming.__dict__.setdefault("by_name", {})
    if name not in stemmers:
        import Stemmer

        stemmers[name] = Stemmer.Stemmer(name)
    return stemmers[name]
