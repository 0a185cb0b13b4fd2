"""Texts as an encoder reads them: pieces, batches laid end to end, and where each text lies in
them.
"""
