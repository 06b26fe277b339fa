"""sentence-transformers: sentences as vectors, and models that adapt their own vectors."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..metric import Metric

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_MISSING = 'models of sentence-transformers need it: pip install "mahalo[sentence-transformers]"'


def load_model(model: SentenceTransformer | str | PathLike) -> SentenceTransformer:
    """Return a model, or that of a local folder; nothing is downloaded and no code of the folder is run."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise ImportError(_MISSING) from None
    if isinstance(model, SentenceTransformer):
        return model
    if not isinstance(model, (str, PathLike)):
        raise ValueError(f"model must be a SentenceTransformer or the folder of one; got {type(model).__name__}.")
    if not Path(model).is_dir():
        raise ValueError(
            f"no folder {str(model)!r}; pass the folder of a model, or SentenceTransformer({str(model)!r}) to have "
            "that library find it."
        )
    return SentenceTransformer(str(model), local_files_only=True, trust_remote_code=False)


def encode(model: SentenceTransformer | str | PathLike, sentences: Sequence[str]) -> np.ndarray:
    """Return one float32 row for each sentence, as the model encodes it by itself."""
    if isinstance(sentences, str):
        raise ValueError("sentences must be a list of strings; got one string.")
    vectors = load_model(model).encode(list(sentences), convert_to_numpy=True, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float32)


def write_adapted_model(metric: Metric, model: SentenceTransformer | str | PathLike, out: str | PathLike) -> None:
    """Write a model followed by the metric's map to a new folder, whole or not at all.

    The map is a Dense module of sentence-transformers, and a Normalize if rows are compared at unit length.
    """
    base = load_model(model)
    folder = Path(out)
    if folder.exists():
        raise FileExistsError(f"{folder} exists; remove it, or give another folder.")
    adapted = _adapted(metric, base)
    temporary = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.tmp")
    try:
        adapted.save(str(temporary), create_model_card=False)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _adapted(metric: Metric, base: SentenceTransformer) -> SentenceTransformer:
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize

    weight, bias = _affine_map(metric)
    _check_dimension(base, len(weight))
    dense = Dense(
        *weight.shape,
        bias=bias is not None,
        activation_function=torch.nn.Identity(),
        init_weight=torch.tensor(weight.T, dtype=torch.float32).contiguous(),
        init_bias=None if bias is None else torch.tensor(bias, dtype=torch.float32),
    )
    after = [dense, Normalize()] if metric.normalize else [dense]
    return SentenceTransformer(
        modules=[*base, *after],
        device="cpu",
        prompts=base.prompts,
        default_prompt_name=base.default_prompt_name,
        similarity_fn_name="cosine" if metric.normalize else "euclidean",
    )


def _affine_map(metric: Metric) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the matrix and the row b of x ↦ x @ matrix + b, None for zero."""
    if not metric.is_linear:
        raise ValueError(
            "a metric with a kernel or over features is no linear map, which is all that modules of "
            "sentence-transformers hold; fit with kernel='linear', features=None, or use metric.to_onnx."
        )
    G = metric.linear_map()
    if metric.scaling is None:
        return G, None
    G = G / metric.scaling.scale[:, None]
    return G, -(metric.scaling.mean @ G)


def _check_dimension(base: SentenceTransformer, n_features: int) -> None:
    if base.truncate_dim is not None:
        raise ValueError(
            f"the model truncates its vectors to {base.truncate_dim} numbers after its last module, so that none can "
            "follow; pass a model with truncate_dim=None, and fit on its whole vectors."
        )
    found = base.get_embedding_dimension()
    if found != n_features:
        raise ValueError(
            f"the model has vectors of {found} numbers, but the adapter was fitted to {n_features}; pass the model "
            "whose vectors it was fitted to."
        )
