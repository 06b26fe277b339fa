"""Encoders: from a list of texts to rows of unit length, in batches and with a cache on disk."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..explain.encoder_record import EncoderRecord
from ..progress import SILENT, Progress
from .backends import Backend, CallableModel, load_wordllama
from .cache import VectorCache, cache_folder
from .checks import check_texts, is_blank, warn_of_numbers
from .local_models import load_folder

EncoderSource = str | PathLike | Callable[[list[str]], ArrayLike] | None
Cache = bool | str | PathLike
_BATCH = 1024  # texts between two lines of progress and two writes of the cache


class Encoder(Protocol):
    """Protocol of encoders of texts: an identity, and `encode`."""

    @property
    def name(self) -> str:
        """Name of the encoder."""
        ...

    @property
    def version(self) -> str | None:
        """Version of its vectors."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, texts: Iterable[str]) -> np.ndarray:
        """Return one float32 row per text."""
        ...


class TextEncoder:
    """Encoder of texts, made by `load_encoder`.

    Attributes
    ----------
    record : EncoderRecord
        Name, version and dimension, as models store them.
    cache_path : pathlib.Path or None
        File of the vectors that were encoded before; None without a cache.
    """

    def __init__(self, backend: Backend, cache: VectorCache | None = None) -> None:
        self._backend, self._cache = backend, cache
        self.record: EncoderRecord = backend.record

    @property
    def name(self) -> str:
        """Name of the encoder."""
        return self.record.name

    @property
    def version(self) -> str | None:
        """Digest of the encoder's files, or the version that was passed with a function."""
        return self.record.version

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.record.dimension or 0)

    @property
    def cache_path(self) -> Path | None:
        """File of the vectors that were encoded before; None without a cache."""
        return None if self._cache is None else self._cache.path

    def without_cache(self) -> TextEncoder:
        """Return this encoder without a cache."""
        return TextEncoder(self._backend)

    def vocabulary(self) -> list[str] | None:
        """Return the words that have a vector of their own; None for models without such words."""
        return self._backend.vocabulary()

    def encode(self, texts: Iterable[str], progress: Progress = SILENT) -> np.ndarray:
        """Return one float32 row of unit length per text.

        Equal texts are encoded once, and texts in the cache not at all. A text without a word that the encoder knows,
        such as an empty one, is a row of zeros; a warning says how many there are.

        Parameters
        ----------
        texts : iterable of str
        progress : Progress
            Reporter of the batches that are done and the time left. Default: silent.

        Returns
        -------
        ndarray of shape (n_texts, dimension), float32
        """
        checked = check_texts(texts)
        warn_of_numbers(checked)
        wanted = list(dict.fromkeys(text for text in checked if not is_blank(text)))
        known = {} if self._cache is None else self._cache.read(wanted)
        missing = [text for text in wanted if text not in known]
        batches = [missing[start : start + _BATCH] for start in range(0, len(missing), _BATCH)]
        for batch in progress.track(batches, len(batches), "encoding texts, batch"):
            rows = self._encode_batch(batch)
            if self._cache is not None:
                self._cache.write(batch, rows)
            known.update(zip(batch, rows, strict=True))
        return self._assemble(checked, known)

    def _encode_batch(self, texts: list[str]) -> np.ndarray:
        """Return checked rows of unit length; rows of zeros stay."""
        rows = np.asarray(self._backend.vectors(texts))
        if rows.shape != (len(texts), self.dimension) or rows.dtype.kind not in "fiu":
            raise ValueError(
                f"encoder {self.name!r} returned an array of shape {rows.shape}, {rows.dtype}, for {len(texts)} texts; "
                f"expected numbers of shape {(len(texts), self.dimension)}."
            )
        rows = rows.astype(np.float64)
        if not (finite := np.isfinite(rows).all(axis=1)).all():
            text = texts[int(np.argmin(finite))]
            raise ValueError(f"encoder {self.name!r} returned NaN or infinity for the text {text[:40]!r}.")
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.where(norms > 0.0, norms, 1.0)).astype(np.float32)

    def _assemble(self, texts: list[str], known: dict[str, np.ndarray]) -> np.ndarray:
        """Return the rows of texts in their order; warn of rows of zeros."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            if text in known:
                rows[row] = known[text]
        if len(empty := np.flatnonzero(~rows.any(axis=1))):
            warnings.warn(
                f"{len(empty)} of {len(texts)} texts are empty or have no word that {self.name} knows, the first is "
                f"text {empty[0]}; their vectors are zero. Leave them out.",
                UserWarning,
                stacklevel=3,
            )
        return rows

    def __repr__(self) -> str:
        return f"TextEncoder({str(self.record)!r})"


def load_encoder(
    source: EncoderSource = None,
    *,
    name: str | None = None,
    version: str | None = None,
    cache: Cache = True,
) -> TextEncoder:
    """Return an encoder of texts; nothing is ever downloaded.

    Parameters
    ----------
    source : path, callable or None
        None: the English word vectors of wordllama, 256 numbers a text (``pip install "mahalo[text]"``). A path: the
        local folder of a model2vec or sentence-transformers model, if that package is installed; its weights must be
        safetensors files, and code of its own is refused. A callable: function from a list of texts to one vector per
        text.
    name, version : str, optional
        Identity of a callable. Without a name its vectors are not cached, since another function might make others.
    cache : bool or path, default=True
        Folder of vectors that were encoded before. True: `MAHALO_CACHE_DIR` if set, else the user's cache directory.
        It holds digests and vectors, not texts. False: none.

    Returns
    -------
    TextEncoder

    Examples
    --------
    >>> from mahalo.text import load_encoder
    >>> encoder = load_encoder(lambda texts: [[len(text), 1.0] for text in texts], name="length", cache=False)
    >>> encoder.encode(["three", "words", "here"]).shape
    (3, 2)
    """
    if callable(source):
        backend: Backend = _load_callable(source, name, version)
        may_cache = name is not None
    else:
        if name is not None or version is not None:
            raise ValueError("name= and version= are for functions; models and wordllama have their own.")
        backend = load_wordllama() if source is None else load_folder(Path(source))
        may_cache = True
    if cache is False or not may_cache:
        return TextEncoder(backend)
    return TextEncoder(backend, VectorCache(cache_folder() if cache is True else Path(cache), backend.record))


def _load_callable(function: Callable[[list[str]], ArrayLike], name: str | None, version: str | None) -> CallableModel:
    """Return a model of a function, which is called once for the dimension."""
    rows = np.asarray(function(["text"]))
    if rows.ndim != 2 or len(rows) != 1:
        raise ValueError(
            f"the function returned an array of shape {rows.shape} for one text; expected (1, dimension): one vector "
            "for each text of a list."
        )
    own = getattr(function, "__qualname__", None) or type(function).__qualname__
    return CallableModel(EncoderRecord(name or own, version, rows.shape[1]), function)
