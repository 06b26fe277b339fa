"""
Duplicates of a precision
=========================

Questions that were asked twice in other words: label some pairs, learn how much each column counts, and choose how
many of the reported pairs shall be right.
"""

import matplotlib.pyplot as plt
import numpy as np

from mahalo.dedupe import Deduplicator, number_columns, propose_pairs, text_columns
from mahalo.text import load_encoder, load_library_questions

# Every question comes twice: as it was asked, and as a clerk noted it the same day, in capitals and without its
# shortest words. The number of the desk says nothing.
rng = np.random.default_rng(0)
asked = list(load_library_questions().texts)
noted = [" ".join(word for word in text.upper().split() if len(word) > 2) for text in asked]
n = len(asked)
days = rng.integers(1, 60, n)
numbers, _ = number_columns({"day": np.concatenate([days, days]), "desk": rng.integers(1, 9, 2 * n)})
columns = text_columns({"question": asked + noted}, load_encoder()) | numbers

# Here the truth is known; with data of your own, you answer.
pairs = propose_pairs(columns, 200, random_state=0)
same = pairs[:, 1] - pairs[:, 0] == n
print(f"{same.sum()} of {len(pairs)} labelled pairs are the same")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
asked_for = (0.8, 0.9, 0.95, 0.99)
reached, recall = [], []
for precision in asked_for:
    finder = Deduplicator(precision=precision).fit(columns, pairs, same)
    found = finder.find(columns)
    right_pairs = found.pairs[:, 1] - found.pairs[:, 0] == n
    reached.append(right_pairs.mean())
    recall.append(right_pairs.sum() / n)
    print(f"asked for {precision:.2f}: precision {reached[-1]:.3f}, recall {recall[-1]:.3f}; {found.n_groups} groups")

left.plot(asked_for, asked_for, color="grey", linestyle=":", label="asked for")
left.plot(asked_for, reached, marker="o", label="precision")
left.plot(asked_for, recall, marker="s", label="recall")
left.set(xlabel="precision asked for", title="what was found")
left.legend()
right.barh(list(finder.weights_), list(finder.weights_.values()))
right.set(title="weight of each column's squared distance", xscale="symlog")
plt.show()
