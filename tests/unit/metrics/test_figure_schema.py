"""The JSON of the figures has a version and a schema, and every figure a definition in one place."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from metric_runs import happened, second
from snapline.journal.entry import COORDINATOR, Happened
from snapline.journal.happenings import LineFound
from snapline.metrics.costs import ByteFigures
from snapline.metrics.figures import VERSION, Figures, figures_of
from snapline.metrics.json_form import definitions, json_schema, listed, to_json
from snapline.metrics.reliability import LineageFigures, OutputLatency, PhaseFigures
from snapline.metrics.second import Usage, Used, Volume

PAGE = Path(__file__).parents[3] / "docs" / "figures.md"


def whole_figures():
    """Figures in which nothing is missing."""
    busy = second(0, checkpoint_us=(4000,), volume=Volume(payload=8))
    busy.add_used("slot/0", Used(1, 2, Usage()))
    found = figures_of(
        [
            happened(0, LineFound(stored=3, skipped=1, back_s=0.5, back_records=40)),
            Happened(1, COORDINATOR, 1, busy.measured()),
        ]
    )
    latency = OutputLatency(1.0, 1.0, 2.0, 3.0)
    measured = 3, 100.0, 2.0, latency, None, None, latency
    lineage = LineageFigures(*measured, None, {"control": PhaseFigures(*measured, 0, 9)})
    return replace(found, lineage=lineage)


def complaints(schema, value, place="$"):
    """Where a value is not what a schema says: as much of JSON Schema as ours uses."""
    if "anyOf" in schema:
        found = [complaints(each, value, place) for each in schema["anyOf"]]
        return [] if [] in found else [*found[0], *found[1]]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{place}: {value!r}"]
    kinds = {
        "integer": int,
        "number": (int, float),
        "string": str,
        "boolean": bool,
        "null": type(None),
        "array": list,
        "object": dict,
    }
    is_flag = isinstance(value, bool) and schema["type"] != "boolean"
    if not isinstance(value, kinds[schema["type"]]) or is_flag:
        return [f"{place}: {value!r} is no {schema['type']}"]
    if isinstance(value, list):
        return [c for each in value for c in complaints(schema["items"], each, f"{place}[]")]
    if not isinstance(value, dict):
        return []
    known, more = schema.get("properties", {}), schema["additionalProperties"]
    found = [
        f"{place}.{name} is missing" for name in schema.get("required", ()) if name not in value
    ]
    for name, each in value.items():
        if name not in known and more is False:
            found.append(f"{place}.{name} is unknown")
        else:
            found += complaints(known.get(name, more), each, f"{place}.{name}")
    return found


def test_figures_are_what_the_schema_says():
    written = json.loads(json.dumps(to_json(whole_figures())))
    assert written["version"] == VERSION
    assert complaints(json_schema(Figures), written) == []
    assert complaints(json_schema(Figures), json.loads(json.dumps(to_json(figures_of([]))))) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"lost": "1"}, "$.lost: '1' is no integer"),
        ({"lost": True}, "$.lost: True is no integer"),
        ({"more": 1}, "$.more is unknown"),
        ({"rollbacks": [3]}, "$.rollbacks[]: 3 is no object"),
    ],
)
def test_what_are_no_figures_breaks_the_schema(change, complaint):
    written = {**to_json(whole_figures()), **change}
    assert complaints(json_schema(Figures), written) == [complaint]
    missing = {name: value for name, value in written.items() if name != "commits"}
    assert "$.commits is missing" in complaints(json_schema(Figures), missing)


def test_every_figure_has_a_definition_of_its_own_or_of_its_class():
    found = dict(listed(Figures))
    assert all(found.values())
    assert found["lost"] == "slots that were given up"
    assert found["checkpoints.skipped"] == "of these: a rollback went back beyond them"
    assert found["rollbacks[].back_s"] == "since the oldest checkpoint of the line became durable"
    assert found["lineage.phases.*.reliability"].startswith("in percent")
    assert found["checkpoint_phases_ms.blocked.mean"] == "the arithmetic mean"
    assert found["recovery_s"].startswith("from the loss")
    assert {
        name for name, text in found.items() if text.startswith("The figures of a run")
    } == set()


def test_the_kinds_of_bytes_are_defined_where_they_are_counted():
    kinds = [each.name for each in fields(Volume)]
    assert {name: definitions(ByteFigures)[name] for name in kinds} == definitions(Volume)
    assert json_schema(ByteFigures)["properties"]["markers"]["description"].startswith("markers,")


def test_the_page_of_figures_repeats_these_definitions():
    rows = [f"| `{path}` | {definition} |" for path, definition in listed(Figures)]
    page = PAGE.read_text().splitlines()
    written = [line for line in page if line.startswith("| `")]
    assert written == rows, "docs/figures.md is behind: its rows should be\n" + "\n".join(rows)
