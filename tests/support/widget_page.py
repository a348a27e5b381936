"""A page that holds a widget as a notebook does: its script, and a model that is in Python."""

import base64

_MODEL = """
window.mount = (state) => {
  const listeners = {};
  const wake = (value) => value && value.__bytes__ !== undefined
    ? new DataView(Uint8Array.from(atob(value.__bytes__), (c) => c.charCodeAt(0)).buffer)
    : Array.isArray(value) ? value.map(wake)
    : value && typeof value === "object"
      ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, wake(v)])) : value;
  let now = wake(state);
  const model = {
    get: (name) => now[name],
    on: (event, call) => { (listeners[event] ??= []).push(call); },
    send: async (message, _callbacks, buffers = []) => {
      const text = (buffer) => Array.from(new Uint8Array(buffer), (c) => String.fromCharCode(c));
      const sent = buffers.map((buffer) => btoa(text(buffer).join("")));
      const before = state;
      state = await window.toPython(message, sent);
      now = wake(state);
      for (const name of Object.keys(state)) {
        if (JSON.stringify(before[name]) === JSON.stringify(state[name])) continue;
        for (const call of listeners[`change:${name}`] ?? []) call();
      }
    },
  };
  window.leave = window.widget.render({ model, el: document.getElementById("cell") });
};
"""


def plain(value):
    """Make a trait's value one that goes to the page as JSON."""
    if isinstance(value, bytes | memoryview):
        return {"__bytes__": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def state_of(widget, names):
    return {name: plain(getattr(widget, name)) for name in names}


def open_widget(page, widget, *, names):
    """Show a widget in a page; its messages go to Python, and its state comes back."""

    def to_python(message, buffers):
        widget._handle_custom_msg(message, [base64.b64decode(one) for one in buffers])
        return state_of(widget, names)

    page.expose_function("toPython", to_python)
    page.set_content(
        '<!doctype html><html lang="en"><head><title>a notebook</title></head>'
        '<body style="margin:0"><main><h1>A notebook</h1><h2>A cell</h2><h3>Its output</h3>'
        '<div id="sheet">saved</div><div id="cell"></div></main></body></html>'
    )
    page.add_style_tag(content=widget._css)
    script = widget._esm.replace("export default { render };", "window.widget = { render };")
    page.add_script_tag(content=script + _MODEL, type="module")
    page.wait_for_function("window.mount !== undefined")
    page.evaluate("state => window.mount(state)", state_of(widget, names))
