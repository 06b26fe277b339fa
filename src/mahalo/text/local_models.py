"""Models in local folders, read by model2vec or sentence-transformers: local files, safetensors weights, no code."""

from __future__ import annotations

import importlib.util
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from ..explain.encoder_record import EncoderRecord
from .backends import CallableModel, file_digest

_PICKLED = {".bin", ".ckpt", ".joblib", ".msgpack", ".pickle", ".pkl", ".pt", ".pth", ".h5"}
_MODULES = "sentence_transformers."
_EXPORTS = {"onnx", "openvino"}  # folders of other runtimes, which are not read


def load_folder(folder: Path) -> CallableModel:
    """Return the model of a folder; raise ValueError if it is not there or would need more than numbers."""
    if not folder.is_dir():
        raise ValueError(
            f"no folder {str(folder)!r}: an encoder is the local folder of a model, which is never downloaded here. "
            "Pass its path, a function, or nothing for wordllama."
        )
    files = _model_files(folder)
    _check_weights(folder, files)
    config = _read_json(folder / "config.json")
    _check_code(folder, config)
    name = folder.resolve().name
    version = file_digest([path for path in files if path.suffix not in _PICKLED])
    if isinstance(config, dict) and config.get("model_type") == "model2vec":
        return _load_model2vec(folder, name, version)
    return _load_sentence_transformer(folder, name, version)


def _model_files(folder: Path) -> list[Path]:
    """Return the files a model is read from, without documentation, hidden files and exports for other runtimes."""
    found = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        is_read = path.suffix != ".md" and not any(part.startswith(".") or part in _EXPORTS for part in parts)
        if is_read and path.is_file():
            found.append(path)
    return found


def _check_weights(folder: Path, files: list[Path]) -> None:
    """Raise ValueError unless all weights are safetensors files; others beside those are not read."""
    safe = {path.parent for path in files if path.suffix == ".safetensors"}
    pickled = [path for path in files if path.suffix in _PICKLED and path.parent not in safe]
    if pickled or not safe:
        found = f"{pickled[0].relative_to(folder)}, which can run code when it is read" if pickled else "no weights"
        raise ValueError(
            f"{str(folder)!r} has {found}; expected .safetensors files. Save the model again with safetensors weights."
        )


def _check_code(folder: Path, config: Any) -> None:
    """Raise ValueError if the model names code of its own."""
    modules = _read_json(folder / "modules.json") or []
    kinds = [str(module["type"] if isinstance(module, dict) and "type" in module else module) for module in modules]
    own = [kind for kind in kinds if not kind.startswith(_MODULES)]
    if own or (isinstance(config, dict) and config.get("auto_map")):
        raise ValueError(
            f"{str(folder)!r} needs code of its own ({', '.join(own) or 'auto_map in config.json'}), which is not run "
            "here. Load it yourself and pass a function: load_encoder(model.encode, name=…)."
        )


def _read_json(path: Path) -> Any:
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}); copy the model again.") from None


def _require(package: str, module: str, folder: Path) -> None:
    if importlib.util.find_spec(module) is None:
        raise ImportError(f"the model in {str(folder)!r} needs {package}: pip install {package}")


def _load_model2vec(folder: Path, name: str, version: str) -> CallableModel:
    """Return static vectors of a model2vec model, whose words are its tokens of letters."""
    _require("model2vec", "model2vec", folder)
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(folder)  # a folder that exists is never looked up elsewhere
    return CallableModel(
        EncoderRecord(name, version, int(model.dim)),
        partial(model.encode, use_multiprocessing=False),
        lambda: [token for token in model.tokens if re.fullmatch(r"[^\W\d_]{3,}", token)],
    )


def _load_sentence_transformer(folder: Path, name: str, version: str) -> CallableModel:
    """Return vectors that depend on whole sentences."""
    _require("sentence-transformers", "sentence_transformers", folder)
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(folder), local_files_only=True, trust_remote_code=False, model_kwargs={"use_safetensors": True}
    )
    encode = partial(model.encode, show_progress_bar=False, convert_to_numpy=True)
    return CallableModel(EncoderRecord(name, version, int(encode(["text"]).shape[1])), encode)
