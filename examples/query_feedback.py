"""
Feedback from a search box
==========================

Learn from searches and the documents that helped: queries are multiplied with a matrix, stored vectors stay.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from mahalo.feedback import QueryAdapter

# Stand-ins for vectors: stored images of digits, and queries that show other images turned by 90°, so that they do not
# speak the language of the documents.
E, y = load_digits(return_X_y=True)
E = E - E.mean(axis=0)
turned = np.rot90(E.reshape(-1, 8, 8), axes=(1, 2)).reshape(len(E), -1)
documents, topics = normalize(E[:400]), y[:400]
queries, wanted = normalize(turned[400:1000]), y[400:1000]

# Feedback: of 400 queries two documents each are known that helped.
rng = np.random.default_rng(0)
answers = [rng.choice(np.flatnonzero(topics == wanted[q]), 2, replace=False) for q in range(400)]
clicks = [(q, d, 1) for q, found in enumerate(answers) for d in found]  # query row, document row, grade

adapter = QueryAdapter(random_state=0).fit(queries[:400], documents, clicks)
print(adapter.before_after_)
print(f"\nthe objective is at most {adapter.certificate_.bound:.1e} above its least value")


def precision(vectors):
    """Share of documents of the right digit among the first k, for k = 1 to 10 and new queries."""
    order = np.argsort(-vectors @ documents.T, axis=1)[:, :10]
    hits = topics[order] == wanted[400:, None]
    return hits.mean(axis=0).cumsum() / np.arange(1, 11)


frozen, adapted = precision(queries[400:]), precision(adapter.transform(queries[400:]))
print(f"new queries, precision at 10: frozen {frozen[-1]:.2f}, adapted {adapted[-1]:.2f}")

_, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(np.arange(1, 11), frozen, "o-", color="grey", label="frozen")
ax.plot(np.arange(1, 11), adapted, "o-", color="C0", label="adapted")
ax.set(xlabel="documents shown", ylabel="precision of new queries", ylim=(0, 1))
ax.legend()
plt.show()
