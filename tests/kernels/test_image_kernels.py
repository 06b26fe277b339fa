"""Pyramid match kernels: what they count, that they are kernels, and what they bound."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.base import clone

from mahalo import MetricLearner
from mahalo.kernels import PyramidMatch, SpatialPyramidMatch, UniformGrid, VocabularyTree
from mahalo.kernels.histograms import histograms, intersections

GRID = UniformGrid(finest=1 / 64, n_levels=8)


def feature_sets(rng, n_sets=12, n_features=3, most=15):
    return [rng.random((rng.integers(1, most), n_features)) for _ in range(n_sets)]


@pytest.fixture
def sets():
    return feature_sets(np.random.default_rng(0))


@pytest.fixture
def tree():
    return VocabularyTree.grow(np.random.default_rng(1).random((400, 3)), branching=4, depth=3)


@pytest.fixture(params=["grid", "tree"])
def bins(request, tree):
    return GRID if request.param == "grid" else tree


def as_images(sets, seed=0):
    rng = np.random.default_rng(seed)
    return [(points, rng.random((len(points), 2))) for points in sets]


# -- intersections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n, m", [(1, 1), (16, 5), (17, 40), (35, 0)])
def test_intersections_are_sums_of_minima(n, m):
    rng = np.random.default_rng(n)
    dense = rng.random((n + m, 30)) * (rng.random((n + m, 30)) < 0.4)
    H = sp.csr_array(dense.astype(np.float32))
    A, B = H[:n].toarray(), H[n:].toarray()
    assert_allclose(intersections(H[:n], H[n:]), np.minimum(A[:, None], B[None]).sum(axis=2), rtol=1e-6)
    assert_allclose(intersections(H[:n]), np.minimum(A[:, None], A[None]).sum(axis=2), rtol=1e-6)


@pytest.mark.parametrize("integer", [np.int32, np.int64])
def test_intersections_take_indices_of_any_size(integer):
    H = histograms(np.array([[0, 3], [0, 2], [1, 3]]), np.ones((3, 2)), [1, 1, 1], 5)
    wide = H.copy()
    wide.indices, wide.indptr = H.indices.astype(integer), H.indptr.astype(integer)
    assert_allclose(intersections(wide), intersections(H))


@pytest.mark.parametrize("n", [1, 20])
def test_more_entries_than_32_bits_count_are_refused(n):
    """Only the starts are faked: the entries would take 16 GB."""
    H = sp.csr_array((n, 5), dtype=np.float32)
    H.indptr = np.linspace(0, 2**31, n + 1).astype(np.int64)
    with pytest.raises(ValueError, match=r"up to 2³¹ − 1 entries; got 2147483648\. Use fewer bins"):
        intersections(H)


def test_more_bins_than_32_bits_count_are_refused():
    with pytest.raises(ValueError, match=r"up to 2³¹ − 1 bins; got 2147483650"):
        histograms(np.array([[2**31 + 1]]), np.ones((1, 1)), [1], 2**31 + 2)


def test_bins_outside_the_table_are_refused():
    H = histograms(np.array([[0, 3], [0, 2]]), np.ones((2, 2)), [1, 1], 5)
    fewer = histograms(np.array([[0, 1]]), np.ones((1, 2)), [1], 2)
    with pytest.raises(ValueError, match=r"over the same bins; got 2 and 5"):
        intersections(fewer, H)
    outside = H.copy()
    outside.indices[1] = 1000
    with pytest.raises(ValueError, match=r"indices|index values"):
        intersections(H, outside)
    falling = H.copy()
    falling.indptr[1] = 5
    with pytest.raises(ValueError, match=r"indptr|index pointer"):
        intersections(falling)


def test_histograms_sum_values_by_bin():
    H = histograms(np.array([[0, 3], [0, 2], [1, 3]]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [2, 1], 5)
    assert_array_equal(H.toarray(), [[4, 0, 4, 2, 0], [0, 5, 0, 6, 0]])


# -- what is counted ---------------------------------------------------------------------------------------------------


def test_new_matches_count_with_the_worth_of_their_level():
    """By the definition: matches on a level less those on the finer one, times the worth of the level."""
    rng = np.random.default_rng(3)
    x, y = rng.random((9, 2)), rng.random((6, 2))
    sides = GRID.finest * 2.0 ** np.arange(GRID.n_levels)
    matches = [0]
    for side in sides:
        cubes = [list(map(tuple, np.floor(points / side).astype(int))) for points in (x, y)]
        matches.append(sum(min(cubes[0].count(c), cubes[1].count(c)) for c in set(cubes[0])))
    expected = sum((b - a) / (2 * side) for (a, b), side in zip(pairwise(matches), sides, strict=True))
    assert_allclose(PyramidMatch(GRID, normalize=False)([x], [y]), [[expected]], rtol=1e-6)


def test_finer_matches_in_a_tree_are_worth_more_by_the_ratio(tree):
    x = np.random.default_rng(4).random((1, 3))
    for ratio, depth in ((2.0, 3), (3.0, 3), (2.0, 1)):
        part = VocabularyTree(tree.centres[:depth], ratio)
        assert_allclose(PyramidMatch(part, normalize=False)([x]), ratio ** (depth - 1))


def test_spatial_pyramid_by_its_definition(tree):
    images = as_images(feature_sets(np.random.default_rng(5), n_sets=2))
    words = [tree.nodes(features)[:, -1] for features, _ in images]
    total = 0.0
    for level, weight in enumerate((1 / 4, 1 / 4, 1 / 2)):
        counts = []
        for (_, at), word in zip(images, words, strict=True):
            count = np.zeros((2**level, 2**level, tree.n_leaves))
            for (x, y), w in zip(at, word, strict=True):
                count[int(y * 2**level), int(x * 2**level), w] += 1 / len(word)
            counts.append(count)
        total += weight * np.minimum(*counts).sum()
    assert_allclose(SpatialPyramidMatch(tree, n_levels=3)(images)[0, 1], total, rtol=1e-5)


# -- that they are kernels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", [True, False])
def test_pyramid_match_is_symmetric_and_positive_semidefinite(bins, normalize):
    K = PyramidMatch(bins, normalize)(feature_sets(np.random.default_rng(6), n_sets=60))
    assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-6 * K.max()


def test_spatial_pyramid_is_symmetric_and_positive_semidefinite(tree):
    K = SpatialPyramidMatch(tree)(as_images(feature_sets(np.random.default_rng(7), n_sets=60)))
    assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-6
    assert_allclose(np.diagonal(K), 1.0, rtol=1e-5)


def test_the_order_of_features_does_not_matter(bins, sets):
    K = PyramidMatch(bins)(sets)
    assert_allclose(PyramidMatch(bins)([points[::-1] for points in sets], sets), K, rtol=1e-6)


def test_normalised_similarities_are_at_most_one_and_one_only_of_equal_sets(bins, sets):
    K = PyramidMatch(bins)(sets)
    assert_allclose(np.diagonal(K), 1.0, rtol=1e-6)
    assert (K[~np.eye(len(K), dtype=bool)] < 1.0).all()


def test_blocks_of_the_gram_matrix_are_those_of_the_whole(bins, sets):
    kernel = PyramidMatch(bins)
    assert_allclose(kernel(sets[:5], sets[5:]), kernel(sets)[:5, 5:], rtol=1e-6)


# -- what they bound ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_pyramid_match_is_no_more_than_the_best_matching_is_worth(seed):
    """A match in a cube of side s joins points less than d s apart (L1), and counts 1/(d s). So the matching which the
    pyramid finds is worth at least K if a match is worth 1/distance, and the best matching no less."""
    rng = np.random.default_rng(seed)
    x, y = rng.random((rng.integers(1, 8), 2)), rng.random((rng.integers(1, 8), 2))
    worth = 1.0 / np.maximum(cdist(x, y, "cityblock"), 1e-12)
    best = worth[linear_sum_assignment(worth, maximize=True)].sum()
    K = PyramidMatch(UniformGrid(finest=1 / 32, n_levels=6), normalize=False)([x], [y])[0, 0]
    assert 0 < K <= best * (1 + 1e-6)
    # The largest cube holds everything: as many match as the smaller set has, each worth 1/(d · 1) at least.
    assert min(len(x), len(y)) / 2 * (1 - 1e-6) <= K


@pytest.mark.parametrize("seed", range(8))
def test_nearer_sets_match_better(seed):
    rng = np.random.default_rng(seed)
    x = rng.random((20, 2))
    near, far = x + 0.01 * rng.standard_normal(x.shape), x + 0.3 * rng.standard_normal(x.shape)
    K = PyramidMatch(UniformGrid(finest=1 / 64, n_levels=8, origin=-2.0))([x], [near, far])
    assert K[0, 0] > K[0, 1]


# -- trees -------------------------------------------------------------------------------------------------------------


def test_every_node_lies_inside_its_parent(tree):
    nodes = tree.nodes(np.random.default_rng(8).random((100, 3)))
    assert_array_equal(nodes[:, 1:] // 4, nodes[:, :-1])
    first = cdist(np.random.default_rng(8).random((100, 3)), tree.centres[0][0]).argmin(axis=1)
    assert_array_equal(nodes[:, 0], first)


def test_a_tree_of_few_distinct_points_has_them_for_leaves():
    points = np.repeat(np.arange(6.0)[:, None], 3, axis=0)
    tree = VocabularyTree.grow(points, branching=3, depth=3)
    leaf = tree.nodes(np.arange(6.0)[:, None])[:, -1]
    assert len(set(leaf)) == 6


def test_growing_is_repeatable():
    points = np.random.default_rng(9).random((200, 3))
    again = [VocabularyTree.grow(points, 3, 2, random_state=4).centres for _ in range(2)]
    for a, b in zip(*again, strict=True):
        assert_array_equal(a, b)


# -- in a learner ------------------------------------------------------------------------------------------------------


def test_a_learner_takes_the_kernel_and_improves_on_it(tree):
    rng = np.random.default_rng(10)
    y = np.repeat(np.arange(4), 20)
    centre = rng.random((4, 3))
    # A third of the features of each set are those of its class.
    sets = [np.vstack([rng.random((12, 3)), np.clip(rng.normal(centre[c], 0.1, (6, 3)), 0, 1)]) for c in y]
    known, new = ([sets[i] for i in range(start, 80, 2)] for start in (0, 1))
    kernel = PyramidMatch(tree)
    metric = clone(MetricLearner(kernel=kernel)).fit(known, y[::2]).metric_
    plain = np.mean(y[::2][kernel(new, known).argmax(axis=1)] == y[1::2])
    learned = np.mean(y[::2][metric.distances(new, known).argmin(axis=1)] == y[1::2])
    assert learned > plain > 0.3


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: PyramidMatch(GRID)([]), "at least one set"),
        (
            lambda: PyramidMatch(GRID)([np.ones((2, 3)), np.ones((2, 2))]),
            r"set 1 has shape \(2, 2\) .* set 0 shape \(2, 3\)",
        ),
        (lambda: PyramidMatch(GRID)([np.ones((2, 3)), np.ones((0, 3))]), r"set 1 has shape \(0, 3\)"),
        (lambda: PyramidMatch(GRID)([np.array([[np.nan, 1.0]])]), "set 0 holds NaN"),
        (lambda: UniformGrid(finest=0.0), "finest > 0"),
        (lambda: VocabularyTree.grow(np.ones((3, 2)), branching=4), "at least 4 points"),
        (lambda: VocabularyTree.grow(np.ones((30, 2)), depth=0), "depth and ratio at least 1"),
        (lambda: VocabularyTree.grow(np.ones((30, 2)), 3, 1).nodes(np.ones((4, 5))), "of 2 features"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_positions_outside_the_image_are_named(tree):
    with pytest.raises(ValueError, match=r"positions must be in \[0, 1\]"):
        SpatialPyramidMatch(tree)([(np.ones((2, 3)), np.array([[0.5, 0.5], [200.0, 100.0]]))])
    with pytest.raises(ValueError, match="as many rows"):
        SpatialPyramidMatch(tree)([(np.ones((2, 3)), np.ones((3, 2)))])


def test_a_tree_far_from_the_origin_tells_points_apart(rng):
    """Single precision has seven digits; squares of distances to the origin would need twice that."""
    points = 1e4 + rng.standard_normal((400, 8))
    tree = VocabularyTree.grow(points, branching=4, depth=2)
    single, centres = points.astype(np.float32).astype(np.float64), tree.centres[0][0].astype(np.float64)
    nearest = ((single[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(tree.nodes(points)[:, 0], nearest)
