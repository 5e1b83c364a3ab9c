"""A run's record on its way through a log: whole, or refused; never half, never somebody else's."""

from __future__ import annotations

import re

import pytest

from fedprivacy.errors import RunError
from fedprivacy.io.log_transfer import MOST_BYTES, PART, Arrivals, Sender, is_token, new_token

TOKEN = "7" * 32


def lines(token: str = TOKEN, size: int = 3 * PART) -> list[str]:
    sender = Sender(token)
    return [
        sender.begin("/far/runs/1"),
        *sender.event({"round": 0, "accuracy": 0.5}),
        *sender.file("scenario.toml", b"name = 1"),
        *sender.file("checkpoint/round-000001.safetensors", bytes(range(256)) * (size // 256)),
        *sender.file("events.jsonl", b""),
        sender.end("finished"),
    ]


def arrive(log: list[str]) -> Arrivals:
    home = Arrivals(TOKEN)
    for line in log:
        home.feed(line)
    return home


def test_a_record_comes_home_whole_from_among_other_lines() -> None:
    log = [noise for line in lines() for noise in ("INFO : other words", line + "\r\n", "", "@record x")]
    result = arrive(log).whole()
    assert result.path == "/far/runs/1"
    assert result.events == [{"round": 0, "accuracy": 0.5}]
    assert result.files["scenario.toml"] == b"name = 1"
    assert result.files["checkpoint/round-000001.safetensors"] == bytes(range(256)) * (3 * PART // 256)
    assert result.files["events.jsonl"] == b""
    assert (result.status, result.error, result.left_out) == ("finished", None, None)


def test_each_event_is_given_once_also_where_the_log_is_read_again() -> None:
    home, log = Arrivals(TOKEN), lines()
    events = [home.feed(line) for line in [*log[:4], *log]]
    assert [event for event in events if event] == [{"round": 0, "accuracy": 0.5}]
    assert home.whole().status == "finished"


def test_an_event_may_be_longer_than_a_line() -> None:
    """A histogram of many categories, say."""
    sender = Sender(TOKEN)
    events = [{"round": n, "estimate": [0.1] * size} for n, size in enumerate((20_000, 1, 20_000))]
    log = [sender.begin("x"), *(line for event in events for line in sender.event(event))]
    assert max(map(len, log)) < 2 * PART
    assert arrive([*log, sender.end("finished")]).whole().events == events
    assert arrive(log[:3]).result().events == []
    for size in range(PART - 12, PART - 8):  # where a line is just full
        sender = Sender(TOKEN)
        log = [sender.begin("x"), *sender.event({"a": "b" * size}), sender.end("finished")]
        assert arrive(log).whole().events == [{"a": "b" * size}]


@pytest.mark.parametrize("gone", range(1, 9))
def test_a_log_that_lacks_a_line_is_not_whole(gone: int) -> None:
    log = lines()
    del log[gone]
    with pytest.raises(RunError, match=f"line {gone} .* missing|log ends before"):
        arrive(log).whole()


@pytest.mark.parametrize("kept", range(9))
def test_a_log_that_was_cut_is_not_whole(kept: int) -> None:
    with pytest.raises(RunError, match=r"nothing of it is in the log|log ends before it does"):
        arrive(lines()[:kept]).whole()


def test_bytes_that_changed_on_the_way_are_found() -> None:
    log = lines()
    at = next(i for i, line in enumerate(log) if " part " in line and len(line) > 5000)
    log[at] = log[at][:-100] + "AAAA" + log[at][-96:]
    home = arrive(log)
    with pytest.raises(RunError, match="not what was sent"):
        home.whole()


def test_a_line_that_was_cut_in_two_is_a_missing_line() -> None:
    log = lines()
    log[4:5] = [log[4][:50], log[4][50:]]
    with pytest.raises(RunError, match="did not come home whole"):
        arrive(log).whole()


def test_who_does_not_know_the_mark_adds_nothing() -> None:
    """A node reads the token in the run config, but speaks only after the first line was written."""
    log = lines()
    forger = Sender(TOKEN)
    forged = [forger.begin("/evil"), *forger.event({"round": 0, "accuracy": 1.0}), forger.end("finished")]
    result = arrive([log[0], *forged, *log[1:]]).whole()
    assert result.path == "/far/runs/1"
    assert result.events == [{"round": 0, "accuracy": 0.5}]
    assert "scenario.toml" in result.files


def test_only_the_token_of_this_run_begins() -> None:
    home = arrive([*lines(token="8" * 32), *lines()])
    assert home.whole().files["scenario.toml"] == b"name = 1"
    with pytest.raises(RunError, match="nothing of it is in the log"):
        arrive(lines(token="8" * 32)).whole()


def test_a_mark_counts_only_where_it_begins_a_line() -> None:
    log = lines()
    with pytest.raises(RunError, match="nothing of it"):
        arrive(["error: " + line for line in log]).whole()


@pytest.mark.parametrize(
    "name", ["../run.json", "/etc/passwd", "checkpoint/../x", "report.html", "run.json\n", ""]
)
def test_no_other_file_is_taken(name: str) -> None:
    sender = Sender(TOKEN)
    with pytest.raises(RunError, match="a name that no record has"):
        arrive([sender.begin("x"), *sender.file(name, b"data"), sender.end("finished")]).whole()


def test_what_is_too_large_is_refused() -> None:
    sender = Sender(TOKEN)
    first = next(sender.file("run.json", bytes(MOST_BYTES + 1)))
    begin = Sender(TOKEN)
    log = [begin.begin("x"), re.sub(r"record [0-9a-f]+ 0", f"record {begin._mark} 1", first)]
    with pytest.raises(RunError, match="too large"):
        arrive(log).whole()


def test_a_file_of_another_size_than_announced_is_refused() -> None:
    sender = Sender(TOKEN)
    begin, file = sender.begin("x"), list(sender.file("run.json", bytes(2 * PART)))
    home = arrive([begin, *file[:2], re.sub(r" 4 end", " 3 end", sender.end("finished"))])
    with pytest.raises(RunError, match="cut short"):
        home.whole()


def test_tokens_are_random_and_known_by_their_form() -> None:
    assert new_token() != new_token()
    assert is_token(new_token())
    assert not any(is_token(value) for value in ("", "x" * 32, None, 7, "7" * 31))
