"""Services in memory: of numbers, of pairs, of texts, of texts with numbers, and of texts with BM25."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="requests are served by starlette: pip install 'mahalo[studio]'")
pytest.importorskip("pyarrow")

from services import HEADERS, HOST, TOKEN, word_counts, write_numbers, write_texts
from starlette.testclient import TestClient

from mahalo.serving.app import make_app
from mahalo.serving.loading import load_service
from mahalo.tables.options import RowOptions
from mahalo.workflows.index_files import index_rows, index_texts


@pytest.fixture(scope="session")
def numbers(tmp_path_factory):
    """A folder with trees.csv, metric.safetensors and same.safetensors."""
    folder = tmp_path_factory.mktemp("numbers")
    write_numbers(folder)
    return folder


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    """A folder with t.csv, texts.safetensors and mixed.safetensors."""
    folder = tmp_path_factory.mktemp("texts")
    with word_counts(folder):
        write_texts(folder)
    return folder


@pytest.fixture(scope="session")
def metric_service(numbers):
    return load_service(numbers / "metric.safetensors", RowOptions(data=[str(numbers / "trees.csv")]))


@pytest.fixture(scope="session")
def pair_service(numbers):
    return load_service(numbers / "same.safetensors", RowOptions(data=[str(numbers / "trees.csv")]))


@pytest.fixture(scope="session", params=["faiss", "usearch"])
def graph_service(request, numbers):
    """A service of a classifier with a saved graph."""
    pytest.importorskip(request.param)
    path, model = numbers / f"{request.param}.safetensors", numbers / "same.safetensors"
    index_rows(model, RowOptions(data=[str(numbers / "trees.csv")]), request.param).save(path)
    return load_service(model, RowOptions(data=[str(path)]))


@pytest.fixture(scope="session")
def text_service(texts):
    with word_counts(texts):
        return load_service(texts / "texts.safetensors", RowOptions(data=[str(texts / "t.csv")]))


@pytest.fixture(scope="session")
def mixed_service(texts):
    with word_counts(texts):
        return load_service(texts / "mixed.safetensors", RowOptions(data=[str(texts / "t.csv")]))


@pytest.fixture(scope="session")
def hybrid_service(texts):
    pytest.importorskip("bm25s")
    model, path = texts / "texts.safetensors", texts / "hybrid.safetensors"
    with word_counts(texts):
        index_texts(model, RowOptions(data=[str(texts / "t.csv")])).save(path)
        return load_service(model, RowOptions(data=[str(path)]))


@pytest.fixture(scope="session")
def client_of():
    """Return a client of a service, with the token and the Host that are wanted."""

    def client(service, **options):
        app = make_app(service, TOKEN, {HOST}, **options)
        return TestClient(app, base_url=f"http://{HOST}", headers=HEADERS, raise_server_exceptions=False)

    return client


@pytest.fixture
def client(pair_service, client_of):
    return client_of(pair_service)
