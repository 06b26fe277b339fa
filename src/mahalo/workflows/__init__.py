"""Jobs that start from files: fit and evaluate a table, search an index, answer pairs, find duplicates.

Plain functions of paths and options, with named results. They print nothing; the command line and servers show what
they return.
"""
