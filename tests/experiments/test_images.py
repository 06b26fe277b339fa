"""The image experiment: descriptors, correspondences, what is kept on disk, and the whole of it on drawn images."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.preprocessing import normalize

from experiments import image_kernels, images, images_exact, recognition
from experiments.correspondences import correspondence_distances, with_positions
from experiments.data import load_caltech101
from experiments.descriptors import _blurred, dense_sift, edge_channels, geometric_blur
from experiments.image_kernels import KERNELS, Recipe, kernel_matrices, kernel_store
from experiments.outcome import Settings
from experiments.protocol import Tally
from experiments.recognition import Split
from experiments.store import Store, digest
from mahalo import MetricLearner

RECIPE = Recipe(
    branching=3, depth=2, n_words=8, sift_dims=5, blur_points=12, blur_dims=6, blur_radii=(4.0, 8.0), sample=12
)
LESSONS = images.Lesson("learned plainly", 2), images.Lesson("learned from within", None, (0.3, 3.0))
METHODS = "learned plainly", "learned from within"
PLAN = images.Plan(RECIPE, None, None, (3, 5), 2, lessons=LESSONS)


def picture(seed=0, shape=(64, 80)):
    """Smooth noise in [0, 1]."""
    from scipy.ndimage import gaussian_filter

    noise = gaussian_filter(np.random.default_rng(seed).standard_normal(shape), 3)
    return ((noise - noise.min()) / np.ptp(noise)).astype(np.float32)


# -- descriptors -------------------------------------------------------------------------------------------------------


def test_edge_channels_share_out_the_gradient_by_direction():
    rising = np.tile(np.arange(10.0), (6, 1))  # grows to the right: direction 0
    channels = edge_channels(rising, 8)
    assert_allclose(channels[0], 1.0)
    assert_allclose(channels[1:], 0.0)
    tilted = rising + np.tan(np.pi / 8) * np.arange(6.0)[:, None]  # halfway between directions 0 and 1
    channels = edge_channels(tilted, 8)
    assert_allclose(channels[0], channels[1], rtol=1e-4)
    assert_allclose(channels.sum(axis=0), np.hypot(1, np.tan(np.pi / 8)), rtol=1e-5)
    assert_allclose(edge_channels(-rising, 4, np.pi), edge_channels(rising, 4, np.pi), atol=1e-6)


def test_sift_is_normalised_and_on_a_grid_inside_the_image():
    descriptors, positions = dense_sift(picture(), step=8, cell=4, floor=0.0)
    assert descriptors.shape == (7 * 9, 128) and positions.shape == (7 * 9, 2)
    assert_allclose(np.linalg.norm(descriptors, axis=1), 1.0, rtol=1e-5)
    assert descriptors.min() >= 0 and positions.min() > 0 and positions.max() < 1


def test_sift_ignores_brightness_and_contrast_and_moves_with_the_image():
    image = picture()
    plain = dense_sift(image, floor=0.0)[0]
    assert_allclose(dense_sift(0.3 * image + 0.2, floor=0.0)[0], plain, atol=1e-4)
    moved = dense_sift(np.roll(image, (8, 8), axis=(0, 1)), floor=0.0)[0].reshape(7, 9, 128)
    assert_allclose(moved[2:-1, 2:-1], plain.reshape(7, 9, 128)[1:-2, 1:-2], atol=1e-5)


def test_flat_images_have_small_descriptors_and_small_images_are_refused():
    assert_array_equal(dense_sift(np.full((40, 40), 0.5))[0], 0.0)
    with pytest.raises(ValueError, match="a side of 12 pixels is too small for patches of 16"):
        dense_sift(np.zeros((40, 12)))


def test_geometric_blur_is_normalised_repeatable_and_drawn_from_edges():
    image = np.zeros((60, 60), dtype=np.float32)
    image[:, 30:] = 1.0
    descriptors, positions = geometric_blur(image, np.random.default_rng(0), 20, 10.0)
    assert descriptors.shape == (20, 204)
    assert_allclose(np.linalg.norm(descriptors, axis=1), 1.0, rtol=1e-5)
    assert np.abs(positions[:, 0] * 60 - 29.5).max() < 6
    assert_array_equal(descriptors, geometric_blur(image, np.random.default_rng(0), 20, 10.0)[0])


def test_what_is_far_may_be_off_by_more():
    """The purpose of geometric blur: after a little stretch the blurred edges far from a point look as they did."""
    image = picture(shape=(80, 80))
    rows = np.linspace(2, 77, 80).round().astype(int)
    angle = 2 * np.pi * np.arange(8) / 8
    ring = 40 + 20 * np.sin(angle), 40 + 20 * np.cos(angle)

    def likeness(sigma):
        a, b = (
            _blurred(edge_channels(im, 4, np.pi), sigma, 20.0, ring).ravel()
            for im in (image, image[np.ix_(rows, rows)])
        )
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    assert likeness(11.0) > max(0.98, likeness(1.0))


# -- correspondences ---------------------------------------------------------------------------------------------------


def test_correspondence_distances_by_their_definition():
    rng = np.random.default_rng(0)
    features = rng.random((7, 5, 3)).astype(np.float32)
    D = correspondence_distances(features, 2, 5)
    assert D.shape == (3, 5)
    for i in range(2, 5):
        for j in range(2, 7):
            sq = cdist(features[i], features[j], "sqeuclidean")
            expected = (sq.min(axis=1).mean() + sq.min(axis=0).mean()) / 2
            assert_allclose(D[i - 2, j - 2], expected, atol=1e-6)


def test_positions_add_their_squared_distance():
    rng = np.random.default_rng(1)
    f, r = rng.random((6, 3)), rng.random((6, 2))
    placed = with_positions(f, r, 2.0)
    expected = cdist(f, f, "sqeuclidean") + 2 * cdist(r, r, "sqeuclidean")
    assert_allclose(cdist(placed, placed, "sqeuclidean"), expected, rtol=1e-6)


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_a_store_makes_arrays_once_and_again_when_the_file_is_damaged(tmp_path):
    store, made = Store(tmp_path / "kept"), []

    def make():
        made.append(1)
        return {"a": np.arange(5)}

    for _ in range(2):
        assert_array_equal(store.get("x", make)["a"], np.arange(5))
    assert len(made) == 1
    file = tmp_path / "kept" / "x.safetensors"
    file.write_bytes(file.read_bytes()[:-3])
    assert_array_equal(store.get("x", make)["a"], np.arange(5))
    assert len(made) == 2


def test_digests_tell_settings_and_contents_apart(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"1")
    assert digest(tmp_path / "a", {"x": 1}) == digest(tmp_path / "b", {"x": 1})
    assert digest(tmp_path / "a", {"x": 2}) != digest(tmp_path / "a", {"x": 1})
    (tmp_path / "b").write_bytes(b"2")
    assert digest(tmp_path / "a") != digest(tmp_path / "b")


# -- the protocol ------------------------------------------------------------------------------------------------------


def test_rates_are_averaged_over_classes_not_images():
    y = np.array([0, 0, 0, 0, 1])
    assert recognition.mean_rate(np.array([0, 0, 0, 0, 0]), y) == 0.5


def test_splits_have_T_of_each_class_and_at_most_fifty_to_judge_on():
    y = np.repeat([0, 1, 2], [20, 90, 31])
    K = np.add.outer(1000.0 * np.arange(141), np.arange(141.0))  # tells its rows and columns
    split = Split.draw(K, y, 10, seed=0)
    assert_array_equal(np.bincount(split.y_train), [10, 10, 10])
    assert_array_equal(np.bincount(split.y_test), [10, 50, 21])
    train, test = (rows[:, 0] // 1000 for rows in (split.K_train, split.K_test))
    assert not set(train) & set(test)
    assert_array_equal(y[train.astype(int)], split.y_train)
    assert_array_equal(y[test.astype(int)], split.y_test)
    assert_array_equal(split.K_test, 1000 * test[:, None] + train)
    assert_array_equal(Split.draw(K, y, 10, seed=0).K_train, split.K_train)
    assert (Split.draw(K, y, 10, seed=1).K_train != split.K_train).any()


def test_inner_splits_hold_out_a_third_of_the_images_to_learn_from():
    y = np.repeat([0, 1], 9)
    K = np.add.outer(1000.0 * np.arange(18), np.arange(18.0))
    parts = list(Split(K, y, K[:0], y[:0]).inner(2, seed=0))
    assert len(parts) == 2 and (parts[0].K_test != parts[1].K_test).any()
    for part in parts:
        train, held_out = (rows[:, 0] // 1000 for rows in (part.K_train, part.K_test))
        assert sorted([*train, *held_out]) == list(range(18))
        assert_array_equal(np.bincount(part.y_test), [3, 3])
        assert_array_equal(part.K_test, 1000 * held_out[:, None] + train)


def definite(K, K_test, most_directions=None):
    split, removed = Split(K, np.arange(len(K)), K_test, np.arange(len(K_test))).definite(most_directions)
    return split.K_train, split.K_test, removed


def test_negative_eigenvalues_are_left_out_and_counted():
    K = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])
    values = np.linalg.eigvalsh(K)
    assert values[0] < 0 < values[1]
    K_train, _, removed = definite(K, K)
    np.testing.assert_allclose(np.linalg.eigvalsh(K_train), [0.0, *values[1:]], atol=1e-12)
    assert removed == pytest.approx(-values[0] / np.abs(values).sum())
    np.testing.assert_allclose(definite(np.diag([1.0, 2.0]), K[:, :2])[0], np.diag([1.0, 2.0]))


def test_negative_eigenvalues_are_left_out_of_other_images_too(rng):
    """K = VΛVᵀ with a negative direction v: neither the training matrix nor a new row keeps anything along it."""
    V = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    K = (V * [3.0, 2.0, 1.0, 1.0, 0.5, -0.4]) @ V.T
    others = rng.standard_normal((3, 6))
    K_train, K_test, _ = definite(K, others)
    assert_allclose(K_train @ V[:, -1], 0.0, atol=1e-12)
    assert_allclose(K_test, others - np.outer(others @ V[:, -1], V[:, -1]), atol=1e-12)


def test_the_smallest_directions_are_left_out_where_there_are_too_many():
    K_train, K_test, removed = definite(np.diag([3.0, 1.0, 2.0]), np.ones((1, 3)), 2)
    assert_allclose(K_train, np.diag([3.0, 0.0, 2.0]), atol=1e-12)
    assert_allclose(K_test, [[1.0, 0.0, 1.0]], atol=1e-12)
    assert removed == 0.0
    assert_array_equal(definite(np.diag([3.0, 1.0, 2.0]), np.ones((1, 3)))[0], np.diag([3.0, 1.0, 2.0]))


# -- the whole ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """$MAHALO_DATA with 8 very noisy images of each of three classes: stripes, a disc, a cross."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("data")
    (folder / "caltech101").mkdir()
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:48, :56] - 25.0
    with zipfile.ZipFile(folder / "caltech101" / "caltech101_gray_80.zip", "w") as archive:
        for k in range(8):
            dy, dx = rng.integers(-4, 5, 2)
            shapes = {
                "stripes": np.sin((x + dx) / (2 + 0.2 * k)) > 0,
                "disc": (x - dx) ** 2 + (y - dy) ** 2 < (10 + k) ** 2,
                "cross": np.minimum(abs(x - dx), abs(y - dy)) < 2 + k / 3,
            }
            for name, shape in shapes.items():
                pixels = np.clip(60 + 130 * shape + 90 * rng.standard_normal(shape.shape), 0, 255).astype(np.uint8)
                file = io.BytesIO()
                Image.fromarray(pixels).save(file, "JPEG")
                archive.writestr(f"101_ObjectCategories/{name}/image_{k:04d}.jpg", file.getvalue())
    return folder


@pytest.fixture
def at_drawn(drawn, monkeypatch, tmp_path):
    monkeypatch.setenv("MAHALO_DATA", str(drawn))
    monkeypatch.setattr(images, "_QUICK", PLAN)
    monkeypatch.setattr(image_kernels._Workshop, "_CHUNK", 5)
    monkeypatch.setattr(image_kernels._Workshop, "_ROWS", 7)
    return Settings(quick=True, seed=0, cache=tmp_path)


def nothing(stage, done, total):
    pass


def test_kernels_of_drawn_images_are_symmetric_with_unit_diagonal(at_drawn):
    found = load_caltech101()
    assert found.class_names == ("cross", "disc", "stripes") and len(found.members) == 24
    kernels = kernel_matrices(found, RECIPE, kernel_store(at_drawn.cache, found, RECIPE), nothing)
    assert tuple(kernels) == KERNELS
    for K in kernels.values():
        assert K.shape == (24, 24) and K.dtype == np.float32
        assert_array_equal(K, K.T)
        assert_allclose(np.diagonal(K), 1.0, atol=1e-6)
        assert K.min() >= 0 and K.max() <= 1 + 1e-6
    average = (kernels["PMK"] + kernels["SPMK"] + kernels["GB1"] + kernels["GB2"]) / 4
    assert_allclose(kernels["SUM"], average, atol=1e-6)
    assert np.linalg.eigvalsh(kernels["PMK"].astype(float)).min() > -1e-5


def test_an_interrupted_run_goes_on_where_it_was(at_drawn, monkeypatch):
    """Stopped again and again it makes nothing twice, and ends with the numbers of an undisturbed run."""
    undisturbed = images.run(replace(at_drawn, cache=at_drawn.cache / "other"), nothing)
    finished = []
    get = Store.get

    def counting(self, name, make):
        def counted():
            arrays = make()
            finished.append(name)
            return arrays

        return get(self, name, counted)

    monkeypatch.setattr(Store, "get", counting)
    for stage, done in (
        ("vocabulary", 5),
        ("features", 10),
        ("kernel SPMK", 0),
        ("correspondences, large", 238),
        ("correspondences, small", 288),
        ("learning", 3),
        ("learning", 40),
    ):
        with pytest.raises(KeyboardInterrupt):
            images.run(at_drawn, _stops_at(stage, done))
    assert not undisturbed.resumed
    assert images.run(at_drawn, nothing) == replace(undisturbed, resumed=True)
    assert len(finished) == len(set(finished)) > 40


def _stops_at(*where):
    def progress(stage, done, total):
        if (stage, done) == where:
            raise KeyboardInterrupt

    return progress


def test_an_outcome_has_every_kernel_and_size_and_judges_the_claim(at_drawn):
    outcome = images.run(at_drawn, nothing)
    assert {(m.dataset, m.method, m.x) for m in outcome.measurements} == {
        (name, method, T) for name in KERNELS for method in ("as it is", *METHODS) for T in (3.0, 5.0)
    }
    assert all(0 <= m.value <= 1 and m.n == 2 for m in outcome.measurements)
    rates = {(m.dataset, m.method, m.x): m.value for m in outcome.measurements}
    compared = [(METHODS[0], "as it is"), (METHODS[1], "as it is"), (METHODS[1], METHODS[0])]
    for (better, worse), verdict in zip(compared, outcome.verdicts[:3], strict=True):
        expected = all(rates[n, better, T] > rates[n, worse, T] for n in KERNELS for T in (3, 5))
        assert verdict.claim.startswith(better) and verdict.holds == expected
    assert [v.claim for v in outcome.verdicts[3:]] == [
        f"{method}: no curve falls as T grows, beyond its interval" for method in METHODS
    ]
    again = images.run(replace(at_drawn, seed=1), nothing)
    assert again.measurements != outcome.measurements


def test_kernels_that_are_left_out_are_not_made_and_named(at_drawn, monkeypatch):
    monkeypatch.setattr(images, "_QUICK", replace(PLAN, kernels=("SPMK", "PMK"), training=(4,)))
    monkeypatch.setattr(image_kernels, "correspondence_distances", None)
    outcome = images.run(at_drawn, nothing)
    assert {m.dataset for m in outcome.measurements} == {"SPMK", "PMK"}
    assert any("Left out" in note and "CORR, GB1, GB2, SUM" in note for note in outcome.notes)


def test_a_curve_that_falls_is_told_from_one_that_wavers():
    plan = replace(PLAN, kernels=("PMK",), training=(5, 10))
    for fallen, holds in ((0.49, True), (0.40, False)):
        tally = Tally()
        for noise in (-0.01, 0.0, 0.01):
            tally.add("PMK", "learned plainly", "recognition rate", 0.5 + noise, 5)
            tally.add("PMK", "learned plainly", "recognition rate", fallen + noise, 10)
        verdict = images._rising(plan, tally, "learned plainly")
        assert verdict.holds == holds and ("T = 5 to 0.400" in verdict.detail) != holds


def test_learning_over_all_images_judges_both_comparisons_and_says_what_it_took(at_drawn, monkeypatch):
    plan = images_exact.Plan(RECIPE, None, None, {3: 2, 5: 1}, gammas=(0.1, 10.0))
    monkeypatch.setattr(images_exact, "_QUICK", plan)
    monkeypatch.setattr(images_exact, "_PUBLISHED", {5: 0.1})
    outcome = images_exact.run(at_drawn, nothing)
    methods = "as it is", "learned, by distance", "learned, by cosine"
    found = {(m.dataset, m.method): m for m in outcome.measurements}
    assert set(found) == {(f"PMK, T = {T}", method) for T in (3, 5) for method in methods}
    assert all(0 <= m.value <= 1 and m.n == plan.n_repeats[int(m.dataset[-1])] for m in found.values())
    assert {key for key, m in found.items() if m.published is not None} == {("PMK, T = 5", m) for m in methods[1:]}
    published = [v for v in outcome.verdicts if "published" in v.claim]
    assert [v.holds for v in published] == [True, True] and len(outcome.verdicts) == 6
    assert sum("Processor minutes a split" in note for note in outcome.notes) == 2
    # More splits leave those that are kept as they are.
    monkeypatch.setattr(images_exact, "_QUICK", replace(plan, n_repeats={3: 2, 5: 2}))
    monkeypatch.setattr(images_exact, "_inner_rates", lambda part, seed, plan: [[0.0, 1.0], [1.0, 0.0]])
    more = images_exact.run(at_drawn, nothing)
    assert more.resumed and not outcome.resumed
    assert [m for m in more.measurements if "= 3" in m.dataset] == [
        m for m in outcome.measurements if "= 3" in m.dataset
    ]
    assert any("by distance: " in note and ", 10; learned, by cosine: " in note for note in more.notes)


def test_an_exactly_learned_kernel_is_that_of_a_learner_over_all_images(at_drawn, monkeypatch):
    """One γ leaves nothing to choose: the rates are those of `MetricLearner` on the same split, both at the optimum."""
    monkeypatch.setattr(images_exact, "_TOL", 1e-9)
    found = load_caltech101()
    K = kernel_matrices(found, RECIPE, kernel_store(at_drawn.cache, found, RECIPE), nothing, ("PMK",))["PMK"]
    Z = normalize(np.random.default_rng(0).standard_normal((len(K), 20)))
    K = 0.9 * K + 0.1 * Z @ Z.T  # some drawn images are equal: which of them is nearest would be up to rounding
    plan = images_exact.Plan(RECIPE, None, None, {5: 1}, gammas=(1.0,))
    rates = images_exact._rates(K, found.y, 5, 0, plan)
    split = Split.draw(K, found.y, 5, 0)
    for method, by_cosine in (("by distance", False), ("by cosine", True)):
        options = {"pairs_per_class": 100, "percentiles": (1, 99), "normalize": by_cosine, "random_state": 0}
        learner = MetricLearner(kernel="precomputed", tol=1e-9, **options).fit(split.K_train, split.y_train)
        assert rates[f"rate learned, {method}"].item() == pytest.approx(split.rate(learner.metric_))
    assert rates["rate as it is"].item() == split.plain_rate()
    assert rates["gap"].item() <= 1e-9


def test_missing_images_are_an_error_that_says_where_to_get_them(monkeypatch, tmp_path):
    monkeypatch.setenv("MAHALO_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"caltech101.*101_ObjectCategories"):
        load_caltech101()
