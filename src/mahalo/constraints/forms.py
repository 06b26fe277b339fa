"""Linear forms of a symmetric matrix, as edges between rows.

Any symmetric C over the rows of X splits into squared lengths of edges: with κ_ij = x_iᵀ F x_j,

    tr(C κ) = Σ_i κ_ii (Σ_j C_ij) − Σ_{i<j} C_ij ‖x_i − x_j‖²_F

and κ_ii is the squared length of the edge from x_i to the origin. So a pair is one edge, a triplet two, a general
form a few more, and one operator S^r → R^m with its adjoint serves them all: edge lengths, then a sparse
combination of them. Rows are never copied per edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from .._core.edges import edge_dots, edge_gram, edge_laplacian
from ..linalg import in_threads, symmetric_product

_FEW = 30_000  # largest (edges × columns) for which edges are expanded one by one
_ONE_THREAD = 1 << 21  # multiply-adds below which a second thread does not pay
_CHUNK = 1 << 21  # numbers in memory at once while edges are expanded


@dataclass(frozen=True)
class EdgeForms:
    """m linear forms over n rows: edge e joins rows tail[e] and head[e]; form k = Σ_e combine[k, e] · edge e.

    `combine` is None where form k is edge k (pairs only).
    """

    tail: np.ndarray
    head: np.ndarray
    n_rows: int
    combine: sp.csr_array | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if an edge or a form is out of range; the compiled loops do not check."""
        for name, end in (("tail", self.tail), ("head", self.head)):
            if end.dtype != np.intp or end.ndim != 1 or not end.flags.c_contiguous:
                raise ValueError(
                    f"{name} must be a contiguous vector of np.intp; got {end.dtype} of shape {end.shape}."
                )
            low, high = int(end.min(initial=0)), int(end.max(initial=-1))
            if low < 0 or high >= self.n_rows:
                wrong = low if low < 0 else high
                raise ValueError(f"edges join rows 0 to {self.n_rows - 1}; got row {wrong} in {name}.")
        if len(self.tail) != len(self.head):
            raise ValueError(f"every edge has two ends; got {len(self.tail)} tails and {len(self.head)} heads.")
        if self.combine is not None:
            if self.combine.shape[1] != len(self.tail):
                raise ValueError(
                    f"combine must have a column for each of {len(self.tail)} edges; got {self.combine.shape[1]}."
                )
            self.combine.check_format(full_check=True)

    @classmethod
    def _derived(
        cls, tail: np.ndarray, head: np.ndarray, n_rows: int, combine: sp.csr_array | None = None
    ) -> EdgeForms:
        """Make forms from edges that have been checked already."""
        forms = object.__new__(cls)
        forms.__dict__.update(tail=tail, head=head, n_rows=n_rows, combine=combine)
        return forms

    @cached_property
    def _combine_t(self) -> sp.csr_array | None:
        return None if self.combine is None else self.combine.T.tocsr()

    @cached_property
    def _incidence(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compressed rows (start, neighbour, edge): the edges of each row and their other ends."""
        ends = np.concatenate([self.tail, self.head])
        order = np.argsort(ends, kind="stable")
        start = np.zeros(self.n_rows + 1, dtype=np.intp)
        np.cumsum(np.bincount(ends, minlength=self.n_rows), out=start[1:])
        edge = np.concatenate([np.arange(len(self.tail), dtype=np.intp)] * 2)[order]
        neighbour = np.concatenate([self.head, self.tail])[order]
        return start, neighbour, edge

    def split_last(self) -> tuple[EdgeForms, EdgeForms, np.ndarray]:
        """Return all forms but the last, the edges of the last, and their coefficients.

        The last form shares no edge with the others, and its edges are the last ones.
        """
        assert self.combine is not None
        first, index, coefficient = self.combine.indptr, self.combine.indices, self.combine.data
        n, n_edges = first[-2], len(self.tail) - int(first[-1] - first[-2])
        shape = (len(first) - 2, n_edges)
        is_identity = shape == (n, n) and (coefficient[:n] == 1.0).all() and (np.diff(index[:n]) == 1).all()
        combine = None if is_identity else sp.csr_array((coefficient[:n], index[:n], first[:-1]), shape=shape)
        return (
            EdgeForms(self.tail[:n_edges], self.head[:n_edges], self.n_rows, combine),
            EdgeForms._derived(self.tail[n_edges:], self.head[n_edges:], self.n_rows),
            coefficient[n:],
        )

    def restrict(self, mask: np.ndarray) -> EdgeForms:
        """Return the forms where `mask` is true."""
        which = np.flatnonzero(mask)
        if len(which) == len(mask):
            return self
        if self.combine is None:
            return EdgeForms._derived(self.tail[which], self.head[which], self.n_rows)
        combine = self.combine[which]
        edges = np.unique(combine.indices)
        return EdgeForms._derived(self.tail[edges], self.head[edges], self.n_rows, combine[:, edges])

    def part(self, mask: np.ndarray, Y: np.ndarray) -> tuple[EdgeForms, np.ndarray]:
        """Return the forms where `mask` is true, over as few rows as possible, and those rows."""
        return self.restrict(mask).compact(Y)

    def compact(self, Y: np.ndarray) -> tuple[EdgeForms, np.ndarray]:
        """Return the same forms over as few rows as possible, and those rows.

        These are the rows of Y that the forms touch or, where edges are fewer, the edges themselves: each edge is then
        a difference of two rows, joined to a row of zeros.
        """
        touched = np.zeros(self.n_rows, dtype=bool)
        touched[self.tail] = touched[self.head] = True
        n_touched, n_edges = int(np.count_nonzero(touched)), len(self.tail)
        if n_edges + 1 < n_touched:
            differences = np.zeros((n_edges + 1, Y.shape[1]))
            np.subtract(Y[self.tail], Y[self.head], out=differences[:-1])
            origin = np.full(n_edges, n_edges, dtype=np.intp)
            return EdgeForms._derived(np.arange(n_edges, dtype=np.intp), origin, n_edges + 1, self.combine), differences
        if n_touched == self.n_rows:
            return self, Y
        position = np.cumsum(touched) - 1
        return EdgeForms._derived(position[self.tail], position[self.head], n_touched, self.combine), Y[touched]

    @property
    def combine_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Arrays of `combine`: the start of each row, its edges, their coefficients."""
        C = self.combine
        return None if C is None else (C.indptr.astype(np.intp), C.indices.astype(np.intp), C.data)

    def _check_rows(self, Y: np.ndarray) -> None:
        if len(Y) != self.n_rows:
            raise ValueError(f"these forms are over {self.n_rows} rows; got {len(Y)}.")

    def apply(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return form k of the n × n matrix A Bᵀ (symmetric by assumption); with A = YΔ, B = Y: tr(Δ Yᵀ C_k Y).

        A and B are of one precision, single or double, in which each edge is summed.
        """
        self._check_rows(A)
        out = np.empty(len(self.tail))
        if len(out) * A.shape[1] <= _ONE_THREAD:
            edge_dots(A, B, self.tail, self.head, out)
        else:
            in_threads(
                len(out),
                len(out) * A.shape[1],
                lambda a, b: edge_dots(A, B, self.tail[a:b], self.head[a:b], out[a:b]),
            )
        return out if self.combine is None else self.combine @ out

    def adjoint(self, Y: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return Σ_k s_k Yᵀ C_k Y = Yᵀ Laplacian(w) Y, exactly symmetric; w = combineᵀ s are edge weights.

        Sums are formed in the precision of Y and returned in double precision.
        """
        self._check_rows(Y)
        w = np.ascontiguousarray(s if self._combine_t is None else self._combine_t @ s)
        if len(w) * Y.shape[1] <= _FEW:
            return edge_gram(Y.astype(np.float64, copy=False), self.tail, self.head, w, squared=False)
        start, neighbour, edge = self._incidence
        Z = np.empty_like(Y)
        if 2 * len(w) * Y.shape[1] <= _ONE_THREAD:
            edge_laplacian(Y, start, neighbour, edge, w, Z, 0, self.n_rows)
        else:
            in_threads(
                self.n_rows,
                2 * len(w) * Y.shape[1],
                lambda a, b: edge_laplacian(Y, start, neighbour, edge, w, Z, a, b),
            )
        return symmetric_product(Y, Z).astype(np.float64, copy=False)

    def second_moments(self, Y: np.ndarray, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Σ_k E_k (R_k)_ij² for R_k = Yᵀ C_k Y, r × r, and Σ_k E_k (R_k)_ii².

        The second is the diagonal of the first where every form is one edge. The first omits products of different
        edges of one form.
        """
        self._check_rows(Y)
        rank = Y.shape[1]
        weight = E if self._combine_t is None else self._combine_t.power(2) @ E
        parts: dict[int, np.ndarray] = {}

        def add_part(a: int, b: int) -> None:
            parts[a] = edge_gram(Y, self.tail[a:b], self.head[a:b], weight[a:b], squared=True)

        in_threads(len(weight), len(weight) * rank**2, add_part)
        first, *others = (parts[a] for a in sorted(parts))  # in the order of edges, not of threads
        moments = sum(others, start=first)
        if self.combine is None:
            return moments, np.diagonal(moments)
        if len(self.tail) * rank <= _CHUNK:
            return moments, E @ (self.combine @ (Y[self.tail] - Y[self.head]) ** 2) ** 2
        on_diagonal = np.zeros(rank)
        step = max(1, _CHUNK // max(1, rank))
        for a in range(0, self.combine.shape[0], step):
            rows = self.combine[a : a + step]
            edges = np.unique(rows.indices)
            diagonal = rows[:, edges] @ (Y[self.tail[edges]] - Y[self.head[edges]]) ** 2
            on_diagonal += E[a : a + step] @ diagonal**2
        return moments, on_diagonal
