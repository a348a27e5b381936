"""Where figures come from: sealed records, what they depend on, and how they are checked again."""
