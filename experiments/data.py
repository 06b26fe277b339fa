"""The data sets: `$MAHALO_DATA`, then the user's cache, then the ordinary way to download them.

Each set is a folder of its own name. What was downloaded is kept in the cache, so that it is fetched once.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path

import numpy as np

from mahalo.persistence import write_bytes

__all__ = [
    "Embeddings",
    "Images",
    "JudgedSearches",
    "Table",
    "Texts",
    "cache_folder",
    "load_banking77",
    "load_caltech101",
    "load_classic3",
    "load_classic3_searches",
    "load_newsgroups",
    "load_table",
    "locate",
    "read_table",
]

_BUNDLED = {"iris": "load_iris", "wine": "load_wine", "wdbc": "load_breast_cancer"}
_OPENML = {"balance-scale": 11, "pendigits": 32, "pima": 37, "soybean-large": 42, "ionosphere": 59}
_FROM_UCI = (
    "Get it from the UCI Machine Learning Repository (archive.ics.uci.edu) and save X and y with numpy.savez in such a "
    "file."
)


@dataclass(frozen=True)
class Table:
    """Rows of numbers: X float64 (NaN where a value is missing), y from 0 without gaps."""

    name: str
    X: np.ndarray
    y: np.ndarray
    class_names: tuple[str, ...] = ()
    source: str = ""

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    def complete(self) -> Table:
        """Without the rows that have missing values."""
        kept = ~np.isnan(self.X).any(axis=1)
        classes, y = np.unique(self.y[kept], return_inverse=True)
        names = tuple(self.class_names[c] for c in classes) if self.class_names else ()
        return replace(self, X=self.X[kept], y=y, class_names=names)


@dataclass(frozen=True)
class JudgedSearches:
    """Texts of queries and documents, and (query, relevant document) pairs of their rows."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    relevant: np.ndarray
    source: str


@dataclass(frozen=True)
class Texts:
    """Documents and their classes."""

    name: str
    texts: tuple[str, ...]
    y: np.ndarray
    class_names: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Embeddings:
    """Vectors of unit length made by a frozen encoder, with the split that came with the data."""

    name: str
    X: np.ndarray
    y: np.ndarray
    is_train: np.ndarray
    source: str


@dataclass(frozen=True)
class Images:
    """Grey images and their classes, left in the archive they came in until they are read."""

    name: str
    archive: Path
    members: tuple[str, ...]
    y: np.ndarray
    class_names: tuple[str, ...]
    source: str

    def read(self, index: int, longest_side: int) -> np.ndarray:
        """Image `index` as float32 in [0, 1], rows × columns, shrunk where a side is longer than that."""
        try:
            from PIL import Image
        except ImportError as error:
            raise ImportError("reading images needs Pillow: pip install 'mahalo[experiments]'") from error

        image = Image.open(BytesIO(self._opened.read(self.members[index]))).convert("L")
        image.thumbnail((longest_side, longest_side), Image.Resampling.BILINEAR)
        return np.asarray(image, dtype=np.float32) / 255

    @cached_property
    def _opened(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.archive)

    def take(self, rows: np.ndarray) -> Images:
        """Some of the images; classes keep their numbers."""
        return replace(self, members=tuple(self.members[i] for i in rows), y=self.y[rows])

    def first(self, n_classes: int | None, n_images: int | None) -> Images:
        """The first images of each of the first classes; None: all."""
        classes = range(len(self.class_names))[:n_classes]
        return self.take(np.concatenate([np.flatnonzero(self.y == c)[:n_images] for c in classes]))


# -- where files are ---------------------------------------------------------------------------------------------------


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/mahalo`, by default `~/.cache/mahalo`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mahalo"


def locate(name: str, file: str, remedy: str) -> Path:
    """Path of a file of a data set; FileNotFoundError with the remedy where there is none."""
    path = _find(name, file)
    if path is None:
        raise _missing(name, file, remedy)
    return path


def _missing(name: str, file: str, remedy: str) -> FileNotFoundError:
    cached, *named = (str(folder / name / file) for folder in reversed(_folders()))
    where = f"neither {named[0]} ($MAHALO_DATA) nor {cached}" if named else f"no {cached}, and $MAHALO_DATA is not set"
    return FileNotFoundError(f"the data set {name!r} is missing: there is {where}. {remedy}")


def _folders() -> tuple[Path, ...]:
    named = os.environ.get("MAHALO_DATA")
    return (*((Path(named),) if named else ()), cache_folder())


def _find(name: str, file: str) -> Path | None:
    return next((path for folder in _folders() if (path := folder / name / file).is_file()), None)


# -- tables ------------------------------------------------------------------------------------------------------------


def load_table(name: str) -> Table:
    """A table of numbers by name: iris, wine, wdbc, ionosphere, balance-scale, pima, pendigits, digits389,
    soybean-small, soybean-large, or any npz with X and y in a folder of its name."""
    path = _find(name, f"{name}.npz")
    if path is None:
        _fetch_table(name)
        path = locate(name, f"{name}.npz", _FROM_UCI)
    return read_table(path)


def read_table(path: Path) -> Table:
    """The table in an npz file with X and y, and perhaps class_names; the file's name is its name."""
    with np.load(path, allow_pickle=False) as file:
        lacking = sorted({"X", "y"} - set(file.files))
        if lacking:
            raise ValueError(f"{str(path)!r} must hold arrays X and y; it lacks {', '.join(lacking)}. Save it again.")
        X, y = file["X"].astype(np.float64), file["y"]
        names = file["class_names"] if "class_names" in file.files else np.unique(y)
    y = np.unique(y, return_inverse=True)[1]
    return Table(path.stem, X, y, tuple(map(str, names)), f"{path.stem}: {len(X):,} rows from {path.name}")


def _fetch_table(name: str) -> None:
    """Put the table into the cache, if there is a way to."""
    if name in _BUNDLED:
        from sklearn import datasets

        bunch = getattr(datasets, _BUNDLED[name])()
        _keep_table(name, bunch.data, bunch.target, bunch.target_names)
    elif name in _OPENML:
        X, y, names = _from_openml(name)
        _keep_table(name, X, y, names)
    elif name == "digits389":
        pendigits = load_table("pendigits")
        kept = np.isin(pendigits.y, (3, 8, 9))
        _keep_table(name, pendigits.X[kept], pendigits.y[kept], ("3", "8", "9"))


def _from_openml(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Categories become their number in sorted order, missing values NaN."""
    from sklearn.datasets import fetch_openml
    from sklearn.preprocessing import OrdinalEncoder

    try:
        bunch = fetch_openml(data_id=_OPENML[name], as_frame=True)
    except ImportError as error:
        raise ImportError("downloading tables from OpenML needs pandas: pip install pandas") from error
    except OSError as error:
        raise _missing(name, f"{name}.npz", f"OpenML did not give it: {error}. {_FROM_UCI}") from error
    X = bunch.data.copy()
    categories = X.select_dtypes(exclude="number").columns
    if len(categories):
        X[categories] = OrdinalEncoder().fit_transform(X[categories])
    names, y = np.unique(bunch.target.astype(str), return_inverse=True)
    return X.to_numpy(dtype=np.float64), y, names


def _keep_table(name: str, X, y, class_names) -> None:
    buffer = BytesIO()
    np.savez_compressed(buffer, X=X, y=y, class_names=np.asarray(class_names, dtype=str))
    path = cache_folder() / name / f"{name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, buffer.getvalue())


# -- texts -------------------------------------------------------------------------------------------------------------


def load_classic3() -> Texts:
    """Abstracts of CISI (information science), CRAN (aeronautics) and MED (medicine): three classes."""
    path = locate(
        "classic3",
        "classic3.jsonl.xz",
        "Get cisi, cran and med from the Glasgow collections (ir.dcs.gla.ac.uk/resources/test_collections) and write "
        'one JSON object a document, {"text": ..., "collection": ...}, to that file, compressed with xz.',
    )
    rows = list(_json_lines(path))
    names, y = np.unique([row["collection"] for row in rows], return_inverse=True)
    texts = tuple(row["text"] for row in rows)
    return Texts("Classic3", texts, y, tuple(map(str, names)), f"Classic3: {len(texts):,} abstracts")


def load_classic3_searches() -> JudgedSearches:
    """Queries of CISI, CRAN and MED over the abstracts of all three, and their relevant documents."""
    remedy = "Get the queries and judgements of the Glasgow collections and write them as {} beside the abstracts."
    documents = list(_json_lines(locate("classic3", "classic3.jsonl.xz", remedy.format("JSON lines"))))
    queries = list(_json_lines(locate("classic3", "queries.jsonl.xz", remedy.format("JSON lines"))))
    row_of = {row["id"]: k for k, row in enumerate(documents)}
    query_of = {f"{row['collection']}-{row['qid']}": k for k, row in enumerate(queries)}
    path = locate("classic3", "qrels.tsv", remedy.format("a table of collection, qid, docid and rel"))
    judged = [line.split("\t") for line in path.read_text(encoding="utf8").splitlines()[1:]]
    pairs = {
        (query_of[f"{name}-{query}"], row_of[f"{name}-{document}"])
        for name, query, document, grade in judged
        if float(grade) > 0 and f"{name}-{document}" in row_of and f"{name}-{query}" in query_of
    }
    relevant = np.array(sorted(pairs))
    n_judged = len(np.unique(relevant[:, 0]))
    return JudgedSearches(
        tuple(row["text"] for row in queries),
        tuple(row["text"] for row in documents),
        relevant,
        f"Classic3: {len(documents):,} abstracts, {n_judged} queries with {len(relevant):,} relevant documents",
    )


def load_newsgroups() -> Texts:
    """Posts to 20 newsgroups: the 19,997 of the paper, or, where only scikit-learn's route is open, the 18,846 of the
    "bydate" release. Of the headers, which name the group, only the subject is kept."""
    path = _find("20newsgroups", "20news.tar.xz")
    if path is None:
        return _newsgroups_of_sklearn()
    groups, texts = [], []
    with tarfile.open(path) as archive:
        for member in archive:
            folder, *group = Path(member.name).parts[:-1]
            content = archive.extractfile(member) if folder == "20news-19997" else None
            if content is not None:
                groups.append(group[0])
                texts.append(_subject_and_body(content.read().decode("latin1")))
    names, y = np.unique(groups, return_inverse=True)
    source = f"20 Newsgroups: {len(texts):,} posts, of their headers the subject only"
    return Texts("20 Newsgroups", tuple(texts), y, tuple(map(str, names)), source)


def _newsgroups_of_sklearn() -> Texts:
    from sklearn.datasets import fetch_20newsgroups

    folder = cache_folder() / "20newsgroups"
    try:
        bunch = fetch_20newsgroups(subset="all", data_home=str(folder))
    except OSError as error:
        remedy = (
            f"scikit-learn could not download it: {error}. Get the 19,997 posts from qwone.com/~jason/20Newsgroups and "
            "put them, as 20news-19997/GROUP/POST, into such an archive."
        )
        raise _missing("20newsgroups", "20news.tar.xz", remedy) from error
    texts = tuple(map(_subject_and_body, bunch.data))
    source = (
        f"20 Newsgroups: {len(texts):,} posts (the bydate release, without crossposts), of their headers the "
        "subject only"
    )
    return Texts("20 Newsgroups", texts, bunch.target, tuple(bunch.target_names), source)


def _subject_and_body(post: str) -> str:
    """What its author wrote. The rest of the header names the group (Newsgroups, Path, Xref, …) or the author."""
    header, *body = re.split(r"\r?\n\s*\r?\n", post, maxsplit=1)
    subject = re.search(r"^Subject:(.*)", header, flags=re.MULTILINE)
    return "\n".join([subject[1] if subject else "", *body])


def _json_lines(path: Path) -> Iterator[dict]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


# -- embeddings --------------------------------------------------------------------------------------------------------


def load_banking77() -> Embeddings:
    """Questions to a bank, 77 intents, as 384 numbers each from the frozen encoder all-MiniLM-L6-v2."""
    path = locate(
        "banking77",
        "minilm-l6-embeddings.npz",
        "Embed the questions of PolyAI's banking77 (github.com/PolyAI-LDN/task-specific-datasets) with "
        "sentence-transformers' all-MiniLM-L6-v2, normalised, and save arrays E (rows), y (intents) and split "
        "('train' or 'test') with numpy.savez.",
    )
    with np.load(path, allow_pickle=False) as file:
        X, y, is_train = file["E"].astype(np.float64), file["y"], file["split"] == "train"
    X /= np.linalg.norm(X, axis=1, keepdims=True)  # they were of unit length before they were rounded to 16 bits
    source = f"banking77: {is_train.sum():,} training and {(~is_train).sum():,} test questions, all-MiniLM-L6-v2"
    return Embeddings("banking77", X, y.astype(np.intp), is_train, source)


# -- images ------------------------------------------------------------------------------------------------------------


def load_caltech101() -> Images:
    """Photographs of 101 kinds of objects, without the background class, grey, at most 80 of a kind."""
    path = locate(
        "caltech101",
        "caltech101_gray_80.zip",
        "Get 101_ObjectCategories from data.caltech.edu/records/mzrjq-6wc02, leave out BACKGROUND_Google and put the "
        "JPEG files, as 101_ObjectCategories/<class>/image_NNNN.jpg, into that zip archive.",
    )
    with zipfile.ZipFile(path) as archive:
        members = tuple(sorted(name for name in archive.namelist() if name.endswith(".jpg")))
    names, y = np.unique([Path(member).parent.name for member in members], return_inverse=True)
    source = f"Caltech-101: {len(members):,} images of {len(names)} classes, {np.bincount(y).min()} to "
    return Images(
        "Caltech-101", path, members, y, tuple(map(str, names)), f"{source}{np.bincount(y).max()} a class, grey"
    )
