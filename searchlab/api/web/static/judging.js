// Keys, and pages that change without a flash. Every address, button and next step comes from the
// server: without this script the same forms and links do the same work.

const PATIENCE_MS = 5000;
let busy = false;
let since = 0; // when the time began that `shown_at` names, by a clock that nobody sets

const main = () => document.getElementById("main");

function tell(failed) {
  const problem = document.getElementById("problem");
  if (problem) problem.hidden = !failed;
}

async function load(address, options = {}) {
  const response = await fetch(address, { ...options, signal: AbortSignal.timeout(PATIENCE_MS) });
  if (response.status >= 500 || response.status === 429) throw new Error(String(response.status));
  return response;
}

async function swap(address, options) {
  if (busy) return;
  busy = true;
  try {
    const response = await load(address, options);
    const text = await response.text();
    const page = new DOMParser().parseFromString(text, "text/html");
    const fresh = page.getElementById("main");
    if (!fresh) throw new Error("no page came");
    history.replaceState(null, "", response.url);
    document.title = page.title;
    main().replaceChildren(...fresh.childNodes);
    main().focus({ preventScroll: true });
    if (document.querySelector("[data-grid]")) scrollTo(0, 0);
    begin();
  } catch {
    tell(true);
  } finally {
    busy = false;
  }
}

function begin() {
  tell(false);
  since = performance.now();
  recorded = new Map(graded().map((radio) => [radio.name, radio.value]));
  const next = document.querySelector("[data-next]");
  if (next) new Image().src = next.dataset.next;
  const open = prints().find((print) => !print.querySelector(":checked"));
  if (open) mark(open);
}

// -- the grid: a grade is sent as soon as it is given -----------------------------------------

const prints = () => [...document.querySelectorAll(".print")];
const current = () => document.querySelector(".print.current");
const graded = () => [...document.querySelectorAll(".print :checked")];
let recorded = new Map(); // the grade of each photo that the journal holds, by the name of its field

function mark(print) {
  current()?.classList.remove("current");
  print.classList.add("current");
}

function step(by) {
  const all = prints();
  const at = all.indexOf(current());
  const to = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  if (!to) return;
  mark(to);
  // Who walks by the keyboard is where the next key counts.
  if (document.activeElement?.closest(".print")) {
    (to.querySelector(":checked") ?? to.querySelector("input"))?.focus({ preventScroll: true });
  }
  to.scrollIntoView({ block: "nearest" });
}

function columns() {
  const all = prints();
  const top = all[0]?.offsetTop;
  return all.filter((print) => print.offsetTop === top).length || 1;
}

async function send(radio) {
  const form = radio.form;
  const place = radio.name.slice(1);
  const body = new URLSearchParams({ n: place, choice: radio.value, view: "stay" });
  for (const name of ["pool", "judge", "shown_at"]) body.set(name, form.elements[name].value);
  const address = form.action.replace(/grid$/, "one");
  try {
    const response = await load(address, { method: "POST", body });
    if (!response.ok) throw new Error(String(response.status));
    const passed = performance.now() - since;
    form.elements.shown_at.value = (Number(form.elements.shown_at.value) + passed / 1000).toFixed(3);
    since += passed;
    recorded.set(radio.name, radio.value);
    tell(false);
  } catch {
    for (const one of form.elements[radio.name]) one.checked = one.value === recorded.get(radio.name);
    tell(true);
    scrollTo(0, 0);
  }
}

// -- what the judge does ----------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input:not([type=radio]), textarea, select")) return;
  const print = current();
  if (print) {
    const radio = print.querySelector(`input[value="${CSS.escape(event.key === "s" ? "skip" : event.key)}"]`);
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns(), ArrowDown: columns() };
    if (document.dir === "rtl") [steps.ArrowLeft, steps.ArrowRight] = [1, -1];
    if (radio) {
      event.preventDefault();
      radio.checked = true;
      send(radio);
      step(1);
      return;
    }
    if (event.key in steps) {
      event.preventDefault();
      step(steps[event.key]);
      return;
    }
  }
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  target.click();
});

document.addEventListener("focusin", (event) => {
  const print = event.target.closest(".print");
  if (print) mark(print);
});

document.addEventListener("change", (event) => {
  const print = event.target.closest(".print");
  if (print && event.target.type === "radio") {
    mark(print);
    send(event.target);
  }
  const reader = event.target.closest("[data-into]");
  if (reader && event.target.files?.[0]) {
    event.target.files[0].text().then((text) => {
      document.getElementById(reader.dataset.into).value = text;
    });
  }
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-swap]");
  if (!form) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  swap(form.action, { method: "POST", body });
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-swap]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  swap(link.href);
});

for (const reader of document.querySelectorAll("[data-into]")) reader.hidden = false;
begin();
