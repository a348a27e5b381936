// The browser side of a search box: it draws `columns` and sends what is asked; Python searches.

const PAUSE_MS = 250;

function render({ model, el }) {
  const pictures = pictureMaker();
  let typing = null;
  let picture = null;
  let searched = null; // the words of the last search
  const grids = [];

  const choices = model.get("choices");
  const text = element("input", {
    type: "search",
    class: "searchlab-box-text",
    placeholder: "what the photo shows, in any language",
    "aria-label": "what the photo shows",
    dir: "auto",
    value: model.get("typed"),
    oninput: soon,
    // As the field is left, too; then nothing may be new, and a search would begin from the top.
    onchange: () => { if (text.value !== searched) now(); },
  });
  const file = element("input", { type: "file", accept: "image/*", hidden: "", onchange: () => take(file.files[0]) });
  const chosen = element("span", { class: "searchlab-box-picture" });
  const orientation = chooser("orientation", [["", "any shape"], ...choices.orientation], now);
  const color = chooser("colour", [["", "any colour"], ...choices.color], now);
  const tolerance = element("input", {
    type: "range", min: "0", max: "120", value: "30", "aria-label": "tolerance of the colour", onchange: now,
  });
  const least = element("input", {
    type: "number", min: "0", max: "1", step: "0.05", value: "0", "aria-label": "least score", onchange: now,
  });
  const sort = chooser("order", ["relevance", "newest"], now);
  const status = element("p", { class: "searchlab-box-status", role: "status" });
  const problem = element("p", { class: "searchlab-box-problem", role: "alert" });
  const results = element("div", { class: "searchlab-both" });
  const more = element("button", { type: "button", onclick: () => kernel.ask({ do: "more" }) }, "more photos");
  const kept = element("p", { class: "searchlab-small" });

  const root = element(
    "div",
    {
      class: "searchlab-page searchlab-box",
      "data-lm-suppress-shortcuts": "true",
      ondragover: (event) => { event.preventDefault(); root.classList.add("searchlab-box-over"); },
      ondragleave: () => root.classList.remove("searchlab-box-over"),
      ondrop: dropped,
    },
    element("div", { class: "searchlab-box-line" }, text,
      element("button", { type: "button", onclick: () => file.click() }, "a picture…"), file, chosen,
      element("button", { type: "button", onclick: () => kernel.ask({ do: "keep" }) }, "keep")),
    element("div", { class: "searchlab-box-line searchlab-small" }, orientation, color,
      element("label", {}, "tolerance ", tolerance), element("label", {}, "score from ", least), sort),
    problem, status, results, more, kept,
  );
  el.append(root);

  function soon() { clearTimeout(typing); typing = setTimeout(now, PAUSE_MS); }

  function now() {
    clearTimeout(typing);
    const message = {
      do: "search",
      text: text.value,
      orientation: orientation.value,
      color: color.value,
      tolerance: Number(tolerance.value),
      least: Number(least.value),
      sort: sort.value,
    };
    if (!message.text.trim() && !picture && !message.orientation && !message.color) return;
    searched = text.value;
    status.textContent = "searching…";
    kernel.ask(message, picture ? [picture] : []);
  }

  function dropped(event) {
    event.preventDefault();
    root.classList.remove("searchlab-box-over");
    take(event.dataTransfer.files[0]);
  }

  async function take(one) {
    if (!one) return;
    picture = await one.arrayBuffer();
    const off = element("button", { type: "button", "aria-label": `without ${one.name}`, onclick: clear }, "×");
    chosen.replaceChildren(element("span", { dir: "auto" }, one.name), off);
    now();
  }

  function clear() {
    picture = null;
    file.value = "";
    chosen.replaceChildren();
    now();
  }

  function card(photo, place) {
    const words = photo.words || "a photo";
    return element("figure", { class: "searchlab-card" },
      element("div", { class: "searchlab-frame" }, pictures.make(photo.picture, words)),
      element("figcaption", {},
        element("span", { class: "searchlab-name", dir: "auto" }, element("b", {}, `${place}. `), words),
        element("span", { class: "searchlab-small" }, `${photo.score.toFixed(2)} `,
          element("span", { class: "searchlab-box-both" }))));
  }

  function column(one, number) {
    if (one.first === 1) grids[number] = element("div", { class: "searchlab-grid" });
    const grid = grids[number];
    if (grid.childElementCount < one.first + one.photos.length - 1) {
      grid.append(...one.photos.map((photo, offset) => card(photo, one.first + offset)));
    }
    [...grid.children].forEach((figure, at) => {
      const place = one.elsewhere[at];
      figure.querySelector(".searchlab-box-both").textContent = place ? `also ${place}. there` : "";
    });
    const total = element("p", { class: "searchlab-small", title: one.plan },
      `${grid.childElementCount.toLocaleString("en")} of ${one.total.toLocaleString("en")} photos`);
    return element("section", { "aria-label": one.name },
      element("h4", { class: "searchlab-box-name" }, one.name), total, grid);
  }

  function draw() {
    const columns = model.get("columns");
    if (columns.every((one) => one.first === 1)) pictures.forget();
    problem.textContent = model.get("problem");
    problem.hidden = !problem.textContent;
    if (!problem.textContent) results.replaceChildren(...columns.map(column));
    const shown = grids.map((grid) => grid.childElementCount);
    status.textContent = columns.length ? `${Math.max(...shown)} photos are shown` : "";
    more.hidden = !columns.some((one) => one.more);
    const texts = model.get("texts");
    kept.textContent = texts.length ? `kept: ${texts.join(" · ")}` : "";
    const sheet = document.getElementById(model.get("sheet_id"));
    if (sheet) sheet.hidden = true;
  }

  const kernel = asker(model, {
    answered: draw,
    unanswered(words) { problem.textContent = words; problem.hidden = false; searched = null; },
  });
  const watch = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && !more.hidden && !kernel.isBusy()) kernel.ask({ do: "more" });
  }, { rootMargin: "200px" });
  watch.observe(more);
  // A second view of a box that was scrolled: its first photos are not in what came last.
  if (model.get("columns").some((one) => one.first > 1)) kernel.ask({ do: "again" });
  else draw();
  return () => { watch.disconnect(); clearTimeout(typing); kernel.stop(); pictures.forget(); };
}

export default { render };
