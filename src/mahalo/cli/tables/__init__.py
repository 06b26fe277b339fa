"""Tables on disk: read by suffix, from one file, a glob or a folder of shards; written whole or not at all."""
