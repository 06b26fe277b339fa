"""
Sentences to a better search
============================

Encode short questions offline, learn from their topics, and see which words came to matter.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import euclidean_distances, label_ranking_average_precision_score

from mahalo.embeddings import EmbeddingAdapter
from mahalo.text import HybridIndex, frequent_words, load_encoder, load_library_questions, word_weights

questions = load_library_questions()  # 200 questions to a library, ten topics
texts, topics = np.array(questions.texts), np.array(questions.topics)
encoder = load_encoder()
E = encoder.encode(texts)

# Six questions of each topic are held out.
rng = np.random.default_rng(0)
held_out = np.concatenate(
    [rng.choice(np.flatnonzero(topics == topic), 6, replace=False) for topic in np.unique(topics)]
)
stored = np.setdiff1d(np.arange(len(texts)), held_out)
adapter = EmbeddingAdapter(random_state=0).fit(E[stored], topics[stored])


def mean_average_precision(index, queries):
    """How well the ranking of all stored questions puts those of the query's topic first."""
    relevant = topics[held_out][:, None] == topics[stored]
    return label_ranking_average_precision_score(relevant, -euclidean_distances(queries, index))


reached = {
    "frozen": mean_average_precision(E[stored], E[held_out]),
    "learned": mean_average_precision(adapter.transform(E[stored]), adapter.transform(E[held_out])),
}
for name, value in reached.items():
    print(f"{name:8} MAP of held-out questions {value:.3f}")

# A question nobody asked before, by vectors and words together.
index = HybridIndex(texts[stored], encoder, adapter.metric_)
question = "the machine jammed while I made copies"
print(f"\n{question}")
for row in index.search([question], k=4).rows[0]:
    print(f"  {topics[stored][row]:22} {texts[stored][row]}")

weights = word_weights(encoder, adapter.metric_, frequent_words(texts), n=8)
print(f"\n{weights}")

_, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", width_ratios=(1, 2))
left.bar_label(left.bar(list(reached), reached.values(), color=["grey", "C0"]), fmt="%.3f")
left.set(ylabel="MAP of held-out questions", ylim=(0, 1))
shown = {**weights.stretched, **dict(reversed(weights.shrunk.items()))}
right.barh(
    list(shown), [weight - 1.0 for weight in shown.values()], color=["C0" if w > 1 else "grey" for w in shown.values()]
)
right.invert_yaxis()
right.set(title="words that matter", xlabel="weight of a word, less that of the median word")
plt.show()
