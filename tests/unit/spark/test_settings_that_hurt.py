"""Settings of a session that hurt slots are named before anything starts."""

import pytest

from snapline.errors import UsageError
from snapline.spark.pool import MODE
from snapline.spark.session_settings import SettingsHurt, check_settings

IDLE = "spark.sql.execution.pyspark.udf"


class Session:
    """What is asked of a session: its settings."""

    def __init__(self, settings):
        self.settings = {MODE: "FAIR", **settings}

    @property
    def conf(self):
        return self

    def get(self, name, default):
        return self.settings.get(name, default)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({f"{IDLE}.idleTimeoutSeconds": "9", f"{IDLE}.killOnIdleTimeout": "true"}, f"{IDLE}.kill"),
        (
            {
                "spark.python.worker.idleTimeoutSeconds": "5s",
                "spark.python.worker.killOnIdleTimeout": "TRUE",
            },
            "nothing for 5 s",
        ),
    ],
)
def test_a_setting_that_kills_healthy_slots_is_refused(settings, named):
    with pytest.raises(UsageError, match=named):
        check_settings(Session(settings))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (MODE, "FIFO"),
        (MODE, ""),  # which is Spark's own
        ("spark.excludeOnFailure.enabled", "true"),
        ("spark.excludeOnFailure.application.enabled", "true"),
        ("spark.executor.maxNumFailures", "3"),
        ("spark.dynamicAllocation.enabled", "true"),
        ("spark.executor.pyspark.memory", "300m"),
        ("spark.executor.pyspark.memory", "200"),
        ("spark.executor.pyspark.memory", "200000k"),
    ],
)
def test_a_setting_that_hurts_is_told_in_one_sentence(name, value):
    with pytest.warns(SettingsHurt, match=name.removesuffix(".application.enabled")) as told:
        check_settings(Session({name: value}))
    assert len(told) == 1


def test_copies_of_slots_are_told_where_spark_makes_them():
    name = "spark.speculation.task.duration.threshold"
    settings = {"spark.master": "spark://there:7077", "spark.speculation": "true", name: "30s"}
    with pytest.warns(SettingsHurt, match=name):
        check_settings(Session(settings))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {f"{IDLE}.killOnIdleTimeout": "true"},  # without a time it does nothing
        {f"{IDLE}.killOnIdleTimeout": "true", f"{IDLE}.idleTimeoutSeconds": "0"},
        {f"{IDLE}.idleTimeoutSeconds": "6"},  # it only logs
        # Slots return a row each second.
        {f"{IDLE}.killOnIdleTimeout": "true", f"{IDLE}.idleTimeoutSeconds": "10"},
        {"spark.speculation": "true"},  # of a stage with one task there is never a copy ...
        {
            "spark.master": "local[4]",  # ... and on a local master of none
            "spark.speculation": "true",
            "spark.speculation.task.duration.threshold": "30s",
        },
        {"spark.executor.pyspark.memory": "2g", "spark.dynamicAllocation.enabled": "false"},
    ],
)
def test_other_settings_are_not_mentioned(settings, recwarn):
    check_settings(Session(settings))
    assert not recwarn.list
