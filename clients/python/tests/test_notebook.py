"""The notebook of examples/python, in a kernel of Jupyter as people run it."""

import csv
import pathlib
import re

import pytest
from conftest import ROOT, SOURCE, program
from engine_process import component

#: Asked after the last cell: what the plot of the price shows of itself.
ASKED = """
print([text.get_text() for text in axes.get_legend().get_texts()], [len(line.get_xdata()) for line in axes.lines])
"""


def test_the_notebook_runs(desk, market, monkeypatch, tmp_path):
    for package in ("ipykernel", "matplotlib", "pandas", "pyarrow"):
        pytest.importorskip(package)
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(ROOT / "examples" / "python" / "replay.ipynb", 4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells), "it is kept without outputs"
    folder, _ = desk
    for name, value in {
        "PYTHONPATH": SOURCE, "HOME": tmp_path, "KUMIKI_DATA": market.folder, "KUMIKI_PROGRAM": program(),
        "KUMIKI_CACHE": folder / "cache", "KUMIKI_STRATEGIES": pathlib.Path(component("sma-cross")).parent,
        "MPLCONFIGDIR": tmp_path / "matplotlib", "IPYTHONDIR": tmp_path / "ipython", "JUPYTER_RUNTIME_DIR": tmp_path,
    }.items():
        monkeypatch.setenv(name, str(value))
    for name in ("KUMIKI_ENGINE_TOKEN", "MPLBACKEND"):
        monkeypatch.delenv(name, raising=False)
    asked = nbformat.v4.new_code_cell(ASKED)
    notebook.cells.append(asked)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=where).execute()

    load, run, equity, price, table, _ = [cell.outputs for cell in cells]
    for bar, text in (load, run):
        assert "value='100'" in bar.data["text/html"], "the bar is full when the work is done"
        assert text.name == "stdout"
    trades = len(market.trades(market.instruments[0]))
    assert load[1].text == f"{trades:,} trades of 3 days\n"
    run_id, = re.findall(r"^run (\S+): completed at ", run[1].text)
    with open(folder / "cache" / "runs" / run_id / "fills.csv", newline="", encoding="utf-8") as file:
        sides = [row["side"] for row in csv.DictReader(file)]
    for (plot,) in (equity, price):
        assert len(plot.data["image/png"]) > 10_000
    with open(folder / "cache" / "runs" / run_id / "marks.csv", encoding="utf-8") as file:
        minutes = len(file.readlines()) - 1
    legend = ["price", f"BUY: {sides.count('BUY')}", f"SELL: {sides.count('SELL')}"]
    assert min(map(sides.count, ("BUY", "SELL"))) > 0 and asked.outputs[0].text == f"{legend} [{minutes}]\n"
    assert "<table" in table[0].data["text/html"]
