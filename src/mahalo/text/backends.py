"""Models that turn texts into vectors: wordllama, local model folders, and callables."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..explain.encoder_record import EncoderRecord

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORDLLAMA = "wordllama"  # name of the default encoder
_WORD_START = "▁"  # begins a token that begins a word
_SHORTEST_WORD = 3
_DIGEST_CHARACTERS = 16
_INSTALL = (
    'encoding texts needs wordllama: pip install "mahalo[text]", or pass the folder of a model or a function to '
    "load_encoder"
)


class Backend(Protocol):
    """Model behind an encoder: vectors of texts that were checked, of any length and without a cache."""

    @property
    def record(self) -> EncoderRecord: ...

    def vectors(self, texts: list[str], /) -> ArrayLike:
        """Return one vector per text."""
        ...

    def vocabulary(self) -> list[str] | None:
        """Return words that have a vector of their own; None for models without such words."""
        ...


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Static vectors of tokens; a text is the mean of its tokens."""

    record: EncoderRecord
    embedding: np.ndarray
    tokenizer: Tokenizer

    def vectors(self, texts: list[str]) -> np.ndarray:
        """Return the mean token vector of each text; zero for a text without tokens."""
        tokens = [found.ids for found in self.tokenizer.encode_batch(texts, add_special_tokens=False)]
        lengths = np.array([len(ids) for ids in tokens])
        columns = np.concatenate([np.asarray(ids, dtype=np.int32) for ids in tokens])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        weights = np.repeat(1.0 / np.maximum(lengths, 1), lengths).astype(np.float32)
        pooling = sp.csr_array((weights, columns, starts), shape=(len(texts), len(self.embedding)))
        return pooling @ self.embedding

    def vocabulary(self) -> list[str]:
        """Return tokens that begin a word and have at least three letters, by their number."""
        tokens = self.tokenizer.get_vocab()
        words = (token[1:] for token in sorted(tokens, key=tokens.__getitem__) if token.startswith(_WORD_START))
        return [word for word in words if len(word) >= _SHORTEST_WORD and word.isalpha()]


def load_wordllama() -> WordVectors:
    """Return the word vectors that ship inside the wordllama package; nothing is downloaded."""
    try:
        with _root_logger_unchanged():
            import wordllama
    except ImportError:
        raise ImportError(_INSTALL) from None
    folder = Path(wordllama.__file__).parent
    weights, tokenizer = folder / "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
    try:
        model = wordllama.WordLlama.load("l2_supercat", cache_dir=folder, dim=256, disable_download=True)
        version = file_digest([weights, folder / tokenizer])
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"the installed wordllama lacks its vectors ({error}): pip install --force-reinstall wordllama"
        ) from None
    model.tokenizer.no_padding()  # or one long text would make all others of its batch as long
    return WordVectors(EncoderRecord(WORDLLAMA, version, model.embedding.shape[1]), model.embedding, model.tokenizer)


@contextmanager
def _root_logger_unchanged() -> Iterator[None]:
    """Undo what an imported package does to the root logger: wordllama calls basicConfig."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        for handler in [one for one in root.handlers if one not in handlers]:
            root.removeHandler(handler)
        root.setLevel(level)


def file_digest(paths: Sequence[Path]) -> str:
    """Return a short digest of the contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


@dataclass(frozen=True, eq=False)
class CallableModel:
    """Function from a list of texts to one vector per text, and one that lists its words, if they are known."""

    record: EncoderRecord
    vectors: Callable[[list[str]], ArrayLike]
    vocabulary: Callable[[], list[str] | None] = lambda: None
