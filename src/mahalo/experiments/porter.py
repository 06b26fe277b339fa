"""Word stems by the rules of M. F. Porter, "An algorithm for suffix stripping", Program 14 (1980), 130–137.

A word is [C](VC)^m[V], with C and V runs of consonants and of vowels; m is the measure of what is left of it when a
suffix goes. Rules are written as in the article: a suffix, what replaces it, and a condition on the stem before it. In
each step the longest suffix that the word ends in decides, whether or not its condition holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

__all__ = ["stem"]

Rules = Mapping[str, str]
Condition = Callable[[str], bool]


@lru_cache(maxsize=1 << 18)
def stem(word: str) -> str:
    """The stem of a word in lower-case letters; words of one or two letters stay as they are."""
    if len(word) <= 2:
        return word
    for step in (_step_1a, _step_1b, _step_1c, _step_2, _step_3, _step_4, _step_5):
        word = step(word)
    return word


_PLURALS = {"sses": "ss", "ies": "i", "ss": "ss", "s": ""}
_DOUBLE_SUFFIXES = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_SHORT_SUFFIXES = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_LAST_SUFFIXES = dict.fromkeys(
    ("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
     "ous", "ive", "ize"),
    "",
)  # fmt: skip


def _step_1a(word: str) -> str:
    return _replaced(word, _PLURALS, lambda stem: True)


def _step_1b(word: str) -> str:
    """(m > 0) EED → EE; (*v*) ED →, ING →, and then the end put right: conflat → conflate, hopp → hop, fil → file."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    suffix = next((s for s in ("ed", "ing") if word.endswith(s)), None)
    if suffix is None or not _has_vowel(before := word[: -len(suffix)]):
        return word
    if before.endswith(("at", "bl", "iz")):
        return before + "e"
    if _ends_in_double_consonant(before) and before[-1] not in "lsz":
        return before[:-1]
    return before + "e" if _measure(before) == 1 and _ends_in_short_syllable(before) else before


def _step_1c(word: str) -> str:
    """(*v*) Y → I."""
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _step_2(word: str) -> str:
    return _replaced(word, _DOUBLE_SUFFIXES, lambda stem: _measure(stem) > 0)


def _step_3(word: str) -> str:
    return _replaced(word, _SHORT_SUFFIXES, lambda stem: _measure(stem) > 0)


def _step_4(word: str) -> str:
    return _replaced(word, _LAST_SUFFIXES, lambda stem: _measure(stem) > 1)


def _step_5(word: str) -> str:
    """(m > 1) E →; (m = 1 and not *o) E →; and then (m > 1) LL → L."""
    if word.endswith("e"):
        m = _measure(word[:-1])
        if m > 1 or (m == 1 and not _ends_in_short_syllable(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _replaced(word: str, rules: Rules, holds: Condition) -> str:
    """By the rule of the longest suffix, if the stem before it meets the condition."""
    suffix = max((s for s in rules if word.endswith(s)), key=len, default=None)
    if suffix is None:
        return word
    before = word[: len(word) - len(suffix)]
    if suffix == "ion" and not before.endswith(("s", "t")):
        return word
    return before + rules[suffix] if holds(before) else word


def _form(word: str) -> str:
    """c or v for each letter; y is a vowel after a consonant."""
    form = ""
    for letter in word:
        form += "v" if letter in "aeiou" or (letter == "y" and form.endswith("c")) else "c"
    return form


def _measure(word: str) -> int:
    return len(re.findall("v+c", _form(word)))


def _has_vowel(word: str) -> bool:
    return "v" in _form(word)


def _ends_in_double_consonant(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _form(word).endswith("c")


def _ends_in_short_syllable(word: str) -> bool:
    """*o: consonant, vowel, consonant, the last not w, x or y."""
    return _form(word).endswith("cvc") and word[-1] not in "wxy"
