"""Choice of the next question: which pair or triplet of rows to ask about, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from ..active import AnswerClosure, SimilarityModel
from ..constraints import Constraints
from ..metric import Metric
from .answers import HELD_OUT_EVERY, Answer, Answers, Contradiction, consistent, contradictions
from .learning import Learning

Key = tuple[str, tuple[int, ...]]  # kind and rows of a question, in ascending order after a triplet's anchor

_ROWS_PER_QUESTION, _FEWEST_ROWS = 0.4, 8  # rows in play for each answer, and at least
_FEWEST_OPEN = 20  # open pairs of groups to choose from; more rows come into play until there are as many
_N_SAMPLE = 300  # rows whose distances calibrate the probability of "same"
_NEAR = 20  # nearest rows that the second and third of a triplet are chosen from
_AGAIN_EVERY = 6  # at most every sixth question repeats an earlier one
_DOUBT, _DOUBT_AGAIN = 0.6, 0.8  # probabilities that an answer is wrong: it is doubtful; it is asked again
_N_FOLDS = 5  # of answers, for their doubts
_DOUBT_SHARE = 0.1  # at most this share of all answers is doubtful


class NoQuestion(LookupError):
    """Error of a session in which every question has been answered, or follows from answers."""


@dataclass(frozen=True)
class Question:
    """A question about two or three rows.

    Attributes
    ----------
    id : str
        Identifies the answer: the same question answered twice counts once.
    kind : {"pair", "triplet"}
        "Are these two the same?", or "which of the last two is more like the first?".
    rows : tuple of int
    why : str
        Reason for this question, half a sentence.
    """

    id: str
    kind: str
    rows: tuple[int, ...]
    why: str


@dataclass(frozen=True)
class Doubt:
    """An answer that the learned distance contradicts, and the probability that it is wrong."""

    answer: Answer
    probability: float


def doubts(learning: Learning, answers: Answers, seed: int) -> tuple[Doubt, ...]:
    """Return the answers to pairs that are probably wrong, most doubtful first.

    An answer that was learned from would speak for itself. So answers are divided into five folds, and each is judged
    by a distance learned from the others.
    """
    decided = [answer for answer in answers.pairs if answer.same is not None]
    if len(decided) < 2 * _N_FOLDS:
        return ()
    same = np.array([answer.same for answer in decided], dtype=bool)
    index = np.array([answer.rows for answer in decided])
    fold = np.arange(len(decided)) % _N_FOLDS
    wrong = np.empty(len(decided))
    for k in range(_N_FOLDS):
        others = tuple(answer for answer, own in zip(decided, fold == k, strict=True) if not own)
        metric = learning.consolidate(Answers(others, answers.triplets)).metric
        model, _ = _similarity(learning, metric, index[fold != k], same[fold != k], seed)
        p = model.probability(learning.distances(metric, index[fold == k]))
        wrong[fold == k] = np.where(same[fold == k], 1.0 - p, p)
    order = np.argsort(-wrong, kind="stable")[: max(1, int(_DOUBT_SHARE * len(decided)))]
    return tuple(Doubt(decided[k], float(wrong[k])) for k in order if wrong[k] >= _DOUBT)


class Chooser:
    """Choice of questions from the answers so far and the metric learned from them.

    Parameters
    ----------
    learning : Learning
    seed : int
    kinds : tuple of {"pair", "triplet"}
    """

    def __init__(self, learning: Learning, seed: int, kinds: tuple[str, ...]) -> None:
        self._learning, self._seed, self._kinds = learning, seed, kinds
        self._order = np.random.default_rng([seed, 1]).permutation(len(learning.X))

    def choose(
        self, answers: Answers, metric: Metric, doubtful: Collection[Doubt], avoid: Callable[[Key], bool]
    ) -> tuple[str, tuple[int, ...], str]:
        """Return kind, rows and reason of the next question.

        Parameters
        ----------
        answers : Answers
        metric : Metric
            The metric learned so far.
        doubtful : collection of Doubt
        avoid : callable
            True for questions that are not to be asked now.
        """
        n = answers.n_entries
        rng = np.random.default_rng([self._seed, 2, n, len(answers.skipped)])
        if n % _AGAIN_EVERY == _AGAIN_EVERY - 1 and n % HELD_OUT_EVERY != HELD_OUT_EVERY - 1:
            for answer, why in _worth_repeating(contradictions(answers), doubtful):
                if not avoid(answer.key):
                    return answer.kind, answer.key[1], why
        triplet = self._kinds == ("triplet",) or (len(self._kinds) > 1 and n % 3 == 2)
        if n % HELD_OUT_EVERY == HELD_OUT_EVERY - 1 and not triplet:
            found = self._random_pair(answers, avoid, rng)
        elif triplet:
            found = self._triplet(answers, metric, avoid, rng)
        else:
            found = self._pair(answers, metric, avoid)
        if found is None:
            raise NoQuestion("all questions about these rows have been answered, or follow from answers.")
        return found

    def _pair(
        self, answers: Answers, metric: Metric, avoid: Callable[[Key], bool]
    ) -> tuple[str, tuple[int, ...], str] | None:
        """Return the pair of groups that is most probably "same".

        Among a few rows, two for every five answers, the open pair of groups with the nearest rows: until the groups of
        these rows are known.
        """
        index, same = self._consistent_pairs(answers)
        answered = {a.key for a in answers.pairs} | set(answers.skipped)
        for rows in self._rows_in_play(index):
            groups = _Groups.of(rows, index, same, self._learning.transform(metric, rows))
            found = groups.nearest_open(lambda key: key in answered or avoid(key))
            if found is not None and (found.n_open >= _FEWEST_OPEN or len(rows) == len(self._order)):
                break
        if found is None:
            return None
        if found.sizes != (1, 1):
            return "pair", found.rows, _reason(*found.sizes)
        model, _ = _similarity(self._learning, metric, index, same, self._seed)
        is_likely = model.probability(np.array([found.sq]))[0] >= 0.5
        return (
            "pair",
            found.rows,
            ("likely the same" if is_likely else "new region") + ": neither row is in a group yet",
        )

    def _consistent_pairs(self, answers: Answers) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs whose answers do not contradict each other, and whether they are the same."""
        sq = self._learning.distances(self._learning.ordinary, np.array([a.rows for a in answers.pairs]))
        kept, _ = consistent(answers.pairs, sq)
        index = np.array([a.rows for a in kept], dtype=np.intp).reshape(-1, 2)
        return index, np.array([a.same for a in kept], dtype=bool)

    def _rows_in_play(self, index: np.ndarray) -> Iterator[np.ndarray]:
        """Yield growing sets of rows: all that were asked about, then others in a random order."""
        asked = np.unique(index)
        others = self._order[~np.isin(self._order, asked)]
        n = max(_FEWEST_ROWS, int(_ROWS_PER_QUESTION * (len(index) + 10)), len(asked))
        while True:
            rows = np.concatenate([asked, others[: max(0, n - len(asked))]])
            yield rows
            if len(rows) >= min(len(self._order), 1_000):
                return
            n = max(n + 10, int(1.2 * n))

    def _random_pair(
        self, answers: Answers, avoid: Callable[[Key], bool], rng: np.random.Generator
    ) -> tuple[str, tuple[int, ...], str] | None:
        """Return an open pair that does not depend on the learned metric.

        Any open pair of groups of the rows in play, if most answers held out so far are "same"; else a row that was not
        asked about with the nearest of a sample by the ordinary distance. So both answers are had, however many classes
        there are.
        """
        index, same = self._consistent_pairs(answers)
        answered = {a.key for a in answers.pairs} | set(answers.skipped)
        reason = "drawn at random, to judge what was learned"
        held_out = [a.same for a in answers.pairs if a.held_out]
        if held_out.count(True) <= held_out.count(False):
            pair = self._near_pair(np.setdiff1d(self._order, index), rng)
            if pair is not None and ("pair", pair) not in answered and not avoid(("pair", pair)):
                return "pair", pair, reason
        for rows in self._rows_in_play(index):
            groups = _Groups.of(rows, index, same, self._learning.transform(self._learning.ordinary, rows))
            pairs = [
                pair for pair in groups.open_pairs() if ("pair", pair) not in answered and not avoid(("pair", pair))
            ]
            if len(pairs) >= _FEWEST_OPEN or (pairs and len(rows) == len(self._order)):
                return "pair", pairs[int(rng.integers(len(pairs)))], reason
        return None

    def _near_pair(self, unasked: np.ndarray, rng: np.random.Generator) -> tuple[int, ...] | None:
        """Return one of some rows and the nearest of a sample of rows; None without such a row."""
        if not len(unasked):
            return None
        n, row = len(self._order), int(rng.choice(unasked))
        rows = rng.choice(n, min(n, _N_SAMPLE), replace=False)
        rows = rows[rows != row]
        pairs = np.column_stack([np.full(len(rows), row), rows])
        nearest = int(rows[self._learning.distances(self._learning.ordinary, pairs).argmin()])
        return min(row, nearest), max(row, nearest)

    def _triplet(
        self, answers: Answers, metric: Metric, avoid: Callable[[Key], bool], rng: np.random.Generator
    ) -> tuple[str, tuple[int, ...], str] | None:
        """Return a row and two of its nearest in a sample that are nearly as far from it, but far from each other."""
        n = len(self._order)
        answered = {a.key for a in answers.triplets} | set(answers.skipped)
        for _ in range(50):
            rows = rng.choice(n, min(n, _N_SAMPLE), replace=False)
            D = euclidean_distances(self._learning.transform(metric, rows))
            near = np.argsort(D[0], kind="stable")
            near = near[near != 0][:_NEAR]
            if len(near) < 2:
                return None
            to_anchor = D[0, near]
            i, j = np.triu_indices(len(near), 1)
            score = D[near[i], near[j]] - 2.0 * np.abs(to_anchor[i] - to_anchor[j])
            for k in np.argsort(-score, kind="stable")[:20]:
                anchor, b, c = int(rows[0]), *sorted((int(rows[near[i[k]]]), int(rows[near[j[k]]])))
                key = ("triplet", (anchor, b, c))
                if key not in answered and not avoid(key):
                    return "triplet", (anchor, b, c), "the learned distance cannot tell which is nearer"
        return None


def _similarity(
    learning: Learning, metric: Metric, index: np.ndarray, same: np.ndarray, seed: int
) -> tuple[SimilarityModel, np.ndarray]:
    """Return the probability of "same" by learned distance, fitted to answers, and the squared distances of those."""
    n = len(learning.X)
    rows = np.random.default_rng([seed, 3]).choice(n, min(n, _N_SAMPLE), replace=False)
    T = learning.transform(metric, rows)
    sq = learning.distances(metric, index)
    candidate_sq = euclidean_distances(T, squared=True)[np.triu_indices(len(rows), 1)]
    return SimilarityModel.fit(candidate_sq, sq, same), sq


def _worth_repeating(found: tuple[Contradiction, ...], doubtful: Collection[Doubt]) -> Iterator[tuple[Answer, str]]:
    """Yield answers to ask again, once each: disputed ones, those of contradictions, then doubtful ones."""
    for contradiction in found:
        if contradiction.kind == "annotators" and contradiction.answers[0].n_times < 3:
            yield contradiction.answers[0], "two people disagree about this one; please decide"
    for contradiction in found:
        if contradiction.kind == "implied":
            for answer in contradiction.answers:
                if answer.n_times < 2:
                    yield answer, "earlier answers contradict each other here; please look once more"
    for doubt in doubtful:
        if doubt.answer.n_times < 2 and doubt.probability >= _DOUBT_AGAIN:
            said = "same" if doubt.answer.same else "different"
            yield doubt.answer, f"tests a doubtful answer: “{said}” does not fit the others; please look once more"


@dataclass(frozen=True)
class _OpenPair:
    """A pair of rows of two groups, their squared distance, the sizes of the groups, and the number of open pairs."""

    rows: tuple[int, ...]
    sq: float
    sizes: tuple[int, int]
    n_open: int


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of the rows in play: members, sizes, squared distances of their nearest rows, and open pairs of groups."""

    rows: np.ndarray
    code: np.ndarray
    size: np.ndarray
    sq: np.ndarray
    nearest_sq: np.ndarray
    is_open: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, index: np.ndarray, same: np.ndarray, T: np.ndarray) -> _Groups:
        order = np.argsort(rows)
        local = order[np.searchsorted(rows[order], index)]
        closure = AnswerClosure.of(Constraints.from_pairs(local, same=same, n_rows=len(rows)), len(rows))
        code, n_groups = closure.group, int(closure.group.max()) + 1
        size = np.bincount(code, minlength=n_groups).astype(np.float64)
        sq = euclidean_distances(T, squared=True)
        nearest_sq = np.full((n_groups, n_groups), np.inf)
        np.minimum.at(nearest_sq, (code[:, None], code[None, :]), sq)
        is_open = np.triu(np.ones((n_groups, n_groups), dtype=bool), 1)
        low, high = np.divmod(closure.dissimilar, n_groups)
        is_open[low, high] = False
        return cls(rows, code, size, sq, nearest_sq, is_open)

    def open_pairs(self) -> list[tuple[int, ...]]:
        """Return the nearest rows of every open pair of groups, the nearest first."""
        a, b = np.nonzero(self.is_open)
        order = np.argsort(self.nearest_sq[a, b], kind="stable")
        return [self._nearest_rows(int(a[k]), int(b[k])) for k in order]

    def _nearest_rows(self, a: int, b: int) -> tuple[int, ...]:
        left, right = np.flatnonzero(self.code == a), np.flatnonzero(self.code == b)
        block = self.sq[np.ix_(left, right)]
        i, j = np.unravel_index(block.argmin(), block.shape)
        return tuple(sorted((int(self.rows[left[i]]), int(self.rows[right[j]]))))

    def nearest_open(self, excluded: Callable[[Key], bool]) -> _OpenPair | None:
        """Return the open pair of groups with the nearest rows that is not excluded."""
        a, b = np.nonzero(self.is_open)
        for k in np.argsort(self.nearest_sq[a, b], kind="stable"):
            pair = self._nearest_rows(int(a[k]), int(b[k]))
            if not excluded(("pair", pair)):
                sizes = int(self.size[a[k]]), int(self.size[b[k]])
                return _OpenPair(pair, float(self.nearest_sq[a[k], b[k]]), sizes, len(a))
        return None


def _reason(n_left: int, n_right: int) -> str:
    """Return why a pair of groups of these sizes, one of them larger than 1, is asked about."""
    if min(n_left, n_right) == 1:
        return f"to learn whether a row belongs to a group of {max(n_left, n_right)}"
    return f"uncertain: the answer holds for groups of {n_left} and {n_right} rows"
