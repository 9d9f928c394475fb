"""One Llama-style decoder with named sites where variants act."""
