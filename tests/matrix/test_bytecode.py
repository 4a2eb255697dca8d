"""Compiled modules that layers share: never of another source, whatever happens to the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
import inspect, traceback
NUMBER = 1

def where():
    try:
        raise LookupError
    except LookupError as error:
        return traceback.extract_tb(error.__traceback__)[0].filename

def source():
    return inspect.getsource(where)
"""
IMPORT = """
import sys
from pathlib import Path
from matrix.runner.bytecode import Bytecode
cache, layer = Bytecode(Path(sys.argv[1])), sys.argv[2]
{before}
cache.lend(Path(layer))
sys.path.insert(0, layer)
from demo import part
cache.keep(Path(layer))
assert part.source().startswith("def where"), part.source()
print(part.NUMBER, part.where())
"""

pytestmark = pytest.mark.slow


class Layers:
    """Layers with a package `demo` in each, and the cache that they share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "bytecode"

    def make(self, name: str, source: str = SOURCE) -> Path:
        """A layer; its files are all of one time, so that only their content tells them apart."""
        layer = self.folder / name
        (layer / "demo").mkdir(parents=True)
        for path, text in (("__init__.py", ""), ("part.py", source)):
            (layer / "demo" / path).write_text(text, encoding="utf-8")
            os.utime(layer / "demo" / path, (1e9, 1e9))
        return layer

    def start(self, layer: Path, before: str = "") -> subprocess.Popen[str]:
        """Import `demo` from a layer as a cell does."""
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        return subprocess.Popen(
            [sys.executable, "-c", IMPORT.format(before=before), str(self.cache), str(layer)],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, layer: Path, before: str = "") -> int:
        """Import it and be sure of where it says that it is; the number that it holds."""
        said, _ = self.start(layer, before).communicate(timeout=60)
        number, _, where = said.strip().partition(" ")
        assert where == str(layer / "demo" / "part.py"), said
        return int(number)

    def entries(self) -> list[Path]:
        """What the cache has of `demo.part`: the larger files."""
        return sorted(path for path in self.cache.glob("*/*.pyc") if path.stat().st_size > 400)


def compiled(layer: Path) -> Path:
    """The compiled file of `demo.part`."""
    return Path(cache_from_source(str(layer / "demo" / "part.py")))


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    """A cache that a layer has filled."""
    layers = Layers(tmp_path)
    assert layers.run(layers.make("b")) == 1
    assert len(layers.entries()) == 1
    return layers


def test_the_same_source_is_compiled_once(layers: Layers) -> None:
    """Another layer runs the file of the first, and its tracebacks and sources are its own."""
    other = layers.make("c")
    assert layers.run(other) == 1
    assert compiled(other).samefile(layers.entries()[0])
    assert compiled(other).samefile(compiled(layers.folder / "b"))


def test_one_byte_of_difference_is_compiled_anew(layers: Layers) -> None:
    """Though the size and the time of the source are the same."""
    other = layers.make("other", SOURCE.replace("NUMBER = 1", "NUMBER = 2"))
    assert layers.run(other) == 2
    assert len(layers.entries()) == 2


def test_a_source_that_changes_in_its_layer_is_compiled_anew(layers: Layers) -> None:
    """And the layers that shared its file keep theirs."""
    changed = layers.make("c")
    assert layers.run(changed) == 1
    (changed / "demo" / "part.py").write_text(SOURCE.replace("NUMBER = 1", "NUMBER = 3"), "utf-8")
    os.utime(changed / "demo" / "part.py", (1e9, 1e9))
    assert layers.run(changed) == 3
    assert layers.run(layers.folder / "b") == 1
    assert layers.run(layers.make("d")) == 1


def test_a_file_under_the_name_of_another_source_is_not_used(layers: Layers) -> None:
    """Python itself compares the source: a mistake in the names costs time, no more."""
    other = layers.make("other", SOURCE.replace("NUMBER = 1", "NUMBER = 2"))
    assert layers.run(other) == 2
    one, two = layers.entries()
    right = {path: path.name.partition("-") for path in (one, two)}
    one.rename(one.with_name(f"{right[two][0]}-{right[one][2]}"))
    two.unlink()
    again = layers.make("again", SOURCE.replace("NUMBER = 1", "NUMBER = 2"))
    before = "import os; link = os.link; os.link = lambda *a: print(*a) or link(*a)"
    said, _ = layers.start(again, before).communicate(timeout=60)
    assert right[one][2] in said  # it was lent
    assert said.splitlines()[-1].startswith("2 ")


@pytest.mark.parametrize(
    "damage",
    [lambda code: code[:100], lambda code: code[:-9] + b"\0" * 9, lambda code: b""],
    ids=["cut", "overwritten", "empty"],
)
def test_a_damaged_file_is_forgotten(layers: Layers, damage: object) -> None:
    """As after a loss of power: its name says what should be in it."""
    (entry,) = layers.entries()
    code = entry.read_bytes()
    entry.unlink()
    entry.write_bytes(damage(code))  # type: ignore[operator]
    assert layers.run(layers.make("c")) == 1
    (anew,) = layers.entries()
    assert anew.samefile(compiled(layers.folder / "c"))
    assert anew.name.partition("-")[0] == entry.name.partition("-")[0]


def test_a_list_that_was_not_written_to_its_end_does_no_harm(layers: Layers) -> None:
    """A line without its end is a module that no layer has."""
    (paths,) = layers.cache.glob("*/paths")
    paths.write_bytes(b"\ndemo/__init__.py\n\ndemo/pa")
    for name in ("c", "d"):
        assert layers.run(layers.make(name)) == 1
    assert compiled(layers.folder / "d").samefile(compiled(layers.folder / "b"))


def test_a_module_that_is_new_is_shared_as_well(layers: Layers) -> None:
    """Once a layer has had it, though then Python wrote its file in another form."""
    for name in ("c", "d", "e"):
        layer = layers.make(
            name, "from demo.new import NUMBER\n" + SOURCE.replace("NUMBER = 1", "")
        )
        (layer / "demo" / "new.py").write_text("NUMBER = 4", encoding="utf-8")
        assert layers.run(layer) == 4
    new = [Path(cache_from_source(str(layers.folder / name / "demo/new.py"))) for name in "cde"]
    assert [new[0].samefile(new[1]), new[1].samefile(new[2])] == [False, True]


def test_a_process_that_dies_on_the_way_does_no_harm(layers: Layers) -> None:
    """Killed between two links, it has left the rest of the layer as it was."""
    layer = layers.make("c")
    killed = layers.start(layer, "import os; os.link = lambda *_: os.kill(os.getpid(), 9)")
    killed.communicate(timeout=60)
    assert killed.returncode == -9
    assert layers.run(layer) == 1
    assert layers.run(layers.make("d")) == 1


def test_without_hard_links_python_compiles_as_ever(layers: Layers) -> None:
    """Some file systems have none."""
    no_links = "import os\ndef refuse(*_): raise OSError(95, 'no')\nos.link = refuse"
    assert layers.run(layers.make("c"), no_links) == 1


def test_processes_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Several layers of two different sources, from an empty cache on."""
    layers = Layers(tmp_path)
    for turn in range(3):
        made = {
            layers.make(f"{turn}-{index}", SOURCE.replace("= 1", f"= {index % 2}")): index % 2
            for index in range(6)
        }
        running = {layer: layers.start(layer) for layer in made}
        for layer, process in running.items():
            said, _ = process.communicate(timeout=60)
            assert said.split() == [str(made[layer]), str(layer / "demo" / "part.py")]
    kept = {path.stat().st_ino for path in layers.entries()}
    assert {compiled(layer).stat().st_ino for layer in made} <= kept
