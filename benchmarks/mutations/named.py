"""Bugs planted by hand: each once went through all tests, and has a test of its own since.

They are no draw, so that no share is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from searchlab.errors import DataError

_LEAKS = ("evaluation/test_leaks.py",)
_RULES = ("sources/test_provider_rules.py", "sources/test_sources.py")


@dataclass(frozen=True)
class NamedBug:
    """One change of a module.

    Attributes:
        about: What goes wrong.
        module: File below `searchlab`.
        before: Text that the file holds once.
        after: What stands there instead.
        tests: Files below `tests`, of which one must fail.
    """

    about: str
    module: str
    before: str
    after: str
    tests: tuple[str, ...]

    def plant(self, source: str) -> str:
        """Return the changed module.

        Raises:
            DataError: The code was written anew, so that the bug must be too.
        """
        if source.count(self.before) != 1:
            msg = f"{self.module} must hold {self.before!r} once, got another code; renew NAMED"
            raise DataError(msg)
        return source.replace(self.before, self.after)


NAMED = (
    NamedBug(
        "models of descriptions read texts that are withheld",
        "library/catalog.py",
        "        if name not in withheld:\n            for texts, text",
        "        if name:\n            for texts, text",
        _LEAKS,
    ),
    NamedBug(
        "the text index reads texts that are withheld",
        "search/words/fields.py",
        "        if name not in withheld and (column := ",
        "        if (column := ",
        _LEAKS,
    ),
    NamedBug(
        "an experiment withholds nothing",
        "evaluation/experiments.py",
        "withheld=self.dataset.unread",
        "withheld=frozenset()",
        _LEAKS,
    ),
    NamedBug(
        "of queries of unknown origin no text is withheld",
        "evaluation/datasets/dataset.py",
        "self.withholds.get(kind, TEXT_FIELDS)",
        "self.withholds.get(kind, frozenset())",
        _LEAKS,
    ),
    NamedBug(
        "the density of a filter is not bounded below in a scan",
        "search/indexes/ivf/_kernels/scan.py",
        "share = max(density, left_allowed / max(left, 1)) *",
        "share = density *",
        ("search/test_index_ivf.py",),
    ),
    NamedBug(
        "rows that are held out to learn when to stop find themselves",
        "search/indexes/ivf/early_stop.py",
        "mask[held_out] = False",
        "mask[held_out[:0]] = False",
        ("search/test_index_ivf.py",),
    ),
    NamedBug(
        "the smoothing of Platt's targets is dropped",
        "evaluation/calibration/curves.py",
        "np.where(y, (n_relevant + 1) / (n_relevant + 2), 1 / (n_other + 2))",
        "np.where(y, 1.0, 0.0)",
        ("evaluation/test_calibration.py",),
    ),
    NamedBug(
        "a promotion ignores p",
        "evaluation/promotion.py",
        "difference.mean < 0 and p_value < _ALPHA",
        "difference.high < 0",
        ("evaluation/test_promotion.py",),
    ),
    NamedBug(
        "an older use of a key overwrites a newer one after a write that failed",
        "api/accounts/meter.py",
        "touched | self._touched",
        "self._touched | touched",
        ("api/test_last_uses.py",),
    ),
    NamedBug(
        "a Pexels photographer is named without a link",
        "sources/providers/pexels.py",
        '(" by ", (name, profile))',
        '(" by ", name)',
        _RULES,
    ),
    NamedBug(
        "a Wikimedia credit names the author twice",
        "sources/providers/wikimedia.py",
        "if artist and not credit",
        "if artist",
        _RULES,
    ),
    NamedBug(
        "the name of a licence goes before its address",
        "sources/record.py",
        'name = normal_license(url) if url else ""\n    name = name or next(',
        "name = next(",
        _RULES,
    ),
)
