"""Record linkage: agreement weights by EM, each record linked to its best candidate (Fellegi and Sunter)."""
