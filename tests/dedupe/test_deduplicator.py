"""Duplicates of tables that are made up: copies with small changes, between two tables and in one."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo.dedupe import Deduplicator, fold_text, number_columns, propose_pairs, text_columns
from mahalo.dedupe.groups import find_groups
from mahalo.text import load_encoder


@pytest.fixture
def copies(rng):
    """300 things with a telling column and one without meaning; 150 of them once more, changed a little."""
    things = rng.normal(size=(300, 4))
    again = things[:150] + 0.1 * rng.normal(size=(150, 4))
    first = {"name": things, "noise": 0.3 * rng.normal(size=(300, 2))}
    second = {"name": again, "noise": 0.3 * rng.normal(size=(150, 2))}
    return first, second


def joined(first, second):
    return {name: np.vstack([first[name], second[name]]) for name in first}


def score(found, truth):
    pairs = set(map(tuple, found.pairs.tolist()))
    return len(pairs & truth) / max(1, len(pairs)), len(pairs & truth) / len(truth)


def test_copies_are_found_between_two_tables(copies):
    first, second = copies
    pairs = propose_pairs(first, 150, against=second)
    finder = Deduplicator(precision=0.9).fit(first, pairs, pairs[:, 0] == pairs[:, 1], against=second)
    assert finder.weights_["name"] > 10 * finder.weights_["noise"]
    found = finder.find(first, against=second)
    precision, recall = score(found, {(k, k) for k in range(150)})
    assert precision > 0.85 and recall > 0.9
    assert found.expected_precision >= 0.9
    assert (found.groups[found.pairs[:, 0]] == found.other_groups[found.pairs[:, 1]]).all()
    assert found.groups.shape == (300,) and found.other_groups.shape == (150,)


def test_copies_are_found_in_one_table(copies):
    table = joined(*copies)
    pairs = propose_pairs(table, 150)
    finder = Deduplicator(precision=0.9).fit(table, pairs, pairs[:, 1] - pairs[:, 0] == 300)
    found = finder.find(table)
    precision, recall = score(found, {(k, 300 + k) for k in range(150)})
    assert precision > 0.85 and recall > 0.9
    assert (found.pairs[:, 0] < found.pairs[:, 1]).all() and found.other_groups is None


def test_a_higher_precision_accepts_fewer_pairs(copies):
    first, second = copies
    pairs = propose_pairs(first, 200, against=second)
    same = pairs[:, 0] == pairs[:, 1]
    counts = []
    for precision in (0.5, 0.7, 0.85):
        found = Deduplicator(precision=precision).fit(first, pairs, same, against=second).find(first, against=second)
        assert found.expected_precision >= precision
        counts.append(len(found.pairs))
    assert counts[0] > counts[1] > counts[2]


def test_pairs_that_are_more_likely_different_are_counted(copies):
    first, second = copies
    pairs = propose_pairs(first, 200, against=second)
    finder = Deduplicator(precision=0.5).fit(first, pairs, pairs[:, 0] == pairs[:, 1], against=second)
    found = finder.find(first, against=second)
    assert found.n_doubtful == (finder.probability(first, found.pairs, against=second) < 0.5).sum() > 0
    assert f"{found.n_doubtful} with a probability below 0.5" in str(found)


def test_other_columns_than_those_learned_from_are_refused(copies):
    first, second = copies
    pairs = propose_pairs(first, 100, against=second)
    finder = Deduplicator().fit(first, pairs, pairs[:, 0] == pairs[:, 1], against=second)
    for ask in (finder.find, lambda columns: finder.probability(columns, [[0, 1]])):
        with pytest.raises(ValueError, match="columns are name; learned from name, noise"):
            ask({"name": first["name"]})


def test_groups_hold_all_copies_of_a_thing(rng):
    things = np.repeat(rng.normal(size=(60, 5)), 3, axis=0) + 0.02 * rng.normal(size=(180, 5))
    pairs = propose_pairs(things, 250)
    found = Deduplicator(precision=0.99).fit(things, pairs, pairs[:, 0] // 3 == pairs[:, 1] // 3).find(things)
    assert found.n_groups == 60
    assert all(len(set(found.groups[3 * k : 3 * k + 3])) == 1 for k in range(60))
    assert len(found.pairs) == 180


def test_equality_may_speak_against_a_pair(rng):
    """Records of one source share their spelling: equal there means two things, not one."""
    things = rng.normal(size=(200, 3))
    near = things + 0.05 * rng.normal(size=(200, 3))
    table = {
        "name": np.vstack([things, near, things + 0.01 * rng.normal(size=(200, 3))]),
        "source": np.repeat([0.0, 1.0, 0.0], 200),
    }
    rows = np.arange(60)
    pairs = np.vstack([np.column_stack([rows, rows + shift]) for shift in (100, 200, 300, 400)])
    same = (pairs[:, 0] % 200 == pairs[:, 1] % 200) & (pairs[:, 0] // 200 % 2 != pairs[:, 1] // 200 % 2)
    finder = Deduplicator().fit(table, pairs, same)
    assert finder.model_.equal_columns == (1,) and finder.model_.equal_weight[0] > 0


def test_base_rate_corrects_pairs_chosen_by_their_answer(copies):
    first, second = copies
    close = propose_pairs(first, 400, against=second)
    same = close[:, 0] == close[:, 1]
    few = np.concatenate([np.flatnonzero(same), np.flatnonzero(~same)[:20]])
    plain = Deduplicator().fit(first, close[few], same[few], against=second)
    corrected = Deduplicator(base_rate=0.05).fit(first, close[few], same[few], against=second)
    everything = np.array([(a, b) for a in range(40) for b in range(40)])
    means = [one.probability(first, everything, against=second).mean() for one in (plain, corrected)]
    assert means[1] < means[0]


def test_proposed_pairs_are_near_distinct_and_repeatable(copies):
    first, second = copies
    pairs = propose_pairs(first, 100, against=second, random_state=3)
    np.testing.assert_array_equal(pairs, propose_pairs(first, 100, against=second, random_state=3))
    assert 80 <= len(np.unique(pairs, axis=0)) == len(pairs) <= 100
    X, Y = (np.hstack(list(side.values())) for side in copies)
    away = np.linalg.norm(X[:, None] - Y[None], axis=2)
    for a, b in pairs:
        assert (away[a] < away[a, b]).sum() < 8 or (away[:, b] < away[a, b]).sum() < 8


def test_one_table_proposes_no_row_with_itself(copies):
    pairs = propose_pairs(joined(*copies), 80)
    assert (pairs[:, 0] < pairs[:, 1]).all()


def test_texts_are_folded_and_empty_ones_are_equal():
    assert fold_text("  Na&iuml;ve\nBAYES ") == "naïve bayes"
    encoder = load_encoder(lambda texts: [[text.count("a"), text.count("e"), len(text)] for text in texts], cache=False)
    block = text_columns({"title": ["A Tale", "a tale", "", " "]}, encoder)["title"]
    np.testing.assert_array_equal(block[0], block[1])
    assert not block[2:].any()


def test_numbers_are_standardised_over_both_tables():
    first, second = number_columns({"year": [1990, 1992]}, {"year": [1994, 1996]})
    both = np.concatenate([first["year"], second["year"]])
    assert first["year"].shape == (2, 1)
    assert both.mean() == pytest.approx(0.0) and both.std() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="column 'year' has missing or infinite values"):
        number_columns({"year": [1990, np.nan]})


def test_nothing_certain_is_nothing_found(rng):
    table, pairs = rng.normal(size=(60, 2)), np.array([(k, k + 30) for k in range(30)])
    with pytest.warns(UserWarning, match="no pair is the same with enough certainty"):
        found = Deduplicator(precision=0.99).fit(table, pairs, np.arange(30) % 3 == 0).find(table)
    assert len(found.pairs) == 0 and (found.groups == -1).all() and np.isnan(found.expected_precision)
    assert str(found).startswith("No duplicates found: none of 356 candidates")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": [[0, 9]]}, "pairs refer to row 9, but the table has 4 rows"),
        ({"same": [1, 2]}, "same must hold 2 values, one for each pair.* got 2 for pair 1"),
        ({"same": [1, 1]}, "no labelled pair is different; both kinds are needed"),
        ({"columns": {"a": [1.0, 2.0], "b": [1.0]}}, "columns have different numbers of rows"),
        ({"columns": {"a": [1.0, np.nan, 1.0, 1.0]}}, "column 'a' must hold one finite number or vector"),
        ({"against": {"b": np.ones(4)}}, "both tables must have the same columns; got a and b"),
    ],
)
def test_bad_input_is_named(change, message):
    values = {"columns": {"a": np.arange(4.0)}, "pairs": [[0, 1], [0, 3]], "same": [1, 0], "against": None} | change
    with pytest.raises(ValueError, match=message):
        Deduplicator().fit(values["columns"], values["pairs"], values["same"], against=values["against"])


@pytest.mark.parametrize("value", [0, 1, "high", None])
def test_precision_is_a_share(value):
    with pytest.raises(ValueError, match="precision must be a share between 0 and 1"):
        Deduplicator(precision=value).fit(np.eye(3), [[0, 1], [0, 2]], [1, 0])


@pytest.mark.parametrize("n_other", [None, 100_000])
def test_a_long_chain_is_given_up_before_its_pairs_are_listed(n_other):
    """All pairs of 100,000 rows would take 80 GB."""
    chain = np.column_stack([np.arange(99_999), np.arange(1, 100_000)])
    chain = chain if n_other is None else np.concatenate([chain, chain[:, ::-1]])
    n_asked = []
    found = find_groups(
        chain, lambda pairs: n_asked.append(len(pairs)) or np.full(len(pairs), 0.99), 0.95, 100_000, n_other
    )
    assert max(n_asked) <= 10 * len(chain) and 0 < len(found.pairs) <= max(n_asked)


@pytest.mark.parametrize("n_other", [None, 6])
def test_groups_imply_all_pairs_of_their_rows(n_other):
    """In one table 0-1-2 and 4-5; between two the rows 0 and 1 with 2 and 3 of the other."""
    accepted = np.array([[0, 1], [1, 2], [4, 5]] if n_other is None else [[0, 2], [0, 3], [1, 3]])
    found = find_groups(accepted, lambda pairs: np.full(len(pairs), 0.99), 0.95, 6, n_other)
    expected = [(0, 1), (0, 2), (1, 2), (4, 5)] if n_other is None else [(0, 2), (0, 3), (1, 2), (1, 3)]
    assert sorted(map(tuple, found.pairs.tolist())) == expected
    assert found.groups.tolist() == ([0, 0, 0, -1, 1, 1] if n_other is None else [0, 0, -1, -1, -1, -1])


@pytest.mark.parametrize(
    ("columns", "against", "message"),
    [
        ({"a": [1.0, 2.0], "b": [0.0, 1.0]}, {"b": [1.0, 2.0], "a": [0.0, 1.0]}, "same columns; got a, b and b, a"),
        (
            {"a": np.ones((4, 3))},
            {"a": np.ones((4, 1))},
            "'a' must have vectors of one length in both tables; got 3 and 1",
        ),
        ({"a": [1.0]}, None, "at least 2 rows are needed to find duplicates in a table; got 1"),
    ],
)
def test_pairs_are_proposed_for_tables_that_can_be_compared_only(columns, against, message):
    with pytest.raises(ValueError, match=message):
        propose_pairs(columns, 5, against=against)
