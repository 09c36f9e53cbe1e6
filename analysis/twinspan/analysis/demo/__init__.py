"""The built-in example: a small loan review by four agents on a stand-in model."""
