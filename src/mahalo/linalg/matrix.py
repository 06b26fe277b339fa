"""Type of the matrices that the library computes with."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

__all__ = ["Matrix"]

Matrix: TypeAlias = np.ndarray | sp.csr_array
