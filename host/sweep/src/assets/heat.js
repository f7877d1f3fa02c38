"use strict";
// The heat map: one cell for each pair of values, drawn on a canvas, read by mouse, finger and keys.

// cividis at ten even steps, dark to light.
const RAMP = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];
const RAMP_RGB = RAMP.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));

const FONT = () => `12px ${getComputedStyle(document.body).fontFamily}`;

function rampColour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP_RGB.length - 1);
  const low = Math.min(Math.floor(at), RAMP_RGB.length - 2);
  const mix = RAMP_RGB[low].map((part, index) => Math.round(part + (RAMP_RGB[low + 1][index] - part) * (at - low)));
  return { css: `rgb(${mix.join(",")})`, dark: (mix[0] * 299 + mix[1] * 587 + mix[2] * 114) / 1000 < 128 };
}

// `grid` has xs and ys (labels), xName and yName, and cell(x, y) -> { value, failed } or null.
class HeatMap {
  constructor(host, readout, tellCell) {
    this.host = host;
    this.readout = readout;
    this.tellCell = tellCell;
    this.canvas = document.createElement("canvas");
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    host.append(this.canvas, this.tip);
    this.at = null;
    host.addEventListener("pointermove", (event) => this.point(event));
    host.addEventListener("pointerdown", (event) => this.point(event));
    host.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") this.leave(); });
    host.addEventListener("keydown", (event) => this.key(event));
    const sizes = new ResizeObserver(() => this.draw());
    sizes.observe(host);
    const gone = new AbortController();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(), { signal: gone.signal });
    leaving.push(() => { sizes.disconnect(); gone.abort(); });
  }

  show(grid) {
    this.grid = grid;
    this.at = null;
    this.leave();
    this.draw();
  }

  layout(pen, width) {
    const { xs, ys } = this.grid;
    pen.font = FONT();
    const widest = (labels) => Math.max(...labels.map((label) => pen.measureText(label).width));
    const left = Math.min(Math.ceil(widest(ys)) + 30, Math.max(width * 0.34, 64));
    const cellWidth = (width - left - 2) / xs.length;
    const wanted = Math.min(Math.max(420 / ys.length, 4), 46);
    const cellHeight = Math.max(Math.min(wanted, Math.max(cellWidth, 22)), Math.min(wanted, 18));
    return { left, top: 4, cellWidth, cellHeight, xLabel: widest(xs), bottom: 46 };
  }

  draw() {
    if (!this.grid || !this.host.clientWidth) return;
    const width = this.host.clientWidth;
    const pen = this.canvas.getContext("2d");
    const box = this.layout(pen, width);
    this.box = box;
    const { xs, ys } = this.grid;
    const height = Math.round(box.top + ys.length * box.cellHeight + box.bottom);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    // A canvas forgets its font when its size is set.
    pen.font = FONT();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    pen.clearRect(0, 0, width, height);
    this.cells(pen, box, colour);
    this.labels(pen, box, colour, width);
    this.marks(pen, box, colour);
  }

  cells(pen, box, colour) {
    const gap = box.cellWidth > 8 && box.cellHeight > 8 ? 1 : 0;
    const { xs, ys, share, write } = this.grid;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let y = 0; y < ys.length; y += 1) {
      for (let x = 0; x < xs.length; x += 1) {
        const cell = this.grid.cell(x, y);
        const left = box.left + x * box.cellWidth;
        const top = box.top + y * box.cellHeight;
        const [width, height] = [box.cellWidth - gap, box.cellHeight - gap];
        if (cell && cell.value !== null) {
          const fill = rampColour(share(cell.value));
          pen.fillStyle = fill.css;
          pen.fillRect(left, top, width, height);
          const text = write(cell.value);
          if (height >= 16 && pen.measureText(text).width + 6 < width) {
            pen.fillStyle = fill.dark ? "#fff" : "#111";
            pen.fillText(text, left + width / 2, top + height / 2 + 0.5);
          }
        } else {
          pen.fillStyle = colour("--grid");
          pen.fillRect(left, top, width, height);
          if (cell && cell.failed && width > 7 && height > 7) {
            pen.strokeStyle = colour("--loss");
            pen.lineWidth = 1.3;
            const [middleX, middleY, arm] = [left + width / 2, top + height / 2, 3.5];
            pen.beginPath();
            pen.moveTo(middleX - arm, middleY - arm); pen.lineTo(middleX + arm, middleY + arm);
            pen.moveTo(middleX + arm, middleY - arm); pen.lineTo(middleX - arm, middleY + arm);
            pen.stroke();
          }
        }
      }
    }
  }

  labels(pen, box, colour, width) {
    const { xs, ys, xName, yName } = this.grid;
    pen.fillStyle = colour("--muted");
    const bottom = box.top + ys.length * box.cellHeight;
    pen.textBaseline = "top";
    pen.textAlign = "center";
    const everyX = Math.max(1, Math.ceil((box.xLabel + 10) / box.cellWidth));
    xs.forEach((label, x) => {
      if (x % everyX === 0) pen.fillText(label, box.left + (x + 0.5) * box.cellWidth, bottom + 5);
    });
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const everyY = Math.max(1, Math.ceil(14 / box.cellHeight));
    ys.forEach((label, y) => {
      if (y % everyY === 0) pen.fillText(label, box.left - 6, box.top + (y + 0.5) * box.cellHeight, box.left - 28);
    });
    pen.font = `600 ${pen.font}`;
    pen.fillStyle = colour("--text");
    pen.textAlign = "center";
    pen.textBaseline = "top";
    pen.fillText(xName, box.left + (width - box.left) / 2, bottom + 25, width - box.left);
    pen.save();
    pen.translate(2, box.top + (ys.length * box.cellHeight) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(yName, 0, 0, Math.max(ys.length * box.cellHeight, 40));
    pen.restore();
  }

  marks(pen, box, colour) {
    const outline = (place, line, css) => {
      pen.lineWidth = line;
      pen.strokeStyle = css;
      pen.strokeRect(box.left + place[0] * box.cellWidth - 0.5, box.top + place[1] * box.cellHeight - 0.5, box.cellWidth, box.cellHeight);
    };
    if (this.grid.best) {
      outline(this.grid.best, 5, "#fff");
      outline(this.grid.best, 2.5, "#000");
    }
    if (this.at) {
      outline(this.at, 4, colour("--surface"));
      outline(this.at, 2, colour("--text"));
    }
  }

  point(event) {
    if (!this.box) return;
    const bounds = this.host.getBoundingClientRect();
    const x = Math.floor((event.clientX - bounds.left - this.box.left) / this.box.cellWidth);
    const y = Math.floor((event.clientY - bounds.top - this.box.top) / this.box.cellHeight);
    const inside = x >= 0 && y >= 0 && x < this.grid.xs.length && y < this.grid.ys.length;
    if (inside) this.move(x, y); else this.leave();
  }

  key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step || !this.grid) return;
    event.preventDefault();
    const [x, y] = this.at || this.grid.best || [0, 0];
    const first = !this.at;
    const clamp = (value, length) => Math.min(Math.max(value, 0), length - 1);
    this.move(clamp(x + (first ? 0 : step[0]), this.grid.xs.length), clamp(y + (first ? 0 : step[1]), this.grid.ys.length));
  }

  move(x, y) {
    if (this.at && this.at[0] === x && this.at[1] === y) return;
    this.at = [x, y];
    this.draw();
    const lines = this.tellCell(this.grid.cell(x, y), x, y);
    this.readout.replaceChildren(...lines.map((line) => pair(line)));
    this.tip.replaceChildren(...lines.slice(0, 7).map((line) => { const div = document.createElement("div"); div.append(pair(line)); return div; }));
    this.tip.hidden = false;
    const left = this.box.left + (x + 1) * this.box.cellWidth + 10;
    const room = this.host.clientWidth - this.tip.offsetWidth;
    const flipped = this.box.left + x * this.box.cellWidth - this.tip.offsetWidth - 10;
    const place = left <= room ? left : flipped >= 0 ? flipped : Math.max(0, room);
    let top = this.box.top + y * this.box.cellHeight;
    if (left > room && flipped < 0) top += this.box.cellHeight + 8;
    this.tip.style.transform = `translate(${Math.round(place)}px, ${Math.round(top)}px)`;
  }

  leave() {
    this.tip.hidden = true;
    if (this.at) {
      this.at = null;
      this.draw();
    }
  }
}

function pair([name, value]) {
  const span = document.createElement("span");
  const bold = document.createElement("b");
  bold.textContent = value;
  span.append(name ? `${name} ` : "", bold);
  return span;
}
