// Trying an operation in its form: the request as curl would send it, the answer, and its pictures.

const stored = "searchlab.key";
const key = document.getElementById("key");
const root = new URL(".", location.href);

function make(tag, values = {}, ...inside) {
  const element = Object.assign(document.createElement(tag), values);
  element.append(...inside);
  return element;
}

/** Return the values of a form's fields as [field, value], those left empty left out. */
function valuesOf(form) {
  return [...form.querySelectorAll("[data-place]")].flatMap((field) => {
    if (field.type === "checkbox") return field.checked ? [[field, field.value]] : [];
    if (field.type === "file") return [...field.files].map((file) => [field, file]);
    if ("lines" in field.dataset) return field.value.split("\n").map((line) => [field, line.trim()]);
    return [[field, field.value]];
  }).filter(([, value]) => value !== "");
}

function requestOf(form) {
  const values = valuesOf(form);
  const at = (place) => values.filter(([field]) => field.dataset.place === place);
  let path = form.dataset.path.slice(1);
  for (const [field, value] of at("path")) path = path.replace(`{${field.name}}`, encodeURIComponent(value));
  const url = new URL(path, root);
  for (const [field, value] of at("query")) url.searchParams.append(field.name, value);
  const headers = Object.fromEntries(at("header").map(([field, value]) => [field.name, value]));
  let body;
  for (const [, value] of at("body")) {
    headers["Content-Type"] = "application/json";
    body = value;
  }
  for (const [field, file] of at("form")) {
    body ??= new FormData();
    body.append(field.name, file);
  }
  return { url, headers, body, method: form.dataset.method };
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Write a request as a line for a shell, with the name of a variable in the place of the key. */
function curlOf({ url, headers, body, method }, isOpen) {
  const parts = ["curl", ...(method === "GET" ? [] : ["-X", method]), quote(url.href)];
  if (!isOpen) parts.push('-H "x-api-key: $SEARCHLAB_KEY"');
  for (const [name, value] of Object.entries(headers)) parts.push("-H", quote(`${name}: ${value}`));
  if (typeof body === "string") parts.push("-d", quote(body));
  else if (body) for (const [name, file] of body) parts.push("-F", quote(`${name}=@${file.name}`));
  return parts.join(" ");
}

function picturesOf(answer) {
  const photos = answer?.data?.photos ?? [answer?.data ?? []].flat();
  const pictures = photos.map((photo) => [photo?.urls?.thumb ?? photo?.photo_thumbnail_url, photo?.alt_description ?? ""]);
  return pictures.filter(([src]) => src).map(([src, alt]) => make("img", { src, alt, loading: "lazy" }));
}

function block(label, text) {
  const pre = make("pre", { tabIndex: 0, textContent: text });
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", label);
  return pre;
}

async function show(answer, place) {
  const kind = answer.headers.get("content-type") ?? "";
  if (kind.startsWith("image/")) {
    place.append(make("div", { className: "photos" }, make("img", { src: answer.url, alt: "The picture" })));
    return;
  }
  const text = await answer.text();
  if (!kind.includes("json") || !text) {
    if (text) place.append(block("Answer", text));
    return;
  }
  const value = JSON.parse(text);
  place.append(make("div", { className: "photos" }, ...picturesOf(value)), block("Answer", JSON.stringify(value, null, 2)));
}

async function send(form) {
  const request = requestOf(form);
  const isOpen = "open" in form.dataset;
  // Each answer has a place of its own, so that none comes to stand under a later request.
  const place = make("div");
  form.querySelector(".answer").replaceChildren(place);
  const says = make("p", { className: "status", textContent: "Waiting for the answer" });
  says.setAttribute("role", "status");
  place.append(block("The request for a shell", curlOf(request, isOpen)), says);
  if (!isOpen && key.value) request.headers["x-api-key"] = key.value;
  const start = performance.now();
  try {
    const answer = await fetch(request.url, { ...request, credentials: "omit", cache: "no-store" });
    const headers = [...answer.headers].map((pair) => pair.join(": ")).join("\n");
    says.textContent = `${answer.status} in ${Math.round(performance.now() - start)} ms`;
    await show(answer, place);
    place.append(make("details", {}, make("summary", { textContent: "Headers" }), block("Headers of the answer", headers)));
  } catch (error) {
    says.textContent = `No answer: ${error.message}. Look whether the server runs, and send it again.`;
  }
}

/** Open what an address points to, which may be closed. */
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
  }
}

key.value = sessionStorage.getItem(stored) ?? "";
key.addEventListener("input", () => sessionStorage.setItem(stored, key.value.trim()));
key.form.addEventListener("submit", (event) => event.preventDefault());
for (const hidden of document.querySelectorAll(".key[hidden], .send[hidden]")) hidden.hidden = false;
for (const form of document.querySelectorAll("form[data-path]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}
addEventListener("hashchange", openTarget);
openTarget();
