"""The paper's experiments, and some beyond it: each module has `run(settings, progress)`, which returns an `Outcome`.

`python -m experiments` runs them. Only `runner`, `results` and `curves` print and draw; the experiments do not.
"""

EXPERIMENTS = {
    "uci": "10-NN error on small tables, beside other metric learners",
    "clustering": "semi-supervised k-means from 50 pairs",
    "text": "Classic3 and 20 Newsgroups over bases of growing size",
    "images": "nearest-neighbour object recognition with learned kernels",
    "images_exact": "the same, one kernel learned over all training images",
    "timing": "seconds to learn a metric, beside other metric learners",
    "embeddings": "retrieval with frozen sentence embeddings, before and after",
}
