"""What is measured of messages: each is told when it is sent, and when it is sent again."""

from collections import Counter

import pytest

from snapline.core.effects import Forward
from snapline.journal.entry import Handled, Happened, Stamped
from snapline.journal.happenings import MessageReplayed
from snapline.sim.case import Case
from snapline.sim.run import simulate
from snapline.sim.world.process import SimSlotProcess


@pytest.mark.parametrize(
    ("protocol", "workload"), [("uncoordinated", "counting"), ("unaligned", "reachability")]
)
def test_every_message_and_marker_is_told_as_often_as_it_is_sent(monkeypatch, protocol, workload):
    sent, markers = Counter(), []

    def note_sent(self, message, *, logged):
        sent[message.epoch, message.channel, message.seq] += 1

    monkeypatch.setattr(SimSlotProcess, "sent", note_sent)
    monkeypatch.setattr(SimSlotProcess, "marked", lambda self, channels: markers.append(channels))
    case = Case(protocol, workload, 3, slots=2, faults="kill slot=1 at=1200ms")
    outcome = simulate(case, journal=True)
    entries = outcome.journal
    stamped = Counter((e.epoch, e.channel, e.seq) for e in entries if isinstance(e, Stamped))
    # What is sent while others are sent again waits behind them, and is no replay.
    again = Counter(
        (e.epoch, e.what.message.channel, e.what.message.seq)
        for e in entries
        if isinstance(e, Happened)
        and isinstance(e.what, MessageReplayed)
        and e.what.message.channel.startswith(f"{e.actor}>")  # and not put back by its receiver
    )
    replayed = Counter({key: count for key, count in again.items() if key not in stamped})
    assert replayed
    assert sent == stamped + replayed
    forwards = [
        e for e in entries if isinstance(e, Handled) for f in e.effects if type(f) is Forward
    ]
    assert len(markers) == len(forwards)
