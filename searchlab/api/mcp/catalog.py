"""The catalog of all tools, by name."""

from __future__ import annotations

from typing import Final

from searchlab.api.mcp import collection_tools, library_tools, photo_tools
from searchlab.api.mcp.tool import Tool

TOOLS: Final[dict[str, Tool]] = {
    tool.name: tool for tool in (*photo_tools.TOOLS, *library_tools.TOOLS, *collection_tools.TOOLS)
}
