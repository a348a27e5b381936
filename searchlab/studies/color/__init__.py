"""How colour tolerances and colour names agree with people's judgments."""
