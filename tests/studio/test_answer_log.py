"""The log on disk: complete, without doubles, whatever is killed and however many write."""

from __future__ import annotations

import json
import multiprocessing
import os

import pytest

from mahalo.studio.answer_log import AnswerLog, DataIdentity, Entry

DATA = DataIdentity(10, 2, "digest")


def pair(id, answer="same", rows=(0, 1), **more):
    return Entry(id, "pair", rows, answer, **more)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.jsonl"


def test_entries_are_read_again_as_they_were_written(path):
    log = AnswerLog(path, DATA)
    written = [
        pair("a", annotator="Zoë", why="new"),
        Entry("b", "triplet", (3, 1, 2), "second"),
        Entry("c", "label", (4,), "change", label="=1\n\u2028"),
        Entry("d", "undo", (), "a"),
    ]
    for entry in written:
        log.append(entry)
    assert AnswerLog(path, DATA).entries == log.entries == tuple(written)
    assert path.read_bytes().count(b"\n") == 5 and path.read_bytes().isascii()


def test_a_path_where_no_answer_can_be_written_is_refused_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .* to keep 'answers.jsonl' in: make it first"):
        AnswerLog(tmp_path / "nowhere" / "answers.jsonl", DATA)
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        AnswerLog(tmp_path, DATA)


def test_an_id_is_written_once(path):
    log = AnswerLog(path, DATA)
    log.append(pair("a"))
    size = path.stat().st_size
    assert log.append(pair("a", annotator="again")) == pair("a")
    assert AnswerLog(path, DATA).append(pair("a")) == pair("a")
    assert path.stat().st_size == size
    with pytest.raises(ValueError, match=r"'a' has been answered already, with 'same'; got 'different'\. Undo"):
        log.append(pair("a", "different"))


def test_every_cut_of_the_last_line_is_recovered_from(path):
    log = AnswerLog(path, DATA)
    log.append(pair("a"))
    before = path.stat().st_size
    log.append(pair("b"))
    whole = path.read_bytes()
    for end in range(before, len(whole)):
        path.write_bytes(whole[:end])
        reopened = AnswerLog(path, DATA)
        assert [entry.id for entry in reopened.entries] == ["a"]
        reopened.append(pair("c"))
        kept = ["a", "b", "c"] if end == len(whole) - 1 else ["a", "c"]  # all but the end of the line is an answer
        assert [entry.id for entry in AnswerLog(path, DATA).entries] == kept


def test_a_cut_header_is_written_anew(path):
    AnswerLog(path, DATA).append(pair("a"))
    path.write_bytes(path.read_bytes()[:20])
    log = AnswerLog(path, DATA)
    log.append(pair("b"))
    assert AnswerLog(path, DATA).entries == (pair("b"),)


def test_a_log_of_other_rows_or_of_another_kind_is_refused(path):
    AnswerLog(path, DATA).append(pair("a"))
    with pytest.raises(ValueError, match="answers about other rows"):
        AnswerLog(path, DataIdentity(11, 2, "digest"))
    with pytest.raises(ValueError, match="answers about other rows"):
        AnswerLog(path, DataIdentity(10, 2, "other"))
    path.write_text('{"a": 1}\n')
    with pytest.raises(ValueError, match="is not a log of answers"):
        AnswerLog(path, DATA)
    path.write_text(json.dumps({"format": "mahalo answers", "version": 99}) + "\n")
    with pytest.raises(ValueError, match="newer version"):
        AnswerLog(path, DATA)


def test_a_damaged_line_is_named(path):
    log = AnswerLog(path, DATA)
    log.append(pair("a"))
    log.append(pair("b"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{oops\n" + lines[2])
    with pytest.raises(ValueError, match="line 2: not a line of an answer log"):
        AnswerLog(path, DATA)
    path.write_bytes(lines[0] + b"".join(lines[1:]) + b"{oops\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="line 4: not a line of an answer log"):
            log.refresh()
    path.write_bytes(lines[0] + b'{"id":"x","kind":"pair","rows":[0,77],"answer":"same"}\n')
    with pytest.raises(ValueError, match=r"line 2: a pair has 2 different rows, numbers from 0 to 9; got \[0, 77\]"):
        AnswerLog(path, DATA)


@pytest.mark.parametrize(
    "entry",
    [
        pair("a", rows=(0, 10)),
        pair("a", rows=(-1, 1)),
        pair("a", rows=(1, 1)),
        pair("a", rows=(0, 1, 2)),
        pair("a", rows=(0, True)),
        pair("a", rows=(0, 1.0)),
        pair("a", "maybe"),
        pair(""),
        pair("a" * 20_000),
        pair("a", annotator="\ud800"),
        Entry("a", "guess", (0, 1), "same"),
        Entry("a", "triplet", (0, 1, 2), "same"),
    ],
)
def test_answers_about_nothing_are_refused(path, entry):
    log = AnswerLog(path, DATA)
    with pytest.raises(ValueError):
        log.append(entry)
    assert log.entries == () == AnswerLog(path, DATA).entries


def _append_many(path, name, n):
    log = AnswerLog(path, DATA)
    for k in range(n):
        log.append(pair(f"{name}{k}", annotator=name))
        log.append(pair(f"shared{k}"))


@pytest.mark.slow
def test_processes_neither_lose_nor_double_answers(path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(path, name, 8)) for name in "ab"]
    for worker in workers:
        worker.start()
    _append_many(path, "c", 8)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    ids = [entry.id for entry in AnswerLog(path, DATA).entries]
    assert len(ids) == len(set(ids)) == 32
    assert path.read_bytes().count(b"\n") == 33
    for name in "abc":  # in the order in which each has answered
        assert [id for id in ids if id.startswith(name)] == [f"{name}{k}" for k in range(8)]


def test_lines_are_on_disk_before_append_returns(path, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(path.read_bytes()), fsync(descriptor)))
    AnswerLog(path, DATA).append(pair("a"))
    assert synced[-1] == path.read_bytes() and b'"a"' in synced[-1]


@pytest.mark.parametrize("cut", [None, 0, 30])
def test_a_log_that_was_removed_or_cut_takes_no_more_answers(path, cut):
    log = AnswerLog(path, DATA)
    log.append(pair("a"))
    whole = path.read_bytes()
    path.unlink() if cut is None else path.write_bytes(whole[:cut])
    with pytest.raises(ValueError, match="removed or cut short by another program"):
        log.append(pair("b"))
    path.write_bytes(whole)
    log.append(pair("b"))
    assert [entry.id for entry in AnswerLog(path, DATA).entries] == ["a", "b"]


def test_without_a_path_answers_are_kept_in_memory():
    log = AnswerLog(None, DATA)
    log.append(pair("a"))
    assert log.append(pair("a")) == pair("a") and log.refresh() == 1
