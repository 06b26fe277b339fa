"""What LogDet is compared with: small, plain implementations of the published methods.

They are here to be judged beside ours on the same splits, not to be used; nothing in them is tuned for speed beyond
what array arithmetic gives.
"""

from .gmml import GMML
from .hmrf import HMRFKMeans
from .lmnn import LMNN
from .mcml import MCML

__all__ = ["GMML", "LMNN", "MCML", "HMRFKMeans"]
