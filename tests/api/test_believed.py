"""What another server has said, believed for a while."""

from __future__ import annotations

from ctrlmgr.api.believed import Believed
from ctrlmgr.testing import FakeClock


def test_each_answer_is_believed_for_as_long_as_was_said() -> None:
    clock = FakeClock()
    said: Believed[str] = Believed(10, clock=clock)
    said.keep(b"a", "yes", 300)
    said.keep(b"b", "no", 30)
    clock.step(29.5)
    assert (said.get(b"a"), said.get(b"b"), said.get(b"c")) == ("yes", "no", None)
    clock.step(0.5)
    assert (said.get(b"a"), said.get(b"b")) == ("yes", None)


def test_of_too_many_those_go_that_were_kept_longest_ago() -> None:
    said: Believed[int] = Believed(2, clock=FakeClock())
    for question, answer in ((b"a", 1), (b"b", 2), (b"a", 3), (b"c", 4)):
        said.keep(question, answer, 10)
    assert [said.get(each) for each in (b"a", b"b", b"c")] == [3, None, 4]
