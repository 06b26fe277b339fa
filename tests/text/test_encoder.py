"""Encoders: identity, unit rows, batches, progress, and texts that are not sentences."""

from __future__ import annotations

import logging
import sys
import warnings

import numpy as np
import pytest
from running import run_python

from mahalo.progress import Progress
from mahalo.text import load_encoder

SENTENCES = ["I lost my card", "my card is missing", "what is the exchange rate", "how do I change euros to dollars"]


def test_wordllama_is_the_default_and_places_similar_sentences_near(wordllama):
    E = wordllama.encode(SENTENCES)
    assert E.shape == (4, 256) == (4, wordllama.dimension) and E.dtype == np.float32
    assert wordllama.name == "wordllama" and len(wordllama.version) == 16
    np.testing.assert_allclose(np.linalg.norm(E, axis=1), 1.0, atol=1e-6)
    S = E @ E.T
    assert S[0, 1] > S[0, 2] and S[2, 3] > S[0, 3]


def test_vectors_are_those_of_wordllama_itself(wordllama):
    package = pytest.importorskip("wordllama")
    from pathlib import Path

    model = package.WordLlama.load(cache_dir=Path(package.__file__).parent, disable_download=True)
    np.testing.assert_allclose(wordllama.encode(SENTENCES), model.embed(SENTENCES, norm=True), atol=1e-6)


def test_a_row_does_not_depend_on_the_other_texts(wordllama):
    long = "a card " * 3000
    np.testing.assert_array_equal(wordllama.encode([SENTENCES[0], long])[0], wordllama.encode(SENTENCES)[0])


def test_empty_texts_are_zero_rows_and_counted_in_one_warning(wordllama):
    with pytest.warns(UserWarning, match="2 of 4 texts are empty.*the first is text 1") as caught:
        E = wordllama.encode(["card", "", " \n\t", "rate"])
    assert len(caught) == 1
    assert not E[1:3].any() and np.isfinite(E).all() and E[[0, 3]].any(axis=1).all()


@pytest.mark.parametrize(
    "text", ["😀👍🏽", "שלום עולם", "مرحبا بالعالم", "数据", "\x00", "1234", "naïve café", "e\u0301"]
)
def test_unusual_texts_are_finite_unit_rows(wordllama, text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        E = wordllama.encode([text])
    assert np.linalg.norm(E[0]) == pytest.approx(1.0, abs=1e-6)


def test_two_megabytes_in_one_text_are_cut_with_a_warning(wordllama):
    text = "the card is lost " * 120_000
    with pytest.warns(
        UserWarning, match="1 of 2 texts are longer than 100,000 characters, the first is text 1 with 2,"
    ):
        E = wordllama.encode(["card", text])
    assert np.linalg.norm(E[1]) == pytest.approx(1.0, abs=1e-6)


def test_a_column_of_digits_is_warned_of(letter_encoder, wordllama):
    with pytest.warns(UserWarning, match="all 3 texts are only digits.*pass numbers as features"):
        wordllama.encode(["12", "7 000", "99"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wordllama.encode(["12", "seven"])


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["card", None], "text 1 is missing"),
        (["card", float("nan")], "text 1 is missing"),
        (["card", 12.5], "text 1 is '12.5' of type float"),
        (["card", np.arange(3)], r"text 1 is '\[0 1 2\]' of type ndarray"),
        ([b"card"], "text 0 is .* of type bytes"),
        (["card", "half a pair \ud83d"], "text 1 is not valid Unicode"),
        ("card", "expected a list of texts"),
    ],
)
def test_cells_that_are_not_text_are_named(letter_encoder, texts, words):
    with pytest.raises(ValueError, match=words):
        letter_encoder.encode(texts)


def test_numpy_and_pandas_strings_are_texts(letter_encoder):
    np.testing.assert_array_equal(letter_encoder.encode(np.array(["ab", "ba"])), letter_encoder.encode(["ab", "ba"]))
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="text 1 is missing"):
        letter_encoder.encode(pd.Series(["ab", pd.NA]))
    np.testing.assert_array_equal(letter_encoder.encode(pd.Series(["ab", "c"])), letter_encoder.encode(["ab", "c"]))


def test_no_text_is_no_row(letter_encoder):
    assert letter_encoder.encode([]).shape == (0, 26)


def test_a_function_is_an_encoder(letters):
    encoder = load_encoder(letters)
    assert (encoder.name, encoder.version, encoder.dimension) == ("LetterCounts", None, 26)
    np.testing.assert_allclose(encoder.encode(["aab"])[0, :2], np.array([2, 1]) / np.sqrt(5), rtol=1e-6)
    assert encoder.cache_path is None


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda texts: np.ones(3), r"shape \(3,\) for one text"),
        (
            lambda texts: np.ones((len(texts), 1 + (len(texts) > 1))),
            r"shape \(2, 2\).*expected numbers of shape \(2, 1\)",
        ),
        (lambda texts: np.full((len(texts), 2), np.nan), "returned NaN or infinity for the text 'one'"),
        (lambda texts: [["a"]] * len(texts), "expected numbers"),
    ],
)
def test_a_function_that_returns_something_else_is_refused(function, words):
    with pytest.raises(ValueError, match=words):
        load_encoder(function).encode(["one", "two"])


def test_equal_texts_are_encoded_once(letter_encoder, letters):
    letters.seen.clear()
    E = letter_encoder.encode(["ab", "c", "ab"])
    assert sorted(letters.seen) == ["ab", "c"]
    np.testing.assert_array_equal(E[0], E[2])


def test_progress_counts_batches(letter_encoder):
    lines: list[str] = []
    letter_encoder.encode([f"{chr(97 + k % 26)} {k}" for k in range(2500)], Progress(lines.append))
    assert [line.split(",")[1].split(" s")[0].strip() for line in lines] == [
        "batch 1 of 3",
        "batch 2 of 3",
        "batch 3 of 3",
    ]
    assert "left" in lines[-1]


def test_a_name_is_for_functions():
    with pytest.raises(ValueError, match="for functions"):
        load_encoder(name="mine")


def test_without_wordllama_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ImportError, match=r'pip install "mahalo\[text\]"'):
        load_encoder()


def test_loading_leaves_the_root_logger_alone(tmp_path):
    pytest.importorskip("wordllama")
    code = "import logging; from mahalo.text import load_encoder; load_encoder(cache=False); "
    code += "root = logging.getLogger(); print(root.handlers, root.level)"
    assert run_python("-c", code, cwd=tmp_path).stdout.strip() == f"[] {logging.WARNING}"


def test_the_whole_path_works_with_sockets_blocked(tmp_path):
    pytest.importorskip("wordllama"), pytest.importorskip("bm25s")
    code = """
import sys
def refuse(event, details):
    if event in ("socket.__new__", "socket.connect", "socket.getaddrinfo"):
        raise RuntimeError(f"network: {event} {details}")
sys.addaudithook(refuse)
import numpy as np, mahalo
from mahalo.embeddings import EmbeddingAdapter
from mahalo.text import HybridIndex, check_encoder, load_encoder, with_encoder, word_weights
encoder = load_encoder()
texts = [f"{what} {n} times" for what in ("card lost", "change euros to dollars") for n in range(20)]
E, y = encoder.encode(texts), np.arange(40) // 20
metric = with_encoder(EmbeddingAdapter(random_state=0).fit(E, y).metric_, encoder)
metric.save("m.safetensors")
metric = mahalo.load("m.safetensors")
check_encoder(metric, encoder)
print(HybridIndex(texts, encoder, metric).search(["my card is lost"], 3).rows.max() < 20)
print(word_weights(encoder, metric, n=3).n_words > 1000)
"""
    done = run_python("-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]
