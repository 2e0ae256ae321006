"""What users may test their own parts with: fakes, and the contract suite that every store passes (`talekeeper.testing.stores`)."""
