"""PostgreSQL with pgvector; the package `pgserver` brings both, for a server beside this process.

The query-side form leaves the column of vectors as it is, and keeps κ(x, x) in a column of numbers.
"""

from __future__ import annotations

import tempfile

import numpy as np
import pgserver
import psycopg
from common import Form, K, run

ORDER = {"l2": "v <-> %s::vector", "ip": "(v <#> %s::vector) + s / 2"}  # <#> is the negative inner product


def as_text(vector: np.ndarray) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def search_in(connection: psycopg.Connection):
    def insert(first: int, vectors: np.ndarray, extra: np.ndarray) -> None:
        rows = [(first + k, as_text(v), float(s)) for k, (v, s) in enumerate(zip(vectors, extra, strict=True))]
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO items VALUES (%s, %s, %s)", rows)

    def search(form: Form) -> np.ndarray:
        connection.execute("DROP TABLE IF EXISTS items")
        connection.execute(f"CREATE TABLE items (id int PRIMARY KEY, v vector({form.stored.shape[1]}), s float8)")
        n = len(form.stored)
        insert(0, form.stored, form.extra[:n])
        insert(n, form.added, form.extra[n:])
        query = f"SELECT id FROM items ORDER BY {ORDER[form.measure]} LIMIT {K}"
        return np.array([[row[0] for row in connection.execute(query, [as_text(q)])] for q in form.asked])

    return search


with tempfile.TemporaryDirectory() as folder:
    server = pgserver.get_server(folder)
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            run("PostgreSQL, pgvector", search_in(connection))
    finally:
        server.cleanup()
