"""Object recognition on Caltech-101: the nearest neighbour under kernels for images, as they are and learned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from mahalo import MetricLearner, metric_path
from mahalo.basis import BetweenBasis, ClassBasis
from mahalo.priors import Within

from .data import Images, load_caltech101
from .image_kernels import KERNELS, Recipe, kernel_matrices, kernel_store
from .outcome import Outcome, Progress, Settings, Verdict
from .protocol import Tally, mean_interval
from .recognition import HELD_OUT, MOST_TESTED, Split
from .store import Arrays, Store, digest

__all__ = ["run"]

_PUBLISHED = {("PMK", 15): 0.522, ("PMK", 30): 0.621, ("CORR", 15): 0.610, ("CORR", 30): 0.696, ("SUM", 15): 0.737}
_PLAIN = "as it is"
_RATE = "recognition rate"
_GAMMAS = (1e-8, 0.01, 0.1, 1.0, 10.0)  # the first leaves everything as it was; larger ones cost the most
_OPTIONS = {
    "kernel": "precomputed",
    "strategy": "random",
    "pairs_per_class": 100,
    "percentiles": (1, 99),
    "normalize": True,
}
_MOST_DIRECTIONS = 3000  # of feature space, for covariances to be worked out in full
_TOL, _ROUGH = 1e-3, 1e-2  # relative duality gap: of what is judged, and of what is chosen among
_GROWING = ("n_repeats", "training", "kernels", "fewer", "lessons")  # more of these leaves what is done as it is
_METHOD = 6  # one more whenever rates that are kept would come out otherwise


@dataclass(frozen=True)
class Lesson:
    """What is learned; γ, and the shrinkage where there are several, by cross-validation among the training images.

    Attributes
    ----------
    method : str
    directions : int or None
        Clusters inside each class that span what is learned, beside the kernel as it is. None: the class means, and
        nothing beside them.
    shrinkage : tuple of float
        The kernel's coordinates are first whitened by their covariance within classes, to which so many times its mean
        eigenvalue is added: candidates. Empty: they are taken as they are.
    n_splits : int
        Of the training images, to choose by.
    """

    method: str
    directions: int | None
    shrinkage: tuple[float, ...] = ()
    n_splits: int = 1

    @property
    def priors(self) -> list[Any]:
        """Candidates for what to start from."""
        return [Within(amount) for amount in self.shrinkage] or ["identity"]

    def space(self, n_classes: int) -> dict[str, Any]:
        """Where it is learned, as parameters of `MetricLearner`."""
        if self.directions is None:
            return {"basis": BetweenBasis(), "residual": 0.0}
        return {"basis": ClassBasis(self.directions * n_classes), "residual": 1.0}


@dataclass(frozen=True)
class Plan:
    """How much is done.

    Attributes
    ----------
    n_classes, most_images : int or None
        Of the data; None: all.
    training : tuple of int
        Images a class to learn from, T.
    n_repeats : int
        Random splits for every T.
    kernels : tuple of str
    fewer : dict of str to tuple of int
        T of kernels that are not learned for all of them.
    lessons : tuple of Lesson
    """

    recipe: Recipe
    n_classes: int | None
    most_images: int | None
    training: tuple[int, ...]
    n_repeats: int
    kernels: tuple[str, ...] = KERNELS
    fewer: dict[str, tuple[int, ...]] = field(default_factory=dict)
    lessons: tuple[Lesson, ...] = (
        Lesson("learned, the paper's way", 7),
        Lesson("learned from within", None, (0.3, 1.0, 3.0), 2),
    )

    @property
    def curves(self) -> dict[str, tuple[int, ...]]:
        """T of every kernel."""
        return {name: self.fewer.get(name, self.training) for name in self.kernels}

    @property
    def points(self) -> list[tuple[str, int]]:
        """Kernels and T."""
        return [(name, T) for name, sizes in self.curves.items() for T in sizes]


# What is done is kept, so that more sizes cost no more than they are.
_FULL = Plan(
    Recipe(),
    None,
    None,
    (5, 10, 15, 20, 30),
    3,
    fewer=dict.fromkeys(("SPMK", "CORR", "GB1", "GB2", "SUM"), (5, 15, 30)),
)
_QUICK = Plan(Recipe(depth=3, n_words=100, blur_points=60, sample=60), 12, 24, (5, 10), 2)


def run(settings: Settings, progress: Progress) -> Outcome:
    """Recognition rates of every kernel before and after learning, for growing training sets."""
    plan = _QUICK if settings.quick else _FULL
    images = load_caltech101().first(plan.n_classes, plan.most_images)
    store = kernel_store(settings.cache, images, plan.recipe)
    kernels = kernel_matrices(images, plan.recipe, store, progress, plan.kernels)
    results = Store(settings.cache / f"images-rates-{_key(images, plan, settings.seed)}")
    tasks = [(*point, *rest) for point, rest in product(plan.points, product(range(plan.n_repeats), plan.lessons))]
    tally, kept = Tally(), []
    for done, (name, T, repeat, lesson) in enumerate(tasks):
        progress("learning", done, len(tasks))
        rates = partial(_rates, kernels[name], images.y, T, settings.seed + repeat, lesson)
        found = results.get(_name(name, T, repeat, lesson), rates)
        if lesson is plan.lessons[0]:
            tally.add(name, _PLAIN, _RATE, found["plain"].item(), T)
        tally.add(name, lesson.method, _RATE, found["learned"].item(), T)
        kept.append({"kernel": name, "method": lesson.method} | {key: value.item() for key, value in found.items()})
    progress("learning", len(tasks), len(tasks))
    return replace(_outcome(images, plan, tally, kept), resumed=results.n_found > 0)


def _key(images: Images, plan: Plan, seed: int) -> str:
    settings = {k: v for k, v in asdict(plan).items() if k not in _GROWING}
    return digest(
        images.archive,
        list(images.members),
        settings,
        [_METHOD, MOST_TESTED, _GAMMAS, HELD_OUT, _OPTIONS, _TOL, _ROUGH],
        seed,
    )


def _name(kernel: str, T: int, repeat: int, lesson: Lesson) -> str:
    return f"{kernel}-{T:02d}-{repeat}-{digest(asdict(lesson))[:8]}"


# -- one split ---------------------------------------------------------------------------------------------------------


def _rates(K: np.ndarray, y: np.ndarray, T: int, seed: int, lesson: Lesson) -> Arrays:
    """Recognition rates of one kernel on one split, as it is and learned."""
    drawn = Split.draw(K, y, T, seed)
    split, removed = drawn.definite(_MOST_DIRECTIONS)
    options = {**_OPTIONS, **lesson.space(len(np.unique(y))), "random_state": seed}
    prior, gamma = _chosen(split, lesson, options)
    learner = MetricLearner(prior=prior, gamma=gamma, tol=_TOL, **options).fit(split.K_train, split.y_train)
    found = {
        "plain": drawn.plain_rate(),
        "learned": split.rate(learner.metric_),
        "gamma": gamma,
        "shrinkage": prior.shrinkage if isinstance(prior, Within) else 0.0,
        "gap": learner.certificate_.relative_gap,
        "removed": removed,
    }
    return {name: np.array([value]) for name, value in found.items()}


def _chosen(split: Split, lesson: Lesson, options: dict[str, Any]) -> tuple[Any, float]:
    """The prior and the γ with the best mean rate on held-out training images.

    `MetricLearnerCV` would draw fewer pairs to choose than to learn, and here a good γ depends on how many there are.
    """
    inner = split.inner(lesson.n_splits, options["random_state"])
    rates = np.mean(
        [[_path_rates(part, options | {"prior": prior}) for prior in lesson.priors] for part in inner], axis=0
    )
    best, k = np.unravel_index(np.argmax(rates), rates.shape)
    return lesson.priors[best], _GAMMAS[k]


def _path_rates(split: Split, options: dict[str, Any]) -> list[float]:
    path = metric_path(split.K_train, split.y_train, gammas=_GAMMAS, tol=_ROUGH, **options)
    return [split.rate(metric) for metric in path.metrics]


# -- what was found ----------------------------------------------------------------------------------------------------


def _outcome(images: Images, plan: Plan, tally: Tally, kept: list[dict]) -> Outcome:
    published = {
        (name, lesson.method, _RATE, float(T)): rate
        for (name, T), rate in _PUBLISHED.items()
        for lesson in plan.lessons
    }
    paper, within = plan.lessons
    return Outcome(
        name="images",
        title="Nearest-neighbour object recognition with learned kernels",
        protocol=(
            f"T random images of each of {len(np.unique(images.y))} classes to learn from, all others of the class, "
            f"at most {MOST_TESTED}, to be recognised by their nearest neighbour (k = 1); mean over classes of the "
            f"share recognised; random splits for every T: {plan.n_repeats}. Learned from 100 similar (or all) and 100 "
            "dissimilar pairs a class at random, bounds the 1st and 99th percentile of squared distances, γ from "
            f"{', '.join(f'{gamma:g}' for gamma in _GAMMAS[1:])}, or none, by splits of the training images alone, "
            f"a third held out ({paper.n_splits} split; “{within.method}”, cheaper: {within.n_splits}); images "
            f"are compared by cosine, κ(x, y)/√(κ(x, x) κ(y, y)). “{paper.method}”: identity plus low rank over "
            f"{paper.directions} directions a class, clusters in feature space (over all training images where "
            f"T ≤ {paper.directions}); the paper learns over all, and compares by distance. “{within.method}”, beyond "
            "the protocol: the kernel's coordinates are first whitened by their covariance within classes, to which "
            f"{', '.join(f'{amount:g}' for amount in within.shrinkage[:-1])} or {within.shrinkage[-1]:g} times its "
            "mean eigenvalue is added, as such splits have it; then the same pairs are learned from in the space "
            "of the class means alone."
        ),
        x_label="T",
        measurements=tally.measurements(published),
        verdicts=tuple(_verdicts(plan, tally)),
        notes=_notes(images, plan, kept),
    )


def _verdicts(plan: Plan, tally: Tally) -> Iterator[Verdict]:
    def rate(name: str, method: str, T: int) -> float:
        return float(np.mean(tally.values(name, method, _RATE, T)))

    def gain(better: str, worse: str) -> Verdict:
        gains = {(n, T): rate(n, better, T) - rate(n, worse, T) for n, T in plan.points}
        (name, T), least = min(gains.items(), key=lambda item: item[1])
        (name_most, T_most), most = max(gains.items(), key=lambda item: item[1])
        return Verdict(
            f"{better}: every kernel recognises more images than {worse}, for every T",
            least > 0,
            f"from {100 * least:+.1f} points ({name}, T = {T}) to {100 * most:+.1f} ({name_most}, T = {T_most})",
        )

    paper, within = (lesson.method for lesson in plan.lessons)
    yield gain(paper, _PLAIN)
    yield gain(within, _PLAIN)
    yield gain(within, paper)
    yield from (_rising(plan, tally, method) for method in (paper, within))
    for (name, T), published in _PUBLISHED.items():
        if (name, T) in plan.points:
            for method in (paper, within):
                plain, ours = (100 * rate(name, m, T) for m in (_PLAIN, method))
                yield Verdict(
                    f"{method}: {name} at T = {T} is no more than 5 points below the published rate",
                    ours >= 100 * published - 5,
                    f"{ours:.2f} % against {100 * published:.1f} %; {plain:.2f} % before learning",
                )


def _rising(plan: Plan, tally: Tally, method: str) -> Verdict:
    """Whether no rate is below that of the next smaller T by more than the interval of their difference."""
    falls, largest = [], 0.0
    for name, (T, more) in ((name, step) for name, sizes in plan.curves.items() for step in pairwise(sizes)):
        (before, wide), (after, wide_after) = (mean_interval(tally.values(name, method, _RATE, t)) for t in (T, more))
        largest = max(largest, before - after)
        if before - after > np.hypot(wide or 0.0, wide_after or 0.0):
            falls.append(f"{name} from {before:.3f} at T = {T} to {after:.3f} at {more}")
    detail = "; ".join(falls) or (f"largest fall {100 * largest:.1f} points" if largest > 0 else "all rise")
    return Verdict(f"{method}: no curve falls as T grows, beyond its interval", not falls, detail)


def _notes(images: Images, plan: Plan, kept: list[dict]) -> tuple[str, ...]:
    recipe, gaps = plan.recipe, [fit["gap"] for fit in kept]
    removed = {name: max(fit["removed"] for fit in kept if fit["kernel"] == name) for name in plan.kernels}
    indefinite = ", ".join(f"{name} {100 * share:.1f} %" for name, share in removed.items() if share > 1e-6)
    missing = [name for name in KERNELS if name not in plan.kernels]
    gammas = {
        lesson.method: [fit["gamma"] for fit in kept if fit["method"] == lesson.method] for lesson in plan.lessons
    }
    chosen = "; ".join(
        f"{method}: {_counted(gamma if gamma > _GAMMAS[0] else 0.0 for gamma in found)}"
        for method, found in gammas.items()
    )
    shrinkage = _counted(fit["shrinkage"] for fit in kept if fit["shrinkage"])
    notes = [
        f"{images.source}. The full set has up to 800 images of a class, so here classes have fewer to be judged on.",
        f"Relative duality gap of the fits: at most {max(gaps):.1g}. γ chosen (0: the start was best, and nothing is "
        f"learned beyond it): {chosen}. Mean eigenvalues added: {shrinkage}.",
        "Prior and γ of every fit are chosen on training images alone; the method itself is not free of what was seen "
        "on images to be recognised, so its rates are somewhat flattered. That the covariance within classes helps, "
        "and by about which shrinkage, was first seen on two splits of PMK. How prior and γ are chosen was changed "
        "twice after rates at T = 30 were seen to be low (0.586 and 0.579 on one split each, where nothing learned "
        "beyond the start had 0.62): first, choosing was done with half as many pairs as learning; then, covariances "
        f"of more than {_MOST_DIRECTIONS:,} directions were approximated, so that now only so many are kept (at T = 30 "
        "the 30 smallest go). Either cause was confirmed on held-out training images.",
        "The paper's way chooses among fewer candidates and by fewer splits than the other, and mostly takes the "
        "largest γ there is; larger ones were left out for the time they take (one fit at T = 15 that could choose 100 "
        "took 10). The difference between the two is to be read with this in mind.",
        "The descriptors are our own: dense SIFT of 32 × 32 pixels every 8 pixels, 20 principal components beside the "
        f"position for PMK; geometric blur at {recipe.blur_points} edge points of the image at half size. Settings "
        "were chosen by the rate of the unlearned PMK on one split of a part of these images, before anything was "
        "learned.",
        "PMK matches in a vocabulary tree, the later form of the pyramid match, where the paper's is a uniform grid. "
        "Trees, principal components and the unit of geometric-blur distances come from all images, without labels, "
        "those to be recognised among them.",
        "Kernel matrices and rates are kept as they are made.",
    ]
    if missing:
        notes.append(f"Left out for the time they take: {', '.join(missing)}.")
    if {"CORR", "GB1", "GB2"} & set(plan.kernels):
        notes += [
            "The paper does not say how CORR and Geoblur-2 differ, both being correspondences of geometric blur with a "
            "position term; here CORR looks at neighbourhoods of two sizes and GB2 at the larger one.",
            "Kernels of correspondences are not positive semidefinite. Negative eigenvalues of the training matrix are "
            "left out before learning, and what of other images lies along them; largest share of them in the sum of "
            f"all without their signs: {indefinite or 'none'}.",
        ]
    return tuple(notes)


def _counted(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g} ({n}×)" for value, n in sorted(Counter(values).items()))
