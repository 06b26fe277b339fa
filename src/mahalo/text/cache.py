"""Cache of text vectors on disk, by content: a digest of the encoder and of the text, and the vector."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path

import numpy as np

from ..explain.encoder_record import EncoderRecord

CACHE_VARIABLE = "MAHALO_CACHE_DIR"
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE name = 'vectors'"
_KEYS_PER_QUERY = 500  # SQLite allows 999 parameters
_CHECKSUM_BYTES = 4
_FLOAT = np.dtype("<f4")


def cache_folder() -> Path:
    """Return the folder of text vectors: `MAHALO_CACHE_DIR` if set, else in the user's cache directory."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mahalo" / "text"


class VectorCache:
    """Vectors of one encoder in an SQLite file; a failure warns once and switches the cache off.

    Texts themselves are not stored. Every vector has a checksum; a damaged one counts as absent.
    """

    def __init__(self, folder: str | PathLike, encoder: EncoderRecord) -> None:
        identity = f"{encoder.name}\0{encoder.version}\0{encoder.dimension}".encode()
        self._identity = hashlib.sha256(identity).digest()
        self._dimension = int(encoder.dimension or 0)
        name = re.sub(r"[^\w.-]+", "-", encoder.name)[:40]
        self.path = Path(folder) / f"{name}-{self._identity.hex()[:16]}.sqlite"
        self._is_off = False

    def read(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the stored vectors by text."""
        found: dict[str, np.ndarray] = {}
        if self._is_off or not self.path.exists():
            return found
        by_key = {self._key(text): text for text in texts}
        keys, n_damaged = list(by_key), 0
        with self._reporting("read"), self._connection() as connection:
            if connection.execute(_HAS_TABLE).fetchone() is None:  # another process has just made the file
                return found
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                some = keys[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                for key, stored in connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some):
                    if (vector := self._unpack(stored)) is None:
                        n_damaged += 1
                    else:
                        found[by_key[key]] = vector
        if n_damaged:
            self._warn(f"{n_damaged} vectors in it are damaged and are encoded again")
        return found

    def write(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Store the vectors of some texts, all of them or none."""
        if self._is_off:
            return
        rows = [(self._key(text), _pack(vector)) for text, vector in zip(texts, vectors, strict=True)]
        with self._reporting("written"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connection() as connection, connection:  # the second is the transaction
                connection.execute(_TABLE)
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(self._identity + text.encode()).digest()

    def _unpack(self, stored: object) -> np.ndarray | None:
        """Return a stored vector, or None if it is damaged."""
        if not isinstance(stored, bytes) or len(stored) != self._dimension * _FLOAT.itemsize + _CHECKSUM_BYTES:
            return None
        data, checksum = stored[:-_CHECKSUM_BYTES], stored[-_CHECKSUM_BYTES:]
        return np.frombuffer(data, _FLOAT) if _checksum(data) == checksum else None

    def _connection(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self.path))

    @contextmanager
    def _reporting(self, done: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self._is_off = True
            self._warn(f"it cannot be {done} ({error}); going on without it. Delete it, or choose another with cache=")

    def _warn(self, problem: str) -> None:
        warnings.warn(f"cache of text vectors {str(self.path)!r}: {problem}.", UserWarning, stacklevel=5)


def _pack(vector: np.ndarray) -> bytes:
    data = np.asarray(vector, dtype=_FLOAT).tobytes()
    return data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")
