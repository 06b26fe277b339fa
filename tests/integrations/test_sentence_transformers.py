"""Models of sentence-transformers that adapt their own vectors, built here from a few words: nothing is downloaded."""

from __future__ import annotations

import dataclasses
import json
import sys

import numpy as np
import pytest
from running import run_python

from mahalo import Constraints, MetricLearner
from mahalo.embeddings import EmbeddingAdapter
from mahalo.embeddings.sentence_transformers import write_adapted_model
from mahalo.metric import Scaling

WORDS = ["pin", "card", "bank", "lost", "stolen", "reset", "change", "code", "number", "money", "transfer", "send"]
WORDS += ["abroad", "rate", "fee", "late", "paid", "twice"]
TOPICS = [WORDS[:6], WORDS[6:12], WORDS[12:]]


@pytest.fixture(scope="module")
def questions() -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 20)
    return [" ".join([*rng.choice(TOPICS[c], 3), *rng.choice(WORDS, 2)]) for c in y], y


def static_model(rng):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: k for k, word in enumerate(["[UNK]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    weights = rng.standard_normal((len(vocabulary), 12)).astype(np.float32)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights)], device="cpu")


def small_transformer(rng, folder):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(vocab_size=5 + len(WORDS), **sizes)).save_pretrained(folder)
    transformer = Transformer(str(folder))
    modules = [transformer, Pooling(transformer.get_embedding_dimension()), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu", prompts={"query": "bank "}, default_prompt_name="query")


@pytest.fixture(scope="module", params=["static", "transformer"])
def model(request, tmp_path_factory):
    pytest.importorskip("sentence_transformers")
    rng = np.random.default_rng(0)
    return static_model(rng) if request.param == "static" else small_transformer(rng, tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def adapter(model, questions):
    return EmbeddingAdapter.from_sentence_transformers(model, *questions, random_state=0)


def assert_close(found, wanted):
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_a_fit_from_sentences_is_a_fit_to_their_vectors(model, adapter, questions):
    E, y = model.encode(questions[0]), questions[1]
    assert_close(adapter.transform(E), EmbeddingAdapter(random_state=0).fit(E, y).transform(E))
    i, j = np.random.default_rng(1).integers(len(y), size=(2, 2000))
    pairs = Constraints.from_pairs(np.column_stack([i, j])[i != j], same=(y[i] == y[j])[i != j])
    found = EmbeddingAdapter.from_sentence_transformers(model, questions[0], constraints=pairs, random_state=0)
    assert found.transform(E).shape == E.shape


def test_the_folder_encodes_adapted_vectors(model, adapter, questions, tmp_path):
    from sentence_transformers import SentenceTransformer

    adapter.to_sentence_transformers(model, tmp_path / "adapted")
    loaded = SentenceTransformer(str(tmp_path / "adapted"), device="cpu", local_files_only=True)
    for prompt in model.prompts or [None]:
        wanted = adapter.transform(model.encode(questions[0], prompt_name=prompt))
        assert_close(loaded.encode(questions[0], prompt_name=prompt), wanted)
    assert (loaded.prompts, loaded.default_prompt_name) == (model.prompts, model.default_prompt_name)
    assert loaded.similarity_fn_name == ("cosine" if adapter.normalize_ else "euclidean")
    assert [path.name for path in tmp_path.iterdir()] == ["adapted"]


def test_the_folder_is_of_their_modules_alone_and_loads_without_this_library(model, adapter, questions, tmp_path):
    adapter.to_sentence_transformers(model, tmp_path / "adapted")
    kinds = [module["type"] for module in json.loads((tmp_path / "adapted" / "modules.json").read_text())]
    assert all(kind.startswith("sentence_transformers.") for kind in kinds)
    suffixes = {path.suffix for path in (tmp_path / "adapted").rglob("*") if path.is_file()}
    assert not suffixes & {".py", ".bin", ".pt", ".pkl"}
    np.save(tmp_path / "wanted.npy", adapter.transform(model.encode(questions[0])))
    (tmp_path / "questions.json").write_text(json.dumps(questions[0]))
    (tmp_path / "run.py").write_text(
        "import json, sys, numpy as np\n"
        "sys.modules['mahalo'] = None\n"
        "from sentence_transformers import SentenceTransformer\n"
        "found = SentenceTransformer('adapted', device='cpu').encode(json.load(open('questions.json')))\n"
        "wanted = np.load('wanted.npy')\n"
        "assert abs(found - wanted).max() < 1e-5 * abs(wanted).max()\n"
    )
    done = run_python(tmp_path / "run.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_folder_is_taken_in_place_of_a_model(model, adapter, questions, tmp_path):
    from sentence_transformers import SentenceTransformer

    model.save(str(tmp_path / "base"), create_model_card=False)
    adapter.to_sentence_transformers(tmp_path / "base", tmp_path / "adapted")
    found = SentenceTransformer(str(tmp_path / "adapted"), device="cpu").encode(questions[0])
    assert_close(found, adapter.transform(model.encode(questions[0])))
    again = EmbeddingAdapter.from_sentence_transformers(str(tmp_path / "base"), *questions, random_state=0)
    assert_close(again.transform(model.encode(questions[0])), adapter.transform(model.encode(questions[0])))


@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"n_components": 3}, {"basis": 4}])
@pytest.mark.parametrize("scaled", [False, True])
def test_every_linear_metric_is_held(model, options, scaled, questions, tmp_path):
    from sentence_transformers import SentenceTransformer

    E = model.encode(questions[0])
    metric = MetricLearner(random_state=0, **options).fit(E, questions[1]).metric_
    if scaled:
        metric = dataclasses.replace(metric, scaling=Scaling.of(E))
    write_adapted_model(metric, model, tmp_path / "adapted")
    found = SentenceTransformer(str(tmp_path / "adapted"), device="cpu").encode(questions[0])
    assert_close(found, metric.transform(E.astype(np.float64)))


# -- what is refused -----------------------------------------------------------------------------------------


def test_what_does_not_fit_says_so(model, adapter, questions, tmp_path):
    from sentence_transformers import SentenceTransformer

    out = tmp_path / "adapted"
    other = EmbeddingAdapter(gammas=[1.0], cv=2).fit(np.random.default_rng(0).standard_normal((60, 5)), questions[1])
    with pytest.raises(ValueError, match=r"vectors of \d+ numbers, but the adapter was fitted to 5"):
        other.to_sentence_transformers(model, out)
    E = model.encode(questions[0])
    curved = MetricLearner(kernel="rbf").fit(E, questions[1]).metric_
    with pytest.raises(ValueError, match="no linear map"):
        write_adapted_model(curved, model, out)
    with pytest.raises(ValueError, match="no folder 'absent'; pass the folder of a model, or SentenceTransformer"):
        adapter.to_sentence_transformers("absent", out)
    with pytest.raises(ValueError, match="must be a SentenceTransformer or the folder of one; got int"):
        adapter.to_sentence_transformers(3, out)
    cut = SentenceTransformer(modules=list(model), device="cpu", truncate_dim=5)
    with pytest.raises(ValueError, match="truncates its vectors to 5"):
        other.to_sentence_transformers(cut, out)
    with pytest.raises(ValueError, match="got one string"):
        EmbeddingAdapter.from_sentence_transformers(model, "pin", [0])
    assert not list(tmp_path.iterdir())
    out.mkdir()
    with pytest.raises(FileExistsError, match="give another folder"):
        adapter.to_sentence_transformers(model, out)


def test_half_a_folder_is_not_left(model, adapter, tmp_path, monkeypatch):
    from sentence_transformers.sentence_transformer.modules import Dense

    def fail(*arguments, **options):
        raise OSError("disk full")

    monkeypatch.setattr(Dense, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        adapter.to_sentence_transformers(model, tmp_path / "adapted")
    assert not list(tmp_path.iterdir())


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    rng = np.random.default_rng(0)
    adapter = EmbeddingAdapter(gammas=[1.0], cv=2).fit(rng.standard_normal((60, 5)), np.repeat(np.arange(3), 20))
    with pytest.raises(ImportError, match=r'pip install "mahalo\[sentence-transformers\]"'):
        adapter.to_sentence_transformers("model", tmp_path / "adapted")
