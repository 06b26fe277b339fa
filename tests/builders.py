"""Small problems for the tests, and their objective written out as plainly as the formulas allow.

Nothing here is clever on purpose: every constraint is a dense matrix C_k over the rows of X, every sum is a loop. What
the library computes through edges, Laplacians and factorizations is compared with this.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from plain_losses import LOGDET, PlainLoss
from scipy.linalg import eigh

from mahalo import Constraints
from mahalo.solvers import Problem


def dense_forms(constraints: Constraints, n_rows: int) -> list[np.ndarray]:
    """C_k of every constraint: pairs, then triplets, then linear forms."""
    unit = np.eye(n_rows)

    def edge(i, j):
        return np.outer(unit[i] - unit[j], unit[i] - unit[j])

    forms = [edge(i, j) for i, j in constraints.pairs.index]
    forms += [edge(a, b) - edge(a, c) for a, b, c in constraints.triplets.index]
    return forms + [C.toarray() for C in constraints.linear.matrix]


def problem_of(
    constraints: Constraints, X: np.ndarray, gamma: float, offset=0.0, plain_loss: PlainLoss = LOGDET
) -> Problem:
    """The solver-facing problem, in the coordinates X is given in."""
    forms, rows = constraints.edges()
    if constraints.objective is not None:
        forms = forms.split_last()[0]
    origin = np.vstack([X, np.zeros(X.shape[1])])  # row −1
    return Problem(
        points=np.ascontiguousarray(origin[rows], dtype=np.float64),
        forms=forms,
        sign=constraints.sign,
        bound=constraints.bound,
        scale=constraints.scale,
        weight=constraints.weight,
        offset=np.broadcast_to(offset, constraints.n_constraints).astype(np.float64),
        gamma=gamma,
        n_log=len(constraints.pairs) if plain_loss is LOGDET else 0,
        loss=plain_loss.loss,
        tilt=plain_tilt(constraints, X),
    )


def plain_tilt(constraints: Constraints, X: np.ndarray) -> np.ndarray | None:
    """R_0 = Xᵀ C_0 X."""
    return None if constraints.objective is None else X.T @ constraints.objective.toarray() @ X


@dataclass(frozen=True)
class PlainProblem:
    """The same problem with nothing hidden: R_k = Xᵀ C_k X as dense matrices."""

    R: list[np.ndarray]
    sign: np.ndarray
    bound: np.ndarray
    scale: np.ndarray
    gamma: np.ndarray
    offset: np.ndarray
    n_log: int
    plain_loss: PlainLoss = LOGDET
    tilt: np.ndarray | None = None

    @classmethod
    def of(
        cls, constraints: Constraints, X: np.ndarray, gamma: float, offset=0.0, plain_loss: PlainLoss = LOGDET
    ) -> PlainProblem:
        return cls(
            R=[X.T @ C @ X for C in dense_forms(constraints, len(X))],
            sign=constraints.sign,
            bound=constraints.bound,
            scale=constraints.scale,
            gamma=gamma * constraints.weight,
            offset=np.broadcast_to(offset, constraints.n_constraints).astype(np.float64),
            n_log=len(constraints.pairs) if plain_loss is LOGDET else 0,
            plain_loss=plain_loss,
            tilt=plain_tilt(constraints, X),
        )

    @property
    def rank(self) -> int:
        return self.R[0].shape[0]

    def values(self, F: np.ndarray) -> np.ndarray:
        return np.array([c + np.trace(F @ R) for R, c in zip(self.R, self.offset, strict=True)])

    def primal(self, F: np.ndarray) -> float:
        total = sum(self.plain_loss.f(w) for w in np.linalg.eigvalsh(F))
        if self.tilt is not None:
            total += np.trace(self.tilt @ F)
        for k, v in enumerate(self.values(F)):
            if self.sign[k] * (v - self.bound[k]) <= 0 or np.isinf(self.gamma[k]):
                continue
            if k < self.n_log:
                total += self.gamma[k] * (v / self.bound[k] - np.log(v / self.bound[k]) - 1)
            else:
                total += self.gamma[k] / 2 * ((v - self.bound[k]) / self.scale[k]) ** 2
        return total

    def dual(self, lam: np.ndarray) -> float:
        s = self.sign * lam
        total = s @ self.offset - sum(self.plain_loss.conjugate(x) for x in np.linalg.eigvalsh(self.dual_matrix(lam)))
        for k, s_k in enumerate(s):
            if np.isinf(self.gamma[k]):
                total -= s_k * self.bound[k]
            elif k < self.n_log:
                inside = 1 - s_k * self.bound[k] / self.gamma[k]
                total += self.gamma[k] * np.log(inside) if inside > 0 else -np.inf
            else:
                total -= s_k * self.bound[k] + (self.scale[k] * s_k) ** 2 / (2 * self.gamma[k])
        return total

    def dual_matrix(self, lam: np.ndarray) -> np.ndarray:
        """S = −R_0 − Σ s_k R_k."""
        S = -sum(s_k * R for s_k, R in zip(self.sign * lam, self.R, strict=True))
        return S if self.tilt is None else S - self.tilt

    def relative_violation(self, F: np.ndarray) -> np.ndarray:
        return np.maximum(self.sign * (self.values(F) - self.bound), 0.0) / self.scale


def satisfiable(constraints: Constraints, X: np.ndarray, rng: np.random.Generator) -> Constraints:
    """The same constraints with bounds that a metric well away from the identity meets with a little room."""
    B = rng.standard_normal((X.shape[1], X.shape[1] + 3))
    v = PlainProblem.of(constraints, X, np.inf).values(B @ B.T / 6)
    p, t = len(constraints.pairs), len(constraints.triplets)
    room = np.where(constraints.sign > 0, 1.05, 0.95)
    keep = np.ones(constraints.n_constraints, dtype=bool)
    keep[p : p + t] = v[p : p + t] < 0
    moved = Constraints(
        dataclasses.replace(constraints.pairs, bound=(v * room)[:p]),
        dataclasses.replace(constraints.triplets, margin=0.9 * np.abs(v[p : p + t])),
        dataclasses.replace(constraints.linear, bound=(v * room)[p + t :]),
        objective=constraints.objective,
    )
    return moved.take(keep)


def shifted(constraints: Constraints, offset: np.ndarray) -> Constraints:
    """The same constraints with bounds moved by `offset`, for problems with c on the left."""
    p, t = len(constraints.pairs), len(constraints.triplets)
    return Constraints(
        dataclasses.replace(constraints.pairs, bound=constraints.pairs.bound + offset[:p]),
        dataclasses.replace(constraints.triplets, margin=constraints.triplets.margin - offset[p : p + t]),
        dataclasses.replace(constraints.linear, bound=constraints.linear.bound + offset[p + t :]),
        objective=constraints.objective,
    )


def mixture(rng: np.random.Generator, X: np.ndarray, kinds) -> Constraints:
    constraints = Constraints()
    if "pairs" in kinds:
        constraints = constraints + random_pair_constraints(rng, X, 8, weights=True)
    if "triplets" in kinds:
        constraints = constraints + random_triplets(rng, X, 5)
    if "linear" in kinds:
        constraints = constraints + random_linear(rng, X, 4)
    return constraints


KINDS = [("pairs",), ("triplets",), ("linear",), ("pairs", "triplets", "linear")]


def random_pairs(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """m different pairs of different rows."""
    every = np.column_stack(np.triu_indices(n, 1))
    return every[rng.choice(len(every), min(m, len(every)), replace=False)]


def random_pair_constraints(rng: np.random.Generator, X: np.ndarray, m: int, weights=False) -> Constraints:
    """About half similar, half dissimilar, most of them violated at W = I by up to a factor of about two."""
    index = random_pairs(rng, len(X), m)
    sq = ((X[index[:, 0]] - X[index[:, 1]]) ** 2).sum(axis=1)
    n_similar = (len(index) + 1) // 2
    weight = rng.uniform(0.3, 3.0, len(index)) if weights else None
    return Constraints.from_pairs(
        index[:n_similar],
        index[n_similar:],
        upper=sq[:n_similar] * rng.uniform(0.4, 1.2, n_similar),
        lower=sq[n_similar:] * rng.uniform(0.8, 2.0, len(index) - n_similar),
        weight=weight,
    )


def random_triplets(rng: np.random.Generator, X: np.ndarray, m: int) -> Constraints:
    index = np.array([rng.choice(len(X), 3, replace=False) for _ in range(m)])
    sq = ((X[index[:, 0]] - X[index[:, 1]]) ** 2).sum(axis=1)
    return Constraints.from_triplets(index, margin=sq * rng.uniform(0.2, 1.0, m), weight=rng.uniform(0.5, 2.0, m))


def random_linear(rng: np.random.Generator, X: np.ndarray, m: int) -> Constraints:
    """Forms over a few rows each, of both senses, whose rows do not sum to zero: they touch the origin."""
    matrices, bounds = [], []
    for _ in range(m):
        rows = rng.choice(len(X), 3, replace=False)
        C = np.zeros((len(X), len(X)))
        B = rng.standard_normal((3, 3))
        C[np.ix_(rows, rows)] = B @ B.T  # positive semidefinite, so that every positive bound can be met
        matrices.append(C)
        bounds.append(np.trace(C @ X @ X.T))
    senses = ["<=" if k % 2 == 0 else ">=" for k in range(m)]
    bounds = [b * (0.6 if s == "<=" else 1.5) for b, s in zip(bounds, senses, strict=True)]
    return Constraints.from_linear(matrices, bounds, sense=senses, weight=rng.uniform(0.5, 2.0, m))


def random_rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def labelled_data(rng: np.random.Generator, n: int = 60, d: int = 4, n_classes: int = 3, apart: float = 2.0):
    """Classes in d dimensions, `apart` times as far from each other as their rows are."""
    y = np.arange(n) % n_classes
    centres = apart * rng.standard_normal((n_classes, d))
    return centres[y] + rng.standard_normal((n, d)) @ np.diag(rng.uniform(0.3, 2.0, d)), y


def assert_same_metric(W: np.ndarray, other: np.ndarray, *certificates) -> None:
    """Two answers with gaps g agree to √(2g) or so, relatively and in every direction.

    The objective is the LogDet divergence plus something convex, so an answer's divergence to the optimum is at
    most its gap, and a divergence g means eigenvalues of W*⁻¹W within about √(2g) of 1.
    """
    values = eigh(W, other, eigvals_only=True)
    within = 2 * sum(np.sqrt(2 * max(c.gap, 0.0)) for c in certificates) + 1e-6
    assert np.abs(values - 1).max() <= within, f"{np.abs(values - 1).max():.2e} > {within:.2e}"
    assert within < 1e-2, "the gaps are too wide to tell"


def relative_violations(metric, X, constraints: Constraints) -> np.ndarray:
    """Of every constraint, from the distances and similarities that the metric itself gives between rows of X."""

    def sq(i, j):
        return metric.pair_distances(X[i], X[j], squared=True)

    pairs, triplets = constraints.pairs.index, constraints.triplets.index
    values = [sq(pairs[:, 0], pairs[:, 1])] if len(pairs) else []
    if len(triplets):
        a, b, c = triplets.T
        values.append(sq(a, b) - sq(a, c))
    if len(constraints.linear):
        K = metric.kernel(X)
        values.append([(C.toarray() * K).sum() for C in constraints.linear.matrix])
    v = np.concatenate(values)
    return np.maximum(constraints.sign * (v - constraints.bound), 0.0) / constraints.scale


def known_check_failures(estimator: object) -> dict[str, str]:
    """Checks of scikit-learn that do not hold for learners, and why."""
    reason = (
        "a row of weight 2 is not two rows: pairs are drawn at random from the rows there are, and priors, bases and "
        "folds count them once"
    )
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    return dict.fromkeys(names, reason)
