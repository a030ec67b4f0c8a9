"""Outside services that may fail, slow down or cost too much: upstreams, and what guards them."""
