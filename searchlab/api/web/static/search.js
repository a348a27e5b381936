// What a script adds to the search page, which works without it: results that change in place, a
// picture that is dropped or pasted, photos that follow as one scrolls, suggestions, and a picker for
// the exact shade.

import { followPages } from "./following.js";
import { showCopy, takePictures } from "./pictures.js";
import { swapSearches } from "./swapping.js";

const form = document.getElementById("search");

// Addresses without what is empty or as it is by itself: the server would lead there anyway, one
// round trip later.
form.addEventListener("formdata", (event) => {
  for (const [name, value] of [...event.formData.entries()]) {
    if (value === "" || form.elements[name].dataset?.rest === value) event.formData.delete(name);
  }
});

function showRange() {
  for (const output of document.querySelectorAll("output[for]")) {
    const input = document.getElementById(output.htmlFor.value);
    input.addEventListener("input", () => { output.value = `${Math.round(100 * input.value)} %`; });
  }
}

// One colour at a time: a family leaves out the shade, and the other way round.
function pickShade() {
  const text = document.getElementById("f-hex");
  const picker = Object.assign(document.createElement("input"), { type: "color", className: "shade", value: text.value || "#1f6f8b" });
  picker.setAttribute("aria-label", "Pick the exact shade");
  const row = document.createElement("div");
  row.className = "with-shade";
  text.replaceWith(row);
  row.append(picker, text);
  const families = [...document.querySelectorAll('input[name="color_name"]')];
  const chooseShade = () => { families.find((family) => family.value === "").checked = true; };
  picker.addEventListener("input", () => { text.value = picker.value; chooseShade(); });
  text.addEventListener("input", () => {
    if (text.validity.valid && text.value) picker.value = text.value;
    chooseShade();
  });
  for (const family of families) {
    family.addEventListener("change", () => { if (family.value) text.value = ""; });
  }
}

function suggestPhotographers() {
  const input = document.getElementById("f-photographer");
  const list = document.getElementById("photographers");
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    if (!input.value.trim()) return;
    waiting = setTimeout(async () => {
      const answer = await fetch(new URL(`photographers?q=${encodeURIComponent(input.value)}`, form.action));
      if (!answer.ok) return;
      list.replaceChildren(...(await answer.json()).map(([username, name, count]) =>
        Object.assign(document.createElement("option"), { value: username, label: `${name} (${count})` })));
    }, 150);
  });
}

// "/" leads to the search field, as on many sites.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    document.getElementById("q").focus();
  }
});
// What the browser finds wrong in a closed panel it could not point at.
document.addEventListener("invalid", (event) => {
  const panel = event.target.closest("details");
  if (panel) panel.open = true;
}, true);
document.addEventListener("click", (event) => {
  const open = document.querySelector("details.by-picture[open]");
  if (open && !open.contains(event.target)) open.open = false;
});

// The last day is none before the first.
function orderDays() {
  const [after, before] = ["f-after", "f-before"].map((id) => document.getElementById(id));
  if (!after) return;
  const order = () => { before.min = after.value; };
  after.addEventListener("input", order);
  order();
}

function furnish() {
  orderDays();
  showRange();
  pickShade();
  suggestPhotographers();
  showCopy();
}

// It measures the rows, so the first of them are painted before.
function begin() {
  const left = new AbortController();
  requestAnimationFrame(() => setTimeout(() => {
    if (!left.signal.aborted) followPages(document.querySelector(".grid"), document.querySelector(".pager"), left.signal);
  }));
  return () => left.abort();
}

takePictures(document.querySelector(".drop"));
swapSearches({ furnish, begin });
