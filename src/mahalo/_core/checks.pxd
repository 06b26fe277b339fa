"""Checks of shapes and indices before pointers are used."""


cdef inline int check_length(str name, Py_ssize_t got, Py_ssize_t wanted) except -1:
    if got != wanted:
        raise ValueError(f"{name} must be of length {wanted}; got {got}.")
    return 0


cdef inline int check_shape(str name, Py_ssize_t n_rows, Py_ssize_t n_columns,
                            Py_ssize_t wanted_rows, Py_ssize_t wanted_columns) except -1:
    if n_rows != wanted_rows or n_columns != wanted_columns:
        raise ValueError(f"{name} must be {wanted_rows} × {wanted_columns}; got {n_rows} × {n_columns}.")
    return 0


cdef inline int check_indices(str name, const Py_ssize_t *index, Py_ssize_t n, Py_ssize_t n_rows) except -1:
    cdef Py_ssize_t k
    for k in range(n):
        if not 0 <= index[k] < n_rows:
            raise ValueError(f"{name} must be in [0, {n_rows}); got {index[k]}.")
    return 0


cdef inline int check_starts(str name, const Py_ssize_t[::1] start, Py_ssize_t n_entries) except -1:
    """Raise ValueError unless `start` bounds compressed rows: row k is start[k] … start[k + 1]."""
    cdef Py_ssize_t k
    if start.shape[0] == 0 or start[0] != 0 or start[start.shape[0] - 1] != n_entries:
        raise ValueError(f"{name} must go from 0 to {n_entries}; got {list(start)}.")
    for k in range(start.shape[0] - 1):
        if start[k] > start[k + 1]:
            raise ValueError(f"{name} must not fall; got {start[k + 1]} after {start[k]}.")
    return 0
