"""Texts as an encoder reads them: pieces, packed batches, and where each text lies in a batch."""
