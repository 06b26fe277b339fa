"""Search, distances and same-or-not over HTTP, for `mahalo serve`: the extra ``mahalo[studio]``."""
