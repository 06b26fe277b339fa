"""The examples that Porter's article gives with each of its rules, carried through to the end of the algorithm."""

from __future__ import annotations

import pytest

from mahalo.experiments import porter
from mahalo.experiments.porter import stem

WHOLE = {
    "connect": "connect", "connected": "connect", "connecting": "connect", "connection": "connect",
    "connections": "connect", "generalizations": "gener", "oscillators": "oscil", "happy": "happi", "sky": "sky",
    "by": "by", "as": "as",
}  # fmt: skip
RULES = {
    "_step_1a": "caresses caress, ponies poni, ties ti, caress caress, cats cat",
    "_step_1b": (
        "feed feed, agreed agree, plastered plaster, bled bled, motoring motor, sing sing, conflated conflate, "
        "troubled trouble, sized size, hopping hop, tanned tan, falling fall, hissing hiss, fizzed fizz, failing fail, "
        "filing file"
    ),
    "_step_2": (
        "relational relate, conditional condition, rational rational, valenci valence, hesitanci hesitance, "
        "digitizer digitize, conformabli conformable, radicalli radical, differentli different, vileli vile, "
        "analogousli analogous, vietnamization vietnamize, predication predicate, operator operate, feudalism feudal, "
        "decisiveness decisive, hopefulness hopeful, callousness callous, formaliti formal, sensitiviti sensitive, "
        "sensibiliti sensible"
    ),
    "_step_3": (
        "triplicate triplic, formative form, formalize formal, electriciti electric, electrical electric, "
        "hopeful hope, goodness good"
    ),
    "_step_4": (
        "revival reviv, allowance allow, inference infer, airliner airlin, gyroscopic gyroscop, adjustable adjust, "
        "defensible defens, irritant irrit, replacement replac, adjustment adjust, dependent depend, adoption adopt, "
        "homologou homolog, communism commun, activate activ, angulariti angular, homologous homolog, "
        "effective effect, bowdlerize bowdler"
    ),
    "_step_5": "probate probat, rate rate, cease ceas, controll control, roll roll",
}


@pytest.mark.parametrize("word", WHOLE)
def test_whole_words(word):
    assert stem(word) == WHOLE[word]


@pytest.mark.parametrize("step", RULES)
def test_every_rule_on_its_published_examples(step):
    apply = getattr(porter, step)
    for example in RULES[step].split(", "):
        word, wanted = example.split()
        assert apply(word) == wanted, word


@pytest.mark.parametrize(
    ("word", "m"),
    [*((w, 0) for w in ("tr", "ee", "tree", "y", "by")), *((w, 1) for w in ("trouble", "oats", "trees", "ivy")),
     *((w, 2) for w in ("troubles", "private", "oaten", "orrery"))],
)  # fmt: skip
def test_measure(word, m):
    assert porter._measure(word) == m
