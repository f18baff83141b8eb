"""Tables, claims and figures of the targets, from records whose numbers are known."""

import csv
import math
import re
from pathlib import Path

import pytest

from divaug.lab.results import TARGETS, Selection
from divaug.lab.results.methods import METHODS, ROTATIONS, RULES
from tests.results_helpers import (
    DEMO_ROW,
    PAPER_ROW,
    PLACE,
    claims_of,
    kept,
    made_cost,
    made_examination,
    made_measurement,
    made_run,
    outcome,
    rows_of,
    shown,
)

RESULTS = Path(__file__).parent.parent / "results"
FIVE = ("default", "autoaugment", "fast-autoaugment", "randaugment", "divaug")
NOT_RUN = "—, not run"


def runs_of(name, accuracies, **more):
    return [made_run(name, seed, one, **more) for seed, one in enumerate(accuracies)]


@pytest.mark.parametrize("name", TARGETS)
def test_without_records_nothing_is_claimed(name, tmp_path):
    found = outcome(name, [])
    assert (found.empty, found.tables, found.drawings) == (True, (), ())


def test_what_is_missing_is_shown_as_missing():
    rows = shown(outcome("supervised", [made_run()]))
    assert rows["DivAug (k-means++)"]["paper, %"] == "96.9 ± 0.1"
    assert rows["DivAug (k-means++)"]["ours, %"] == "90.00"
    assert rows["RandAugment"]["ours, %"] == NOT_RUN
    assert rows["random 4 of 8"]["n"] == "0"


def test_the_table_has_means_and_differences_over_pairs_of_one_seed():
    records = [*runs_of("default", [0.5, 0.7]), *runs_of("divaug", [0.6, 0.9, 0.3])]
    row = rows_of(outcome("supervised", records), 0, "method")["DivAug (k-means++)"]
    assert row["accuracy_mean"] == pytest.approx(0.6)
    assert row["accuracy_std"] == pytest.approx(0.3)
    assert (row["accuracy_n"], row["pairs"]) == (3, 2)
    assert row["over_default_mean"] == pytest.approx(0.15)


def test_runs_of_other_lengths_have_lines_with_their_epochs():
    row = "cifar100-wide-resnet-40-2"
    records = [
        made_run("default", accuracy=0.7, row=row),
        made_run("trivialaugment-xS", accuracy=0.8, row=row, epochs=91),
        made_run("default", accuracy=0.9),
    ]
    found = outcome("supervised", records)
    assert [one.name for one in found.tables[:2]] == ["cifar10-wide-resnet-40-2", row]
    lines = [(one["method"], one["accuracy_mean"], one["epochs"]) for one in rows_of(found, 1)]
    assert ("default", 0.7, 200) in lines
    assert ("TrivialAugment, 4 views", "", "") not in lines
    assert ("random 4 of 8", "", "") in lines
    assert ("TrivialAugment, 4 views", 0.8, 91) in lines


def test_a_shrunk_table_says_so():
    found = outcome("supervised", [made_run(epochs=3)], Selection(epochs=3))
    assert found.sentences == ("Not the paper's setting: 3 epochs.",)
    assert outcome("supervised", [made_run()], Selection(epochs=3)).empty


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ([0.01], "undecided"),
        ([0.010, 0.011, 0.012], "yes"),
        ([-0.010, -0.011, -0.012], "no"),
        ([0.01, -0.01, 0.03], "undecided"),
        ([], NOT_RUN),
    ],
)
@pytest.mark.parametrize(
    ("target", "other", "claim"),
    [
        ("supervised", "default", f"DivAug is more accurate than default ({PAPER_ROW})"),
        (
            "random-baseline",
            "random",
            f"choosing with k-means++ beats a random choice ({PAPER_ROW})",
        ),
    ],
)
def test_the_paper_is_judged_by_pairs_beyond_their_spread(target, other, claim, gains, verdict):
    records = [made_run("divaug-exact"), *runs_of(other, [0.5] * len(gains))]
    records += runs_of("divaug", [0.5 + gain for gain in gains])
    assert claims_of(outcome(target, records))[claim][0] == verdict


def test_controls_with_as_many_views_are_compared_seed_by_seed():
    records = [
        *runs_of("trivialaugment-xS", [0.5, 0.6], trained=0.3),
        *runs_of("divaug", [0.51, 0.612], trained=0.4),
    ]
    for target, i in (("supervised", 2), ("random-baseline", 2)):
        row = rows_of(outcome(target, records), i, "control")["TrivialAugment, 4 views"]
        assert row["difference_mean"] == pytest.approx(0.011)
        low, high = row["interval_low"], row["interval_high"]
        assert (low + high) / 2 == pytest.approx(0.011)
        assert (row["holds"], row["pairs"]) == ("yes" if low > 0 else "undecided", 2)
        assert (row["trained_mean"], row["own_trained_mean"]) == (0.3, 0.4)


def test_what_the_choice_keeps_is_related_to_all_and_to_the_best():
    keeps = [kept(diversity=(0.06, 0.05, 0.08)), kept(diversity=(0.09, 0.06, 0.1))]
    records = [made_run(epochs=2, keeps=keeps, loss=1.5), made_run("random", epochs=2)]
    found = outcome("random-baseline", records)
    row = rows_of(found, 0, "method")["DivAug (k-means++)"]
    assert row["choice_mean"] == pytest.approx((1.2 + 1.5) / 2)
    assert row["reach_mean"] == pytest.approx((0.75 + 0.9) / 2)
    assert row["loss_mean"] == 1.5
    assert "0.857 (4 of 8)" in found.tables[0].notes[0]  # of all, by chance
    assert [one.name for one in found.drawings] == [f"rules-{PAPER_ROW}", f"choice-{PAPER_ROW}"]


def measured_records(variances, accuracies, scorer="none", affinities=None):
    """Five methods: value → for each seed."""
    records = []
    for name in FIVE:
        for seed, variance in enumerate(variances[name]):
            affinity = affinities[name][seed] if affinities else -variance
            records.append(made_measurement(name, seed, variance, affinity, scorer))
        records += runs_of(name, accuracies[name], loss=variances[name][0])
    return records


RISING = {name: [0.01 * i + 0.001 * seed for seed in range(3)] for i, name in enumerate(FIVE, 1)}
GAINS = {
    name: [0.5 + 0.01 * i + 0.0001 * s * i for s in range(3)] for i, name in enumerate(FIVE, 1)
}
REVERSED = dict(zip(FIVE, reversed(GAINS.values()), strict=True))


@pytest.mark.parametrize(("accuracies", "verdict"), [(GAINS, "yes"), (REVERSED, "no")])
def test_gain_and_diversity_go_together_or_not(accuracies, verdict):
    found = outcome("diversity", measured_records(RISING, accuracies))
    claims = claims_of(found)
    text = "the gain in accuracy rises with Variance Diversity, over the paper's five methods"
    assert claims[text][0] == verdict
    assert "5 points, n = 3 seeds" in claims[text][1]
    assert claims["DivAug has the most of the paper's five"][0] == "yes"
    five = rows_of(found, 1)[0]
    assert five["n"] == 5
    assert five["seeds"] == 3
    assert abs(five["pearson"]) > 0.99
    row = rows_of(found, 0, "method")["DivAug (k-means++)"]
    assert row["variance_mean"] == pytest.approx(0.051)
    assert row["networks"] == 3
    assert row["paper_gain"] == pytest.approx(96.9 - 94.7)


def test_one_seed_decides_no_claim():
    first = {name: values[:1] for name, values in RISING.items()}
    for target in ("diversity", "affinity"):
        accuracies = {name: values[:1] for name, values in GAINS.items()}
        verdicts = {
            v for v, _ in claims_of(outcome(target, measured_records(first, accuracies))).values()
        }
        assert verdicts <= {"undecided", NOT_RUN}


def test_small_differences_that_every_network_finds_are_an_order():
    """Networks differ more than methods do; with the same network the methods are told apart."""
    apart = {
        n: [0.5 * seed + 0.001 * i + 1e-5 * seed for seed in range(3)] for i, n in enumerate(FIVE)
    }
    claims = claims_of(outcome("diversity", measured_records(apart, GAINS)))
    assert claims["DivAug has the most of the paper's five"][0] == "yes"


def test_networks_that_did_not_measure_all_compare_nothing():
    some = {name: values[: 2 if name == "divaug" else 3] for name, values in RISING.items()}
    found = outcome("diversity", measured_records(some, GAINS))
    assert "networks of seed 2:" in " ".join(found.tables[0].notes)
    assert claims_of(found)["DivAug has the most of the paper's five"][1].endswith("n = 2 seeds")


def test_correlations_are_also_given_for_methods_that_are_alike():
    records = measured_records(RISING, GAINS)
    records += [made_measurement("random", s, 0.02 + 0.001 * s) for s in range(3)]
    records += runs_of("random", GAINS["randaugment"])
    rows = rows_of(outcome("diversity", records), 1)
    n = {row["methods"]: row["n"] for row in rows if "Variance" in row["what"]}
    assert n == {
        "the paper's five": 5,
        "all": 6,
        "all that do not ask the measuring network": 5,
        "all with one view": 4,
        "all with several views": 2,
    }
    views = [row for row in rows if row["what"].startswith("number of views")]
    assert len(views) == 3
    assert views[1]["n"] == 6


def test_affinity_is_by_both_networks_and_loss_diversity_by_the_methods_own():
    records = measured_records(RISING, GAINS)
    records += [made_measurement("divaug", affinity=-0.5, scorer="default")]
    found = outcome("affinity", records)
    ours = [row for row in rows_of(found) if row["method"] == "DivAug (k-means++)"]
    assert [row["network"] for row in ours] == ["no augmentation", "default augmentation"]
    assert [row["affinity_mean"] for row in ours] == [pytest.approx(-0.051), -0.5]
    assert [row["own_loss_mean"] for row in ours] == [pytest.approx(0.05)] * 2
    claims = claims_of(found)
    assert claims["DivAug has the lowest Affinity of the five"][0] == "yes"
    assert claims["DivAug, even so, is the most accurate of the five"][0] == "yes"
    assert {one.name for one in found.drawings} == {"loss-diversity", "affinity"}


def test_the_case_study_has_a_line_for_each_probability():
    records = []
    for i, name in enumerate(ROTATIONS):
        records += [made_measurement(name, seed, 0.01 * i + 0.001 * seed) for seed in range(2)]
        records += runs_of(name, [0.5 + 0.01 * i, 0.5 + 0.011 * i])
    found = outcome("rotate", records)
    assert [row["p"] for row in rows_of(found)] == [pytest.approx(0.1 * i) for i in range(1, 10)]
    assert claims_of(found)["Variance Diversity and accuracy move together"][0] == "yes"
    assert len(found.drawings) == 3
    for drawing in found.drawings:
        labels = drawing.draw().axes[0].get_ylabel()
        assert re.search(r"\(n = 2 (run|network)s\)", labels)


def evolved(name, seed, last):
    """Invert falls from a half to a share of what is kept."""
    half = {"Invert": 1500}
    keeps = [kept(half), kept({"Invert": last})]
    return made_run(name, seed, epochs=2, keeps=keeps)


@pytest.mark.parametrize(
    ("ours", "chance", "verdict"),
    [
        ([500, 510, 520], [1500, 1499, 1501], "yes"),
        ([500, 510, 520], [500, 511, 519], "undecided"),  # chance does as much
        ([1900, 1910, 1920], [1500, 1499, 1501], "no"),
        ([500, 510, 520], [], NOT_RUN),
    ],
)
def test_a_change_counts_beyond_that_of_a_random_choice(ours, chance, verdict):
    records = [evolved("divaug", seed, last) for seed, last in enumerate(ours)]
    records += [evolved("random", seed, last) for seed, last in enumerate(chance)]
    found = outcome("evolution", records)
    row = rows_of(found, 0, "operation")["Invert"]
    assert row["first_mean"] == pytest.approx(50)
    shares = [100 * last / (last + 1500) for last in ours]
    assert row["last_mean"] == pytest.approx(sum(shares) / 3)
    assert row["n_control"] == len(chance)
    assert claims_of(found)["the share of Invert falls"][0] == verdict
    figure = found.drawings[0].draw()
    faint = [line for line in figure.axes[0].lines if line.get_linewidth() < 1]
    assert len(faint) == (8 if chance else 0)


def test_steps_are_related_to_the_base_of_their_own_batch():
    records = [
        made_cost("randaugment", 2.0, "1"),
        made_cost("default", 1.0, "1"),
        made_cost("randaugment", 4.0, "2", commit="def"),
        made_cost("divaug", 12.0, "2", commit="def"),
        made_cost("pba", 5.0, "3"),
    ]
    found = outcome("cost", records)
    rows = shown(found)
    assert rows["default"]["ours, ×"] == "0.50"
    assert rows["DivAug (k-means++)"]["ours, ×"] == "3.00"
    assert [row["paper, ×"] for row in rows.values() if row["paper, ×"] != "—"] == ["1.0", "4.5"]
    assert rows["PBA"]["ours, ×"] == rows["PBA"]["memory, ×"] == "—, timed apart"
    assert rows["AutoAugment"]["ours, ×"] == NOT_RUN
    assert rows_of(found, 1, "method")["default"]["expand"] == 1.0


def test_a_clock_that_drifts_does_not_count():
    records = [
        made_cost("randaugment", 2.0, base=2.0),
        made_cost("divaug", 12.0, base=3.0),  # the base takes half as long again beside it
    ]
    row = rows_of(outcome("cost", records), 0, "method")["DivAug (k-means++)"]
    assert row["relative"] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ({}, "5 min 25 s"),
        ({"beside": 2}, "—, device shared"),
        ({"starts": (PLACE, PLACE)}, "—, resumed"),
        ({"starts": (PLACE | {"gpu": "Other"},)}, "—, run elsewhere"),
    ],
)
def test_times_of_whole_runs_are_of_runs_alone_in_that_setting(run, told):
    found = outcome("cost", [made_cost("randaugment", 2.0), made_run("randaugment", **run)])
    assert shown(found)["RandAugment"]["whole run"] == told


def test_other_machines_modes_and_versions_have_tables_of_their_own():
    records = [made_cost("randaugment", 2.0), made_cost("randaugment", 1.0, compiled=True)]
    names = [table.name for table in outcome("cost", records).tables]
    assert names == ["cost", "parts", "cost-2", "parts-2"]


def equal_records():
    return [
        made_cost("divaug", 6.0),
        made_cost("default", 2.0),
        *runs_of("divaug", [0.8, 0.9]),
        *runs_of("default", [0.5, 0.6]),
        *runs_of("default", [0.7, 0.85], epochs=600),
        made_run("default", 5, 0.99, epochs=600),  # without a partner
    ]


def test_at_equal_cost_epochs_follow_from_the_steps():
    found = outcome("equal-cost", equal_records())
    row = rows_of(found, 0, "method")["default"]
    assert row["cost"] == pytest.approx(1 / 3)
    assert row["epochs"] == 600
    assert row["accuracy_n"] == 3
    assert row["gain_mean"] == pytest.approx((0.2 + 0.25) / 2)
    (lead,) = rows_of(found, 1)
    assert lead["difference_mean"] == pytest.approx((0.1 + 0.05) / 2)
    assert (lead["pairs"], lead["holds"]) == (2, "undecided")
    assert [one.name for one in found.drawings] == ["equal-cost"]


def test_the_table_of_accuracies_has_every_method_in_divaugs_time():
    rows = rows_of(outcome("supervised", equal_records()), 0)
    of_default = [row for row in rows if row["method"] == "default"]
    assert len(of_default) == 1  # 600 epochs are no other length
    assert (of_default[0]["equal_epochs"], of_default[0]["n_equal"]) == (600, 3)


def test_epochs_stay_when_another_batch_comes():
    later = [made_cost("divaug", 60.0, "2"), made_cost("default", 2.0, "2")]
    row = rows_of(outcome("equal-cost", [*equal_records(), *later]), 0, "method")["default"]
    assert row["epochs"] == 600


def test_the_choice_is_summed_up_over_networks_of_one_age():
    records = [
        made_examination(seed=0, right=0.8),
        made_examination(seed=1, right=0.6),
        made_examination(seed=0, epochs=50),
        made_run("divaug", accuracy=0.8),
        made_run("random", accuracy=0.7),
        made_run("divaug", accuracy=0.5, space="released"),
    ]
    found = outcome("choice", records)
    rules = rows_of(found)
    (row,) = [r for r in rules if r["epochs"] == 200 and r["rule"] == "DivAug (k-means++)"]
    assert (row["n"], row["seeds"]) == (2, "0, 1")
    assert row["right_mean"] == pytest.approx(0.7)
    assert row["over_chance_mean"] == pytest.approx(2.0)
    assert row["reach_mean"] == pytest.approx(0.5)
    scoring = rows_of(found, 1)[0]
    assert (scoring["way"], scoring["unrelated_mean"]) == ("bfloat16", "")
    assert [row["space"] for row in rows_of(found, 2)][:2] == ["paper", "released"]
    training = rows_of(found, 3, "space")
    assert training["paper"]["difference_mean"] == pytest.approx(0.1)
    assert (training["released"]["choice_mean"], training["released"]["pairs"]) == (0.5, 0)
    assert "for 200 epochs (n = 2)" in found.drawings[0].title


def test_a_ratio_to_nothing_has_no_value():
    found = outcome("choice", [made_examination(best=0.0)])
    assert rows_of(found)[0]["reach_mean"] == ""


ROW = "uda-paper-1000"


def semi(name, accuracies, epochs=20, row=ROW):
    return runs_of(name, accuracies, row=row, epochs=epochs)


def test_errors_stand_beside_the_papers_with_their_steps():
    records = [*semi("randaugment-uda", [0.70, 0.72]), *semi("divaug", [0.75, 0.76])]
    found = outcome("semi-supervised", records)
    rows = [row for row in rows_of(found) if row["labels"] == 1000]
    ours = {row["method"]: row for row in rows}["DivAug (k-means++)"]
    assert ours["error_mean"] == pytest.approx(0.245)
    assert (ours["paper_percent"], ours["paper_steps"], ours["steps"]) == (6.94, 200_000, 20_000)
    assert ours["over_randaugment_uda_mean"] == pytest.approx(-0.045)
    others = [(row["labels"], row["n"]) for row in rows_of(found) if row["labels"] != 1000]
    assert others == [(2000, 0)] * 2 + [(4000, 0)] * 2
    assert "runs of 20,000 steps stand beside its 200,000" in found.sentences[0]
    (drawing,) = found.drawings
    assert drawing.name == "error-uda-paper-1000-20000"
    points = drawing.draw().axes[0].lines[-1].get_xydata().tolist()
    assert points == [[20_000.0, pytest.approx(24.5)]]


@pytest.mark.parametrize(
    ("divaug", "verdict"),
    [
        ([0.80, 0.81, 0.82], "yes, after 20,000 steps, not 200,000"),
        ([0.60, 0.61, 0.62], "no, after 20,000 steps, not 200,000"),
        ([0.80], "undecided, after 20,000 steps, not 200,000"),
        ([], NOT_RUN),
    ],
)
def test_the_papers_claim_on_few_labels_is_judged_seed_by_seed(divaug, verdict):
    base = [0.701, 0.712, 0.72]
    claims = claims_of(
        outcome("semi-supervised", [*semi("randaugment-uda", base), *semi("divaug", divaug)])
    )
    text = next(claim for claim in claims if claim.startswith("with 1,000 labels"))
    assert "the paper: by 0.43 points" in text
    assert claims[text][0] == verdict


def test_fewer_labels_gain_more_or_not():
    records = []
    for labels, gain in ((1000, 0.1), (2000, 0.05), (4000, 0.01)):
        row = f"uda-paper-{labels}"
        records += semi("randaugment-uda", [0.5, 0.52, 0.51], row=row)
        records += semi("divaug", [0.5 + gain, 0.521 + gain, 0.51 + gain], row=row)
    claims = claims_of(outcome("semi-supervised", records))
    text = "the gain of DivAug over RandAugment is largest where labels are fewest"
    assert claims[text][0] == "yes"


def test_other_families_have_tables_of_their_own_and_no_number_of_the_paper():
    found = outcome("semi-supervised", semi("divaug", [0.7], row="fixmatch-1000"))
    assert [table.name for table in found.tables] == ["fixmatch"]
    assert {row["paper_percent"] for row in rows_of(found)} == {""}


def test_rows_have_tables_and_files_of_their_own():
    records = [
        made_run(epochs=None, keeps=[kept()] * 200),
        made_run(row=DEMO_ROW, keeps=[kept()] * 8),
    ]
    found = outcome("evolution", records)
    names = [table.name for table in found.tables]
    assert names == ["evolution", "claims", f"evolution-{DEMO_ROW}", f"claims-{DEMO_ROW}"]
    assert all(DEMO_ROW in table.title for table in found.tables[2:])


def test_a_rule_has_one_colour_in_all_figures():
    places = [METHODS[name].place for name in METHODS]
    assert len(set(places)) == len(places)
    assert [METHODS[name].place for name in RULES] == [0, 1, 2, 3]


def test_a_method_that_a_target_does_not_have_is_named():
    with pytest.raises(ValueError, match="method of rotate: 'divaug'"):
        outcome("rotate", [], Selection(methods=("divaug",)))


def test_files_hold_what_the_outcome_says(tmp_path):
    found = outcome("equal-cost", equal_records())
    files = {path.name for path in found.write(tmp_path)}
    assert files == {"table.md", "equal-cost.csv", "lead.csv", "equal-cost.svg"}
    text = (tmp_path / "table.md").read_text()
    for table in found.tables:
        assert f"**{table.title}**" in text
    assert "![" in text
    assert "7 runs on Some CPU, 2 threads" in text
    with (tmp_path / "lead.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["difference_mean"]) == pytest.approx(0.075)
    before = (tmp_path / "equal-cost.svg").read_bytes()
    outcome("equal-cost", equal_records()).write(tmp_path)
    assert (tmp_path / "equal-cost.svg").read_bytes() == before


def test_marks_have_bars_of_one_deviation():
    figure = outcome("supervised", [*runs_of("divaug", [0.5, 0.7]), *runs_of("random", [0.6])])
    (drawing,) = (one for one in figure.drawings if one.name.startswith("rules"))
    axes = drawing.draw().axes[0]
    heights = [
        segment[1][1] - segment[0][1]
        for collection in axes.collections
        for segment in collection.get_segments()
        if segment[1][0] == segment[0][0]
    ]
    assert max(heights) == pytest.approx(2 * 100 * math.sqrt(0.02))
