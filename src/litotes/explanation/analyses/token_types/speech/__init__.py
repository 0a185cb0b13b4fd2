"""Parts of speech of English words, without a download."""
