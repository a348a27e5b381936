// The browser side of a grid of photos to grade: it draws `view` and sends what the judge does; Python decides.

const PATIENCE_MS = 3000;
const UNREACHABLE = "Nothing was recorded: the notebook's kernel is busy or stopped. Run its cells to go on judging.";

function render({ model, el }) {
  const pictures = pictureMaker();
  let drawn = null; // the pictures that stand in `images`
  let images = [];
  let asked = null;
  let place = -1;
  let current = 0; // which of the photos the keys are for
  let unreachable = false;

  // JupyterLab takes single keys for itself unless told not to.
  const root = element("div", {
    class: "searchlab-judging",
    tabindex: "0",
    role: "group",
    "aria-label": "photos to grade",
    "data-lm-suppress-shortcuts": "true",
    onkeydown: pressed,
  });
  el.append(root);

  const kernel = asker(model, {
    patience: PATIENCE_MS,
    atOnce: true, // every choice counts
    answered() { if (unreachable) { unreachable = false; draw(); } },
    unanswered() { unreachable = true; draw(); },
  });

  function send(message) {
    kernel.ask({ place: model.get("view").place, ...message });
  }

  function grade(at, choice) {
    const { number } = model.get("view").photos[at];
    send(choice === null ? { do: "skip", number } : { do: "choose", number, choice });
    current = Math.min(at + 1, model.get("view").photos.length - 1);
    draw();
  }

  function columns() {
    const shown = [...root.querySelectorAll("li")];
    return shown.filter((one) => one.offsetTop === shown[0].offsetTop).length || 1;
  }

  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const view = model.get("view");
    const choice = view.choices.find(([value]) => String(value) === event.key);
    const right = document.dir === "rtl" ? -1 : 1;
    const steps = { ArrowLeft: -right, ArrowRight: right, ArrowUp: -columns(), ArrowDown: columns() };
    if (choice) grade(current, choice[0]);
    else if (event.key === "s") grade(current, null);
    else if (event.key === "r") send({ do: "rest", choice: 0 });
    else if (event.key === "u") send({ do: "undo" });
    else if (event.key === "p") send({ do: "back" });
    else if (event.key === "n") send({ do: "next" });
    else if (event.key in steps) {
      current = Math.min(Math.max(current + steps[event.key], 0), view.photos.length - 1);
      draw();
      root.querySelectorAll("li")[current].scrollIntoView({ block: "nearest" });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function button(label, key, onclick) {
    return element("button", { type: "button", "aria-keyshortcuts": key, onclick }, element("kbd", {}, key), ` ${label}`);
  }

  function drawBar(view) {
    const skipped = view.skipped ? `, ${view.skipped} skipped` : "";
    return element("div", { class: "searchlab-judging-bar" },
      element("progress", { value: view.done, max: view.total, "aria-label": "judged" }),
      element("span", { role: "status" },
        `${view.done} of ${view.total} photos, query ${view.place + 1} of ${view.n_queries}${skipped}`));
  }

  function drawQuery(view, asked) {
    const words = element("span", { class: "searchlab-judging-query", dir: "auto" }, view.query);
    if (view.lang) words.lang = view.lang;
    const line = element("div", { class: "searchlab-judging-asked" }, words,
      element("span", { class: "searchlab-judging-small" }, view.lang));
    if (asked) line.prepend(asked);
    return line;
  }

  function drawPhoto(view, photo, at) {
    const marks = [...view.choices.map((one) => [...one, String(one[0])]), [null, "skip", "s"]].map(([value, name, key]) => element(
      "button",
      {
        type: "button",
        tabindex: at === current ? "0" : "-1",
        title: name,
        "aria-label": `${key} ${name}, photo ${at + 1}`,
        "aria-pressed": String(photo.judged && photo.chosen === value),
        onclick(event) { event.stopPropagation(); grade(at, value); },
      },
      key,
    ));
    const item = element("li", { class: photo.judged ? "searchlab-judging-judged" : "", onclick: () => choose(at) },
      element("div", { class: "searchlab-judging-frame" }, images[at]),
      element("div", { class: "searchlab-judging-marks" }, ...marks));
    if (at === current) item.setAttribute("aria-current", "true");
    return item;
  }

  function choose(at) {
    if (at === current) return;
    current = at;
    draw();
  }

  function draw() {
    const view = model.get("view");
    const sent = model.get("pictures");
    if (drawn !== sent) {
      pictures.forget();
      drawn = sent;
      images = sent.photos.map((bytes, at) => pictures.make(bytes, `photo ${at + 1}`));
      asked = sent.asked?.byteLength ? pictures.make(sent.asked, "the picture searched by") : null;
    }
    if (place !== view.place) {
      place = view.place;
      current = Math.max(0, view.photos.findIndex((photo) => !photo.judged));
    }
    const hadFocus = root.contains(document.activeElement);
    const problem = unreachable ? UNREACHABLE : model.get("problem");
    const open = view.photos.filter((photo) => !photo.judged).length;
    root.replaceChildren(
      drawBar(view),
      ...(problem ? [element("p", { class: "searchlab-judging-problem", role: "alert" }, problem)] : []),
      drawQuery(view, asked),
      element("ol", { class: "searchlab-judging-grid" }, ...view.photos.map((photo, at) => drawPhoto(view, photo, at))),
      element("p", { class: "searchlab-judging-small" },
        `${view.choices.map(([value, name]) => `${value} ${name}`).join(", ")}, s skip; arrows move`),
      element("div", { class: "searchlab-judging-choices searchlab-judging-moves" },
        button(`the other ${open} are ${view.choices[0][1]}`, "r", () => send({ do: "rest", choice: view.choices[0][0] })),
        button("undo", "u", () => send({ do: "undo" })),
        button("previous query", "p", () => send({ do: "back" })),
        button("next query", "n", () => send({ do: "next" })),
        element("span", { class: "searchlab-judging-hint" }, "click anywhere here to use the keys")),
    );
    // The button that was clicked is gone; without this the next key would go to the notebook.
    if (hadFocus) root.focus({ preventScroll: true });
    const sheet = document.getElementById(model.get("sheet_id"));
    if (sheet) sheet.hidden = true;
  }

  model.on("change:view", draw);
  model.on("change:problem", draw);
  draw();
  return () => { kernel.stop(); pictures.forget(); };
}

export default { render };
