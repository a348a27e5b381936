// What every page adds with a script: a small picture where a larger one cannot be had, and Escape
// to close what was opened over the page.

document.addEventListener("error", (event) => {
  const picture = event.target;
  if (picture instanceof HTMLImageElement && picture.srcset) picture.removeAttribute("srcset");
}, true);

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog[open]")) return;
  const open = document.querySelector("details:is(.by-picture, .filters, .add)[open]");
  if (open) { open.open = false; open.querySelector("summary").focus(); }
});
