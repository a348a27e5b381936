"""Where figures come from: sealed records, what they depend on, and how to verify them."""
