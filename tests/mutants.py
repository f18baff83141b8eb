"""Can the tests of the operations fail? Break one line at a time and see whether they notice.

    python tests/mutants.py            # all mutants, two at a time
    python tests/mutants.py geometry   # those of one module

Each mutant is a copy of the sources with one piece of text replaced. The exit status is 1 when
fewer than nine in ten are noticed, or when a piece of text is no longer found exactly once.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("divaug", "operations")
NEEDED = 0.9
TIMEOUT = 120.0  # seconds; a mutant that hangs is noticed

PIXELS = ["test_operations_pillow.py", "test_operations_laws.py", "test_operations_floats.py"]
REST = [
    "test_operations_layouts.py",
    "test_operations_errors.py",
    "test_magnitude.py",
    "test_operations_further.py",
    "test_photometric.py",
    "test_following.py",
]
# The tests most likely to notice come first: most mutants then cost little but the start.
FIRST = {
    "application.py": "test_operations_floats.py",
    "checks.py": "test_operations_errors.py",
    "further.py": "test_operations_further.py",
    "resampling.py": "test_photometric.py",
    "execution.py": "test_operations_laws.py",
    "magnitude.py": "test_magnitude.py",
    "table.py": "test_operations_errors.py",
    "nearest.py": "test_following.py",
}

MUTANTS: dict[str, list[tuple[str, str]]] = {
    "geometry.py": [
        ("(value * ONE + 0.5).floor()", "(value * ONE).floor()"),
        ("(value * ONE + 0.5).floor()", "(value * ONE).round()"),
        ("for i in range(9)", "for i in range(3)"),
        ("for i in range(10)", "for i in range(4)"),
        ("((turn + 1) & 2)", "(turn & 2)"),
        ("1 - (turn & 2)", "1 - (turn & 1)"),
        ("cos_sin_degrees(-degrees)", "cos_sin_degrees(degrees)"),
        ("width / 2.0, height / 2.0", "(width - 1) / 2.0, (height - 1) / 2.0"),
        ("width / 2.0, height / 2.0", "height / 2.0, width / 2.0"),
        ("return cos, sin, c, -sin, cos, f", "return cos, -sin, c, sin, cos, f"),
        ("c + a * 0.5 + b * 0.5", "c + a * 0.5"),
        ("f + d * 0.5 + e * 0.5", "f + e * 0.5"),
        ("clamp_(0, size + 1)", "clamp_(1, size + 1)"),
        ("clamp_(0, size + 1)", "clamp_(0, size)"),
        ("a[2], width)", "a[2], height)"),
        ("alpha=width + 2", "alpha=height + 2"),
        ("(start + ONE)", "start"),
        ("[factor, 0.5 + factor * 0.5]", "[factor, factor * 0.5]"),
        ("_slope(factor, images.shape[2])", "-_slope(factor, images.shape[2])"),
        ("clamp_(0, height + 1)", "clamp_(0, height)"),
        ("torch.arange(1, height + 1,", "torch.arange(0, height,"),
        ("row, alpha=width)", "row, alpha=height)"),
        ("NEARLY_ONE = 1 - 2.0**-40", "NEARLY_ONE = 1.0"),
        ("source += source >= carry", "source += source > carry"),
        ("pixels + 0.5", "pixels + 0.4"),
        ("(source >= 0) & (source < size)", "(source >= 0) & (source < size - 1)"),
        (".mul_(inside.view(shape))", ""),
    ],
    "shifting.py": [
        ("shift.clamp(-height, height) * width", "shift.clamp(-height, height) * height"),
        ("shift.clamp(-height, height)", "shift.clamp(0, height)"),
        ("shift.clamp(-length, length)", "shift"),
        ("shift.clamp(-length, length)", "shift.clamp(1 - length, length - 1)"),
        ("[:, 0] = images", "[:, 1] = images"),
        ("2 * length, device", "length, device"),
    ],
    "tone.py": [
        ("return 255 - images", "return 254 - images"),
        ("(threshold.ceil() - 1)", "threshold.ceil()"),
        ("(threshold.ceil() - 1)", "(threshold.floor() - 1)"),
        ("inverted >>= 8", "inverted >>= 7"),
        ("dropped = 8 - bits", "dropped = 7 - bits"),
        ("(255 << dropped)", "(127 << dropped)"),
        ("weight = factor.to(torch.float32)", "weight = factor.to(torch.float16)"),
        ("(2 * total + count)", "(2 * total)"),
        ("torch.full_like(low, 255.0).div_(", "255.0 / ("),
        ("high > low, -low * scale", "high > low, -(low + 1) * scale"),
        ("to_whole(stretched)", "to_whole(stretched.round_())"),
        ("high > low, scale, 1.0", "high >= low, scale, 1.0"),
        ("flat.to(torch.float64)", "flat.to(torch.float32)"),
        ("- count.gather(2, last[..., None])", ""),
        ("div_(255, rounding_mode", "div_(256, rounding_mode"),
        ("n * channels <= 128", "n * channels <= 256"),
        ("count.cumsum(2) - count", "count.cumsum(2)"),
        ("add_(step >> 1)", "add_(step >> 2)"),
        ("torch.where(step > 0, flattened", "torch.where(step >= 0, flattened"),
    ],
    "blending.py": [
        ("mul_(weight.to(torch.float32))", "double().mul_(weight).float()"),
        # One rounding instead of two: what a fused multiply-add computes.
        ("second.sub_(first).mul_", "second.sub_(first).double().mul_"),
        ("values.clamp_(0, 255)", "values.round_().clamp_(0, 255)"),
        ("values.clamp_(0, 255)", "values.clamp_(0, 254)"),
        ("LUMA = (19595,", "LUMA = (19594,"),
        ("alpha=b).add_(0.5).floor_()", "alpha=b).floor_()"),
        ("alpha=4", "alpha=5"),
        ("mul_(1 / 13)", "mul_(1 / 12)"),
        ("mul_(1 / 13).add_(0.5).floor_()", "mul_(1 / 13).floor_()"),
        ("height < 3 or", "height < 4 or"),
        ("height < 3 or", "height < 3 and"),
        ("blend_values(smoothed, inner,", "blend_values(inner, smoothed,"),
        ("rows[:, 1:-1]).add_", "rows[:, :-2]).add_"),
        ("blend_values(first, second, weight[", "blend_values(second, first, weight["),
    ],
    "occlusion.py": [
        ("(125, 123, 114)", "(125, 122, 114)"),
        ("(121,)", "(122,)"),
        ("(side >> 1)", "((side + 1) >> 1)"),
        ("(offset >= 0)", "(offset > 0)"),
        ("offset < side", "offset <= side"),
        ("(side + 0.5).floor()", "side.round()"),
        ("[:, :, None] * covered", "[:, :, None] | covered"),
        (".mul_(outside)", ""),
    ],
    "execution.py": [
        ("min(start + chunk, begin[i + 1])", "start + chunk"),
        ("begin[i + 1], chunk)", "begin[i + 1], chunk + 1)"),
        ("else center[order]", "else center"),
        ("argument[order]", "argument"),
        # Survives: which image of a group comes first does not matter.
        ("stable=True", "stable=False"),
        # Survives here: `apply` pairs image i with partner i, so both say the same.
        ("pool.index_select(0, other[part])", "pool.index_select(0, rows)"),
        ("flat.shape[1] % 8 == 0", "flat.shape[1] % 4 == 0"),
        ("argument[order].to(torch.float64)", "argument[order].to(torch.float32).double()"),
    ],
    "application.py": [
        (".add_(0.5)", ".add_(0.49)"),
        ("images.to(torch.float32).mul(255)", "images.mul(255)"),
        ("torch.full((), 255.0", "torch.full((), 256.0"),
        (".flatten(1).any(1)", ".flatten(1).all(1)"),
        ("quantised.clone(memory_format=torch.contiguous_format)", "quantised.contiguous()"),
        ("if channels_last and", "if not channels_last and"),
    ],
    "checks.py": [
        ("MAX_SIDE = 8192", "MAX_SIDE = 8193"),
        ("channels not in (1, 3)", "channels not in (1, 2, 3)"),
        ("low >= 0.0 and high", "low >= 0.0 or high"),
        ("shape[3] in (1, 3)", "shape[3] in (1, 3, 8)"),
        ("shape[3] == 4 and", "shape[3] == 2 and"),
        ("int(operation.min()) >= 0", "int(operation.min()) >= -1"),
        ("(values >= this.low)", "(values > this.low)"),
        ("(values <= high)", "(values < high)"),
        ("high = 2.0 * side", "high = 3.0 * side"),
        ("(places >= size)", "(places > size)"),
        ("outside = placed & (", "outside = ("),
        ("operation: operation.needs_center", "operation: operation.needs_partner"),
        ("operation: operation.needs_partner", "operation: operation.needs_center"),
        ("[height, width], device", "[width, height], device"),
        ("images.shape or partner.dtype", "images.shape and partner.dtype"),
    ],
    "table.py": [
        ('"bits", 1.0, 8.0', '"bits", 0.0, 8.0'),
        ('"degrees", 360.0', '"degrees", 180.0'),
        ('"threshold", 0.0, 256.0', '"threshold", 0.0, 255.0'),
        ("8.0, whole=True", "8.0"),
        ("geometry.translate_x,", "geometry.translate_y,"),
        ("most, moving=transform)", "most)"),
    ],
    "further.py": [
        ("images.flip(3)", "images.flip(2)"),
        ("height < 5 or width < 5", "height < 6 or width < 6"),
        ("(ring + 8) >> 4", "(ring + 7) >> 4"),
        ("values[:, :, 1:-1, 1:-1], 3)", "values[:, :, 2:-2, 2:-2], 1)"),
        ("(height - cut).round() - start", "(width - cut).round() - start"),
        ("start = cut.round()", "start = (cut + 0.5).floor()"),
        ("side = min(height, width)", "side = max(height, width)"),
        ("left >= 1", "left >= 0"),
        ("(side - 1) // 2", "side // 2"),
        ("pixels.to(torch.float64)", "pixels.to(torch.float32)"),
        ("Operation(name, transform, moving=transform)", "Operation(name, transform)"),
        ("_crop(images, pixels, pick)", "_crop(images, pixels, resample)"),
    ],
    "nearest.py": [
        ("device=images.device) + 1)", "device=images.device))"),
        ("start.to(torch.int64)[:, None] + middle", "middle"),
        ("div(2 * size,", "div(2 * size - 1,"),
    ],
    "resampling.py": [
        ("center - reach + 0.5", "center - reach"),
        ("center + reach + 0.5", "center + reach"),
        ("* (1 << PRECISION) + 0.5)", "* (1 << PRECISION))"),
        ("1 << (PRECISION - 1)", "1 << (PRECISION - 2)"),
        ("* (source < end)", ""),
        ("source - center + 0.5", "source - center"),
        ("* inside + start", "* inside"),
        ("range(1, count)", "range(1, count - 1)"),
    ],
    "magnitude.py": [
        ("math.ceil(v - 0.5)", "math.floor(v + 0.5)"),
        ("min(height, width)", "max(height, width)"),
        ("sign if self.signed else 1", "sign"),
        ('float(fields.get("offset", 0))', "0.0"),
        ('fields.get("signed", False)', "True"),
        ('fields.get("side", "none").upper()', '"NONE"'),
        ('fields.get("rounding", "none").upper()', '"NONE"'),
        ('float(fields.get("minimum", -math.inf))', "-math.inf"),
    ],
}


@dataclass(frozen=True)
class Mutant:
    """One piece of text of one file, and what replaces it."""

    file: str
    old: str
    new: str

    def write(self, sources: Path) -> None:
        """Break the copy of the sources."""
        path = sources / FOLDER / self.file
        path.write_text(path.read_text().replace(self.old, self.new))

    def fits(self) -> bool:
        """Whether the text to replace is there exactly once."""
        return (ROOT / "src" / FOLDER / self.file).read_text().count(self.old) == 1


def tests_for(file: str) -> list[str]:
    """The test files, the most telling first."""
    files = PIXELS + REST
    return sorted(files, key=lambda name: name != FIRST.get(file, files[0]))


def survives(mutant: Mutant | None) -> bool:
    """Whether the tests pass on a copy of the sources with the mutant in it (None: unbroken)."""
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(shutil.copytree(ROOT / "src", Path(folder, "src")))
        if mutant is not None:
            mutant.write(sources)
        names = tests_for(mutant.file if mutant else "")
        # Large images show nothing here that small ones do not.
        options = ["-x", "-q", "-p", "no:cacheprovider", "-k", "not 224x160"]
        command = [sys.executable, "-m", "pytest", *options, *(f"tests/{name}" for name in names)]
        paths = {"PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=os.environ | paths, capture_output=True, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode not in (0, 1):  # it does not even import: no test has judged it
            raise RuntimeError(f"{mutant} could not be tested:\n{done.stdout.decode()}")
        return done.returncode == 0


def report(results: Iterable[tuple[Mutant, bool]], total: int) -> list[Mutant]:
    """Print a line per mutant as it is decided, and return those that survived."""
    survivors = []
    for number, (mutant, alive) in enumerate(results, 1):
        fate = "SURVIVED" if alive else "killed"
        line = f"{number:3}/{total} {fate:8} {mutant.file:15} {mutant.old}  →  {mutant.new}"
        print(line, flush=True)
        survivors += [mutant] * alive
    return survivors


def main(modules: list[str]) -> int:
    """Run the mutants of the modules (all, if none is named)."""
    mutants = [Mutant(file, *pair) for file, pairs in MUTANTS.items() for pair in pairs]
    misfits = [mutant for mutant in mutants if not mutant.fits()]
    for mutant in misfits:
        print(f"not found exactly once in {mutant.file}: {mutant.old}")
    if misfits:
        return 1
    chosen = [m for m in mutants if not modules or m.file.removesuffix(".py") in modules]
    if not survives(None):
        print("the tests fail on the unbroken sources: run them first")
        return 1
    with ThreadPoolExecutor(max_workers=2) as pool:
        results = zip(chosen, pool.map(survives, chosen), strict=True)
        survivors = report(results, len(chosen))
    killed = len(chosen) - len(survivors)
    print(f"{killed} of {len(chosen)} killed ({killed / max(1, len(chosen)):.1%})")
    return 0 if killed >= NEEDED * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
