"""What a model is timed with: pictures, stages, peers, charts."""
