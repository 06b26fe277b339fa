"""Encoder of a model: stored by name, version and dimension, and compared with the one in use."""

from __future__ import annotations

import dataclasses

from ..explain import Provenance
from ..explain.encoder_record import EncoderRecord
from ..metric import Metric
from .encoder import Encoder

__all__ = ["check_encoder", "encoder_of", "with_encoder"]


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


def _check_dimension(metric: Metric, encoder: Encoder) -> None:
    if metric.n_features is not None and metric.n_features != encoder.dimension:
        raise ValueError(
            f"this model takes rows of {metric.n_features} numbers; the encoder {encoder.name} has "
            f"{encoder.dimension}. Pass the encoder that the model was learned with."
        )
