// The browser side of a judging session: it draws `view` and sends what the judge does; Python decides.
// All text is set as text, never as markup: queries are other people's words.

const PATIENCE_MS = 3000;
const UNREACHABLE = "Nothing was recorded: the notebook's kernel is busy or stopped. Run its cells to go on judging.";
const KEYS = {
  grades: { 0: 0, 1: 1, 2: 2, 3: 3 },
  preferences: { 1: "left", 0: "tie", 2: "right" },
};

function render({ model, el }) {
  let addresses = [];
  let unreachable = false;

  // JupyterLab takes single keys for itself unless told not to.
  const root = element("div", {
    class: "searchlab-judging",
    tabindex: "0",
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
    kernel.ask({ number: model.get("view").number, ...message });
  }

  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const choice = (KEYS[model.get("view").what] ?? {})[event.key];
    if (choice !== undefined) send({ do: "choose", choice });
    else if (event.key === "s") send({ do: "skip" });
    else if (event.key === "u") send({ do: "undo" });
    else if (event.key === "ArrowLeft") send({ do: "back" });
    else if (event.key === "ArrowRight") send({ do: "next" });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function picture(bytes, alt) {
    if (!bytes || !bytes.byteLength) {
      return element("span", { class: "searchlab-judging-none" }, "no picture");
    }
    const address = URL.createObjectURL(new Blob([bytes], { type: "image/webp" }));
    addresses.push(address);
    return element("img", { src: address, alt });
  }

  function button(label, key, message, chosen = false) {
    return element(
      "button",
      {
        type: "button",
        "aria-keyshortcuts": key,
        "aria-pressed": String(chosen),
        onclick: () => send(message),
      },
      element("kbd", {}, key),
      ` ${label}`,
    );
  }

  function bar(view) {
    const open = view.total - view.done;
    const skipped = view.skipped ? `, ${view.skipped} skipped` : "";
    return element(
      "div",
      { class: "searchlab-judging-bar" },
      element("progress", { value: view.done, max: view.total, "aria-label": "judged" }),
      element("span", { role: "status" }, `${view.done} of ${view.total}, ${open} left${skipped}`),
    );
  }

  function queryLine(scene) {
    const words = element("span", { class: "searchlab-judging-query", dir: "auto" }, scene.query);
    if (scene.lang) words.lang = scene.lang;
    const line = element("div", { class: "searchlab-judging-asked" });
    if (scene.asked?.byteLength) line.append(picture(scene.asked, "the picture searched by"));
    line.append(words, element("span", { class: "searchlab-judging-small" },
      [scene.lang, scene.place].filter(Boolean).join(", ")));
    return line;
  }

  function sides(scene) {
    const names = scene.sides.length === 2 ? ["left", "right"] : ["photo to grade"];
    return element(
      "div",
      { class: `searchlab-judging-sides searchlab-judging-${scene.sides.length}` },
      ...scene.sides.map((photos, side) =>
        element("div", { class: "searchlab-judging-side", role: "group", "aria-label": names[side] },
          ...photos.map((bytes, place) => picture(bytes, `${names[side]}, ${place + 1}`)))),
    );
  }

  function choices(view) {
    const keys = Object.entries(KEYS[view.what] ?? {});
    const buttons = view.choices.map(([value, name]) => {
      const key = keys.find(([, choice]) => choice === value)?.[0] ?? "";
      const chosen = view.judged && view.chosen === value;
      return button(name, key, { do: "choose", choice: value }, chosen);
    });
    const skipped = view.judged && view.chosen === null;
    return element("div", { class: "searchlab-judging-choices" }, ...buttons,
      button("skip", "s", { do: "skip" }, skipped));
  }

  function moves() {
    return element(
      "div",
      { class: "searchlab-judging-choices searchlab-judging-moves" },
      button("undo", "u", { do: "undo" }),
      button("back", "←", { do: "back" }),
      button("next", "→", { do: "next" }),
      element("span", { class: "searchlab-judging-hint" }, "click anywhere here to use the keys"),
    );
  }

  function ended(view) {
    const open = view.total - view.done;
    return open ? `This is the end of the list; ${open} not judged yet.` : "All judged. Thank you.";
  }

  function draw() {
    const view = model.get("view");
    addresses.forEach((address) => URL.revokeObjectURL(address));
    addresses = [];
    const hadFocus = root.contains(document.activeElement);
    const problem = unreachable ? UNREACHABLE : model.get("problem");
    const parts = [bar(view)];
    if (problem) parts.push(element("p", { class: "searchlab-judging-problem", role: "alert" }, problem));
    if (view.scene) parts.push(queryLine(view.scene), sides(view.scene), choices(view), moves());
    else parts.push(element("p", { class: "searchlab-judging-query" }, ended(view)), moves());
    root.replaceChildren(...parts);
    // The button that was clicked is gone; without this the next key would go to the notebook.
    if (hadFocus) root.focus({ preventScroll: true });
    const sheet = document.getElementById(model.get("sheet_id"));
    if (sheet) sheet.hidden = true;
  }

  model.on("change:view", draw);
  model.on("change:problem", draw);
  draw();
  return () => kernel.stop() || addresses.forEach((address) => URL.revokeObjectURL(address));
}

export default { render };
