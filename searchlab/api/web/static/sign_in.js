// Sends the token of the address, and takes it out of the history first.

const form = document.querySelector("#sign-in");

async function enter() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  if (document.prerendering) {
    await new Promise((resolve) => document.addEventListener("prerenderingchange", resolve, { once: true }));
  }
  history.replaceState(null, "", location.pathname + location.search);
  form.elements.token.value = token;
  document.querySelector("#entering").hidden = false;
  form.submit();
}

if (form) {
  enter();
  addEventListener("hashchange", enter); // a link that is opened where this page is shown already
}
