"""Draw the pictures of the pages into docs/images: `python docs/make_pictures.py [name …]`.

Names are those of the files without their ending; all if none. The data are those of the examples, and for `adapting`
and `scale` the numbers in docs/results/bench/run.json. `report` opens the page in Chromium.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.decomposition import PCA, KernelPCA
from sklearn.manifold import TSNE
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from mahalo import MetricLearner
from mahalo.basis import BetweenBasis, Landmarks
from mahalo.drawing import save
from mahalo.features import Local

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "examples"), str(HERE.parent)]

import compare_losses  # noqa: E402
import label_stream  # noqa: E402
import make_tables  # noqa: E402
import rbf_unseen  # noqa: E402
import report_page  # noqa: E402
import string_kernel  # noqa: E402
import text_basis  # noqa: E402

from benchmarks.tables import data_folder  # noqa: E402
from experiments.data import load_banking77  # noqa: E402

BLUE, ORANGE, GREEN, PURPLE, INK, PALE = "#0077BB", "#CC5500", "#117733", "#AA4499", "#222222", "#777777"
SHOWN = 500  # rows in a picture of rings, of those that errors are counted on
NOTHING = 1e-9  # a γ at which the metric stays what it was


def main() -> None:
    pictures = {
        "kernels-rings": draw_rings,
        "spaces": draw_spaces,
        "kernels-text": draw_text,
        "kernels-words": draw_words,
        "losses-error": draw_errors,
        "losses-spectrum": draw_spectra,
        "adapting": draw_adapting,
        "online": draw_streams,
        "report": open_report,
        "scale": draw_scale,
    }
    for name in sys.argv[1:] or pictures:
        path = save(pictures[name](), HERE / "images" / f"{name}.png")
        print(f"{path.relative_to(HERE.parent)}: {path.stat().st_size / 1024:.0f} KB")


# -- rings: where a linear metric cannot help --------------------------------------------------------------------------


def draw_rings() -> Figure:
    """New rows by their two telling columns, under the learned linear metric, and by kernel PCA before and after."""
    X, y = rbf_unseen.rings(400, seed=0)
    new, y_new = rbf_unseen.rings(1000, seed=1)
    linear = MetricLearner(pairs_per_class=500).fit(X, y).metric_
    unlearned, learned = (
        MetricLearner(kernel="rbf", kernel_params=rbf_unseen.WIDTH, gamma=gamma, pairs_per_class=1000).fit(X, y).metric_
        for gamma in (NOTHING, 1.0)
    )

    def error(metric) -> str:
        return f"10-NN error {100 * rbf_unseen.knn_error(metric.distances(new, X), y, y_new):.1f} %"

    def kernel_plane(metric) -> np.ndarray:
        return KernelPCA(2, kernel="precomputed").fit(metric.kernel(X)).transform(metric.kernel(new, X))

    def plain_plane() -> np.ndarray:
        assert np.allclose(unlearned.kernel(new, X), rbf_kernel(new, X, **rbf_unseen.WIDTH), atol=1e-6)
        return kernel_plane(unlearned)

    panels = (
        ("the two columns that tell", "six more are noise", new[:, :2]),
        ("linear, learned", error(linear), PCA(2).fit(linear.transform(X)).transform(linear.transform(new))),
        ("RBF, nothing learned", error(unlearned), plain_plane()),
        ("RBF, learned", error(learned), kernel_plane(learned)),
    )
    figure = Figure(figsize=(12, 3.5), layout="constrained")
    for k, (ax, (name, what, plane)) in enumerate(zip(figure.subplots(1, 4), panels, strict=True)):
        shown, labels = plane[:SHOWN], y_new[:SHOWN]
        for label, colour, shape in ((0, BLUE, "o"), (1, ORANGE, "s")):
            ax.scatter(*shown[labels == label].T, s=13, color=colour, marker=shape, linewidths=0.3, edgecolors="white")
        ax.set_title(f"{name}\n{what}", loc="left", fontsize=10.5, color=INK)
        ax.set_xlabel("new rows" if k == 0 else "new rows, two principal components", fontsize=9, color=PALE)
        _bare(ax)
    return figure


# -- spaces: three metrics on two moons and on a table -----------------------------------------------------------------


def draw_spaces() -> Figure:
    """Contours of the distance to one row of two moons, and held-out rows of a table, in three spaces."""
    spaces = {
        "linear": {},
        "local, 4 regions": {"features": Local()},
        "RBF, 100 landmarks": {"kernel": "rbf", "kernel_params": {"width": 3.0}, "basis": Landmarks(100)},
    }
    figure = Figure(figsize=(11, 7), layout="constrained")
    for (top, bottom), (name, options) in zip(figure.subplots(2, 3).T, spaces.items(), strict=True):
        settings = options | {"residual": 0.0 if "basis" in options else 1.0, "strategy": "neighbors"}
        learner = MetricLearner(pairs_per_class=None, random_state=0, **settings)
        top.set_title(f"{name}\n{_contours(top, clone(learner))}", loc="left", fontsize=10.5, color=INK)
        bottom.set_title(_tumours(bottom, clone(learner)), loc="left", fontsize=10.5, color=INK)
    return figure


def _contours(ax, learner: MetricLearner) -> str:
    """Draw two moons with the learned distance to one row; return the error on new rows."""
    X, y = make_moons(300, noise=0.2, random_state=0)
    X_new, y_new = make_moons(1000, noise=0.2, random_state=1)
    metric = learner.fit(X, y).metric_
    x1, x2 = np.meshgrid(np.linspace(-1.7, 2.7, 120), np.linspace(-1.3, 1.8, 90))
    place = np.array([[0.0, 0.95]])
    D = metric.distances(np.c_[x1.ravel(), x2.ravel()], place).reshape(x1.shape)
    ax.contour(x1, x2, D, levels=np.quantile(D, np.linspace(0.05, 0.95, 9)), colors=PALE, linewidths=0.8)
    for label, colour, shape in ((0, BLUE, "o"), (1, ORANGE, "s")):
        ax.scatter(*X[y == label].T, s=11, color=colour, marker=shape, linewidths=0.3, edgecolors="white")
    ax.scatter(*place.T, s=90, color=INK, marker="+", linewidths=2)
    _bare(ax)
    return f"two moons, 10-NN error {_vote_error(metric, X, y, X_new, y_new)}"


def _tumours(ax, learner: MetricLearner) -> str:
    """Draw held-out rows of a table by two principal components of their transform; return the error."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_new = scaler.transform(X), scaler.transform(X_new)
    metric = learner.fit(X, y).metric_
    plane = PCA(2).fit(metric.transform(X)).transform(metric.transform(X_new))
    for label, colour, shape in ((0, ORANGE, "s"), (1, BLUE, "o")):
        ax.scatter(*plane[y_new == label].T, s=13, color=colour, marker=shape, linewidths=0.3, edgecolors="white")
    _bare(ax)
    return f"tumours, 10-NN error {_vote_error(metric, X, y, X_new, y_new)}"


def _vote_error(metric, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray) -> str:
    return f"{100 * rbf_unseen.knn_error(metric.distances(X_new, X), y, y_new):.1f} %"


# -- text: how many directions -----------------------------------------------------------------------------------------

FORMS = (
    ("identity plus low rank, learned", True, 10.0, BLUE, "-"),
    ("Euclidean: nothing learned", True, NOTHING, BLUE, ":"),
    ("projection, learned in it", False, 0.1, ORANGE, "-"),
    ("projection, nothing learned", False, NOTHING, ORANGE, ":"),
)


def draw_text(n_splits: int = 5) -> Figure:
    """Accuracy and pair AUC of held-out descriptions against the number of directions, mean over splits."""
    _, texts, y = text_basis.descriptions()
    X = text_basis.tf_idf(texts)
    sizes = (7, 14, 28, 56, 112, 224)
    found = np.empty((n_splits, len(FORMS), len(sizes), 2))
    for split in range(n_splits):
        train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=split)
        for f, (_, residual, gamma, *_) in enumerate(FORMS):
            for s, k in enumerate(sizes):
                learner = MetricLearner(basis=k, residual=residual, gamma=gamma).fit(X[train], y[train])
                distances = learner.metric_.distances(X[test], X[train])
                accuracy = text_basis.knn_accuracy(distances, y[train], y[test])
                found[split, f, s] = 100 * accuracy, learner.score(X[test], y[test])
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for m, (ax, what) in enumerate(zip(axes, ("5-NN accuracy, %", "pair AUC"), strict=True)):
        for f, (_, _, _, colour, line) in enumerate(FORMS):
            mean = found[:, f, :, m].mean(axis=0)
            spread = found[:, f, :, m].std(axis=0)
            ax.plot(sizes, mean, line, color=colour, lw=2, marker="o" if line == "-" else None, ms=4)
            ax.fill_between(sizes, mean - spread, mean + spread, color=colour, alpha=0.1, lw=0)
        ax.set_xscale("log", base=2)
        ax.set_xticks(sizes, [str(k) for k in sizes])
        ax.minorticks_off()
        ax.set_xlabel("directions k (14 classes)")
        ax.set_title(what, loc="left", fontsize=11, color=INK)
        ax.spines[["top", "right"]].set_visible(False)
    handles = [axes[0].plot([], [], line, color=colour, lw=2, label=name)[0] for name, _, _, colour, line in FORMS]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    return figure


# -- words: objects that are not vectors -------------------------------------------------------------------------------


def draw_words() -> Figure:
    """Words that were not learned from, neighbours beside neighbours, before and after."""
    known, y_known, new, y_new = string_kernel.split(4)
    colours = (BLUE, ORANGE, GREEN, PURPLE)
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    for ax, (name, gamma) in zip(figure.subplots(1, 2), (("before", NOTHING), ("after", 1.0)), strict=True):
        learner = MetricLearner(kernel=string_kernel.shared_pieces, gamma=gamma, pairs_per_class=500)
        metric = learner.fit(known, y_known).metric_
        accuracy = string_kernel.knn_accuracy(metric.distances(new, known), y_known, y_new)
        plane = TSNE(metric="precomputed", init="random", perplexity=15, random_state=0).fit_transform(
            metric.distances(new)
        )
        plane = _apart(plane, new)
        for word, label, (a, b) in zip(new, y_new, plane, strict=True):
            ax.text(a, b, word, color=colours[label], fontsize=7.5, ha="center", va="center")
        ax.set_xlim(-0.06, 1.06)
        ax.set_ylim(plane[:, 1].min() - 0.03, plane[:, 1].max() + 0.03)
        ax.set_title(f"{name}: 5-NN accuracy of new words {100 * accuracy:.0f} %", loc="left", fontsize=11, color=INK)
        _bare(ax)
    names = zip(string_kernel.WORDS, colours, strict=True)
    handles = [ax.plot([], [], "s", color=colour, label=language)[0] for language, colour in names]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=10)
    return figure


def _apart(plane: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The same map in the unit square, words that would overlap moved up and down until they do not."""
    plane = (plane - plane.min(axis=0)) / np.ptp(plane, axis=0)
    width, height = np.array([0.0072 * len(word) + 0.006 for word in words]), 0.023
    for _ in range(300):
        across, down = (plane[:, None, axis] - plane[None, :, axis] for axis in (0, 1))
        touching = (np.abs(across) < width[:, None] + width[None]) & (np.abs(down) < height)
        np.fill_diagonal(touching, False)
        if not touching.any():
            break
        tie = np.sign(np.arange(len(words))[:, None] - np.arange(len(words)))
        away = np.where(down == 0, tie, np.sign(down))
        plane[:, 1] += 0.1 * (touching * away * (height - np.abs(down))).sum(axis=1)
    return plane


# -- losses: what each makes of the same pairs -------------------------------------------------------------------------

STYLES = dict(
    zip(
        compare_losses.LOSSES,
        (
            (BLUE, "-", "o"),
            (GREEN, "-", "s"),
            (ORANGE, "-", "^"),
            (ORANGE, ":", "v"),
            (PURPLE, ":", "D"),
            (INK, ":", "x"),
        ),
        strict=True,
    )
)


def draw_errors() -> Figure:
    """10-NN error of held-out halves against γ, printed too."""
    gammas = (0.01, 0.1, 1.0, 10.0, 100.0)
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    for ax, (table, load) in zip(figure.subplots(1, 3), compare_losses.TABLES.items(), strict=True):
        X, y = load(return_X_y=True)
        plain = 100 * compare_losses.evaluate(None, 1.0, X, y).error
        print(f"{table}: 10-NN error in %, γ = {gammas}\n  {'Euclidean':18s}{plain:6.1f}")
        ax.axhline(plain, color=PALE, lw=1)
        ax.annotate(
            "Euclidean",
            (gammas[-1], plain),
            xytext=(0, 3),
            ha="right",
            textcoords="offset points",
            color=PALE,
            fontsize=9,
        )
        for name, loss in compare_losses.LOSSES.items():
            colour, line, marker = STYLES[name]
            errors = [100 * compare_losses.evaluate(loss, gamma, X, y).error for gamma in gammas]
            print(f"  {name:18s}" + "".join(f"{error:6.1f}" for error in errors))
            ax.plot(gammas, errors, line, color=colour, marker=marker, ms=5, lw=1.7, label=name)
        ax.set_xscale("log")
        ax.set_ylim(0, 1.7 * plain)  # a metric that is all but zero is off the scale
        ax.set_xlabel("γ")
        ax.set_title(f"{table}: 10-NN error, %", loc="left", fontsize=11, color=INK)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, fontsize=10)
    return figure


def draw_spectra(gamma: float = 1.0) -> Figure:
    """Eigenvalues of the learned metric, largest first, mean over held-out halves; 0 is below the axis."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    for ax, (table, load) in zip(figure.subplots(1, 3), compare_losses.TABLES.items(), strict=True):
        X, y = load(return_X_y=True)
        for name, loss in compare_losses.LOSSES.items():
            colour, line, marker = STYLES[name]
            w = compare_losses.evaluate(loss, gamma, X, y).eigenvalues
            ax.plot(
                1 + np.arange(len(w)), np.maximum(w, 1e-9), line, color=colour, marker=marker, ms=4, lw=1.5, label=name
            )
        ax.axhline(1.0, color=PALE, lw=1, zorder=0)
        ax.set_yscale("log")
        ax.set_ylim(1e-4, None)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("direction")
        ax.set_title(f"{table}: eigenvalues, γ = {gamma:g}", loc="left", fontsize=11, color=INK)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, fontsize=10)
    return figure


# -- embeddings: what labels bring -------------------------------------------------------------------------------------


def draw_adapting() -> Figure:
    """P@10 and MAP against the number of labels, from the benchmark's numbers."""
    retrieval = make_tables.read_numbers("adapting")["retrieval"]
    shots = [name for name in ("5", "10", "20", "all") if name in retrieval]
    styles = {
        "EmbeddingAdapter": (BLUE, "-", "o"),
        "contrastive adapter": (ORANGE, "-", "^"),
        "LDA, cosine": (GREEN, ":", None),
        "LDA, shrunk": (GREEN, "-", "s"),
        "frozen": (PALE, "-", None),
    }
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for ax, measure in zip(axes, ("MAP", "P@10"), strict=True):
        for method, (colour, line, marker) in styles.items():
            values = [retrieval[name][method][measure] for name in shots]
            ax.plot(range(len(shots)), values, line, color=colour, marker=marker, ms=5, lw=2, label=method)
        ax.set_xticks(range(len(shots)), shots)
        ax.set_xlabel("labelled questions of each intent")
        ax.set_title(f"{measure}: new questions search 10,003 of 77 intents", loc="left", fontsize=11, color=INK)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=10)
    return figure


# -- streams: labels as they come, pairs asked for, drift --------------------------------------------------------------


def draw_streams() -> Figure:
    """AUC on held-out rows over the number of pairs, on digits and, where its file is at hand, banking77."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    parts = X[order[:900]], y[order[:900]], X[order[900:]], y[order[900:]]
    labels, asked = ("online", "batch refit"), ("asked for, with all they imply", "random")
    panels = {
        "digits, a stream of labels": (label_stream.label_stream(*parts)[1], labels),
        "digits, pairs answered": (label_stream.asking(*parts, n=600), asked),
        "drift: other columns count from halfway on": (label_stream.drift(), ("half-life of 500", "no forgetting")),
    }
    layout = "aabbcc"
    if (folder := data_folder()) is not None:
        os.environ.setdefault("MAHALO_DATA", str(folder))
        panels |= _banking77_streams(labels, asked)
        layout = "aabbcc;dddeee"
    figure = Figure(figsize=(12, 3.6 * (1 + layout.count(";"))), layout="constrained")
    for ax, (title, (curve, names)) in zip(figure.subplot_mosaic(layout).values(), panels.items(), strict=True):
        for column, name, colour in zip((1, 2), names, (BLUE, ORANGE), strict=True):
            ax.plot(curve[:, 0], curve[:, column], color=colour, label=name, lw=1.8)
        ax.set_title(title, loc="left", fontsize=11, color=INK)
        ax.set_xlabel("pairs")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=9, loc="lower right")
    for ax in figure.axes[::3]:
        ax.set_ylabel("AUC, held-out rows")
    return figure


def _banking77_streams(labels: tuple[str, str], asked: tuple[str, str]) -> dict[str, tuple]:
    data, rng = load_banking77(), np.random.default_rng(0)
    test, train = ~data.is_train, rng.permutation(np.flatnonzero(data.is_train))
    held_out = data.X[test], data.y[test]
    space = {"prior": "within", "basis": BetweenBasis(76), "residual": False}
    stream = label_stream.label_stream(data.X[train], data.y[train], *held_out, size=1000, **space)[1]
    pairs = label_stream.asking(data.X[train[:2000]], data.y[train[:2000]], *held_out, n=600)
    return {
        "banking77, a stream of labels over 76 directions": (stream, labels),
        "banking77, pairs of 2,000 questions answered": (pairs, asked),
    }


# -- report: the page as a browser shows it ----------------------------------------------------------------------------


def open_report(width: int = 1100, height: int = 2180) -> Screenshot:
    """The upper part of the page about wine."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        page_of_wine = report_page.wine_report(Path(folder) / "wine.html")
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        page.goto(page_of_wine.as_uri())
        picture = page.screenshot()
        browser.close()
    return Screenshot(picture)


class Screenshot:
    """A picture that is drawn already, to be saved as figures are."""

    def __init__(self, picture: bytes) -> None:
        self.picture = picture

    def savefig(self, buffer: BytesIO, **_: object) -> None:
        buffer.write(self.picture)


# -- scale: rows on Dask -----------------------------------------------------------------------------------------------


def draw_scale() -> Figure:
    """Time and memory against rows, and time against directions and pairs, from the benchmark's numbers."""
    numbers = make_tables.read_numbers("dask")
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    time, memory, directions, pairs = figure.subplots(1, 4)
    rows = np.array([int(n) for n in numbers["rows"]])
    for ax, of, lines in (
        (time, numbers["rows"], {"seconds": ("fit", BLUE, "o"), "reading": ("one pass that reads", PALE, "s")}),
        (memory, numbers["two workers"], {"client": ("client", BLUE, "o"), "worker": ("a worker", ORANGE, "^")}),
    ):
        for key, (label, colour, marker) in lines.items():
            ax.loglog(rows, [one[key] for one in of.values()], color=colour, marker=marker, ms=5, lw=2, label=label)
        ax.legend(frameon=False, fontsize=9)
        ax.set_xlabel("rows of 64 numbers")
    memory.set_ylim(50, 5_000)
    for ax, name, label in ((directions, "directions", "directions k"), (pairs, "pairs", "pairs of a class")):
        growth = numbers["growth"][name]
        ax.loglog([int(size) for size in growth], list(growth.values()), color=BLUE, marker="o", ms=5, lw=2)
        ax.set_xticks([int(size) for size in growth], list(growth))
        ax.set_ylim(0.05, 20)
        ax.set_xlabel(f"{label} (100,000 rows)")
    titles = ("seconds", "peak memory, MB, two workers", "seconds of a fit", "seconds of a fit")
    for ax, title in zip((time, memory, directions, pairs), titles, strict=True):
        ax.set_title(title, loc="left", fontsize=11, color=INK)
        ax.grid(True, which="major", color="#E6E6E6", lw=0.7)
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def _bare(ax) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color("#D0D0D0")


if __name__ == "__main__":
    main()
