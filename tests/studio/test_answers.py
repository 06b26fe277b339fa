"""Which answers hold, and which contradict each other."""

from __future__ import annotations

import numpy as np

from mahalo.studio.answer_log import Entry
from mahalo.studio.answers import Answers, consistent, contradictions


def log(*lines):
    """Entries from (rows, answer, annotator) or an id to undo, numbered from 0."""
    return [
        Entry(str(k), "undo", (), line)
        if isinstance(line, str)
        else Entry(str(k), "pair" if len(line[0]) == 2 else "triplet", line[0], line[1], *line[2:])
        for k, line in enumerate(lines)
    ]


def test_pairs_are_the_same_in_either_order_and_the_latest_answer_counts():
    answers = Answers.of(log(((3, 1), "same"), ((1, 3), "different"), ((1, 3), "different")))
    (answer,) = answers.pairs
    assert (answer.rows, answer.same, answer.n_times, answer.ordinal) == ((1, 3), False, 2, 0)
    assert answers.n_entries == 3 and answers.n_answers == 1


def test_undone_and_skipped_answers_do_not_hold():
    answers = Answers.of(log(((0, 1), "same"), ((2, 3), "same"), "0", ((4, 5), "skip", "ann")))
    assert [a.rows for a in answers.pairs] == [(2, 3)]
    assert answers.pairs[0].ordinal == 1  # numbers do not shift
    assert answers.skipped == {("pair", (4, 5)): {"ann"}}


def test_an_answer_after_undo_of_the_second_is_the_first_again():
    answers = Answers.of(log(((0, 1), "same"), ((0, 1), "different"), "1"))
    assert answers.pairs[0].same is True


def test_triplets_do_not_depend_on_the_order_shown():
    answers = Answers.of(log(((0, 1, 2), "first", "a"), ((0, 2, 1), "second", "b")))
    assert [(a.rows, a.same) for a in answers.triplets] == [((0, 1, 2), True)]
    disputed = Answers.of(log(((0, 1, 2), "first", "a"), ((0, 2, 1), "first", "b")))
    assert disputed.triplets[0].same is None


def test_people_who_disagree_are_a_contradiction_until_they_agree():
    lines = [((0, 1), "same", "ann"), ((0, 1), "different", "bob")]
    (found,) = contradictions(Answers.of(log(*lines)))
    assert found.kind == "annotators" and found.answers[0].by == {"ann": "same", "bob": "different"}
    assert contradictions(Answers.of(log(*lines, ((0, 1), "same", "bob")))) == ()


def test_a_different_pair_that_same_pairs_connect_is_a_contradiction():
    answers = Answers.of(
        log(((0, 1), "same"), ((1, 2), "same"), ((2, 3), "same"), ((0, 3), "different"), ((5, 6), "same"))
    )
    (found,) = contradictions(answers)
    assert found.kind == "implied"
    assert [a.rows for a in found.answers] == [(0, 3), (0, 1), (1, 2), (2, 3)]


def test_the_longest_link_of_a_contradiction_is_left_out():
    answers = Answers.of(log(((0, 1), "same"), ((1, 2), "same"), ((0, 2), "different"), ((3, 4), "different")))
    kept, left_out = consistent(answers.pairs, np.array([1.0, 2.0, 1.5, 1.0]))
    assert [a.rows for a in left_out] == [(1, 2)] and [a.rows for a in kept] == [(0, 1), (0, 2), (3, 4)]
    # what was said twice stays
    again = Answers.of(log(((0, 1), "same"), ((1, 2), "same"), ((0, 2), "different"), ((1, 2), "same")))
    kept, left_out = consistent(again.pairs, np.array([1.0, 2.0, 1.5]))
    assert [a.rows for a in left_out] == [(0, 1)]


def test_every_tenth_answer_is_held_out_and_stays_so():
    lines = [((0, k), "same") for k in range(1, 26)]
    answers = Answers.of(log(*lines))
    assert [a.rows[1] for a in answers.pairs if a.held_out] == [10, 20]
    assert len(answers.training().pairs) == 23 and len(answers.before(12).pairs) == 12
    assert [a.rows[1] for a in Answers.of(log(*lines, "3")).pairs if a.held_out] == [10, 20]


def test_label_decisions_are_the_latest_for_a_row():
    entries = [
        Entry("a", "label", (3,), "drop"),
        Entry("b", "label", (3,), "change", label="x"),
        *log(((0, 1), "same")),
    ]
    answers = Answers.of(entries)
    assert answers.labels[3].label == "x" and answers.n_entries == 1
