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
