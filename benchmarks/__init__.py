"""Fixed problems, run through mahalo and its peers in one go: `python -m benchmarks`.

Every figure that must hold is a ratio of two times measured in the same run, or a number that does not
depend on the machine. The peer (metric-learn) lives in an environment of its own, see `peers`; the objective
of its answers is recomputed by mahalo's certificate code.
"""
