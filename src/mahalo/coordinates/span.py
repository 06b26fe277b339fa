"""The span of the constraints: outside it the optimum is the prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..constraints import EdgeForms
from ..types import Matrix

_SPAN_PAYS_BELOW = 0.8  # of the number of features
_LARGEST_RANK = 20_000  # beyond which r × r matrices are not attempted


class Directions(NamedTuple):
    """Orthonormal columns, None for all of space; `exact` if the edges have no length outside them."""

    basis: np.ndarray | None
    exact: bool


def span_of_edges(Z: Matrix, forms: EdgeForms) -> Directions:
    """Return all of space, or the span of the edges between the rows Z if that is clearly smaller.

    The optimum is the same in both; steps cost O(r²) and more.
    """
    n_features = Z.shape[1]
    everything = Directions(None, True)
    # Every row has an edge, so there are at most half as many components as rows.
    if forms.n_rows / 2 >= _SPAN_PAYS_BELOW * n_features and n_features <= _LARGEST_RANK:
        return everything
    component = _components(forms)
    at_most = len(component) - (component.max(initial=-1) + 1)
    if at_most >= _SPAN_PAYS_BELOW * n_features and n_features <= _LARGEST_RANK:
        return everything
    if at_most > _LARGEST_RANK:
        raise ValueError(
            f"the constraints span up to {at_most} of {n_features} dimensions, too many for a full matrix. Use a "
            "basis (e.g. basis=100), or fewer constraints."
        )
    basis = _span(Z, component)
    if basis.shape[1] >= _SPAN_PAYS_BELOW * n_features and n_features <= _LARGEST_RANK:
        return everything
    return Directions(basis, not sp.issparse(Z))


def span_of(points: np.ndarray, forms: EdgeForms) -> np.ndarray:
    """Return an orthonormal basis of the span of the edges between `points`."""
    return _span(points, _components(forms))


def _components(forms: EdgeForms) -> np.ndarray:
    graph = sp.coo_array((np.ones(len(forms.tail)), (forms.tail, forms.head)), shape=(forms.n_rows,) * 2)
    return sp.csgraph.connected_components(graph, directed=False)[1]


def _span(Z: Matrix, component: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the differences of connected rows: of rows less the mean of their component."""
    n = len(component)
    if n == 0:
        return np.zeros((Z.shape[1], 0))
    member = sp.csr_array((np.ones(n), (component, np.arange(n))))
    mean = sp.csr_array(member.multiply(1.0 / member.sum(axis=1)[:, None])) @ Z
    if sp.issparse(Z):
        return _span_from_gram(Z, mean, component)
    centred = Z.astype(np.float64) - mean[component]
    _, singular, Vt = np.linalg.svd(centred, full_matrices=False)
    keep = singular > singular[0] * 1e-13 * max(centred.shape) if singular[0] > 0 else singular > 0
    return np.ascontiguousarray(Vt[keep].T)


def _span_from_gram(Z: Matrix, mean: Matrix, component: np.ndarray) -> np.ndarray:
    """Return the span of sparse rows by way of their n × n Gram matrix; of dense arrays only Q is as wide as Z.

    Directions with singular values below about 1e-7 of the largest are lost in a Gram matrix; what they carry is
    kept as offsets of the constraints, so the certificate stays that of the metric returned.
    """
    centred = sp.csr_array(Z - sp.csr_array(mean)[component])
    gram = (centred @ centred.T).toarray().astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    keep = values > max(values[-1], 0.0) * 1e-14 * len(values)
    Q = np.asarray(centred.T @ (vectors[:, keep] / np.sqrt(values[keep])))
    return np.linalg.qr(Q)[0]
