"""The job that measures an augmenter with a run's network."""

from dataclasses import dataclass
from typing import ClassVar

from divaug.lab.measure import measure_run, measured_epochs
from divaug.lab.recipes import Recipe
from divaug.lab.reproduce.asked_network import read_asked_network
from divaug.lab.reproduce.identity import measurement_hash
from divaug.lab.reproduce.jobs import TrainJob
from divaug.lab.reproduce.machines import portable
from divaug.lab.reproduce.networks import make_network
from divaug.lab.reproduce.records import MeasurementRecord
from divaug.lab.reproduce.store import Store, save
from divaug.lab.reproduce.work import End, Shelf, Work
from divaug.lab.train.device import Hardware
from divaug.lab.train.folder import environment
from divaug.lab.train.processes import Processes

__all__ = ["MeasureJob"]


@dataclass(frozen=True)
class MeasureJob:
    """Measure an augmenter with the network of a run.

    Args:
        scorer: the recipe of that run; it is trained again where its network is not at hand.
        augmenter: what is measured.
    """

    scorer: Recipe
    augmenter: str
    alone: ClassVar[bool] = True  # two at a time might train one missing network twice

    @property
    def needs(self) -> Recipe:
        """The recipe of the run whose network it asks."""
        return self.scorer

    @property
    def views(self) -> int:
        """Augmented images for each original: as many as are trained on."""
        return self.scorer.num_selected

    @property
    def hash(self) -> str:
        """What the measurement is found again by."""
        epochs = measured_epochs(self.augmenter, self.scorer.epochs)
        return measurement_hash(self.scorer, self.augmenter, self.views, len(epochs))

    @property
    def label(self) -> str:
        """What is measured, and with which network."""
        return f"measure {self.augmenter} with {self.scorer.name}, seed {self.scorer.seed}"

    def done(self, store: Store) -> bool:
        """Whether the measurement has a record."""
        return self.hash in store.measurements

    def execute(self, work: Work, shelf: Shelf) -> End:
        """Measure, and write the record."""
        end = make_network(self.scorer, work, shelf)
        if end is not End.FINISHED:
            return end
        folder = TrainJob(self.scorer).folder(work)
        data, about = shelf.get(self.scorer)
        # Before the work: sources may get another commit while it is done.
        hardware = Hardware.choose(work.device, self.scorer.precision, eager=True)
        place = portable(environment(hardware, Processes()))
        found = measure_run(
            folder, [self.augmenter], data=data, views=self.views, device=work.device
        )
        record = MeasurementRecord(
            self.scorer,
            self.augmenter,
            found[self.augmenter],
            place,
            about["fingerprint"],
            read_asked_network(folder),
        )
        save(work.results, record)
        return End.FINISHED
