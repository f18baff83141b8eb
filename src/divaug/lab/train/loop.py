"""The training loop: plain, and never asking which augmenter it has."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from divaug.lab.recipes import Recipe
from divaug.lab.train import state
from divaug.lab.train.assembly import Parts
from divaug.lab.train.clock import Clock
from divaug.lab.train.distributed import Processes
from divaug.lab.train.environment import environment
from divaug.lab.train.evaluation import Scores, evaluate_unless
from divaug.lab.train.files import WriteError
from divaug.lab.train.graphs import run_of
from divaug.lab.train.hardware import Hardware
from divaug.lab.train.interruption import Interruption
from divaug.lab.train.kept import kept_so_far
from divaug.lab.train.meters import Meter, Reading
from divaug.lab.train.progress import Reporter
from divaug.lab.train.results import RunResult, result_of
from divaug.lab.train.runs import Run
from divaug.lab.train.schedules import rate_at
from divaug.lab.train.state import Place

__all__ = ["Loop"]


@dataclass
class Loop:
    """A run in progress."""

    recipe: Recipe
    folder: Path
    parts: Parts
    hardware: Hardware
    processes: Processes
    run: Run
    told: Reporter
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
        """Run to the end, or until somebody asks to stop.

        Raises:
            WriteError: something could not be written; the last whole checkpoint is named.
            ValueError: the loss is not finite.
        """
        try:
            finished = self._run()
            return self._result(finished)
        except WriteError as error:
            last = self.saved or "there is none yet"
            raise OSError(
                f"{str(error).rstrip('.')}; the run stops. Last whole checkpoint: {last}. Mend "
                "that and continue with --resume."
            ) from error

    def _run(self) -> bool:
        """Whether the last epoch was finished."""
        ended = self._restore()
        steps, epochs = self.parts.feed.steps, self.recipe.epochs
        self.told.start(self.recipe, steps, self.step)
        if not ended and not self._finish_epoch(self.step // steps - 1):
            return False
        run_step = run_of(self.parts.step)
        compiles = self.hardware.compiled  # if so, the first step is, and is no measure
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
                self.told.advance()
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
        further = self.parts.step.further
        return Meter(self.processes, self.hardware.device, further, base, spent)

    def _begin_timing(self, untimed: int = 0) -> None:  # originals trained on before
        self.clock.enter("training")
        self.meter.begin(untimed)

    def _start_writing(self) -> None:
        """After the first step, which shows that all works: until then nothing is written."""
        if self._open:
            return
        self._open = True
        self.stop.listen()
        now = environment(self.hardware, self.processes)
        self.run.open(self.recipe, now, self._saved_step, self.parts.split)

    def _stopping(self, together: bool) -> bool:
        """Whether to stop; several processes agree on it where they have met anyway."""
        if not self.processes.shared:
            return self.stop.signal is not None
        wish = self.stop.signal is not None
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
        """The learning rate of a step, counted from 1."""
        return rate_at(self.recipe, step - 1, self.parts.step.optimizer.total_steps)

    def _log(self, reading: Reading | None) -> None:
        if reading is None:
            return
        self._check(reading.first_bad)
        self.told.interval(reading.interval, reading.images_per_second)
        self.run.write(
            {
                "kind": "interval",
                "step": reading.step,
                "epoch": (reading.step - 1) // self.parts.feed.steps,
                "learning_rate": self._rate(reading.step),
                **reading.interval.to_dict(),
                "images_per_second": reading.images_per_second,
            }
        )

    def _finish_epoch(self, epoch: int) -> bool:
        """Read, save, evaluate, write down; False where a signal came: resuming does it again."""
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
            **reading.epoch.to_dict(),
            "images_per_second": reading.epoch.originals / max(seconds, 1e-9),
            "epoch_seconds": seconds,
        }
        if last or (epoch + 1) % self.recipe.evaluate_every == 0:
            scores = self._evaluate()
            if scores is None:
                self._save()
                return False
            line |= {f"test_{name}": value for name, value in asdict(scores).items()}
        kept = kept_so_far(self.parts.augment, self.processes, self.hardware.device)
        spent = self.clock.spent()
        line |= {"seconds": sum(spent.values()), "time": spent, "record": asdict(kept)}
        self.run.write(line)
        self.told.epoch(line)
        return True

    def _evaluate(self) -> Scores | None:
        parts = self.parts
        with self.clock.during("evaluation"):
            state.share_averages(parts.step, self.processes)
            return evaluate_unless(
                lambda: self._stopping(True),
                parts.called,
                parts.test,
                parts.default,
                self.hardware,
                self.processes,
            )

    def _result(self, finished: bool) -> RunResult:
        self.processes.wait()  # until the first one has written what all are about to read
        result = result_of(self, finished)
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
            found = state.checkpoint_of(self.recipe, self.parts, self.processes, place)
            self.saved = state.save(self.run, found) or self.saved
            self._saved_step = self.step
            self.processes.wait()

    def _restore(self) -> bool:
        """Take up the last checkpoint; whether its epoch, if it is at the end of one, was ended."""
        found = state.find(self.folder, self.told.note)
        if found is None:
            self.processes.wait()
            return True
        place, ended = state.load(self.folder, found, self.parts, self.processes)
        self.clock.resume(place.spent)
        self.step, self._saved_step = place.step, place.step
        self._epoch_mark = self.clock.training - place.epoch_seconds
        self.meter = self._new_meter(place.base, place.interval_seconds)
        self.saved = state.path_of(self.folder, found)
        self.processes.wait()  # until all have read what is about to be cut back
        return ended
