"""What failures cost, column by column, as a sweep prints it at its end."""

from snapline.cli.experiments.failure_table import print_failures


def result(protocol, kept, failures, losses=None):
    metrics = {"failures": failures}
    return {
        "varied": {"protocol": protocol},
        "again": False,
        "kept": kept,
        "metrics": metrics,
        "losses": losses,
    }


def failure(restart_s, hit_s, others_s):
    return {
        "restart": {"s": restart_s, "censored": False},
        "hit": {"silent_s": hit_s},
        "others": {"silent_s": others_s},
    }


def test_columns_with_failures_have_a_row_of_medians(capsys):
    done = [
        result("partial", "yes", [failure(3.0, 3, 0)], {"lost": 1_200, "again": 0}),
        result("partial", "no", [failure(4.0, 4, 1)], {"lost": 1_400, "again": 7}),
        result("aligned", "yes", [failure(3.5, 4, 4)]),
        result("none", "unknown", None),
    ]
    names = ("partial", "aligned", "none")
    print_failures(done, {f"protocol={name}": {"protocol": name} for name in names})
    lines = capsys.readouterr().out.splitlines()
    partial, aligned = (" ".join(line.split()) for line in lines if "protocol=" in line)
    assert partial == "protocol=partial 1 yes, 1 no 1,300 4 3.50 s 4 s 0 s"
    assert aligned == "protocol=aligned 1 yes 3.50 s 4 s 4 s"


def test_without_failures_nothing_is_printed(capsys):
    print_failures([result("none", "unknown", [])], {"protocol=none": {"protocol": "none"}})
    assert capsys.readouterr().out == ""
