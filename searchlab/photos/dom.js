// What the browser sides of all widgets share; it stands before each of them in one script.
// All text is set as text, never as markup: queries and titles are other people's words.

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// A list to choose from; each option is its own name, or a value and a name.
function chooser(label, options, onchange) {
  const made = options.map((option) => {
    const [value, name] = Array.isArray(option) ? option : [option, option];
    return element("option", { value }, name);
  });
  return element("select", { "aria-label": label, onchange }, ...made);
}

// Pictures come as bytes; each gets an address that is given back when the next ones are drawn.
function pictureMaker() {
  let addresses = [];
  return {
    make(bytes, alt) {
      if (!bytes || !bytes.byteLength) return element("span", { class: "searchlab-none" }, alt || "no picture");
      const address = URL.createObjectURL(new Blob([bytes], { type: "image/webp" }));
      addresses.push(address);
      return element("img", { src: address, alt });
    },
    forget() {
      addresses.forEach((address) => URL.revokeObjectURL(address));
      addresses = [];
    },
  };
}

// Sends what is asked to Python. One question is under way at a time: of those asked meanwhile, the last is asked when
// the answer is there. With `atOnce` each is sent as it comes, as where every one of them counts.
function asker(model, { answered, unanswered, patience = 8000, atOnce = false }) {
  let underWay = false;
  let waiting = null;
  let clock = null;

  function silent() {
    underWay = false;
    clearTimeout(clock);
    unanswered("No answer: the notebook's kernel is busy or stopped. Run this cell again.");
  }

  function ask(message, buffers = []) {
    if (underWay && !atOnce) { waiting = [message, buffers]; return; }
    underWay = true;
    clearTimeout(clock);
    clock = setTimeout(silent, patience);
    try {
      model.send(message, undefined, buffers);
    } catch {
      silent(); // the kernel was shut down under a page that stayed open
    }
  }

  model.on("change:heard", () => {
    clearTimeout(clock);
    underWay = false;
    answered();
    if (waiting) { const next = waiting; waiting = null; ask(...next); }
  });
  return { ask, isBusy: () => underWay, stop: () => clearTimeout(clock) };
}
