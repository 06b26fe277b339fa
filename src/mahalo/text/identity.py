"""Encoder of a model: stored by name, version and dimension, and compared with the one in use."""

from __future__ import annotations

import dataclasses

from ..explain import Provenance
from ..explain.encoder_record import EncoderRecord
from ..metric import Metric
from .backends import WORDLLAMA
from .encoder import Cache, Encoder, EncoderSource, TextEncoder, load_encoder


def with_encoder(metric: Metric, encoder: Encoder) -> Metric:
    """Return the metric with the identity of the encoder that made its vectors, which files keep."""
    _check_dimension(metric, encoder)
    record = EncoderRecord(encoder.name, encoder.version, encoder.dimension)
    provenance = Provenance.of(metric)
    return dataclasses.replace(provenance, table=dataclasses.replace(provenance.table, encoder=record)).attach(metric)


def encoder_of(metric: Metric) -> EncoderRecord | None:
    """Return the identity of the encoder that a metric was learned with, or None if it is not stored."""
    stored = Provenance.of(metric).table.encoder
    return EncoderRecord(stored) if isinstance(stored, str) else stored


def check_encoder(metric: Metric, encoder: Encoder) -> None:
    """Raise ValueError if the vectors of an encoder are not those a metric was learned with.

    Parts of the identity that are not stored are not compared; the dimension always is.
    """
    _check_dimension(metric, encoder)
    stored = encoder_of(metric)
    if stored is None:
        return
    current = EncoderRecord(encoder.name, encoder.version, encoder.dimension)
    differs = stored.name != current.name or stored.version not in (None, current.version)
    if differs or stored.dimension not in (None, current.dimension):
        raise ValueError(
            f"this model was learned with vectors of {stored}; got the encoder {current}. Pass that encoder, or fit "
            "the model again with this one."
        )


def load_encoder_for(
    metric: Metric,
    source: EncoderSource = None,
    *,
    name: str | None = None,
    version: str | None = None,
    cache: Cache = True,
) -> TextEncoder:
    """Return the encoder of a model: wordllama if the model names it or none, any other from `source`.

    Arguments are those of `load_encoder`. ValueError if the model names another encoder than the one loaded.
    """
    stored = encoder_of(metric)
    if source is None and stored is not None and stored.name != WORDLLAMA:
        raise ValueError(
            f"this model was learned with vectors of {stored}, which is not loaded by its name alone. Pass the folder "
            "of that model, or its function with name= and version=."
        )
    encoder = load_encoder(source, name=name, version=version, cache=cache)
    check_encoder(metric, encoder)
    return encoder


def _check_dimension(metric: Metric, encoder: Encoder) -> None:
    """Raise ValueError unless the metric takes vectors of the encoder, or these and numbers beside them."""
    record = Provenance.of(metric).table
    beside = record.vectors.get(record.columns[0]) if record.text and record.columns else None
    length = metric.n_features if beside is None else beside
    if length is not None and length != encoder.dimension:
        raise ValueError(
            f"this model takes rows of {length} numbers; the encoder {encoder.name} has "
            f"{encoder.dimension}. Pass the encoder that the model was learned with."
        )
