"""Making folds: `extractive` needs no model, `faithful` says what must survive one, `names` finds what a text is about."""
