// Buttons that copy the text of another element; without a script there are none. Each has an icon,
// a label in a span, or both, which say for a moment what came of it.

async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.textContent.trimEnd());
    return true;
  } catch { // no permission, or neither https nor loopback
    const around = source.closest("details");
    if (around) around.open = true; // what is not shown cannot be copied
    getSelection().selectAllChildren(source);
    return false;
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const label = button.querySelector("span");
  const icon = button.querySelector("use");
  const before = [label?.textContent, icon?.getAttribute("href")];
  button.hidden = false;
  button.addEventListener("click", async () => {
    const isCopied = await copy(document.getElementById(button.dataset.copy));
    if (label) label.textContent = isCopied ? "Copied" : "Press Ctrl-C";
    icon?.setAttribute("href", isCopied ? "#i-check" : "#i-edit");
    setTimeout(() => {
      if (label) label.textContent = before[0];
      icon?.setAttribute("href", before[1]);
    }, 2000);
  });
}
