"""The same load by wrk, which costs the machine a tenth of what a client in Python does."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.common.load.closed_loop import NEW_TEXT, WORDS, Load, LoadRequest

_SCRIPT = """
local number = %(first)d
local words = {}
for word in string.gmatch("%(words)s", "%%S+") do words[#words + 1] = word end
local body = nil
if "%(body)s" ~= "" then body = io.open("%(body)s", "rb"):read("*a") end
local target = "%(target)s"
local asks_new = string.find(target, "%(new)s", 1, true) ~= nil
request = function()
  if not asks_new then return wrk.format("%(method)s", target, nil, body) end
  number = number + 1
  local text = words[number %% #words + 1] .. "+" .. string.format("%%.0f", number)
  return wrk.format("%(method)s", (string.gsub(target, "%(new)s", text)), nil, body)
end
done = function(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("RESULT %%d %%d %%d %%.1f %%.1f %%.1f %%.1f", summary.requests,
    errors.status, failed, summary.duration, latency:percentile(50), latency:percentile(95),
    latency:percentile(99)))
end
"""


def load_with_wrk(request: LoadRequest, *, connections: int, seconds: float, first: int) -> Load:
    """Run wrk with one thread; `seconds` are rounded to whole ones."""
    parts = urlsplit(request.url)
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder) / "body" if request.body else ""
        if request.body:
            (Path(folder) / "body").write_bytes(request.body)
        script = Path(folder) / "request.lua"
        filled = {"first": first, "words": " ".join(WORDS), "body": body, "target": request.target}
        script.write_text(_SCRIPT % (filled | {"new": NEW_TEXT, "method": request.method}))
        headers = [
            word for name, value in request.headers.items() for word in ("-H", f"{name}: {value}")
        ]
        words = ["-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s", str(script)]
        process = subprocess.run(
            ["wrk", *words, *headers, f"{parts.scheme}://{parts.netloc}"],
            capture_output=True,
            text=True,
            check=False,
        )
    figures = re.search(r"RESULT (.*)", process.stdout)
    if figures is None:
        msg = f"wrk must report, got: {process.stdout}{process.stderr}"
        raise RuntimeError(msg)
    requests, refused, failed, duration_us, p50_us, p95_us, p99_us = map(float, figures[1].split())
    return Load(
        requests=int(requests),
        refused=int(refused),
        failed=int(failed),
        seconds=duration_us / 1e6,
        p50_ms=p50_us / 1e3,
        p95_ms=p95_us / 1e3,
        p99_ms=p99_us / 1e3,
    )
