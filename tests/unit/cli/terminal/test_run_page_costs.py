"""What a run cost, on its page."""

from snapline.cli.terminal.run_page import print_page
from snapline.metrics.costs import byte_figures
from snapline.metrics.json_form import to_json
from snapline.metrics.second import Volume


def test_bytes_are_sizes_and_their_proportions_are_numbers(capsys):
    found = byte_figures(Volume(1_000, 100, 40, 60, 50, 300, 200, 250, 9_999), records=500)
    metrics = {"bytes": to_json(found), "checkpoints": {"invalid_percent": 2.5}}
    print_page("r", "there", {}, {"kept": "yes", "because": "so", "metrics": metrics})
    shown = " ".join(capsys.readouterr().out.split())
    assert "payload 1.0 kB, headers 100 B, markers 40 B" in shown
    assert "output 250 B, wire 10.0 kB, overhead 0.75, message overhead 0.25" in shown
    assert "per record 4 B" in shown
    assert "invalid percent 2.5" in shown
