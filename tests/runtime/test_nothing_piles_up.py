"""Kill after kill as plain processes: what dead lives leave is collected, and nothing is missing."""

from process_slots import PATIENT, committed, lost, run_processes, strike

from snapline.engine.slot.checkpoints import key_of

KILLS = 2


def a_kill_with_every_line():
    """An observer that kills a slot at each of the first lines that are committed after a loss."""
    struck = {"kills": 0, "ready": True}

    def on_event(driver, entry):
        struck["ready"] |= lost(driver, entry)
        if committed(driver, entry) and struck["ready"] and struck["kills"] < KILLS:
            strike(driver, f"kill slot={struck['kills'] % 2} at=0ms")
            struck["kills"] += 1
            struck["ready"] = False

    return on_event


def last_kill_was_overcome():
    epochs = []

    def until(driver, entry):
        if committed(driver, entry) and entry.epoch not in epochs:
            epochs.append(entry.epoch)
        return len(epochs) > KILLS

    return until


def test_dead_lives_leave_no_snapshots_that_nobody_needs(tmp_path):
    outcome = run_processes(
        tmp_path,
        "uncoordinated",
        on_event=a_kill_with_every_line(),
        until=last_kill_was_overcome(),
        timeouts=PATIENT,
    )
    assert (outcome.problem, outcome.problems) == (None, [])
    assert len(outcome.lost) == KILLS
    driver = outcome.driver
    store, needed = driver.directory.files, driver.engine.registry.keys()
    present = f".e{driver.engine.epoch}."
    left = list((driver.directory.path / "store" / "snapshot").glob("*/*"))
    past = [path for path in left if present not in path.parent.name]
    assert {f"snapshot/{path.parent.name}/{path.stem}" for path in past} <= needed
    for metas in driver.engine.registry.metas.values():
        for meta in metas.values():
            store.get(key_of(meta), meta.digest)
