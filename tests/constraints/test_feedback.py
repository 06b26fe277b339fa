"""Feedback as people have it: answers to pairs, names instead of row numbers, graded documents."""

from __future__ import annotations

import numpy as np
import pytest

from mahalo import Constraints, MetricLearner

NAMES = ("ant", "bee", ("c", 3), 4, "elk")


@pytest.mark.parametrize("same", [[1, 0, 1], [True, False, True], np.array([1.0, 0.0, 1.0])])
def test_answers_say_which_pairs_are_alike_and_keep_their_order(same):
    pairs = [[0, 1], [2, 3], [4, 0]]
    found = Constraints.from_pairs(pairs, same=same, upper=[1.0, 2.0], lower=9.0, weight=[1, 2, 3]).pairs
    assert found.index.tolist() == pairs
    assert found.sign.tolist() == [1, -1, 1]
    assert found.bound.tolist() == [1, 9, 2]
    assert found.weight.tolist() == [1, 2, 3]


def test_answers_learn_what_two_lists_learn():
    X = np.random.default_rng(0).standard_normal((12, 3))
    near, far = [[0, 1], [2, 3]], [[4, 5], [6, 7]]
    listed = MetricLearner().fit(X, constraints=Constraints.from_pairs(near, far)).metric_
    answered = Constraints.from_pairs([near[0], far[0], far[1], near[1]], same=[1, 0, 0, 1])
    assert np.allclose(MetricLearner().fit(X, constraints=answered).metric_.distances(X), listed.distances(X))


@pytest.mark.parametrize("same", [[1, 0], [1, 2, 0], [1, np.nan, 0], ["yes", "no", "yes"], [[1, 0, 1]], [-1, 1, 1]])
def test_answers_that_are_none_are_an_error(same):
    with pytest.raises(ValueError, match="same must hold 3 values"):
        Constraints.from_pairs([[0, 1], [2, 3], [4, 0]], same=same)


def test_an_answer_that_is_neither_is_named():
    with pytest.raises(ValueError, match="got 2 for pair 1"):
        Constraints.from_pairs([[0, 1], [2, 3]], same=[1, 2])


def test_answers_beside_dissimilar_pairs_are_an_error():
    with pytest.raises(ValueError, match="first argument"):
        Constraints.from_pairs([[0, 1]], [[2, 3]], same=[1])


def test_names_stand_for_rows():
    pairs = Constraints.from_pairs([("ant", 4)], [(("c", 3), "elk")], index=NAMES)
    assert pairs.pairs.index.tolist() == [[0, 3], [2, 4]]
    assert pairs.n_rows == 5
    triplets = Constraints.from_triplets([("elk", "ant", 4)], index=NAMES)
    assert triplets.triplets.index.tolist() == [[4, 0, 3]]
    quadruplets = Constraints.from_quadruplets([("elk", "ant", 4, "bee")], margin=1.0, index=NAMES)
    assert quadruplets.describe(0) == Constraints.from_quadruplets([[4, 0, 3, 1]], margin=1.0).describe(0)
    assert quadruplets.n_rows == 5


def test_names_may_be_arrays():
    names = np.array(["x", "y", "z"])
    assert Constraints.from_pairs(names[[[2, 0]]], index=names).pairs.index.tolist() == [[2, 0]]
    assert Constraints.from_pairs(np.array([[30, 10]]), index=np.array([10, 20, 30])).pairs.index.tolist() == [[2, 0]]


def test_names_and_grades_may_be_columns_of_a_frame():
    pd = pytest.importorskip("pandas")
    asked = pd.DataFrame({"id": ["ant", "bee"], "to": ["bee", "elk"], "same": [1, 0]})
    found = Constraints.from_pairs(asked[["id", "to"]], same=asked["same"], index=NAMES).pairs
    assert found.index.tolist() == [[0, 1], [1, 4]] and found.sign.tolist() == [1, -1]
    of_three = pd.DataFrame({"query": ["ant"], "near": ["bee"], "far": ["elk"]})
    assert Constraints.from_triplets(of_three, index=NAMES).triplets.index.tolist() == [[0, 1, 4]]
    graded = pd.DataFrame({"query": [0, 0], "document": [1, 2], "grade": [1.5, 0.0]})  # numbers of rows stay whole
    assert Constraints.from_relevance(graded).triplets.index.tolist() == [[0, 1, 2]]
    with pytest.raises(ValueError, match=r"triples must be \(query, document, grade\); got \(0, 1\)"):
        Constraints.from_relevance(graded[["query", "document"]])


def test_unknown_names_are_named():
    with pytest.raises(ValueError, match=r"similar name rows that are not in index: 'cow', 7\."):
        Constraints.from_pairs([("ant", "cow"), (7, "cow")], index=NAMES)
    with pytest.raises(ValueError, match="'p', 'q', 'r' and 1 more"):
        Constraints.from_triplets([("ant", "p", "q"), ("ant", "r", "s")], index=NAMES)


def test_names_that_are_given_twice_are_an_error():
    with pytest.raises(ValueError, match="index must name every row once; 'a' "):
        Constraints.from_pairs([("a", "b")], index=["a", "b", "a"])


def test_names_that_contradict_the_number_of_rows_are_an_error():
    with pytest.raises(ValueError, match="index names 5 rows, but n_rows is 6"):
        Constraints.from_pairs([("ant", 4)], index=NAMES, n_rows=6)


def test_rows_of_names_have_the_right_length():
    with pytest.raises(ValueError, match="triplets must hold 3 names"):
        Constraints.from_triplets([("ant", "bee")], index=NAMES)


# -- relevance -----------------------------------------------------------------------------------------------


def test_grades_order_documents_and_their_ends_make_pairs():
    found = Constraints.from_relevance([(0, 1, 2), (0, 2, 1), (0, 3, 0), (4, 3, 1), (4, 2, 1)])
    assert {tuple(t) for t in found.triplets.index.tolist()} == {(0, 1, 2), (0, 1, 3), (0, 2, 3)}
    assert found.pairs.index[found.pairs.sign > 0].tolist() == [[0, 1]]
    assert found.pairs.index[found.pairs.sign < 0].tolist() == [[0, 3]]


def test_grades_of_different_queries_are_never_compared():
    found = Constraints.from_relevance([(0, 1, 3), (2, 3, 1)])
    assert len(found.triplets) == 0


def test_only_the_order_of_grades_matters():
    one, other = (
        Constraints.from_relevance([(0, 1, a), (0, 2, b), (0, 3, 0)]).triplets.index.tolist()
        for a, b in ((2, 1), (100, 0.5))
    )
    assert one == other


def test_triplets_of_a_query_are_capped_and_repeatable():
    triples = [(0, k, k) for k in range(1, 30)] + [(30, k, k) for k in (1, 2)]
    found = Constraints.from_relevance(triples, most_per_query=7, random_state=0).triplets.index
    assert np.bincount(found[:, 0])[[0, 30]].tolist() == [7, 1]
    assert (found[found[:, 0] == 0, 1] > found[found[:, 0] == 0, 2]).all()
    again = Constraints.from_relevance(triples, most_per_query=7, random_state=0).triplets.index
    assert np.array_equal(found, again)


def test_queries_and_documents_may_be_named():
    found = Constraints.from_relevance([("ant", "bee", 1), ("ant", "elk", 0)], index=NAMES)
    assert found.triplets.index.tolist() == [[0, 1, 4]]
    assert found.n_rows == 5


def test_positive_grades_alone_make_similar_pairs_alone():
    found = Constraints.from_relevance([(0, 1, 1), (2, 3, 1), (0, 1, 1)])
    assert repr(found) == "Constraints(2 similar)"
    assert repr(Constraints.from_relevance([(0, 1, 0)])) == "Constraints(1 dissimilar)"
    assert repr(Constraints.from_relevance([])) == "Constraints(none)"


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ([(0, 1)], "query, document, grade"),
        ([(0, 1, np.nan)], "finite"),
        ([(0, 0, 1)], "not an answer to itself"),
        ([(0, 1, 1), (0, 1, 2)], "another grade already"),
    ],
)
def test_grades_that_make_no_sense_are_an_error(triples, message):
    with pytest.raises(ValueError, match=message):
        Constraints.from_relevance(triples)


def test_a_learner_puts_documents_of_higher_grade_first():
    X = np.random.default_rng(0).standard_normal((60, 4)) * [1, 1, 1, 8]  # the last column is loud and says nothing
    quiet = np.linalg.norm(X[:20, None, :3] - X[None, 20:, :3], axis=2)
    grade = (quiet < np.median(quiet, axis=1, keepdims=True)).astype(int)
    triples = [(q, 20 + d, g) for (q, d), g in np.ndenumerate(grade)]
    metric = MetricLearner().fit(X, constraints=Constraints.from_relevance(triples, random_state=0)).metric_

    def in_order(D):
        return np.mean([(row[g == 0][:, None] > row[g == 1]).mean() for row, g in zip(D, grade, strict=True)])

    plain = np.linalg.norm(X[:20, None] - X[None, 20:], axis=2)
    assert in_order(metric.distances(X[:20], X[20:])) > in_order(plain) + 0.1
