// Search by a picture that is chosen, dropped or pasted. A small copy stays in this tab's own
// storage, so that the page can show what was searched by; the server keeps none.

const SIDE = 160;
const STORE = "searchlab.picture";

async function keepCopy(file) {
  try {
    const picture = await createImageBitmap(file);
    const scale = SIDE / Math.min(picture.width, picture.height);
    const canvas = Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE });
    const [width, height] = [picture.width * scale, picture.height * scale];
    canvas.getContext("2d").drawImage(picture, (SIDE - width) / 2, (SIDE - height) / 2, width, height);
    const copy = canvas.toDataURL("image/jpeg", 0.8);
    sessionStorage.setItem(STORE, JSON.stringify({ copy, token: "", from: searchedBy() }));
  } catch {
    sessionStorage.removeItem(STORE);
  }
}

const searchedBy = () => new URLSearchParams(location.search).get("picture") ?? "";

// The first other page after an upload claims the copy, not the one that it was sent from, to which
// people go back where it failed; another search by picture does not show it.
export function showCopy() {
  const shown = document.querySelector("img[data-uploaded]");
  const token = searchedBy();
  const stored = JSON.parse(sessionStorage.getItem(STORE) ?? "null");
  if (!shown || !stored || (stored.token ? stored.token !== token : stored.from === token)) return;
  shown.src = stored.copy;
  shown.alt = "The picture that you chose";
  sessionStorage.setItem(STORE, JSON.stringify({ copy: stored.copy, token }));
}

export function takePictures(form) {
  const input = form.querySelector("input[type=file]");
  form.querySelector(".js").hidden = false;

  async function send() {
    document.body.classList.add("busy");
    await keepCopy(input.files[0]);
    form.submit();
  }

  function take(files) {
    const picture = [...files].find((file) => file.type.startsWith("image/"));
    if (!picture) return false;
    const chosen = new DataTransfer();
    chosen.items.add(picture);
    input.files = chosen.files;
    send();
    return true;
  }

  input.addEventListener("change", () => { if (input.files.length) send(); });
  addEventListener("paste", (event) => {
    // A spreadsheet puts a picture of its cells beside the words.
    const isText = event.clipboardData.types.includes("text/plain");
    if (isText && event.target instanceof Element && event.target.closest("input, textarea")) return;
    if (take(event.clipboardData.files)) event.preventDefault();
  });
  const hasFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (!hasFile(event)) return;
    event.preventDefault();
    take(event.dataTransfer.files);
  });
  addEventListener("pageshow", () => document.body.classList.remove("busy"));
}
