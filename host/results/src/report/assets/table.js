"use strict";

// Tables of tens of thousands of rows: one page of them is in the document at a time.

const PAGE_ROWS = 50;
/** Longer texts are folded. */
const FOLD_LETTERS = 240;

/**
 * A table with paging and a filter.
 *
 * `columns` are `{head, text(row), number?, node?(row, text), wide?}`: `text` gives what is shown and
 * searched, `node` may wrap it into an element. A column without any text is left out; one that is `quoted`
 * has words of the strategy, which stay as they are in every language.
 */
class PagedTable {
  constructor(section, { name, columns, count, total, file }) {
    this.columns = columns.filter((column) => someText(column, count));
    this.count = count;
    this.rows = null; // null: all rows
    this.page = 0;
    this.only = null;
    this.build(section, name, total, file);
    this.draw();
  }

  build(section, name, total, file) {
    this.filter = el("input");
    this.filter.type = "search";
    this.filter.id = `${section.id}-filter`;
    this.filter.placeholder = t("filterWords");
    this.filter.autocomplete = "off";
    this.filter.spellcheck = false;
    let waiting = 0;
    this.filter.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.search(), 120);
    });
    const label = el("label", "", t("filter"));
    label.htmlFor = this.filter.id;
    this.chip = button("", () => this.showOnly(null), "chip");
    this.chip.hidden = true;
    this.state = el("span", "state");
    this.state.setAttribute("role", "status");
    this.first = button(t("firstPage"), () => this.turnTo(0));
    this.previous = button(t("previousPage"), () => this.turnTo(this.page - 1));
    this.next = button(t("nextPage"), () => this.turnTo(this.page + 1));
    this.last = button(t("lastPage"), () => this.turnTo(Infinity));
    const pager = el("span", "pager", this.first, this.previous, this.next, this.last);
    section.append(el("div", "toolbar", label, this.filter, this.chip, this.state, pager));
    if (this.count < total) {
      section.append(el("p", "notice",
        t("firstRows", { count: grouped(this.count), total: grouped(total), file })));
    }
    const head = el("tr");
    for (const column of this.columns) {
      const cell = el("th", classOf(column), column.head);
      cell.scope = "col";
      head.append(cell);
    }
    this.body = el("tbody");
    const table = el("table", "", el("caption", "unseen", name), el("thead", "", head), this.body);
    const frame = el("div", "scroll", table);
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", t("tableOf", { name }));
    section.append(frame);
  }

  /** Shows the rows that `accept` takes, under a name; null for all. */
  showOnly(only) {
    this.only = only;
    this.filter.value = "";
    this.chip.hidden = only === null;
    if (only) {
      this.chip.textContent = t("onlyShown", { name: only.name });
      this.chip.setAttribute("aria-label", t("onlyShownLabel", { name: only.name }));
    }
    this.search();
  }

  search() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0 && this.only === null) {
      this.rows = null;
    } else {
      this.rows = [];
      for (let row = 0; row < this.count; row++) {
        if (this.only && !this.only.accept(row)) continue;
        if (words.length > 0) {
          const text = this.searched(row);
          if (!words.every((one) => text.includes(one))) continue;
        }
        this.rows.push(row);
      }
    }
    this.turnTo(0);
  }

  /** What a row is searched for; made when it is first needed. Numbers match with and without
   * their separators. */
  searched(row) {
    this.texts ??= new Array(this.count);
    return (this.texts[row] ??= this.columns
      .map((column) => {
        const text = column.text(row) ?? "";
        return column.number ? `${text} ${text.replaceAll(",", "").replaceAll(MINUS, "-")}` : text;
      })
      .join("\n")
      .toLowerCase());
  }

  turnTo(page) {
    const pages = Math.max(1, Math.ceil(this.length() / PAGE_ROWS));
    this.page = Math.min(Math.max(0, page), pages - 1);
    this.draw();
  }

  length() {
    return this.rows === null ? this.count : this.rows.length;
  }

  draw() {
    const length = this.length();
    const from = this.page * PAGE_ROWS;
    const to = Math.min(length, from + PAGE_ROWS);
    const lines = [];
    for (let place = from; place < to; place++) {
      lines.push(this.line(this.rows === null ? place : this.rows[place]));
    }
    this.body.replaceChildren(...lines);
    const some = length === 0 ? t("noRows") : t("rowsShown", { from: grouped(from + 1), to: grouped(to), count: grouped(length) });
    this.state.textContent = this.rows === null ? some : t("rowsInAll", { some, count: grouped(this.count) });
    this.first.disabled = this.previous.disabled = from === 0;
    this.next.disabled = this.last.disabled = to >= length;
  }

  line(row) {
    const line = el("tr");
    for (const column of this.columns) {
      const text = column.text(row);
      const content = text === null || text === "" ? null : column.node ? column.node(row, text) : folded(text);
      line.append(el("td", classOf(column), content));
    }
    return line;
  }
}

function classOf(column) {
  return [column.number ? "number" : "", column.wide ? "wide" : "", column.plain ? "plain" : "", column.quoted ? "data" : ""].join(" ").trim();
}

function someText(column, count) {
  if (!column.optional) return true;
  for (let row = 0; row < count; row++) {
    const text = column.text(row);
    if (text !== null && text !== "" && text !== column.boring) return true;
  }
  return false;
}

/** A long text behind its beginning. */
function folded(text) {
  if (text.length <= FOLD_LETTERS) return text;
  const begin = [...text.slice(0, FOLD_LETTERS - 60)].join("").replace(/\s+\S*$/, "");
  return el("details", "", el("summary", "", `${begin}\u2026`), el("div", "", text));
}

/** A two-column table of names and values. */
function pairs(name, entries) {
  const body = el("tbody");
  for (const [key, value] of entries) {
    const head = el("th", "", key);
    head.scope = "row";
    body.append(el("tr", "", head, el("td", "", value)));
  }
  return el("div", "scroll", el("table", "pairs", el("caption", "unseen", name), body));
}
