// What every page adds with a script: a small picture where a larger one cannot be had.

document.addEventListener("error", (event) => {
  const picture = event.target;
  if (picture instanceof HTMLImageElement && picture.srcset) picture.removeAttribute("srcset");
}, true);
