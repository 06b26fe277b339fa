"""Session: what is asked, what is learned, and that it is a function of the log and the seed alone."""

from __future__ import annotations

import csv
import subprocess
import sys

import numpy as np
import pytest
from people import answered, planted, reply
from sklearn.metrics import roc_auc_score

import mahalo
from mahalo.studio import Session
from mahalo.studio.answer_log import Entry
from mahalo.studio.questions import Question


def auc(metric, X, y):
    i, j = np.triu_indices(len(y), 1)
    return roc_auc_score(y[i] == y[j], -metric.distances(X)[i, j])


@pytest.fixture(scope="module")
def rows():
    return planted()


@pytest.fixture(scope="module")
def asked(rows, tmp_path_factory):
    """A session with 73 right answers, and its log."""
    X, y = rows
    path = tmp_path_factory.mktemp("session") / "answers.jsonl"
    return answered(Session(X, log=path), y, 73), path


def test_answers_bring_a_better_distance_with_a_proof(asked, rows):
    session, _ = asked
    X, y = planted(seed=1)
    ordinary = Session(rows[0]).metric_
    assert auc(ordinary, X, y) < 0.8 < 0.95 < auc(session.metric_, X, y)
    state = session.state()
    assert state.certificate.converged and state.n_consolidated == 70
    assert state.n_held_out == 7
    assert state.n_answers == state.n_same + state.n_different == 73 and state.n_implied > 100
    assert state.contradictions == ()


def test_few_answers_are_called_few_at_once_and_not_after_the_next_consolidation(rows):
    X, y = rows
    session = answered(Session(X), y, 12)
    assert session.state().enough.sentence.endswith(f"{60 - session.state().n_answers} more answers first.")
    session.answer(session.question(), "skip")
    for _ in range(2):
        n = session.state().n_answers
        question = session.question()
        session.answer(question, reply(question, y))
        session.learn_in_background()
        assert session.state().enough.sentence.endswith(f"{60 - n - 1} more answers first.")
        assert session.state().n_consolidated < session.answers().n_entries


def test_held_out_answers_are_judged_by_when_there_are_three_of_either_kind():
    X, y = planted(n=40)
    pairs = [(0, k) for k in range(1, 40) if y[k] == y[0]][:3] + [(0, k) for k in range(1, 40) if y[k] != y[0]][:3]
    seen = []
    session = Session(X)
    for pair in pairs:
        for k in range(9):
            session.log.append(Entry(f"{pair}{k}", "pair", (5, 6), "same"))
        session.log.append(Entry(f"{pair}", "pair", pair, "same" if y[pair[0]] == y[pair[1]] else "different"))
        seen.append(session.state().held_out is not None)
        assert session.state().n_held_out == len(seen)
    assert seen == [False] * 5 + [True]
    state = session.state()
    assert state.held_out.n_pairs == 6 and state.held_out.margin > 0 and state.curve == (state.held_out,)
    index, same = np.array(pairs), np.array([True] * 3 + [False] * 3)
    sq = np.square(X[index[:, 0]] - X[index[:, 1]]).sum(axis=1)
    assert state.held_out.before == pytest.approx(roc_auc_score(same, -sq))


def test_pairs_to_judge_by_are_rows_and_their_nearest_until_most_are_the_same():
    X, y = planted(n=120)
    entries = answered(Session(X), y, 70).log.entries
    D = np.linalg.norm(X[:, None] - X[None], axis=2) + np.diag(np.full(len(X), np.inf))
    answers = []
    for entry in entries[9::10]:
        i, j = entry.rows
        assert "drawn at random" in entry.why
        if answers.count("same") <= answers.count("different"):
            assert D[i].argmin() == j or D[j].argmin() == i
        answers.append(entry.answer)
    assert min(answers.count("same"), answers.count("different")) >= 3


def test_before_five_answers_the_distance_is_the_ordinary_one(rows):
    X, y = rows
    session = answered(Session(X), y, 4)
    D = np.linalg.norm(X[:5, None] - X[None, :7], axis=2)
    np.testing.assert_allclose(session.metric_.distances(X[:5], X[:7]), D, rtol=1e-9, atol=1e-6)
    assert session.state().certificate is None and not session.learn()


def test_a_reopened_session_has_the_metric_to_the_last_bit(asked, rows):
    session, path = asked
    reopened = Session(rows[0], log=path)
    assert np.array_equal(reopened.metric_.matrix, session.metric_.matrix)
    assert np.array_equal(reopened.final().metric.matrix, session.final().metric.matrix)
    assert reopened.question().rows == session.question().rows
    assert reopened.state().curve == session.state().curve


def test_the_metric_depends_on_the_log_alone_not_on_how_it_came_about(asked, rows, tmp_path):
    session, path = asked
    copy = Session(rows[0], log=tmp_path / "copy.jsonl")
    for k, entry in enumerate(session.log.entries):
        copy.log.append(entry)
        if k % 7 == 0:
            copy.learn()
    assert np.array_equal(copy.metric_.matrix, session.metric_.matrix)
    other_seed = Session(rows[0], log=path, random_state=1)
    assert other_seed.question().rows != session.question().rows


def test_undo_restores_the_metric_of_before(rows):
    X, y = rows
    session = answered(Session(X), y, 20)
    before = session.metric_.matrix
    question = session.question()
    session.answer(question, "skip")
    last = session.undo()
    assert last.id == question.id and np.array_equal(session.metric_.matrix, before)
    assert {session.undo().answer, session.undo().answer} <= {"same", "different"}  # one held out, one learned from
    assert not np.array_equal(session.metric_.matrix, before)
    fresh = Session(X)
    assert fresh.undo() is None


def test_undo_takes_back_ones_own_answers_and_a_repeated_request_only_one(rows):
    session = Session(rows[0])
    session.answer(Question("q", "pair", (0, 1), ""), "same", "ann")
    session.answer(Question("r", "pair", (2, 3), ""), "same", "bob")
    assert session.undo("ann", id="u").id == "q"
    assert session.undo("ann", id="u") is None and session.undo("ann") is None
    assert [a.rows for a in session.answers().pairs] == [(2, 3)]


def test_implied_pairs_are_not_asked(rows):
    X, y = rows
    session = Session(X)
    known = []
    for k in range(45):
        question = session.question()
        group = _groups(known, len(X))
        if k % 10 != 9:  # those to judge by are drawn at random
            i, j = question.rows
            assert group[i] != group[j]
            assert {group[i], group[j]} not in [{group[a], group[b]} for a, b, same in known if not same]
        known.append((*question.rows, y[question.rows[0]] == y[question.rows[1]]))
        session.answer(question, reply(question, y))


def _groups(known, n):
    group = list(range(n))
    for a, b, same in known:
        if same:
            group = [group[a] if g == group[b] else g for g in group]
    return group


def test_two_people_are_not_shown_the_same_pair_and_see_each_others_answers(rows, tmp_path):
    X, _ = rows
    session = Session(X, log=tmp_path / "log.jsonl")
    first, second = session.question("ann"), session.question("bob")
    assert first.rows != second.rows and session.question("ann").rows == first.rows
    other = Session(X, log=tmp_path / "log.jsonl", annotator="bob")
    session.answer(first, "same", "ann")
    assert other.state().n_answers == 1 and other.question().rows != first.rows
    other.answer(Question("x", "pair", first.rows, ""), "different")
    (found,) = session.state().contradictions
    assert found.answers[0].by == {"ann": "same", "bob": "different"}


def test_a_question_answered_twice_counts_once(rows):
    session = Session(rows[0])
    question = session.question()
    session.answer(question, "same")
    session.answer(question, "same")
    assert session.state().n_answers == 1
    with pytest.raises(ValueError, match="answered already"):
        session.answer(question, "different")


def test_what_cannot_be_said_is_not_asked_again(rows):
    session = Session(rows[0])
    seen = set()
    for _ in range(12):
        question = session.question()
        assert question.rows not in seen
        seen.add(question.rows)
        session.answer(question, "skip")
    assert session.state().n_skipped == 12 and session.state().certificate is None


@pytest.mark.slow
def test_contradictions_are_asked_again_and_harm_little(rows):
    X, y = rows
    session = answered(Session(X), y, 40)
    links = [a.rows for a in session.answers().pairs if a.same]
    first, second = next((p, q) for p in links for q in links if len(set(p) & set(q)) == 1)
    implied = tuple(sorted(set(first) ^ set(second)))
    session.answer(Question("wrong", "pair", implied, ""), "different")  # though both rows are the same as a third
    repeated = []
    for _ in range(24):
        question = session.question()
        if "once more" in question.why:
            repeated.append(question.rows)
        session.answer(question, reply(question, y))
    assert set(repeated) & {first, second, implied}
    X_new, y_new = planted(seed=1)
    assert auc(session.final().metric, X_new, y_new) > 0.9


@pytest.mark.slow
def test_wrong_answers_are_found(rows):
    X, y = rows
    wrong = {7, 23, 36, 51}
    session = Session(X)
    flipped, repeated = {}, set()
    for k in range(80):
        question = session.question()
        answer = reply(question, y)
        if question.rows in flipped:
            repeated.add(question.rows)
        if k in wrong:
            flipped[question.rows] = answer
            answer = {"same": "different", "different": "same"}[answer]
        session.answer(question, answer)
    state = session.state()
    shown = {d.answer.rows for d in state.doubtful} | {a.rows for c in state.contradictions for a in c.answers}
    assert len((repeated | shown) & set(flipped)) >= len(flipped) / 2
    X_new, y_new = planted(seed=1)
    assert auc(session.final().metric, X_new, y_new) > 0.9


def test_triplets_are_asked_and_learned_from(rows):
    X, y = rows
    session = answered(Session(X, kinds=("triplet",)), y, 60)
    state = session.state()
    assert state.n_triplets > 5 and state.n_answers == state.n_triplets and state.certificate.converged
    X_new, y_new = planted(seed=1)
    assert auc(session.final().metric, X_new, y_new) > auc(session.learning.ordinary, X_new, y_new) + 0.05
    both = answered(Session(X, kinds=("pair", "triplet")), y, 12)
    assert {entry.kind for entry in both.log.entries} == {"pair", "triplet"}


def test_neighbours_change_and_clicks_on_them_become_triplets(asked, rows):
    X, y = rows
    session = Session(X, log=None)
    for entry in asked[0].log.entries:
        session.log.append(entry)
    session.learn()
    found = session.neighbors(5)
    D = np.linalg.norm(X - X[5], axis=1)
    assert found.before.tolist() == np.argsort(D)[1:11].tolist()
    assert (y[found.after] == y[5]).sum() > (y[found.before] == y[5]).sum()
    order = np.argsort(session.latest_metric_.distances(X[5:6], X)[0])
    assert found.after.tolist() == order[1:11].tolist()
    ranks = {int(row): rank for rank, row in enumerate(np.argsort(D)[1:], 1)}
    assert found.rank_before.tolist() == [ranks[int(row)] for row in found.after]
    away = session.judge_neighbor(5, int(found.after[3]), belongs=False)
    near = session.judge_neighbor(5, int(found.after[3]), belongs=True)
    assert away.rows == (5, int(found.after[0]), int(found.after[3])) and away.answer == "first"
    assert near.rows == (5, int(found.after[3]), int(found.after[9]))
    assert session.state().n_triplets == 2


@pytest.mark.slow
def test_export_holds_all_that_is_needed(asked, rows, tmp_path):
    session, _ = asked
    ids = [f"=cmd{k}" if k % 2 else f"row {k}" for k in range(len(rows[0]))]
    found = session.export(tmp_path / "home", ids=ids, y=rows[1])
    assert set(found.files) == {path.name for path in found.folder.iterdir()}
    metric = mahalo.load(found.folder / "metric.safetensors")
    assert np.array_equal(metric.matrix, session.final().metric.matrix)
    with (found.folder / "answers.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 73 and {line["same"] for line in lines} == {"0", "1"}
    cells = [line[side] for line in lines for side in ("left", "right")]
    assert any(cell.startswith("'=cmd") for cell in cells) and not any(cell.startswith("=") for cell in cells)
    run = subprocess.run([sys.executable, found.folder / "use.py"], capture_output=True, text=True, check=True)
    assert "Metric" in run.stdout
    assert "report.html" in found.files


def test_the_export_learns_from_held_out_answers_too(asked):
    session, _ = asked
    assert session.final().n_answers == 73
    assert not np.array_equal(session.final().metric.matrix, session.metric_.matrix)


def test_a_session_goes_on_from_an_earlier_metric(asked, rows):
    X, _ = rows
    earlier = asked[0].final().metric
    session = Session(X, prior=earlier.matrix)
    np.testing.assert_allclose(session.metric_.matrix, earlier.matrix, rtol=1e-6, atol=1e-9)


def test_all_questions_come_to_an_end():
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    session = Session(X)
    for _ in range(10):
        try:
            question = session.question()
        except LookupError as error:
            assert "all questions about these rows" in str(error)
            break
        session.answer(question, reply(question, [0, 0, 1, 1]))
    else:
        pytest.fail("six pairs were asked more than ten times")


def test_label_decisions_are_kept(rows, tmp_path):
    session = Session(rows[0], log=tmp_path / "log.jsonl")
    session.decide_label(3, "change", "b")
    assert Session(rows[0], log=tmp_path / "log.jsonl").answers().labels[3].label == "b"
    assert session.undo().rows == (3,) and session.answers().labels == {}


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.eye(3), {"kinds": ("guess",)}, "kinds must be"),
        (np.eye(3), {"kinds": ()}, "kinds must be"),
        (np.eye(3), {"random_state": None}, "random_state must be a whole number"),
        (np.eye(2), {}, "minimum of 3"),
        ([[np.nan], [0], [1]], {}, "NaN"),
    ],
)
def test_bad_input_is_named(X, options, message):
    with pytest.raises(ValueError, match=message):
        Session(X, **options)


def test_rows_of_another_table_are_refused(asked, rows):
    with pytest.raises(ValueError, match="answers about other rows"):
        Session(rows[0] + 1e-9, log=asked[1])


def test_identical_rows_are_no_obstacle():
    X = np.repeat(np.arange(5.0), 4)[:, None] * [1.0, 0.5]
    y = np.repeat(np.arange(5), 4)
    session = answered(Session(X), y, 25)
    assert np.isfinite(session.metric_.distances(X)).all()
    constant = Session(np.ones((6, 2)))
    constant.log.append(Entry("a", "pair", (0, 1), "same"))
    assert constant.final().certificate is None


@pytest.mark.parametrize("scale", [1e160, 1e-160])
def test_rows_whose_squares_leave_float64_are_refused_before_the_first_question(rng, scale):
    with pytest.raises(ValueError, match="Rescale X"):
        Session(scale * rng.standard_normal((20, 3)))
