"""Models in local folders: model2vec for real, sentence-transformers through a module of the same interface."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save_file

from mahalo.text import load_encoder, word_weights


def tokenizer_of(words: dict[str, int]):
    """Tokenizer that knows whole words."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return tokenizer


@pytest.fixture
def static_model(tmp_path):
    """Folder of a model2vec model of six words, three of them about cards."""
    model2vec = pytest.importorskip("model2vec")
    words = ["[UNK]", "card", "lost", "bank", "euro", "rate", "change"]
    tokenizer = tokenizer_of({word: k for k, word in enumerate(words)})
    vectors = np.vstack([np.zeros(3), np.tile([3.0, 0, 1], (3, 1)), np.tile([0, 2.0, 1], (3, 1))]).astype(np.float32)
    folder = tmp_path / "six-words"
    model2vec.StaticModel(vectors, tokenizer, config={"model_type": "model2vec"}).save_pretrained(folder)
    return folder


def test_model2vec_by_path(static_model):
    encoder = load_encoder(static_model)
    assert (encoder.name, encoder.dimension) == ("six-words", 3)
    E = encoder.encode(["lost card", "euro rate"])
    np.testing.assert_allclose(E, [[3, 0, 1] / np.sqrt(10), [0, 2, 1] / np.sqrt(5)], rtol=1e-6)
    assert encoder.vocabulary() == ["card", "lost", "bank", "euro", "rate", "change"]
    assert encoder.cache_path.name.startswith("six-words-")


def test_texts_without_known_words_are_zero_rows(static_model):
    with pytest.warns(UserWarning, match="1 of 2 texts are empty or have no word that six-words knows"):
        assert not load_encoder(static_model).encode(["card", "weather"])[1].any()


def test_another_set_of_weights_is_another_version(static_model):
    before = load_encoder(static_model).version
    (static_model / "README.md").write_text("other words")
    assert load_encoder(static_model).version == before
    save_file({"embeddings": np.ones((7, 3), dtype=np.float32)}, static_model / "model.safetensors")
    assert load_encoder(static_model).version != before


def test_a_real_sentence_transformers_model(tmp_path):
    package = pytest.importorskip("sentence_transformers")
    from sentence_transformers.models import StaticEmbedding

    words = {word: k for k, word in enumerate(["[UNK]", "card", "euro"])}
    tokenizer = tokenizer_of(words)
    vectors = np.array([[0, 0], [3, 4], [0, 2]], dtype=np.float32)
    package.SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=vectors)]).save(
        str(tmp_path / "tiny")
    )
    encoder = load_encoder(tmp_path / "tiny")
    assert (encoder.name, encoder.dimension) == ("tiny", 2)
    np.testing.assert_allclose(encoder.encode(["card", "euro euro"]), [[0.6, 0.8], [0, 1]], atol=1e-6)


def test_a_real_transformer_with_local_weights(tmp_path):
    """A BERT of random weights, of two layers and 16 numbers, saved and read again by its folder alone."""
    package = pytest.importorskip("sentence_transformers")
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "card", "lost", "euro", "rate"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    bert = tmp_path / "bert"
    transformers.BertModel(config).save_pretrained(bert, safe_serialization=True)
    transformers.BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(bert)
    modules = package.models
    transformer = modules.Transformer(str(bert), max_seq_length=16)
    model = package.SentenceTransformer(modules=[transformer, modules.Pooling(16)])
    model.save(str(tmp_path / "tiny-bert"))
    encoder = load_encoder(tmp_path / "tiny-bert")
    texts = ["lost card", "euro rate"]
    assert (encoder.name, encoder.dimension, encoder.vocabulary()) == ("tiny-bert", 16, None)
    expected = model.encode(texts)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=1e-5)
    (tmp_path / "tiny-bert" / "model.safetensors").rename(tmp_path / "tiny-bert" / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"pytorch_model.bin, which can run code when it is read"):
        load_encoder(tmp_path / "tiny-bert")


@pytest.fixture
def transformer(tmp_path, monkeypatch):
    """Folder of a sentence-transformers model, and the calls that a module of that name received."""
    folder = tmp_path / "mini"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Transformer"}]))
    save_file({"w": np.eye(2, dtype=np.float32)}, folder / "model.safetensors")
    calls = {}

    class SentenceTransformer:
        def __init__(self, path, **options):
            calls.update(options, path=path)

        def encode(self, texts, show_progress_bar, convert_to_numpy):
            assert not show_progress_bar and convert_to_numpy
            return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)

    module = SimpleNamespace(SentenceTransformer=SentenceTransformer, __spec__=SimpleNamespace(name="fake"))
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return folder, calls


def test_sentence_transformers_by_path_stay_local(transformer):
    folder, calls = transformer
    encoder = load_encoder(str(folder))
    assert (encoder.name, encoder.dimension, encoder.vocabulary()) == ("mini", 2, None)
    np.testing.assert_allclose(encoder.encode(["four"]), [[4, 1] / np.sqrt(17)], rtol=1e-6)
    assert calls["path"] == str(folder) and calls["local_files_only"] is True and calls["trust_remote_code"] is False
    assert calls["model_kwargs"] == {"use_safetensors": True}


def test_a_package_that_is_not_installed_is_named(transformer, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="needs sentence-transformers: pip install sentence-transformers"):
        load_encoder(transformer[0])


def test_pickled_weights_are_refused(transformer):
    folder, _ = transformer
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ValueError, match=r"2_Dense.pytorch_model.bin, which can run code.*expected .safetensors"):
        load_encoder(folder)
    save_file({"w": np.eye(2, dtype=np.float32)}, folder / "2_Dense" / "model.safetensors")
    load_encoder(folder)


def test_files_that_are_not_read_do_not_matter(transformer):
    folder, _ = transformer
    before = load_encoder(folder).version
    for name in ("pytorch_model.bin", "openvino/model.bin", ".git/objects.bin", "README.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"other")
    assert load_encoder(folder).version == before


def test_a_folder_without_weights_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no weights"):
        load_encoder(tmp_path)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("modules.json", [{"type": "custom_code.Model"}]),
        ("modules.json", ["custom"]),
        ("config.json", {"auto_map": {"AutoModel": "modeling.Model"}}),
    ],
)
def test_code_of_a_model_is_refused(transformer, file, content):
    folder, calls = transformer
    (folder / file).write_text(json.dumps(content))
    with pytest.raises(ValueError, match="needs code of its own"):
        load_encoder(folder)
    assert not calls


def test_damaged_settings_are_named(transformer):
    (transformer[0] / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json' is damaged"):
        load_encoder(transformer[0])


def test_a_name_that_is_no_folder_is_not_looked_up(tmp_path):
    with pytest.raises(ValueError, match=r"no folder 'somebody/model'.*never downloaded"):
        load_encoder("somebody/model")


def test_words_of_an_encoder_without_a_list_must_be_passed(transformer):
    from mahalo import MetricLearner

    encoder = load_encoder(transformer[0])
    X = np.random.default_rng(0).normal(size=(20, 2))
    metric = MetricLearner(random_state=0).fit(X, np.arange(20) % 2).metric_
    with pytest.raises(ValueError, match="mini has no list of words"):
        word_weights(encoder, metric)
    assert word_weights(encoder, metric, ["card", "euro rate"]).n_words == 2
