// The browser side of an explorer: a leaderboard, the queries of a system, and what was found for one.

const PAUSE_MS = 250;

function render({ model, el }) {
  const board = model.get("board");
  const rows = [];
  let typing = null;
  let drawn = "";
  let sorted = { column: -1, down: false };
  let ranked = null; // the words of the last list

  const problem = element("p", { class: "searchlab-ex-problem", role: "alert", hidden: "" });
  const status = element("p", { class: "searchlab-ex-small", role: "status" });
  const table = element("table", { class: "searchlab-ex-board" });
  const names = board.ids.map((id, at) => [id, board.names[at]]);
  const system = chooser("system", names, rank);
  const against = chooser("against", [["", "against no other"], ...names.map(([id, name]) => [id, `against ${name}`])], rank);
  const metric = chooser("metric", board.metrics, rank);
  const lang = chooser("language", [["", "every language"], ...board.languages], rank);
  const order = chooser("order", board.orders.map((one) => [one, `${one} first`]), rank);
  const contains = element("input", {
    type: "search", "aria-label": "words of the query", placeholder: "words of the query", dir: "auto",
    oninput() { clearTimeout(typing); typing = setTimeout(rank, PAUSE_MS); },
    // As the field is left, too; then nothing may be new, and the list would begin from the top.
    onchange() { if (contains.value !== ranked) rank(); },
  });
  const list = element("ol", { class: "searchlab-ex-list", onkeydown: stepped });
  const more = element("button", { type: "button", onclick: () => kernel.ask({ do: "more" }) }, "more queries");
  const found = element("div", { class: "searchlab-ex-case" });
  const kept = element("p", { class: "searchlab-ex-small", dir: "auto" });

  const caption = element("details", { class: "searchlab-ex-small" },
    element("summary", {}, "how to read this"), element("p", {}, board.caption));
  el.append(element(
    "div",
    { class: "searchlab-ex", "data-lm-suppress-shortcuts": "true" },
    element("h4", {}, board.title),
    element("div", { class: "searchlab-ex-wide", tabindex: "0", role: "region", "aria-label": "leaderboard" }, table),
    caption,
    element("div", { class: "searchlab-ex-line" }, system, against, metric, lang, order, contains),
    problem, status,
    element("div", { class: "searchlab-ex-both" }, element("div", {}, list, more), found),
    kept,
  ));

  // -- the leaderboard ---------------------------------------------------------------------------

  function number(cell) {
    const digits = /-?\d+(\.\d+)?/.exec(cell);
    return digits ? Number(digits[0]) : null;
  }

  function drawBoard() {
    const order = board.rows.map((_, at) => at);
    const { column, down } = sorted;
    if (column >= 0) {
      const values = board.rows.map((cells) => (board.columns[column] === "system" ? cells[column] : number(cells[column])));
      order.sort((a, b) => {
        // What has no figure stays at the end, whichever way the others go.
        if (values[a] === null || values[b] === null) return (values[a] === null) - (values[b] === null);
        const sign = values[a] < values[b] ? -1 : Number(values[a] > values[b]);
        return down ? -sign : sign;
      });
    }
    const heads = board.columns.map((name, at) => element(
      "th",
      { scope: "col", "aria-sort": at === column ? (down ? "descending" : "ascending") : "none" },
      element("button", { type: "button", onclick: () => sort(at) }, name, element("span", { "aria-hidden": "true" },
        at === column ? (down ? " ▾" : " ▴") : "")),
    ));
    table.replaceChildren(
      element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...order.map(drawSystem)),
    );
  }

  function drawSystem(at) {
    const id = board.ids[at];
    const cells = board.rows[at].map((cell, column) => {
      if (board.columns[column] !== "system") return element("td", {}, cell);
      const shown = String(id === model.get("listing").system);
      return element("th", { scope: "row" },
        element("button", { type: "button", "aria-pressed": shown, onclick: () => { system.value = id; rank(); } }, cell));
    });
    return element("tr", { class: id === board.chosen ? "searchlab-ex-chosen" : "" }, ...cells);
  }

  function sort(column) {
    sorted = { column, down: sorted.column === column ? !sorted.down : board.columns[column].includes("[95") };
    drawBoard();
    table.querySelectorAll("thead button")[column].focus();
  }

  // -- the queries -------------------------------------------------------------------------------

  function rank() {
    clearTimeout(typing);
    ranked = contains.value;
    kernel.ask({
      do: "rank", system: system.value, against: against.value, metric: metric.value, lang: lang.value,
      order: order.value, contains: contains.value,
    });
  }

  function drawRow([queryId, code, text, score, other]) {
    const shown = model.get("case").query_id === queryId;
    const figures = other === null ? score.toFixed(3) : `${score.toFixed(3)} (${signed(score - other)})`;
    const button = element(
      "button",
      { type: "button", "aria-current": String(shown), onclick: () => kernel.ask({ do: "show", query_id: queryId }) },
      element("span", { class: "searchlab-ex-words", lang: code, dir: "auto" }, text),
      element("span", { class: "searchlab-ex-small" }, `${code}  ${figures}`),
    );
    button.dataset.query = queryId;
    return element("li", {}, button);
  }

  function signed(value) { return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`; }

  function stepped(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const buttons = [...list.querySelectorAll("button")];
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    if (next) { next.focus(); next.click(); }
  }

  function drawList() {
    const listing = model.get("listing");
    const { rows: coming, ...asked } = listing;
    const key = JSON.stringify([asked, coming.map(([queryId]) => queryId)]);
    if (key !== drawn) { // else it stays as it is, with the focus in it
      drawn = key;
      if (listing.first === 0) { rows.length = 0; list.replaceChildren(); }
      rows.push(...coming);
      list.append(...coming.map(drawRow));
    }
    const current = model.get("case").query_id;
    for (const button of list.querySelectorAll("button")) {
      button.setAttribute("aria-current", String(button.dataset.query === current));
    }
    status.textContent = `${rows.length.toLocaleString("en")} of ${listing.total.toLocaleString("en")} queries are listed`;
    more.hidden = rows.length >= listing.total;
    [system.value, against.value, metric.value] = [listing.system, listing.against, listing.metric];
    [lang.value, order.value] = [listing.lang, listing.order];
    if (document.activeElement !== contains) contains.value = listing.contains;
  }

  // -- one query ---------------------------------------------------------------------------------

  function drawPhoto(photo, place) {
    const good = photo.grade > 0;
    const grade = photo.grade === null ? "" : ` grade ${photo.grade}`;
    const inner = photo.picture
      ? element("img", { src: photo.picture, alt: photo.words, title: photo.words })
      : element("span", { class: "searchlab-ex-none" }, photo.words);
    const mark = `${place ? `${place}.` : ""}${good ? " ✓" : ""}${grade}`;
    return element("li", good ? { class: "searchlab-ex-good" } : {}, inner, element("small", {}, mark));
  }

  function drawCase() {
    const one = model.get("case");
    if (!one.query_id) { found.replaceChildren(element("p", {}, "no such query")); return; }
    const head = element("div", { class: "searchlab-ex-head" });
    if (one.asked) head.append(element("img", { src: one.asked, alt: "the picture searched by" }));
    head.append(element("h4", { lang: one.lang, dir: "auto" }, one.text),
      element("button", { type: "button", onclick: () => kernel.ask({ do: "keep" }) }, "keep"));
    const strips = one.strips.map((strip) => element("section", { "aria-label": strip.name },
      element("h5", {}, `${strip.name}: ${strip.score.toFixed(3)}`),
      strip.photos.length
        ? element("ol", { class: "searchlab-ex-strip" }, ...strip.photos.map((photo, at) => drawPhoto(photo, at + 1)))
        : element("p", { class: "searchlab-ex-small" }, "no ranking of it is on file")));
    const missed = one.missed.length
      ? [element("section", { "aria-label": "missed" }, element("h5", {}, "not among these, though judged best"),
        element("ol", { class: "searchlab-ex-strip" }, ...one.missed.map((photo) => drawPhoto(photo, 0))))]
      : [];
    found.replaceChildren(head, ...strips, ...missed);
  }

  function draw() {
    problem.textContent = model.get("problem");
    problem.hidden = !problem.textContent;
    const words = model.get("words");
    kept.textContent = words.length ? `kept: ${words.join(" · ")}` : "";
    drawBoard();
    drawCase();
    drawList();
    const sheet = document.getElementById(model.get("sheet_id"));
    if (sheet) sheet.hidden = true;
  }

  const kernel = asker(model, {
    answered: draw,
    unanswered(words) { problem.textContent = words; problem.hidden = false; ranked = null; },
  });
  // A second view of an explorer that was scrolled: its first queries are not in what came last.
  if (model.get("listing").first > 0) kernel.ask({ do: "again" });
  else draw();
  return () => { clearTimeout(typing); kernel.stop(); };
}

export default { render };
