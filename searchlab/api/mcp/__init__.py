"""The tool server at `/mcp`: the operations of the API as tools for language-model clients."""
