"""The training loop: steps, logging, evaluation, checkpoints, and an orderly stop."""

import signal
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from divaug.lab.recipes import Recipe
from divaug.lab.train import checkpoint
from divaug.lab.train.build import Parts
from divaug.lab.train.checkpoint import Place, record_of_all, share_averages
from divaug.lab.train.console import Reporter
from divaug.lab.train.data import DataRecord
from divaug.lab.train.device import Hardware
from divaug.lab.train.evaluation import Scores, evaluate
from divaug.lab.train.folder import RunFolder, WriteError, environment, read_epochs
from divaug.lab.train.meter import Clock, Meter, Reading
from divaug.lab.train.optim import rate_at
from divaug.lab.train.processes import Processes
from divaug.lab.train.step import run_of

__all__ = ["Interruption", "Loop", "RunResult", "exit_code", "pass_on"]


@dataclass(frozen=True)
class RunResult:
    """The end of a run.

    Args:
        folder: folder of the run.
        recipe: recipe of the run.
        finished: True if it reached its last epoch.
        signal: name of the signal that interrupted it, if one did.
        step: number of steps taken.
        test: accuracy and loss of the last evaluation; None if there was none.
        diversity: mean Variance Diversity of the trained views in the last epoch.
        seconds: time spent, over all starts: evaluation, checkpoints and start-up included.
        checkpoint: folder of the last checkpoint.
        time: kind of work → its part of `seconds`, see `divaug.lab.train.meter.KINDS`.
    """

    folder: Path
    recipe: Recipe
    finished: bool
    signal: str | None
    step: int
    test: Scores | None
    diversity: float
    seconds: float
    checkpoint: Path | None
    time: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `result.json`."""
        content = {n: v for n, v in asdict(self).items() if n not in ("folder", "recipe")}
        return content | {"checkpoint": self.checkpoint.name if self.checkpoint else None}


class Interruption:
    """From `listen` to the end of the block, the first SIGINT or SIGTERM is noted, not obeyed.

    Until `listen` signals act as always: while a run starts there is nothing to save. So does a
    second signal. Outside the main thread, where Python allows no handlers, nothing changes.

    Attributes:
        signal: name of the signal that came; None so far.
    """

    def __init__(self) -> None:
        self.signal: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        return self

    def listen(self) -> None:
        """Note signals from now on."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._note)

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = signal.Signals(number).name
            return
        self._restore()
        signal.raise_signal(number)


def exit_code(name: str | None) -> int:
    """Return a shell's exit code of a process that a signal ended.

    Example:
        >>> exit_code("SIGINT"), exit_code("SIGTERM")
        (130, 143)
    """
    return 128 + signal.Signals[name or "SIGTERM"].value


def pass_on(name: str | None) -> NoReturn:
    """Raise a signal again that was noted."""
    signal.raise_signal(signal.Signals[name or "SIGTERM"])
    raise KeyboardInterrupt  # where signals are ignored: the work is undone all the same


class _Stopped(Exception):  # noqa: N818
    """A signal came during an evaluation, which resuming does again."""


@dataclass
class Loop:
    """A run in progress."""

    recipe: Recipe
    run: RunFolder
    parts: Parts
    data: DataRecord
    hardware: Hardware
    processes: Processes
    reporter: Reporter
    stop: Interruption
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.step = 0
        self.meter = self._new_meter()
        self.saved: Path | None = None
        self._saved_step = 0
        self._open = False
        self._epoch_mark = 0.0  # seconds of training when the epoch began

    def go(self) -> RunResult:
        """Run to the end, or until a signal comes.

        Raises:
            WriteError: something could not be written; the last whole checkpoint is named.
            ValueError: the loss is not finite.
        """
        try:
            finished = self._run()
            return self._result(finished)
        except WriteError as error:
            last = self.saved or "there is none yet"
            raise WriteError(
                f"{str(error).rstrip('.')}; the run stops. Last whole checkpoint: {last}. Mend "
                "that and continue with --resume."
            ) from error

    def _run(self) -> bool:
        """Train; return True if the last epoch was finished."""
        ended = self._restore()
        steps, epochs = self.parts.feed.steps, self.recipe.epochs
        self.reporter.start(self.recipe, steps, self.step)
        if not ended and not self._finish_epoch(self.step // steps - 1):
            return False
        run_step = run_of(self.parts.step)
        compiles = self.hardware.compiled  # if so, the first step is no measure
        if not compiles:
            self._begin_timing()
        for epoch in range(self.step // steps, epochs):
            start = self.step % steps
            if not start:
                self._begin_epoch(epoch)
            for inputs in self.parts.feed.epoch(epoch, start):
                run_step(inputs)
                self._start_writing()
                if compiles:
                    self._begin_timing(self.recipe.originals_per_step)
                    compiles = False
                self.step += 1
                self.reporter.advance()
                logged = self.step % self.recipe.log_every == 0
                if logged:
                    self._log(self._push())
                if self._stopping(logged) and self.step % steps:
                    self._save()
                    return False
            if not self._finish_epoch(epoch):
                return False
            if self._stopping(True) and epoch + 1 < epochs:
                self._save()
                return False
        return True

    def _begin_epoch(self, epoch: int) -> None:
        self.parts.step.begin_epoch(epoch)
        self.meter = self._new_meter()
        self._epoch_mark = self.clock.training

    def _new_meter(self, base: list[float] | None = None, spent: float = 0.0) -> Meter:
        names = self.parts.step.names
        return Meter(self.processes, self.hardware.device, names, base, spent)

    def _begin_timing(self, untimed: int = 0) -> None:  # originals trained on before
        self.clock.enter("training")
        self.meter.begin(untimed)

    def _start_writing(self) -> None:
        """Open the folder after the first step, which shows that all works."""
        if self._open:
            return
        self._open = True
        self.stop.listen()
        now = environment(self.hardware, self.processes)
        self.run.open(self.recipe, self.data, now, step=self._saved_step, split=self.parts.split)

    def _stopping(self, together: bool) -> bool:
        """Return True after a signal; several processes agree on it where they have met anyway."""
        wish = self.stop.signal is not None
        if not self.processes.shared:
            return wish
        return together and self.processes.any(wish, self.hardware.device)

    def _push(self) -> Reading | None:
        return self.meter.push(self.step, self.parts.step.sums, self.parts.step.first_bad)

    def _check(self, bad: int | None) -> None:
        if bad is None:
            return
        last = self.saved or "there is none yet"
        raise ValueError(
            f"the loss is not finite at step {bad} (learning rate {self._rate(bad):.6g}); the run "
            f"stops. Last checkpoint: {last}. Try a smaller learning_rate."
        )

    def _rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 1."""
        return rate_at(self.recipe, step - 1, self.parts.step.optimizer.total_steps)

    def _log(self, reading: Reading | None) -> None:
        if reading is None:
            return
        self._check(reading.first_bad)
        self.reporter.interval(reading.interval, reading.images_per_second)
        self.run.write(
            {
                "kind": "interval",
                "step": reading.step,
                "epoch": (reading.step - 1) // self.parts.feed.steps,
                "learning_rate": self._rate(reading.step),
                **reading.interval,
                "images_per_second": reading.images_per_second,
            }
        )

    def _finish_epoch(self, epoch: int) -> bool:
        """Read, save, evaluate and log; return False after a signal: resuming does it again."""
        self._start_writing()
        self._log(self.meter.flush())
        self._push()
        reading = self.meter.flush()
        assert reading is not None
        self._check(reading.first_bad)
        seconds = self.clock.training - self._epoch_mark
        last = epoch + 1 == self.recipe.epochs
        if last or (epoch + 1) % self.recipe.checkpoint_every == 0:
            self._save()
        line: dict[str, Any] = {
            "kind": "epoch",
            "step": self.step,
            "epoch": epoch,
            **reading.epoch,
            "images_per_second": reading.originals / max(seconds, 1e-9),
            "epoch_seconds": seconds,
        }
        if last or (epoch + 1) % self.recipe.evaluate_every == 0:
            try:
                scores = self._evaluate()
            except _Stopped:
                self._save()
                return False
            line |= {f"test_{name}": value for name, value in asdict(scores).items()}
        record = record_of_all(self.parts.augment, self.processes, self.hardware.device)
        spent = self.clock.spent()
        line |= {"seconds": sum(spent.values()), "time": spent, "record": asdict(record)}
        self.run.write(line)
        self.reporter.epoch(line)
        return True

    def _evaluate(self) -> Scores:
        parts = self.parts
        with self.clock.during("evaluation"):
            share_averages(parts.step, self.processes)
            return evaluate(
                parts.called,
                parts.test,
                parts.default,
                self.hardware,
                self.processes,
                chunk_size=parts.chunk_size,
                before_batch=self._stop_if_asked,
            )

    def _stop_if_asked(self) -> None:
        if self._stopping(True):
            raise _Stopped

    def _result(self, finished: bool) -> RunResult:
        self.processes.wait()  # until the first one has written what all are about to read
        epochs = read_epochs(self.run.folder)
        tested = [line for line in epochs if "test_accuracy" in line]
        names = ("test_accuracy", "test_loss", "test_images")
        spent = self.clock.spent()
        result = RunResult(
            self.run.folder,
            self.recipe,
            finished,
            None if finished else self.stop.signal,
            self.step,
            Scores(*(tested[-1][name] for name in names)) if tested else None,
            epochs[-1]["diversity"] if epochs else 0.0,
            sum(spent.values()),
            self.saved,
            spent,
        )
        if self._open:
            self.run.conclude(result.to_dict())
        return result

    def _save(self) -> None:
        if self._saved_step == self.step:
            return
        with self.clock.during("checkpoints"):
            self._log(self.meter.flush())
            bad = float(self.processes.least(self.parts.step.first_bad))
            self._check(int(bad) if bad < float("inf") else None)
            place = Place(
                self.step,
                self.clock.spent(),
                self.clock.training - self._epoch_mark,
                self.meter.seconds(),
                self.meter.base,
            )
            self.saved = checkpoint.save_run(
                self.run, self.recipe, self.parts, self.processes, place
            )
            self._saved_step = self.step
            self.processes.wait()

    def _restore(self) -> bool:
        """Resume from the last checkpoint; return False if its epoch is still to be evaluated."""
        note = self.reporter.note
        found = checkpoint.last_checkpoint(self.run.folder, note)
        if found is None:
            self.processes.wait()
            return True
        place, ended = checkpoint.restore(self.run.folder, found, self.parts, self.processes, note)
        self.clock.resume(place.spent)
        self.step, self._saved_step = place.step, place.step
        self._epoch_mark = self.clock.training - place.epoch_seconds
        self.meter = self._new_meter(place.base, place.interval_seconds)
        self.saved = self.run.checkpoints / f"step-{found.step:08d}"
        self.processes.wait()  # until all have read what is about to be cut back
        return ended
