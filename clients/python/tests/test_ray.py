"""Sweeps on a Ray cluster of two nodes on this machine: what comes out is what one machine writes, byte for byte."""

import _thread
import concurrent.futures
import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import kumiki
from conftest import SOURCE, program
from engine_process import wait_until
from kumiki import _ray_driver, _ray_node

#: Of the folder of a sweep; the journal's lines are in the order in which runs ended.
FILES = ("sweep.csv", "sweep.parquet", "sweep.json", "sweep.html")
GRID = {"fast": "5:30:5", "slow": [40, 60, 80, 100]}
COMMON = ("sma-cross", "--data", "ray-data", "--instrument", "7203.TSE", "--quiet")
#: Stands before the program on the nodes, and notes what is begun, and the number of the folder with the data. Where `hold` names a node, each node makes one part;
#: then the named one is held within its next (which it tells in `held`), and the others wait until it is.
WRAPPER = """#!/bin/sh
[ "$2" = merge ] && exec "$KUMIKI_TEST_PROGRAM" "$@"
cd "$KUMIKI_TEST_FOLDER" || exit 1
node=$KUMIKI_TEST_NODE
rows=rest
last=
for word in "$@"; do
  [ "$last" = --rows ] && rows=$word
  [ "$last" = --data ] && data=$word
  last=$word
done
echo "$node $rows" >> begun
echo "$node $(ls -di "$data")" >> data-read
if [ -e hold ] && [ "$rows" != 0..0 ]; then
  if [ ! -e "$node-made-one" ]; then
    touch "$node-made-one"
  elif [ "$node" = "$(cat hold)" ]; then
    echo "$rows" > held.new && mv held.new held
    while [ -e hold ]; do sleep 0.1; done
    exit 1
  else
    while [ -e hold ] && [ ! -e held ]; do sleep 0.1; done
  fi
fi
exec "$KUMIKI_TEST_PROGRAM" "$@"
"""


class Nodes:
    """The cluster: a first node with the driver, and a second one."""

    def __init__(self, folder):
        import ray
        from ray.cluster_utils import Cluster

        self.folder, self.data = folder, folder / "ray-data"
        self.wrapper = folder / "wrapper"
        self.wrapper.write_text(WRAPPER)
        self.wrapper.chmod(self.wrapper.stat().st_mode | stat.S_IXUSR)
        self.small = small = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
        # A node that is gone is noticed within seconds.
        health = {"initial_delay_ms": 0, "period_ms": 500, "failure_threshold": 4}
        health = {f"health_check_{name}": value for name, value in health.items()}
        with self.place("first"):
            self.cluster = Cluster(initialize_head=True, head_node_args={**small, "_system_config": health})
        self.second = self.add("second")
        ray.init(address=self.cluster.address, log_to_driver=False)

    def add(self, name):
        """One more node; what runs there knows its name."""
        with self.place(name):
            node = self.cluster.add_node(**self.small)
            self.cluster.wait_for_nodes()
        return node

    @contextlib.contextmanager
    def place(self, name):
        """What begins within it is of that node, whose temporary folder is its own as on a machine of its own."""
        folder = self.folder / f"temporary-{name}"
        folder.mkdir(exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KUMIKI_TEST_NODE", name)
            patch.setenv("TMPDIR", str(folder))
            yield

    def left(self, name):
        """What lies in a node's folder of sweeps."""
        return [path for path in (self.folder / f"temporary-{name}").glob("kumiki-ray-*/*") if path.name != "lock"]

    def data_read(self):
        """The folders that were read on each node: the number of each, and its path."""
        read = {}
        for line in (self.folder / "data-read").read_text().splitlines():
            node, number, path = line.split(maxsplit=2)
            read.setdefault(node, set()).add((number, pathlib.Path(path)))
        return read

    @contextlib.contextmanager
    def loss(self, name, node):
        """Kills a node while it is within its second part. Gives the rows of that part, and how much had begun."""
        hold, held, lost = self.folder / "hold", self.folder / "held", {}
        for old in (held, *self.folder.glob("*-made-one")):
            old.unlink(missing_ok=True)
        hold.write_text(name)

        def kill():
            until = time.monotonic() + 120
            while not held.exists() and time.monotonic() < until:
                time.sleep(0.05)
            if not held.exists():
                # The test fails, and nobody waits for ever.
                hold.unlink()
                return
            lost.update(rows=held.read_text().strip(), begun=len(self.begun()))
            self.cluster.remove_node(node, allow_graceful=False)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            yield lost
        finally:
            killer.join()
            hold.unlink(missing_ok=True)

    def begun(self):
        """Which node has begun which rows, in this order."""
        path = self.folder / "begun"
        return [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []

    def forget(self):
        for name in ("begun", "data-read"):
            (self.folder / name).unlink(missing_ok=True)

    def sweep(self, out, **how):
        how = {"data": self.data, "instruments": "7203.TSE", "program": self.wrapper, "rows_per_task": 2, **how}
        return kumiki.ray.sweep(how.pop("strategy", "sma-cross"), out=self.folder / out, **how)

    def same(self, out, whole):
        """Whether a folder is what one machine wrote."""
        names = {path.name for path in (self.folder / out).iterdir()}
        assert names == {*FILES, "journal.jsonl"}
        for name in FILES:
            made, wanted = ((self.folder / place / name).read_bytes() for place in (out, whole))
            assert made == wanted, f"{name} of {out} is not that of {whole}"
        return True


@pytest.fixture(scope="module")
def nodes(desk):
    if sys.platform == "win32":
        pytest.skip("the program before the program is a script of the shell")
    ray = pytest.importorskip("ray")
    folder, call = desk
    call("data", "sample", "--out", "ray-data", "--instrument", "7203.TSE", "--days", "4",
         "--trades-per-day", "1000", "--seed", "3")
    # A short path: those of Ray's sockets have a limit.
    ray_folder = tempfile.mkdtemp(prefix="kumiki-ray-test-", dir=os.environ["RAY_TMPDIR"])
    own = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")])),
        "KUMIKI_TEST_FOLDER": str(folder), "KUMIKI_TEST_PROGRAM": str(program()), "KUMIKI_TEST_NODE": "",
        "KUMIKI_CACHE": str(folder / "cache"), "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": ray_folder,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.items():
            patch.setenv(name, value)
        nodes = Nodes(folder)
        try:
            yield nodes
        finally:
            (folder / "hold").unlink(missing_ok=True)
            ray.shutdown()
            nodes.cluster.shutdown()
            shutil.rmtree(ray_folder, ignore_errors=True)


@pytest.fixture(scope="module")
def whole(desk, nodes):
    """The sweep of one machine."""
    _, call = desk
    call("replay", "sweep", *COMMON, "--grid", "fast=5:30:5", "--grid", "slow=40,60,80,100", "--out", "ray-whole")
    return "ray-whole"


def test_points_from_shared_storage_go_on_after_the_driver_ended(nodes, desk):
    points = [{"fast": fast, "slow": 9 * fast, "quantity": 200} for fast in (4, 9, 5, 8, 6, 7)]
    (nodes.folder / "points.csv").write_text(
        "fast,slow,quantity\n" + "".join(f"{one['fast']},{one['slow']},200\n" for one in points))
    _, call = desk
    call("replay", "sweep", *COMMON, "--points", "points.csv", "--verify", "2", "--limit", "2", "--cash", "3000000",
         "--out", "points-whole")
    how = {"points": points, "shared": True, "verify": 2, "cash": 3_000_000, "node_dir": nodes.folder / "empty"}
    nodes.forget()

    class Ended(Exception):
        pass

    def end(progress):
        assert (progress.done, progress.total, progress.kept) == (2, 6, 0)
        raise Ended

    with pytest.raises(Ended):
        nodes.sweep("points", **how, on_progress=end)
    assert not (nodes.folder / "points").exists()
    (kept,) = [path.name for path in (nodes.folder / "points.parts").glob("rows-*")]
    before = len(nodes.begun())
    with pytest.raises(kumiki.KumikiError, match="has parts of another sweep; remove it"):
        nodes.sweep("points", **{**how, "cash": 2_000_000})
    told = []
    result = nodes.sweep("points", **{**how, "points": nodes.folder / "points.csv"}, on_progress=told.append)
    assert told[-1].done == 6 and told[-1].kept == 2 and sum(result.nodes.values()) == 4
    again = [rows for _, rows in nodes.begun()[before:]]
    assert kept.replace("rows-", "").replace("-", "..") not in again, "what was kept is not made again"
    assert not (nodes.folder / "points.parts").exists()
    assert not list((nodes.folder / "empty").glob("data-*")), "nothing was shipped"
    assert nodes.same("points", "points-whole")
    assert (result.runs, result.failed) == (6, 0) and result.best_parameters["quantity"] == 200
    # Nothing is left to do; and another sweep into the folder is refused before anything is done.
    before = len(nodes.begun())
    done = nodes.sweep("points", **how, on_progress=told.append)
    assert (done.runs, done.best_run, dict(done.nodes)) == (result.runs, result.best_run, {})
    for other, words in (({"cash": 1_000_000}, "has another sweep; remove it"), ({"verify": 3}, "verify=2, not 3")):
        with pytest.raises(kumiki.KumikiError, match=words):
            nodes.sweep("points", **{**how, **other})
    with pytest.raises(kumiki.KumikiError, match="is not empty and holds no sweep"):
        nodes.sweep("ray-data", **how)
    assert [rows for _, rows in nodes.begun()[before:]] == ["0..0"] * 4
    assert nodes.same("points", "points-whole") and not list(nodes.folder.glob("*.parts"))


def test_a_component_and_a_walk_forward_travel(nodes, desk):
    from engine_process import component

    path, (_, call) = component("sma-cross"), desk
    flags = ("--grid", "fast=5,10", "--grid", "slow=20,40", "--walk-forward", "2d/1d", "--slippage-ticks", "0")
    call("replay", "sweep", str(path), *COMMON[1:], *flags, "--out", "walk-whole")
    nodes.forget()
    result = nodes.sweep("walk", strategy=path, grid={"fast": [5, 10], "slow": [20, 40]}, walk_forward="2d/1d",
                         arguments=["--slippage-ticks", "0"])
    assert nodes.same("walk", "walk-whole") and result.runs == 10
    assert only_once(nodes), "somebody did"


def only_once(nodes, lost=None):
    """What was shipped was unpacked once on each node that read it, and no task leaves anything else but one that is
    killed. Gives the names of these nodes."""
    read, files = nodes.data_read(), {path.name: path.read_bytes() for path in nodes.data.iterdir()}
    for name, folders in read.items():
        left = [path for path in nodes.left(name) if name != lost or not path.name.startswith("part-")]
        assert left == [path for _, path in folders], f"{name} reads what is its own, and has nothing else"
        (shipped,) = left
        assert {path.name: path.read_bytes() for path in shipped.iterdir()} == files
    return set(read)


def test_what_goes_wrong_on_a_node_is_told(nodes):
    for how, words in (
        ({"grid": {"fast": "5:1:5"}}, "the step must be above 0"),
        ({"grid": {"fast": [5]}, "strategy": "nobody"}, "there is no built-in strategy `nobody`"),
        ({"grid": {"fast": [5]}, "shared": True, "data": "/nowhere/at/all"}, "is not a folder on this node"),
    ):
        with pytest.raises(kumiki.KumikiError, match=words):
            nodes.sweep("wrong", **how)
    assert not list(nodes.folder.glob("wrong*")), "nothing is left where nothing was made"
    for how, words in (
        ({}, "^grid: "), ({"grid": {"a": [1]}, "points": []}, "^grid: "), ({"points": "none.csv"}, "^points: "),
        ({"grid": {"a": [1]}, "arguments": ["--out=x"]}, "^arguments: --out has its own argument"),
        ({"grid": {"a": [1]}, "cpus_per_task": 0}, "^cpus_per_task: "), ({"grid": {"a": [1]}, "data": "no"}, "^data: "),
    ):
        with pytest.raises(kumiki.ValidationError, match=words):
            nodes.sweep("wrong", **how)


def test_nodes_that_are_lost_too_often_are_told_and_the_same_call_goes_on(nodes, whole):
    third = nodes.add("third")
    nodes.forget()
    with nodes.loss("third", third) as lost, pytest.raises(kumiki.KumikiError) as told:
        nodes.sweep("lost", grid=GRID, retries=0)
    assert told.value.code == "node_lost" and str(told.value).startswith(f"rows {lost['rows']}: ")
    assert not (nodes.folder / "lost").exists()
    kept = {path.name for path in (nodes.folder / "lost.parts").glob("rows-*")}
    assert kept, "what came back is kept"
    nodes.forget()
    result = nodes.sweep("lost", grid=GRID)
    assert nodes.same("lost", whole) and sum(result.nodes.values()) == 24 - 2 * len(kept)
    again = {"rows-" + rows.replace("..", "-") for _, rows in nodes.begun()}
    assert "rows-" + lost["rows"].replace("..", "-") in again and not again & kept


def test_a_sweep_survives_the_loss_of_a_node_in_its_middle(nodes, whole):
    """The second node makes one part, and is killed within its next: that part is made again by the first one."""
    import ray

    nodes.forget()
    told = []
    with nodes.loss("second", nodes.second) as lost:
        result = nodes.sweep("ray", grid=GRID, on_progress=told.append)
    assert nodes.same("ray", whole)
    assert (result.runs, told[-1].done, told[-1].total) == (24, 24, 24)

    begun = [(node, rows) for node, rows in nodes.begun() if rows not in ("0..0", "rest")]
    rows = lost["rows"]
    # In the middle: the lost node had made a part and was within another one, and rows were left.
    assert [node for node, begun_rows in begun if begun_rows == rows] == ["second", "first"]
    assert lost["begun"] < len(nodes.begun())
    of_second = [one for node, one in begun if node == "second"]
    assert len(of_second) == 2 and of_second[1] == rows
    # Twelve parts of two rows, of which only the held one was begun twice; each row counts for who made it.
    assert len(begun) == 13 and len({one for _, one in begun}) == 12
    assert sorted(result.nodes.values()) == [2, 22]
    # Each node unpacked what was shipped by itself, and once: it had made a part, and read it again for the next.
    assert only_once(nodes, lost="second") == {"first", "second"}
    # The cluster hears of a loss a moment later than the tasks that were on it.
    wait_until(lambda: sum(node["Alive"] for node in ray.nodes()) == 1, "one node is left")


def test_ray_is_asked_for_where_it_is_missing():
    script = """
import sys
sys.modules["ray"] = None
import kumiki
try:
    kumiki.ray.sweep("sma-cross", data="data", instruments="7203.TSE", out="out", grid={"fast": "5:50:5"})
except kumiki.MissingPackageError as error:
    assert 'pip install "$(ls dist/kumiki-*.whl)[ray]"' in str(error), error
else:
    raise AssertionError("it swept")
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=SOURCE)


def test_a_node_unpacks_data_once(tmp_path):
    data, root = tmp_path / "data", tmp_path / "root"
    for folder in (data, root, data / "of others"):
        folder.mkdir()
    (data / "b.csv.gz").write_bytes(b"b" * 100_000)
    (data / "a.csv").write_bytes(b"")
    archive = _ray_node.packed(data)
    os.utime(data / "a.csv", (1, 1))
    assert archive == _ray_node.packed(data), "times count"
    digest, fetched = hashlib.sha256(archive).hexdigest(), []

    def fetch():
        fetched.append(1)
        time.sleep(0.05)
        return archive

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        places = list(threads.map(lambda _: _ray_node.unpacked(root, digest, fetch), range(8)))
    assert len(set(places)) == 1 and fetched == [1]
    assert {path.name: path.read_bytes() for path in places[0].iterdir()} == {"a.csv": b"", "b.csv.gz": b"b" * 100_000}
    with pytest.raises(kumiki.KumikiError, match="not " + "0" * 64):
        _ray_node.unpacked(root, "0" * 64, fetch)
    # What was left over goes, what is in use stays, however many there are.
    for name in ("part-old", "unpack-old", *(f"data-{turn}" for turn in range(6))):
        (root / name).mkdir()
        os.utime(root / name, (1, 1))
    (root / "part-new").mkdir()
    _ray_node.unpacked(root, digest, fetch)
    left = {path.name for path in root.iterdir()}
    assert places[0].name in left and "part-new" in left and not left & {"part-old", "unpack-old"}
    assert len([name for name in left if name.startswith("data-")]) == _ray_node.DATA_FOLDERS_KEPT


@pytest.fixture
def interruptible():
    """A process that was started in the background ignores interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a script of the shell")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("moment", ["mkdtemp", "Popen", "communicate", "kill", "rmtree"])
def test_a_cancelled_task_leaves_nothing(tmp_path, monkeypatch, moment):
    """Ray cancels a task by an interrupt of its main thread, wherever that is; its program ends with it."""
    program, root, begun = tmp_path / "program", tmp_path / "root", tmp_path / "begun"
    # Python reads the interrupt before the program has done anything, or while it is still at it.
    program.write_text(f"#!/bin/sh\necho $$ > {begun}.new && mv {begun}.new {begun}\nexec sleep 600\n")
    program.chmod(0o700)
    owner = {"mkdtemp": tempfile, "rmtree": shutil}.get(moment, subprocess.Popen if moment != "Popen" else subprocess)
    real = getattr(owner, moment)

    def interrupted(*arguments, **named):
        if moment in ("Popen", "mkdtemp"):
            made = real(*arguments, **named)
            _thread.interrupt_main()
            return made
        if moment == "communicate":
            wait_until(begun.exists, "the program has begun")
        _thread.interrupt_main()
        return real(*arguments, **named)

    monkeypatch.setattr(owner, moment, interrupted)
    if moment in ("kill", "rmtree"):
        # Cancelled while it ends.
        monkeypatch.setattr(subprocess.Popen, "communicate", lambda process: 1 / 0)
    task = _ray_node.Task((), "sma-cross", None, None, str(tmp_path), False, str(program), str(root), 1)
    with pytest.raises(KeyboardInterrupt):
        _ray_node.run(task, "0..2", None, "node", bytes)
    assert not list(root.iterdir())
    if begun.exists():
        with pytest.raises(ProcessLookupError):
            os.kill(int(begun.read_text()), 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_unpacking_that_is_cancelled_leaves_nothing(tmp_path, monkeypatch):
    data, root = tmp_path / "data", tmp_path / "root"
    for folder in (data, root):
        folder.mkdir()
    (data / "a.csv").write_bytes(b"12345")
    archive = _ray_node.packed(data)
    monkeypatch.setattr(shutil, "copyfileobj", lambda *_: _thread.interrupt_main())
    with pytest.raises(KeyboardInterrupt):
        _ray_node.unpacked(root, hashlib.sha256(archive).hexdigest(), lambda: archive)
    assert [path.name for path in root.iterdir()] == ["lock"]


def test_too_much_data_are_not_shipped(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_bytes(b"12345")
    monkeypatch.setattr(_ray_node, "SHIPPED_BYTES_MAX", 4)
    with pytest.raises(kumiki.KumikiError, match="has 5 bytes, at most 4 are shipped; .* give shared=True"):
        _ray_node.packed(tmp_path)


def test_rows_are_divided_around_those_that_are_there(tmp_path):
    parts = _ray_driver.Parts(tmp_path / "out")
    assert parts.missing(7, 3) == [(0, 3), (3, 6), (6, 7)] and parts.missing(0, 3) == []
    for first, end in ((2, 4), (6, 7)):
        (parts.folder / f"rows-{first}-{end}").mkdir(parents=True)
    assert parts.missing(7, 3) == [(0, 2), (4, 6)] and parts.names() == ["rows-2-4", "rows-6-7"]


def test_what_comes_back_of_another_sweep_is_refused(tmp_path):
    def files(sha256):
        line = f'{{"sweep_version":5,"strategy":{{"sha256":"{sha256}"}},"checksum":"{sha256}"}}\n'
        manifest = b'{"runs_total": 7, "rank_by": "sharpe", "verify": 10}'
        return {"journal.jsonl": line.encode() + b"{}\n", "sweep.partial.json": manifest}

    parts = _ray_driver.Parts(tmp_path / "out")
    assert parts.count(files("ab")) == 7
    parts.keep(0, 3, files("ab"))
    with pytest.raises(kumiki.KumikiError, match="^rows 3..6 belong to another sweep; the nodes differ in strategy$") as told:
        parts.keep(3, 6, files("cd"))
    assert told.value.code == "nodes_differ" and parts.names() == ["rows-0-3"]
    with pytest.raises(kumiki.KumikiError, match="has parts of another sweep"):
        _ray_driver.Parts(tmp_path / "out").count(files("cd"))


def test_parameters_are_written_as_the_program_reads_them():
    assert _ray_driver.grid_flags({"a": "1:5:2", "b": [1, 0.5, True, "x"], "c": range(2)}) == [
        "--grid", "a=1:5:2", "--grid", "b=1,0.5,true,x", "--grid", "c=0,1"]
    assert _ray_driver.points_bytes([{"a": 1, "b": "x"}, {"a": 2.5, "b": "y"}]) == (
        b'{"a": 1, "b": "x"}\n{"a": 2.5, "b": "y"}\n')
    assert _ray_driver.strategy_of("sma-cross") == ("sma-cross", None)
    with pytest.raises(kumiki.ValidationError, match="^strategy: "):
        _ray_driver.strategy_of(pathlib.Path("nowhere") / "mine.wasm")
