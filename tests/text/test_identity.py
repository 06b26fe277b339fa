"""Encoder of a model: stored with the metric, and another one is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import mahalo
from mahalo import MetricLearner
from mahalo.explain import Provenance
from mahalo.text import EncoderRecord, check_encoder, encoder_of, load_encoder, load_encoder_for, with_encoder


@pytest.fixture(scope="module")
def metric():
    X = np.random.default_rng(0).normal(size=(40, 26))
    return MetricLearner(random_state=0).fit(X, np.arange(40) % 2).metric_


def test_a_file_names_its_encoder(metric, letter_encoder, tmp_path):
    named = with_encoder(metric, letter_encoder)
    assert encoder_of(metric) is None
    named.save(tmp_path / "m.safetensors")
    loaded = mahalo.load(tmp_path / "m.safetensors")
    assert encoder_of(loaded) == EncoderRecord("letters", "1", 26) == letter_encoder.record
    assert loaded.about["encoder"] == {"name": "letters", "version": "1", "dimension": 26}
    assert Provenance.of(loaded).fit == Provenance.of(metric).fit
    check_encoder(loaded, letter_encoder)


@pytest.mark.parametrize("identity", [{"name": "others", "version": "1"}, {"name": "letters", "version": "2"}])
def test_another_encoder_is_refused(metric, letter_encoder, letters, identity):
    named = with_encoder(metric, letter_encoder)
    with pytest.raises(ValueError, match=r"learned with vectors of letters 1 \(26 dimensions\); got the encoder"):
        check_encoder(named, load_encoder(letters, **identity))


def test_another_dimension_is_refused_by_models_that_name_no_encoder(metric):
    small = load_encoder(lambda texts: np.ones((len(texts), 3)), name="small")
    for use in (check_encoder, with_encoder):
        with pytest.raises(ValueError, match="takes rows of 26 numbers; the encoder small has 3"):
            use(metric, small)


def test_a_name_alone_is_compared_by_name(metric, letter_encoder):
    noted = dataclasses.replace(metric, about={**metric.about, "encoder": "letters"})
    assert encoder_of(noted) == EncoderRecord("letters")
    check_encoder(noted, letter_encoder)
    with pytest.raises(ValueError, match="learned with vectors of small-v1; got the encoder letters 1"):
        check_encoder(dataclasses.replace(metric, about={"encoder": "small-v1"}), letter_encoder)


@pytest.mark.parametrize("stored", [{"version": "1"}, {"name": 3}, {"name": "a", "dimension": "x"}, 7])
def test_a_damaged_record_is_reported(metric, letter_encoder, stored):
    with pytest.raises(ValueError, match="provenance stored with this model is damaged"):
        encoder_of(dataclasses.replace(metric, about={"encoder": stored}))


def test_wordllama_is_loaded_by_its_name(wordllama):
    X = np.random.default_rng(0).normal(size=(20, 256))
    metric = MetricLearner(random_state=0).fit(X, np.arange(20) % 2).metric_
    assert load_encoder_for(metric, cache=False).record == wordllama.record
    assert load_encoder_for(with_encoder(metric, wordllama), cache=False).record == wordllama.record


def test_other_encoders_are_not_loaded_by_name(metric, letter_encoder, letters):
    named = with_encoder(metric, letter_encoder)
    with pytest.raises(ValueError, match=r"learned with vectors of letters 1 .* not loaded by its name alone"):
        load_encoder_for(named)
    assert load_encoder_for(named, letters, name="letters", version="1").record == letter_encoder.record
    with pytest.raises(ValueError, match="got the encoder letters 2"):
        load_encoder_for(named, letters, name="letters", version="2")
