// Further photos as one scrolls: the link to the next page is fetched before it comes into view.
// The last row changes when more photos join it, so it stays unseen until they are there.

const AHEAD = "1600px";

function holdBack(grid) {
  const photos = [...grid.children];
  const last = photos.at(-1).offsetTop;
  for (const photo of photos) photo.classList.remove("waiting");
  for (const photo of photos.reverse()) {
    if (photo.offsetTop !== last) break;
    photo.classList.add("waiting");
  }
}

function showAll(grid) {
  for (const photo of grid.querySelectorAll(".waiting")) photo.classList.remove("waiting");
}

/** Follow the pages until `left` is aborted, which the page is that shows them. */
export function followPages(grid, pager, left) {
  const next = pager?.querySelector("[rel=next]");
  if (!grid || !next) return;
  let isLoading = false;
  // Each page counts as a search: none is fetched ahead for who only looks at the first photos.
  let watcher = watch("0px");

  function watch(rootMargin) {
    const made = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) load();
    }, { rootMargin });
    made.observe(pager);
    return made;
  }

  function lookAhead() {
    watcher.disconnect();
    watcher = watch(AHEAD);
  }

  function stop() {
    removeEventListener("scroll", lookAhead);
    watcher.disconnect();
    resizes.disconnect();
    showAll(grid);
  }

  async function load() {
    if (isLoading) return;
    isLoading = true;
    try {
      const answer = await fetch(next.dataset.grid, { signal: left });
      if (!answer.ok) { stop(); return; } // the link itself still leads to a page that says why
      append(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      stop();
    } finally {
      isLoading = false;
    }
  }

  function append(page) {
    const photos = page.querySelector("ul[data-shown]");
    document.querySelector("[data-shown]").textContent = photos.dataset.shown;
    grid.append(...photos.children);
    const following = page.querySelector("[rel=next]");
    if (following) {
      next.href = following.href;
      next.dataset.grid = following.dataset.grid;
      holdBack(grid);
      watcher.unobserve(pager);
      watcher.observe(pager); // reports at once if the pager is still in reach
    } else {
      stop();
      pager.replaceChildren(Object.assign(document.createElement("p"), { className: "quiet small", textContent: "That is all of them." }));
    }
  }

  left.addEventListener("abort", stop);
  const resizes = new ResizeObserver(() => holdBack(grid));
  resizes.observe(grid);
  addEventListener("scroll", lookAhead, { once: true, passive: true, signal: left });
}
