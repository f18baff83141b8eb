"""The training loop: plain, and never asking which augmenter it has."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from divaug.recipes import Recipe
from divaug.training import checkpoints
from divaug.training.assembly import Parts
from divaug.training.checkpoints import Checkpoint
from divaug.training.distributed import Processes, share_buffers
from divaug.training.environment import environment
from divaug.training.evaluation import Scores, evaluate
from divaug.training.graphs import run_of
from divaug.training.hardware import Hardware
from divaug.training.interruption import Interruption
from divaug.training.meters import Meter, Reading
from divaug.training.optimization import cosine_rate
from divaug.training.progress import Reporter
from divaug.training.runs import Run, read_metrics

__all__ = ["Loop", "RunResult"]


@dataclass(frozen=True)
class RunResult:
    """How a run ended.

    Args:
        folder: where it is written.
        recipe: what it was.
        finished: whether it reached its last epoch.
        signal: the signal that interrupted it, if one did.
        step: steps taken.
        test: accuracy and loss of the last evaluation; None where there was none.
        diversity: mean Variance Diversity of the trained views in the last epoch.
        seconds: time spent, over all starts.
        checkpoint: the last one.
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

    def __post_init__(self) -> None:
        self.step = 0
        self.seconds = 0.0  # spent before this start
        self.meter = Meter(self.processes)
        self.saved: Path | None = None
        self._saved_step = 0
        self._begin = self._mark = time.perf_counter()

    def go(self) -> RunResult:
        """Run to the end, or until somebody asks to stop."""
        self._restore()
        steps, epochs = self.parts.feed.steps, self.recipe.epochs
        self.told.start(self.recipe, steps, self.step)
        run_step = run_of(self.parts.step)
        self._begin = self._mark = time.perf_counter()
        for epoch in range(self.step // steps, epochs):
            begun, start = time.perf_counter(), self.step % steps
            if not start:
                self.parts.step.begin_epoch(epoch)
                self.meter = Meter(self.processes)
            for inputs in self.parts.feed.epoch(epoch, start):
                run_step(inputs)
                self.step += 1
                self.told.advance()
                logged = self.step % self.recipe.log_every == 0
                if logged:
                    self._log(self.meter.push(self.step, self.parts.step.sums))
                if self._stopping(logged) and self.step % steps:
                    self._save()
                    return self._result(finished=False)
            self._finish_epoch(epoch, time.perf_counter() - begun)
            if self._stopping(True) and epoch + 1 < epochs:
                self._save()
                return self._result(finished=False)
        return self._result(finished=True)

    def _stopping(self, together: bool) -> bool:
        """Whether to stop; several processes agree on it where they have met anyway."""
        if not self.processes.shared:
            return self.stop.signal is not None
        wish = self.stop.signal is not None
        return together and self.processes.any(wish, self.hardware.device)

    def _elapsed(self) -> float:
        return self.seconds + time.perf_counter() - self._begin

    def _check(self, reading: Reading) -> None:
        if reading.epoch.finite:
            return
        rate = cosine_rate(self.recipe.learning_rate, reading.step - 1, self._total_steps)
        last = self.saved or "there is none yet"
        raise ValueError(
            f"the loss is not finite at step {reading.step} (learning rate {rate:.6g}); the run "
            f"stops. Last checkpoint: {last}. Try a smaller learning_rate."
        )

    @property
    def _total_steps(self) -> int:
        return self.parts.step.optimizer.total_steps

    def _log(self, reading: Reading | None) -> None:
        now = time.perf_counter()
        if reading is None:
            return
        self._check(reading)
        speed = reading.interval.originals / max(now - self._mark, 1e-9)
        self._mark = now
        self.told.interval(reading.interval, speed)
        rate = cosine_rate(self.recipe.learning_rate, reading.step - 1, self._total_steps)
        self.run.write(
            {
                "kind": "interval",
                "step": reading.step,
                "epoch": (reading.step - 1) // self.parts.feed.steps,
                "learning_rate": rate,
                "loss": reading.interval.loss,
                "accuracy": reading.interval.accuracy,
                "diversity": reading.interval.diversity,
                "images_per_second": speed,
            }
        )

    def _finish_epoch(self, epoch: int, seconds: float) -> None:
        self._log(self.meter.flush())
        self.meter.push(self.step, self.parts.step.sums)
        reading = self.meter.flush()
        assert reading is not None
        self._check(reading)
        last = epoch + 1 == self.recipe.epochs
        line: dict[str, Any] = {
            "kind": "epoch",
            "step": self.step,
            "epoch": epoch,
            "loss": reading.epoch.loss,
            "accuracy": reading.epoch.accuracy,
            "diversity": reading.epoch.diversity,
            "images_per_second": reading.epoch.originals / max(seconds, 1e-9),
            "epoch_seconds": seconds,
        }
        if last or (epoch + 1) % self.recipe.evaluate_every == 0:
            scores = self._evaluate()
            line |= {f"test_{name}": value for name, value in asdict(scores).items()}
        line |= {"seconds": self._elapsed(), "record": asdict(self.parts.augment.record())}
        self.run.write(line)
        self.told.epoch(line)
        if last or (epoch + 1) % self.recipe.checkpoint_every == 0:
            self._save()
        self._mark = time.perf_counter()

    def _evaluate(self) -> Scores:
        parts = self.parts
        share_buffers(parts.network, self.processes)
        return evaluate(parts.network, parts.test, parts.default, self.hardware, self.processes)

    def _result(self, *, finished: bool) -> RunResult:
        epochs = [line for line in read_metrics(self.folder) if line["kind"] == "epoch"]
        tested = [line for line in epochs if "test_accuracy" in line]
        test = None
        if tested:
            names = ("test_accuracy", "test_loss", "test_images")
            test = Scores(*(tested[-1][name] for name in names))
        diversity = epochs[-1]["diversity"] if epochs else 0.0
        return RunResult(
            self.folder,
            self.recipe,
            finished,
            None if finished else self.stop.signal,
            self.step,
            test,
            diversity,
            self._elapsed(),
            self.saved,
        )

    def _save(self) -> None:
        if self._saved_step == self.step:
            return
        self._saved_step = self.step
        self._log(self.meter.flush())
        share_buffers(self.parts.network, self.processes)
        step = self.parts.step
        if self.run.checkpoints is not None:
            info = {
                "model": self.recipe.model,
                "recipe": self.recipe.hash,
                "seconds": self._elapsed(),
                "augmenter": step.augment.state_dict(),
                "sums": step.sums.tolist(),
                "base": self.meter.base,
            }
            momentum = {f"momentum.{n}": t for n, t in step.optimizer.momentum.items()}
            state = Checkpoint(self.step, self.parts.network.state_dict(), momentum, info)
            self.saved = checkpoints.save(self.run.checkpoints, state)
        self.processes.wait()

    def _restore(self) -> None:
        folder = self.folder / "checkpoints"
        found, notes = checkpoints.load_latest(folder)
        if found is None and notes:
            # To start over would cut the run's record back to nothing.
            raise ValueError(
                f"no checkpoint in {folder} is whole ({' '.join(notes)}) and the run is left as it "
                "is; bring one back, or move the folder away to start over."
            )
        for note in notes:
            self.told.note(f"{note} The one before is taken.")
        if found is not None:
            self._load(found, folder / f"step-{found.step:08d}")
        self.processes.wait()  # until all have read what is about to be cut back
        self.run.open(self.recipe, environment(self.hardware, self.processes), self.step)

    def _load(self, found: Checkpoint, path: Path) -> None:
        step = self.parts.step
        checkpoints.load_network(self.parts.network, found.model, str(path))
        with torch.no_grad():
            for name, tensor in step.optimizer.momentum.items():
                tensor.copy_(found.optimizer[f"momentum.{name}"])
        step.optimizer.step_number.fill_(found.step)
        step.epoch.fill_(found.step // self.parts.feed.steps)
        step.sums.copy_(torch.tensor(found.info["sums"], dtype=torch.float64))
        step.augment.load_state_dict(dict(found.info["augmenter"]))
        self.step, self.seconds = found.step, float(found.info["seconds"])
        self.meter = Meter(self.processes, found.info["base"])
        self.saved, self._saved_step = path, found.step
