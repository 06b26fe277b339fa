"""Linear discriminant analysis as a reference beside every comparison with labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ..linalg import Matrix

LDA = "LDA"
_MOST_COLUMNS = 2_000


def lda_projection(X: Matrix, codes: np.ndarray) -> Callable[[Matrix], np.ndarray] | None:
    """Fit scikit-learn's LDA with Ledoit–Wolf shrinkage and return its projection of rows.

    Return None where it cannot be fitted: rows that are sparse, not numbers, or of more than 2,000 columns, and classes
    that leave it nothing to estimate. Rows with code −1 are left out.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    if sp.issparse(X) or X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[1] > _MOST_COLUMNS:
        return None
    labelled = codes >= 0
    lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lda.fit(np.asarray(X[labelled], dtype=np.float64), codes[labelled])
    except (ValueError, np.linalg.LinAlgError):
        return None
    return lambda rows: lda.transform(np.asarray(rows, dtype=np.float64))
