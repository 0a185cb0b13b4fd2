"""Pages that read as an article: one look, one template, and the pieces such a page is made of."""
