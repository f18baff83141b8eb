"""The laboratory: data, networks, training, and the paper's tables and figures."""
