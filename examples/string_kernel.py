"""
A kernel on words
=================

Learn which words belong together, then measure words that were never seen. Nothing here is a vector. The kernel
counts the pieces of up to three letters that two words share, and the metric is learned in the space which that
kernel spans. The file of the metric holds numbers only, so `load` is given the kernel and the words again.
"""

import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import KernelPCA

import mahalo
from mahalo import MetricLearner
from mahalo.evaluation import vote

WORDS = {
    "English": """about although always anything awkward because bought breath bright brought built caught children
        daughter earth eight enough every everything freight friend furthermore growth health heavy height island
        knowledge laughter length listen mouth neighbour nothing other people rather ready should sought strength taught
        themselves thorough thought through throughout together truth weather weight wherever which without worth would
        wrought""",
    "German": """abend achtung arbeit aufgabe beispiel besuch bruder dorf durch einfach entscheidung erfahrung freiheit
        freundschaft gedanke gegenstand geschichte gesellschaft gespräch gesundheit haus herbst hoffnung jahr kind
        kirche leben licht mädchen mensch möglich nacht natürlich nichts pflicht recht richtig schatten schlecht schule
        schwester sprache stunde tisch tochter unterschied wahrheit wald wasser wirklich wissenschaft woche zeit
        zwischen""",
    "Italian": """abbastanza allora amicizia ancora anello bambino bellezza bicchiere bottiglia camminare cavallo cielo
        città coltello conoscere cucina domanda domenica famiglia felice finestra fiore foglia fratello gatto giardino
        giorno gioventù grazie lavoro leggere libro luce maggio mattina mezzogiorno migliore montagna nazione notte
        oggi paese parola pensiero piccolo piazza ragazzo ricchezza scuola sempre sorella speranza spiaggia stagione
        strada""",
    "Finnish": """aamu aika ajatus asukas aurinko elämä hetki huomenta hyvä ihminen ilta isä joki joulu juuri kaikki
        kaunis kauppa keskiviikko kesä kirja kirjoittaa koulu kuukausi kysymys käsi lapsi luonto maailma marraskuu matka
        metsä mieli nainen nuori opettaja opiskelija perhe poika puhelin päivä rakkaus rauha ruoka sana silmä sisko
        suomi suuri syksy talvi tuuli tyttö työ vastaus vesi viikko yö ystävä äiti""",
}


@cache
def pieces(word: str) -> tuple[Counter, float]:
    """How often each piece of up to three letters occurs in a word, its ends marked, and the length of that vector."""
    marked = f"<{word}>"
    count = Counter(marked[i : i + n] for n in (1, 2, 3) for i in range(len(marked) - n + 1))
    return count, sum(n * n for n in count.values()) ** 0.5


def similarity(first: str, second: str) -> float:
    (a, length_a), (b, length_b) = pieces(first), pieces(second)
    return sum(n * b[piece] for piece, n in a.items()) / (length_a * length_b)


def shared_pieces(first, second) -> np.ndarray:
    """κ0 of all words of one list with all of another: the cosine of their counts of pieces."""
    return np.array([[similarity(a, b) for b in second] for a in first])


def split(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Words and their languages: one half to learn from, one half to be judged on."""
    words = np.array([word for listed in WORDS.values() for word in listed.split()])
    y = np.repeat(np.arange(len(WORDS)), [len(listed.split()) for listed in WORDS.values()])
    known, new = np.array_split(np.random.default_rng(seed).permutation(len(words)), 2)
    return words[known], y[known], words[new], y[new]


def knn_accuracy(distances: np.ndarray, y_known: np.ndarray, y_new: np.ndarray, k: int = 5) -> float:
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return float(np.mean(vote(y_known[nearest]) == y_new))  # a tie goes to those that are nearer


def main() -> None:
    plain, learned = [], []
    for seed in reversed(range(5)):
        known, y_known, new, y_new = split(seed)
        learner = MetricLearner(kernel=shared_pieces, pairs_per_class=500).fit(known, y_known)
        metric = learner.metric_
        plain.append(knn_accuracy(-shared_pieces(new, known), y_known, y_new))
        learned.append(knn_accuracy(metric.distances(new, known), y_known, y_new))
    print(f"{len(known)} known words, {learner.constraints_}, relative gap {learner.certificate_.relative_gap:.0e}")
    print(f"\n{len(new)} new words, 5 splits     5-NN accuracy")
    print(f"pieces shared, as they are {100 * np.mean(plain):10.1f} %")
    print(f"learned                    {100 * np.mean(learned):10.1f} %\n")

    languages = list(WORDS)
    for word in ("thunder", "freundlich", "passeggiata", "lumihiutale"):
        nearest = metric.distances([word], known)[0].argsort()[:4]
        print(f"{word:12s} is near " + ", ".join(f"{known[i]} ({languages[y_known[i]]})" for i in nearest))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.safetensors"
        metric.save(path)
        words = [str(word) for word in metric.coordinates.support]  # keep these beside the file, as text
        loaded = mahalo.load(path, kernel=shared_pieces, points=words)
        assert np.array_equal(loaded.distances(new, known), metric.distances(new, known))
        size = path.stat().st_size / 1024
        print(f"\n{path.name}: {size:.0f} KB of numbers, loaded with kernel= and {len(words)} points=")

    _, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for ax, name, kernel in zip(axes, ("as they are", "learned"), (shared_pieces, metric.kernel), strict=True):
        plane = KernelPCA(2, kernel="precomputed").fit(kernel(known, known)).transform(kernel(new, known))
        for k, language in enumerate(languages):
            ax.scatter(*plane[y_new == k].T, s=12, label=language)
        ax.set(title=f"new words, {name}", xticks=[], yticks=[])
    axes[0].legend()
    plt.show()


if __name__ == "__main__":
    main()
