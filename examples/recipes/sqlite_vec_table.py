"""SQLite with sqlite-vec, which knows Euclidean distance and no inner product.

u·x − s/2 is largest where ‖u − x‖² − ‖x‖² + s is smallest: the extra number is s − ‖x‖².
"""

from __future__ import annotations

import sqlite3
from importlib import import_module

import numpy as np
import sqlite_vec
from common import Form, K, run

DISTANCE = "vec_distance_L2(v, ?)"
ORDER = {"l2": DISTANCE, "ip": f"{DISTANCE} * {DISTANCE} + extra"}


if not hasattr(sqlite3.Connection, "enable_load_extension"):
    # This Python was built without loadable extensions; the package `pysqlite3-binary` has them.
    sqlite3 = import_module("pysqlite3")


def search(form: Form) -> np.ndarray:
    connection = sqlite3.connect(":memory:")
    connection.enable_load_extension(True)
    sqlite_vec.load(connection)
    connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, v BLOB, extra REAL)")
    first = 0
    for vectors in (form.stored, form.added):
        s = form.extra[first : first + len(vectors)]
        extra = s - np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        rows = [(first + k, v.tobytes(), float(e)) for k, (v, e) in enumerate(zip(vectors, extra, strict=True))]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
        first += len(vectors)
    order = ORDER[form.measure]
    query = f"SELECT id FROM items ORDER BY {order} LIMIT {K}"
    asked = [[q.tobytes()] * order.count("?") for q in form.asked]
    return np.array([[row[0] for row in connection.execute(query, values)] for values in asked])


run("sqlite-vec", search)
