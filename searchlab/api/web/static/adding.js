// Adds photos to collections without leaving the page: the form opens over it.

const dialog = document.createElement("dialog");
const told = document.createElement("output"); // read out as a status
dialog.className = "add-over";
dialog.setAttribute("aria-label", "Add to a collection");
told.className = "told";
document.body.append(dialog, told);

let fading = 0;
function tell(text) {
  told.textContent = text;
  clearTimeout(fading);
  fading = setTimeout(() => told.replaceChildren(), 6000);
}

async function openForm(address) {
  try {
    const answer = await fetch(address);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const form = page.querySelector("form.adding");
    if (!answer.ok || !form) throw new Error(answer.statusText);
    const heading = Object.assign(document.createElement("h2"), { textContent: "Add to a collection" });
    const leave = Object.assign(document.createElement("button"), { type: "button", className: "button quiet", textContent: "Cancel" });
    leave.addEventListener("click", () => dialog.close());
    form.querySelector(".actions").append(leave);
    dialog.replaceChildren(heading, form);
    dialog.showModal();
  } catch {
    location.assign(address); // the page says why
  }
}

/** Send a form as if there were no script, with the value of the button that was pressed. */
function sendPlainly(form, button) {
  if (button?.name) form.append(Object.assign(document.createElement("input"), { type: "hidden", name: button.name, value: button.value }));
  form.submit();
}

async function send(form, button) {
  const fields = new FormData(form, button);
  fields.set("stay", "yes");
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(fields) });
    if (!answer.ok) throw new Error(answer.statusText);
    tell(await answer.text());
  } catch {
    sendPlainly(form, button);
    return;
  }
  dialog.close();
  const menu = form.closest("details");
  if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-adds]");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  openForm(link.href);
});
document.addEventListener("submit", (event) => {
  if (!event.target.action.endsWith("/collections/add")) return;
  event.preventDefault();
  send(event.target, event.submitter);
});
