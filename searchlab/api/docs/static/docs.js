"use strict";

// The reference: a form for each operation of /openapi.json, sent from this page.

const stored = "searchlab.key";

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// Text with `code` and [links](/to), and nothing else of Markdown.
function rich(text) {
  const parts = text.split(/(`[^`]+`|\[[^\]]+\]\([^)\s]+\))/);
  return parts.map((part) => {
    const link = /^\[([^\]]+)\]\(([^)\s]+)\)$/.exec(part);
    if (link) return make("a", { href: link[2] }, link[1]);
    return part.startsWith("`") ? make("code", {}, part.slice(1, -1)) : part;
  });
}

function ruleOf(schema) {
  const kind = schema.items ?? schema;
  const from = kind.minimum ?? kind.minLength;
  const to = kind.maximum ?? kind.maxLength;
  const unit = kind.maxLength ? " characters" : "";
  const range = to === undefined ? "" : `${from === undefined ? "at most" : `${from} to`} ${to}${unit}`;
  const preset = schema.default === undefined ? "" : `default ${schema.default}`;
  const several = schema.type === "array" ? "repeatable" : "";
  return [kind.format ?? kind.type ?? "", range, preset, several].filter(Boolean).join(", ");
}

function exampleOf(parameter) {
  const first = Object.values(parameter.examples ?? {})[0];
  return [first ? first.value : parameter.example].flat()[0];
}

// A control, and how to read the texts that it holds.
function control(parameter) {
  const { schema, name } = parameter;
  const choices = (schema.items ?? schema).enum;
  if (choices) {
    const several = schema.type === "array";
    const none = several ? [] : [make("option", { value: "" }, "")];
    const options = choices.map((one) => make("option", {}, one));
    const size = several ? Math.min(choices.length, 4) : undefined;
    const select = make("select", { multiple: several, size, "aria-label": name }, ...none, ...options);
    return [select, () => [...select.selectedOptions].map((one) => one.value).filter(Boolean)];
  }
  const placeholder = exampleOf(parameter) ?? schema.default ?? "";
  const input = make("input", { placeholder, "aria-label": name, autocomplete: "off", spellcheck: "false" });
  // Several values of a repeatable parameter are separated by commas here.
  const several = schema.type === "array";
  return [input, () => (several ? input.value.split(",").map((one) => one.trim()) : [input.value]).filter(Boolean)];
}

function parameterTable(parameters, readers) {
  const rows = parameters.map((parameter) => {
    const [node, read] = control(parameter);
    readers.push({ name: parameter.name, place: parameter.in, read, required: parameter.required });
    const mark = parameter.required ? [make("span", { class: "required", title: "required" }, " *")] : [];
    return make("tr", {},
      make("td", {}, make("code", {}, parameter.name), ...mark, make("div", { class: "rule" }, parameter.in)),
      make("td", { class: "field" }, node),
      make("td", {}, make("p", {}, ...rich(parameter.description ?? "")), make("div", { class: "rule" }, ruleOf(parameter.schema))));
  });
  return make("table", {}, ...rows);
}

function bodyControl(body) {
  const kinds = body?.content ?? {};
  if (kinds["multipart/form-data"]) {
    const file = make("input", { type: "file", accept: "image/*", "aria-label": "image" });
    return [file, () => file.files[0] && { file: file.files[0] }];
  }
  if (kinds["application/json"]) {
    const text = make("textarea", { "aria-label": "body", spellcheck: "false" });
    text.value = JSON.stringify(kinds["application/json"].example ?? {}, null, 2);
    return [text, () => ({ json: text.value })];
  }
  return [null, () => undefined];
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function requestOf(method, path, readers, readBody) {
  let target = path;
  const query = new URLSearchParams();
  const headers = {};
  for (const { name, place, read } of readers) {
    const values = read();
    if (place === "path") target = target.replace(`{${name}}`, encodeURIComponent(values[0] ?? ""));
    else if (place === "query") values.forEach((value) => query.append(name, value));
    else if (values.length) headers[name] = values[0];
  }
  const search = query.toString();
  const body = readBody();
  if (body?.json !== undefined) headers["content-type"] = "application/json";
  return { method: method.toUpperCase(), target: search ? `${target}?${search}` : target, headers, body };
}

function curlOf(request, base) {
  const lines = [`curl -X ${request.method} ${quoted(base + request.target)}`, `-H "x-api-key: $SEARCHLAB_KEY"`];
  for (const [name, value] of Object.entries(request.headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (request.body?.json !== undefined) lines.push(`--data ${quoted(request.body.json)}`);
  if (request.body?.file) lines.push(`-F ${quoted(`image=@${request.body.file.name}`)}`);
  return lines.join(" \\\n  ");
}

async function send(request, key, place) {
  const headers = { ...request.headers, ...(key ? { "x-api-key": key } : {}) };
  let body = request.body?.json;
  if (request.body?.file) {
    body = new FormData();
    body.append("image", request.body.file);
  }
  const started = performance.now();
  place.replaceChildren(make("p", { class: "quiet" }, "Waiting for the answer"));
  try {
    const answer = await fetch(request.target, { method: request.method, headers, body, cache: "no-store" });
    const spent = Math.round(performance.now() - started);
    const text = (answer.headers.get("content-type") ?? "").startsWith("image/") ? "a picture" : await answer.text();
    show(place, answer, text, spent);
  } catch (error) {
    place.replaceChildren(make("p", { class: "status bad" }, `No answer: ${error.message}`));
  }
}

function show(place, answer, text, spent) {
  let shown = text;
  let photos = [];
  try {
    const parsed = JSON.parse(text);
    shown = JSON.stringify(parsed, null, 2);
    photos = [parsed.data ?? []].flat().map((one) => one?.urls?.thumb).filter(Boolean);
  } catch { /* shown as it came */ }
  const names = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
  const good = answer.ok || answer.status === 304;
  place.replaceChildren(
    make("p", {}, make("span", { class: good ? "status" : "status bad" }, `${answer.status} ${answer.statusText}`), ` in ${spent} ms`),
    make("div", { class: "photos" }, ...photos.map((src) => make("img", { src, alt: "", loading: "lazy" }))),
    make("pre", {}, shown || "no body"),
    make("details", {}, make("summary", { class: "quiet" }, "Headers"), make("pre", {}, names)));
}

function resolved(node, api) {
  if (!node.$ref) return node;
  return node.$ref.slice(2).split("/").reduce((found, step) => found[step], api);
}

function answerTable(responses, api) {
  const rows = Object.entries(responses).map(([status, response]) => {
    const lines = resolved(response, api).description.split("\n");
    return make("tr", {}, make("td", {}, status), make("td", {}, ...lines.map((line) => make("p", {}, ...rich(line)))));
  });
  return make("table", {}, ...rows);
}

function section(path, method, operation, api, key) {
  const readers = [];
  const open = operation.security?.length === 0;
  const table = parameterTable(operation.parameters ?? [], readers);
  const [body, readBody] = bodyControl(operation.requestBody);
  const base = api.servers[0].url;
  const curl = make("pre");
  const request = () => requestOf(method, path, readers, readBody);
  const update = () => { curl.textContent = curlOf(request(), base); };
  const answer = make("div", { "aria-live": "polite" });
  const form = make("form", { oninput: update, onchange: update, onsubmit: (event) => {
    event.preventDefault();
    send(request(), open ? "" : key(), answer);
  } },
    ...(readers.length ? [make("h3", {}, "Parameters"), table] : []),
    ...(body ? [make("h3", {}, "Body"), make("p", {}, ...rich(operation.requestBody.description ?? "")), body] : []),
    make("div", { class: "row" },
      make("button", { class: "send" }, "Send"),
      make("button", { type: "button", onclick: () => navigator.clipboard?.writeText(curl.textContent) }, "Copy curl")),
    curl);
  update();
  return make("details", { class: "operation", id: operation.operationId },
    make("summary", {},
      make("span", { class: `method ${method}` }, method.toUpperCase()),
      make("span", { class: "path" }, path),
      make("span", { class: "what" }, operation.summary)),
    make("div", { class: "inside" },
      make("p", {}, ...rich(operation.description ?? `${operation.summary}.`)), form, answer,
      make("details", {}, make("summary", { class: "quiet" }, "Every answer"), answerTable(operation.responses, api))));
}

async function start() {
  const main = document.querySelector("main");
  const input = document.querySelector("#key");
  input.value = sessionStorage.getItem(stored) ?? "";
  input.addEventListener("input", () => sessionStorage.setItem(stored, input.value));
  const api = await (await fetch("openapi.json")).json();
  const about = api.info.description.split("\n\n").map((text) => make("p", {}, ...rich(text)));
  main.append(make("h1", {}, `${api.info.title} `, make("span", { class: "quiet" }, api.info.version)), ...about);
  for (const tag of api.tags) {
    main.append(make("h2", {}, tag.name), make("p", { class: "quiet" }, tag.description));
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        if (operation.tags[0] === tag.name) main.append(section(path, method, operation, api, () => input.value.trim()));
      }
    }
  }
  const named = document.getElementById(location.hash.slice(1));
  if (named) { named.open = true; named.scrollIntoView(); }
}

start();
