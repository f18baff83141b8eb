"""Pictures of what the library does; they need Pillow, the rest of the library does not."""
