"""Tables on disk: read by suffix, from one file, a glob or a folder of shards; written whole or not at all.

`dataset.load_dataset` turns the files and columns that `options.RowOptions` names into rows of numbers with labels, ids
and constraints; `model.FittedModel` reads new rows for a model. Files .csv, .tsv and .parquet need the extra
``mahalo[tables]``.
"""
