"""Work that devices did without a network: applied once, in order, merged where it conflicts."""
