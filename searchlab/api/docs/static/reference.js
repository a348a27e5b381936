"use strict";

// The reference page: Swagger UI over /openapi.json, with pictures of photos and a key that is kept.

const stored = "searchlab.key";

function picturesOf(text) {
  try {
    return [JSON.parse(text).data ?? []].flat().map((one) => one?.urls?.thumb).filter(Boolean);
  } catch {
    return [];
  }
}

// Above an answer, the pictures of the photos in it.
const Pictures = () => ({
  wrapComponents: {
    responseBody: (Body, { React }) => (props) => React.createElement("div", {},
      React.createElement("div", { className: "photos" }, ...picturesOf(props.content).map(
        (src) => React.createElement("img", { src, alt: "", loading: "lazy" }))),
      React.createElement(Body, props)),
  },
});

// A key is typed once for as long as the tab is open.
const KeepsKey = () => ({
  statePlugins: {
    auth: {
      wrapActions: {
        authorize: (authorize) => (keys) => {
          sessionStorage.setItem(stored, keys.ApiKey.value);
          return authorize(keys);
        },
        logout: (logout) => (names) => {
          sessionStorage.removeItem(stored);
          return logout(names);
        },
      },
    },
  },
});

// Swagger UI fills in examples and defaults, and filters that exclude each other would all be sent.
function withoutValues(parameter) {
  const { example, examples = {}, schema, ...rest } = parameter;
  const first = example ?? Object.values(examples)[0]?.value;
  if (parameter.required) return { ...rest, schema, ...(first === undefined ? {} : { example: first }) };
  const { default: preset, ...bare } = schema;
  const hints = [[first, "For example"], [preset, "Default"]].filter(([value]) => value !== undefined);
  const lines = hints.map(([value, word]) => `${word} \`${value}\`.`);
  return { ...rest, schema: bare, description: [rest.description, ...lines].filter(Boolean).join(" ") };
}

// Where no file was chosen, Swagger UI sends an empty one.
function withoutEmptyForm(request) {
  if (request.body instanceof FormData && [...request.body.values()].every((part) => !part.size)) {
    delete request.body;
    delete request.headers["Content-Type"];
  }
  return request;
}

async function start() {
  const spec = await (await fetch("openapi.json")).json();
  spec.servers = [{ url: new URL(".", location.href).href.replace(/\/$/, "") }];
  for (const operation of Object.values(spec.paths).flatMap((methods) => Object.values(methods))) {
    operation.parameters = (operation.parameters ?? []).map(withoutValues);
  }
  const page = SwaggerUIBundle({
    spec,
    dom_id: "main",
    validatorUrl: null, // it would ask a service elsewhere
    deepLinking: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    plugins: [Pictures, KeepsKey],
    requestInterceptor: withoutEmptyForm,
    onComplete: () => {
      const key = sessionStorage.getItem(stored);
      if (key) page.preauthorizeApiKey("ApiKey", key);
    },
  });
}

// Its dark colours hang on a class.
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", paint);
paint();

start();
