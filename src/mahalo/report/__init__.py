"""What a learned metric looks like: numbers on held-out rows, and pictures of them.

`evaluation` needs nothing beyond the library; `figures` needs matplotlib, the extra ``mahalo[plots]``.
"""
