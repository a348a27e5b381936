// Searches without a new document: what lies at the address of a link or of the form is fetched, and
// its content takes the place of what is shown. Every state keeps its address, and back and forward
// show what was there. Whatever does not go well is left to the browser, which then goes there itself.

const MOST_KEPT = 8;

const main = document.getElementById("main");
const form = document.getElementById("search");
const field = form.elements.q;
const home = new URL(form.action).pathname;
const kept = new Map();
let shown = here();
let underway = null;

function here() {
  return location.pathname + location.search;
}

// Other than this one if the page is no search, is of a newer server, or may load other pictures.
function scriptOf(page) {
  return page.querySelector("script[data-search]")?.outerHTML;
}

// What is around the results and belongs to them.
function readFrame(page) {
  const search = page.getElementById("search");
  const words = search.querySelector("[name=q]");
  return {
    title: page.title,
    words: words.defaultValue,
    placeholder: words.placeholder,
    hidden: [...search.querySelectorAll("input[type=hidden]")],
    upload: page.querySelector("form.drop").getAttribute("action"),
  };
}

function showFrame(frame, { isTyping = false } = {}) {
  document.title = frame.title;
  field.defaultValue = frame.words;
  if (!isTyping) field.value = frame.words;
  field.placeholder = frame.placeholder;
  for (const old of form.querySelectorAll("input[type=hidden]")) old.remove();
  form.append(...frame.hidden);
  document.querySelector("form.drop").setAttribute("action", frame.upload);
}

function keep() {
  kept.delete(shown);
  kept.set(shown, { frame: readFrame(document), nodes: [...main.childNodes], top: scrollY, focused: document.activeElement });
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
}

/** Let searches change the page in place.
 *
 * `furnish` is called for content that is new, `begin` for any that was just put in, and what
 * `begin` returns is called before that content goes.
 */
export function swapSearches({ furnish, begin }) {
  const told = Object.assign(document.createElement("p"), { className: "sr" });
  told.setAttribute("role", "status");
  document.body.append(told);
  furnish();
  let end = begin();

  function put(nodes) {
    end();
    main.replaceChildren(...nodes);
    shown = here();
  }

  function putBack(address) {
    const { frame, nodes, top, focused } = kept.get(address);
    kept.delete(address);
    keep();
    put(nodes);
    showFrame(frame);
    end = begin();
    scrollTo(0, top);
    (main.contains(focused) ? focused : main).focus({ preventScroll: true });
  }

  function putNew(page, address, { isBack, isTyping }) {
    keep();
    if (isBack || address === location.href) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    put(page.getElementById("main").childNodes);
    showFrame(readFrame(page), { isTyping });
    kept.delete(shown);
    furnish();
    end = begin();
    if (!isBack) scrollTo(0, 0);
    const heading = main.querySelector("h1");
    heading.tabIndex = -1;
    if (!isTyping) heading.focus({ preventScroll: true });
    const parts = [heading, main.querySelector(".counts")].filter(Boolean);
    told.textContent = parts.map((part) => part.textContent.trim()).join(", ");
  }

  async function visit(address, { isBack = false } = {}) {
    underway?.abort();
    const mine = underway = new AbortController();
    const words = field.value;
    form.classList.add("busy");
    try {
      const answer = await fetch(address, { signal: mine.signal });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok || scriptOf(page) !== scriptOf(document)) throw new Error("no page to put here");
      const isTyping = document.activeElement === field && field.value !== words;
      putNew(page, answer.url, { isBack, isTyping });
    } catch {
      if (mine.signal.aborted) return;
      if (isBack) location.reload();
      else location.assign(address);
    } finally {
      if (underway === mine) form.classList.remove("busy");
    }
  }

  document.addEventListener("submit", (event) => {
    if (event.target !== form || event.defaultPrevented) return;
    event.preventDefault();
    const address = new URL(form.action);
    address.search = new URLSearchParams(new FormData(form, event.submitter));
    visit(address.href);
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    underway?.abort();
    const isSearch = link.origin === location.origin && link.pathname === home && !link.hash && !link.target && !link.download;
    if (!isSearch) return;
    event.preventDefault();
    visit(link.href);
  });

  addEventListener("popstate", () => {
    underway?.abort();
    const address = here();
    if (address === shown) return; // only the part after # is another
    if (kept.has(address)) putBack(address);
    else visit(address, { isBack: true });
  });

  addEventListener("pagehide", () => underway?.abort());
}
