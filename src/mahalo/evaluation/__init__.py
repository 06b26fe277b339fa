"""Evaluation of distances: votes, retrieval, AUC, intervals, and comparisons on held-out rows.

Arrays and distances come in, named results go out; the only thing fitted here is LDA, the reference.
"""

from ..linalg import nearest_of
from . import intervals
from .before_after import VOTE_NOTE, BeforeAfter, ClassResult, Confusion, measure_title
from .comparison import FoldScores, compare_folds
from .estimate import Estimate, Estimates, pool
from .held_out_view import View, view, view_of_rows
from .hubs import HubCounts, hub_counts
from .lda import LDA, lda_projection
from .neighbor_ranks import NeighborRanks, neighbor_ranks
from .pair_distances import PairDistances
from .queries import QueryScores, choose_queries, choose_voters, score_neighbors, score_queries
from .ranking import (
    N_NEIGHBORS,
    auc_of_pairs,
    average_precision,
    knn_predict,
    known_pairs,
    n_voters,
    ndcg_at,
    nearest_rows,
    pair_auc,
    precision_at,
    ranked,
    ranked_auc,
    recall_at,
    share_below,
    vote,
    vote_confidence,
)
from .row_comparison import Distance, compare_on_pairs, compare_on_rows, evaluate_pairs
from .search_scores import SEARCH_MEASURES, score_searches

__all__ = ["BeforeAfter", "ClassResult", "Confusion", "PairDistances", "View", "knn_predict", "view", "vote"]
