"""A run's curves for TensorBoard.

Written by the process itself and not, as TensorBoard's own writers do, by a thread: what goes wrong
there is told by nobody but Python, as a traceback.
"""

import contextlib
import importlib.util
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["Events"]


class Events:
    """A file of events, written for as long as that goes well: the run's record has it all.

    Args:
        folder: of the files, one for each start.
        step: that the run goes on from; what earlier starts said of later steps is withdrawn.
        note: told once when nothing can be written any more.
    """

    def __init__(self, folder: Path, step: int, note: Callable[[str], None]) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._folder, self._note = folder, note
        self._file: RecordWriter | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # TensorBoard reads the files in the order of their names.
            name = f"events.out.tfevents.{int(time.time()):010d}.{len(list(folder.iterdir())):04d}"
            self._file = RecordWriter((folder / name).open("xb"))
        except OSError as error:
            self._give_up(error)
        self._add(Event(file_version="brain.Event:2"))
        begin = SessionLog(status=SessionLog.START)
        self._add(Event(step=step + 1, session_log=begin))

    @staticmethod
    def known() -> bool:
        """Whether TensorBoard is installed."""
        return importlib.util.find_spec("tensorboard") is not None

    def write(self, line: Mapping[str, Any]) -> None:
        """Add the numbers of a line of the record, named by its `kind`, at its `step`."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [
            Summary.Value(tag=f"{line['kind']}/{name}", simple_value=value)
            for name, value in line.items()
            if isinstance(value, float) and math.isfinite(value)
        ]
        self._add(Event(step=line["step"], summary=Summary(value=values)))

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            self._file.close()  # nothing is left to write: each event was flushed
            self._file = None

    def _add(self, event: Any) -> None:
        if self._file is None:
            return
        event.wall_time = time.time()
        try:
            self._file.write(event.SerializeToString())
            self._file.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        self._file = None
        reason = error.strerror or str(error)
        self._note(f"no more is written to {self._folder}: {reason}; metrics.jsonl has it too.")
