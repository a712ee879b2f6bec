"""Runs notebooks as somebody does who opens them: in a real kernel, cell by cell, all in the same one.

    python run_notebook.py ONE.ipynb OTHER.ipynb > outputs.json

It writes what each code cell has put out, by the file's name. A cell that raises ends it.
"""

import json
import sys
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.manager import start_new_kernel

CELL_S = 300


def main() -> None:
    """Run the notebooks that the command line names, and print their outputs."""
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=CELL_S)
    try:
        outputs = {path: run_cells(client, Path(path)) for path in sys.argv[1:]}
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=False)
    json.dump({Path(path).name: found for path, found in outputs.items()}, sys.stdout)


def run_cells(client: Any, path: Path) -> list[list[dict[str, Any]]]:
    """The outputs of each code cell."""
    cells = json.loads(path.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [run_cell(client, source) for source in sources]


def run_cell(client: Any, source: str) -> list[dict[str, Any]]:
    """What one cell puts out, as the messages of the kernel have it."""
    asked = client.execute(source)
    found = []
    while True:
        try:
            message = client.get_iopub_msg(timeout=CELL_S)
        except Empty:
            sys.exit(f"no sign of life for {CELL_S} s from:\n{source}")
        if message["parent_header"].get("msg_id") != asked:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "error":
            sys.exit("\n".join(content["traceback"]))
        if kind == "status" and content["execution_state"] == "idle":
            return found
        if kind in ("stream", "display_data", "update_display_data", "execute_result"):
            found.append({"kind": kind, **content})


if __name__ == "__main__":
    main()
