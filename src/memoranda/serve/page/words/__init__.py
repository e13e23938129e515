"""Says things in the words of the page, in the language of the reader."""
