r"""Classes of characters by name: Perl's (`\d`), POSIX' (`[:alpha:]`) and Unicode's (`\p{Lu}`, `\p{Greek}`)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from ctrlmgr.regexp.tree import Test

Ranges = tuple[tuple[str, str], ...]

PERL: Mapping[str, Ranges] = {
    "d": (("0", "9"),),
    "s": (("\t", "\n"), ("\f", "\r"), (" ", " ")),
    "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
}

POSIX: Mapping[str, Ranges] = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "ascii": (("\x00", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\x00", "\x1f"), ("\x7f", "\x7f")),
    "digit": (("0", "9"),),
    "graph": (("!", "~"),),
    "lower": (("a", "z"),),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (("A", "Z"),),
    "word": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")),
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
}

_CATEGORIES = "C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
_SCRIPTS = (
    "Adlam Arabic Armenian Balinese Bengali Bopomofo Braille Buginese Cherokee Coptic Cyrillic Devanagari Ethiopic"
    " Georgian Gothic Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana Javanese Kannada Katakana Khmer Lao Latin"
    " Limbu Malayalam Mongolian Myanmar Ogham Oriya Runic Sinhala Syriac Tagalog Tamil Telugu Thaana Thai Tibetan"
    " Tifinagh Yi"
)
_NAMED_OTHERWISE = {"Han": ("CJK UNIFIED", "CJK COMPATIBILITY", "CJK RADICAL", "KANGXI RADICAL", "IDEOGRAPHIC")}


def unicode_class(name: str) -> Test | None:
    """Return a function that tests a character for a general category or a script; None if the name is unknown."""
    if name == "Any":
        return lambda character: True
    if name in _CATEGORIES.split():
        return lambda character: unicodedata.category(character).startswith(name)
    if name in _SCRIPTS.split():
        prefixes = _NAMED_OTHERWISE.get(name, (name.upper(),))
        return lambda character: unicodedata.name(character, "").startswith(prefixes)
    return None
